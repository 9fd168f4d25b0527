package sqlexpr

// rewriteCasts writes x::type as CAST(x AS type), which the parser knows. As in
// PostgreSQL and DataFusion :: binds closer than any other operator, a minus before it
// included, so what it casts is a single operand: a literal, a path, a call, an
// element, brackets or a CASE. It takes time in proportion to the tokens.
func rewriteCasts(src source, tokens []token) ([]token, error) {
	r := casts{tokens: tokens, open: make([]int, len(tokens)), ended: map[int]int{}}
	r.match()
	opened := map[int]int{} // how many casts begin at a token
	closed := map[int]bool{}
	for i, tok := range tokens {
		if !tok.is("::") {
			continue
		}
		if !endsOperand(tokens[:i]) {
			return nil, src.errorf(tok.at, "something to cast is expected before it")
		}
		_, n, err := typeName(src, tokens[i+1:])
		if err != nil {
			return nil, err
		}
		start := r.start(i - 1)
		if opened[start]++; opened[start] > MaxDepth {
			return nil, src.unsupportedf(tok.at, "nesting deeper than %d", MaxDepth)
		}
		r.ended[i+n] = start
		closed[i+n] = true
	}
	if len(opened) == 0 {
		return tokens, nil
	}
	out := make([]token, 0, len(tokens)+6*len(closed))
	for i, tok := range tokens {
		for range opened[i] {
			out = append(out, token{kind: word, at: tok.at, val: "CAST", upper: "CAST"}, token{kind: symbol, at: tok.at, val: "("})
		}
		if tok.is("::") {
			tok.kind, tok.val, tok.upper = word, "AS", "AS"
		}
		if out = append(out, tok); closed[i] {
			out = append(out, token{kind: symbol, at: tok.at, val: ")"})
		}
	}
	return out, nil
}

// casts finds where the operands of :: begin.
type casts struct {
	tokens []token
	// open is the place of the bracket, or the CASE, that a token closes, -1 for others.
	open []int
	// ended is where the operand of a cast begins, by the last token of its type.
	ended map[int]int
}

func (r *casts) match() {
	var stack []int
	for i, tok := range r.tokens {
		r.open[i] = -1
		switch {
		case tok.is("("), tok.is("["), tok.upper == "CASE":
			stack = append(stack, i)
		case tok.is(")"), tok.is("]"), tok.upper == "END":
			if n := len(stack); n > 0 {
				r.open[i] = stack[n-1]
				stack = stack[:n-1]
			}
		}
	}
}

// start is the first token of the operand that ends with the token at i.
func (r *casts) start(i int) int {
	for {
		if from, ok := r.ended[i]; ok {
			return from
		}
		tok := r.tokens[i]
		if open := r.open[i]; open >= 0 {
			i = open
			if tok.upper == "END" || i == 0 {
				return i
			}
			switch before := r.tokens[i-1]; {
			case tok.is("]") && endsOperand(r.tokens[:i]): // an element
				i--
				continue
			case tok.is(")") && before.kind == word && (!keywords[before.upper] || before.upper == "CAST" || before.upper == "TRY_CAST" || before.upper == "SAFE_CAST"):
				i-- // a call
			default:
				return i
			}
			tok = r.tokens[i]
		}
		switch {
		case i > 1 && r.tokens[i-1].is("."): // a field
			i -= 2
		case tok.kind == text && i > 0 && endsOperand(r.tokens[:i]): // date '2020-01-01'
			i--
		default:
			return i
		}
	}
}
