package sqlexpr

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// The parser reads GoogleSQL, which is close to Lance's dialect and differs in
// details. translate rewrites the tokens of one into text of the other, so that the
// grammar proper (precedence, brackets, CASE, IN lists) is left to the parser:
//
//	Lance                     GoogleSQL
//	'it''s'  "it's"           "it's", with its escapes
//	order                     `order`: every name is quoted, so that none is a word
//	a == b                    a = b
//	a % b                     a * b   and a mark "modulo" at the operator
//	a ILIKE b                 a LIKE b   and a mark "fold case"
//	a LIKE b ESCAPE 'c'       a LIKE b   and a mark "escape c" after b
//	a IS DISTINCT FROM b      a != b   and a mark "nulls are equal"
//	date 'x'                  CAST("x" AS `date`)
//	CAST(a AS decimal(3,1))   CAST(a AS `decimal(3,1)`)
//	a::int                    CAST(a AS `int`), see rewriteCasts
//	current_date              `current_date`()
//	INTERVAL '1' DAY          CAST("1 DAY" AS `interval`)
//
// (Names have one letter more, see unquotedName.) A mark stands at an offset of the
// output; the conversion of the tree takes it up at the node around it, and a mark
// that no node takes is an error. Only words that are listed here reach the parser as
// words, so nothing else of its grammar (subqueries, lambdas, constructors) can be
// reached.

// mark is what the translation of a token left out.
type mark struct {
	kind   markKind
	escape rune
	at     span
}

type markKind uint8

const (
	markModulo markKind = iota
	markFold
	markEscape
	markNullsEqual
)

// keywords are the words that are not names.
var keywords = map[string]bool{
	"AND": true, "OR": true, "NOT": true, "IS": true, "NULL": true, "TRUE": true, "FALSE": true, "IN": true, "BETWEEN": true, "LIKE": true,
	"CASE": true, "WHEN": true, "THEN": true, "ELSE": true, "END": true, "CAST": true, "AS": true,
	"TRY_CAST": true, "SAFE_CAST": true, "ILIKE": true, "ESCAPE": true, "DISTINCT": true, "FROM": true, "UNKNOWN": true,
}

// operandWords are the keywords that end an operand.
var operandWords = map[string]bool{"NULL": true, "TRUE": true, "FALSE": true, "END": true, "UNKNOWN": true}

// elsewhere are words of SQL that we do not handle, and what to write instead.
var elsewhere = map[string]string{
	"SELECT": "subqueries", "EXISTS": "subqueries", "XOR": "XOR (use <> between booleans)", "DIV": "DIV (use / between integers)",
	"REGEXP": "REGEXP (use regexp_like)", "RLIKE": "RLIKE (use regexp_like)", "SIMILAR": "SIMILAR TO (use regexp_like)",
	"EXTRACT": "EXTRACT (use date_part)", "COLLATE": "COLLATE", "OVER": "window functions",
}

// translation is the text for the parser and the way back from it.
type translation struct {
	src   source
	sql   strings.Builder
	marks map[int]mark
	// pieces maps offsets of the output to the token that they came from, ascending.
	pieces []piece
}

type piece struct {
	out int
	in  span
}

// emit appends a piece of output that stands for the text at in.
func (t *translation) emit(in span, format string, args ...any) {
	t.sql.WriteByte(' ')
	t.pieces = append(t.pieces, piece{t.sql.Len(), in})
	fmt.Fprintf(&t.sql, format, args...)
}

// mark leaves a mark where the next piece will be.
func (t *translation) mark(m mark) error {
	at := t.sql.Len() + 1
	if old, taken := t.marks[at]; taken {
		return t.src.errorf(old.at.until(m.at), "not an expression")
	}
	t.marks[at] = m
	return nil
}

// origin is the text that the output between two offsets came from.
func (t *translation) origin(from, to int) span {
	find := func(out int) int {
		i, exact := slices.BinarySearchFunc(t.pieces, out, func(p piece, out int) int { return p.out - out })
		if !exact {
			i--
		}
		return max(i, 0)
	}
	if len(t.pieces) == 0 {
		return span{0, len(t.src.sql)}
	}
	return t.pieces[find(from)].in.until(t.pieces[find(max(from, to-1))].in)
}

// translate rewrites tokens, and bounds how many operators there are and how deep they
// nest.
func translate(src source, tokens []token) (*translation, error) {
	t := &translation{src: src, marks: map[int]mark{}}
	depth, run, operators := 0, 0, 0
	for i := 0; i < len(tokens); {
		tok := tokens[i]
		switch {
		case tok.is("("), tok.is("["), tok.upper == "CASE":
			depth++
		case tok.is(")"), tok.is("]"), tok.upper == "END":
			depth--
		}
		// Prefix operators nest too.
		if tok.upper == "NOT" || tok.is("-") || tok.is("+") {
			run++
		} else {
			run = 0
		}
		if depth+run > MaxDepth {
			return nil, src.unsupportedf(tok.at, "nesting deeper than %d", MaxDepth)
		}
		if tok.upper == "AND" || tok.upper == "OR" || tok.upper == "WHEN" || tok.kind == symbol && !tok.is(",") && endsOperand(tokens[:i]) {
			if operators++; operators > MaxOperators {
				return nil, src.unsupportedf(tok.at, "more than %d operators", MaxOperators)
			}
		}
		n, err := t.token(tokens, i)
		if err != nil {
			return nil, err
		}
		i += n
	}
	return t, nil
}

// token translates the token at i, and says how many it took.
func (t *translation) token(tokens []token, i int) (int, error) {
	switch tok := tokens[i]; tok.kind {
	case quoted:
		if tok.val == "" {
			return 0, t.src.errorf(tok.at, "an empty name")
		}
		t.name(tok)
	case text:
		if endsOperand(tokens[:i]) {
			return 0, t.src.errorf(tok.at, "an operator is expected before it")
		}
		t.emit(tok.at, "%s", literalString(tok.val))
	case hexText:
		if err := checkHex(t.src, tok); err != nil {
			return 0, err
		}
		t.emit(tok.at, "%s", hexLiteral(tok.val))
	case number:
		t.emit(tok.at, "%s", tok.val)
	case symbol:
		return 1, t.symbol(tok)
	case word:
		switch {
		case i > 0 && tokens[i-1].is("."):
			t.name(tok)
		case keywords[tok.upper]:
			return t.keyword(tokens, i)
		default:
			return t.word(tokens, i)
		}
	}
	return 1, nil
}

// symbol translates an operator.
func (t *translation) symbol(tok token) error {
	switch tok.val {
	case "==":
		t.emit(tok.at, "=")
	case "%":
		if err := t.mark(mark{kind: markModulo, at: tok.at}); err != nil {
			return err
		}
		t.emit(tok.at, "*")
	case "~", "!~", "~*", "!~*", "!~~":
		return t.src.unsupportedf(tok.at, "the operator %s (use regexp_like)", tok.val)
	case "<=>":
		return t.src.unsupportedf(tok.at, "the operator <=> (use IS NOT DISTINCT FROM)")
	case "->", "=>", "&&", "&", "|", "^":
		return t.src.unsupportedf(tok.at, "the operator %s", tok.val)
	default:
		t.emit(tok.at, "%s", tok.val)
	}
	return nil
}

// keyword translates the keyword at i, and says how many tokens it took.
func (t *translation) keyword(tokens []token, i int) (int, error) {
	tok := tokens[i]
	after := func(n int) token {
		if i+n < len(tokens) {
			return tokens[i+n]
		}
		return token{kind: symbol, at: span{len(t.src.sql), len(t.src.sql)}}
	}
	switch w := tok.upper; {
	case w == "TRY_CAST":
		t.emit(tok.at, "SAFE_CAST")
	case w == "ILIKE":
		if err := t.mark(mark{kind: markFold, at: tok.at}); err != nil {
			return 0, err
		}
		t.emit(tok.at, "LIKE")
	case w == "ESCAPE":
		esc := after(1)
		r := []rune(esc.val)
		if esc.kind != text || len(r) != 1 {
			return 0, t.src.errorf(tok.at.until(esc.at), "ESCAPE takes a string of one character")
		}
		return 2, t.mark(mark{markEscape, r[0], tok.at.until(esc.at)})
	case w == "IS" && (after(1).upper == "DISTINCT" || after(1).upper == "NOT" && after(2).upper == "DISTINCT"):
		n, op := 2, "!="
		if after(1).upper == "NOT" {
			n, op = 3, "="
		}
		if after(n).upper != "FROM" {
			return 0, t.src.errorf(after(n).at, "FROM is expected after DISTINCT")
		}
		at := tok.at.until(after(n).at)
		if err := t.mark(mark{kind: markNullsEqual, at: at}); err != nil {
			return 0, err
		}
		t.emit(at, "%s", op)
		return n + 1, nil
	case w == "DISTINCT", w == "FROM":
		return 0, t.src.unsupportedf(tok.at, "%s here", w)
	case w == "UNKNOWN":
		if i > 0 && (tokens[i-1].upper == "IS" || tokens[i-1].upper == "NOT" && i > 1 && tokens[i-2].upper == "IS") {
			t.emit(tok.at, "NULL")
		} else {
			t.name(tok)
		}
	case w == "AS":
		t.emit(tok.at, "AS")
		name, n, err := typeName(t.src, tokens[i+1:])
		if err != nil {
			return 0, err
		}
		t.emit(after(1).at.until(after(n).at), "`%c%s`", typedName, name)
		return n + 1, nil
	default:
		t.emit(tok.at, "%s", w)
	}
	return 1, nil
}

// word translates a word that is not a keyword: a name, or the type of a literal.
func (t *translation) word(tokens []token, i int) (int, error) {
	tok := tokens[i]
	operand := endsOperand(tokens[:i])
	if what, known := elsewhere[tok.upper]; known && (operand || tok.upper == "SELECT" || i+1 < len(tokens) && (tokens[i+1].kind == text || tokens[i+1].is("("))) {
		return 0, t.src.unsupportedf(tok.at, "%s", what)
	}
	if operand {
		return 0, t.src.errorf(tok.at, "an operator is expected before it (a name with spaces is written in backticks)")
	}
	if isTypeName(tok.val) {
		if name, n, err := typeName(t.src, tokens[i:]); err == nil && i+n < len(tokens) && tokens[i+n].kind == text {
			lit := tokens[i+n]
			if t.src.sql[lit.at.from] == '"' {
				// LanceDB since 0.38 reads a column, of which the quoted text is another name.
				return 0, t.src.errorf(tok.at.until(lit.at), "two readings: a value of the type, as in pylance, or the column %s, as in LanceDB since 0.38; write %s %s for the value, %s for the column",
					backticked(tok.val), tok.val, singleQuoted(lit.val), backticked(tok.val))
			}
			t.emit(tok.at.until(lit.at), "CAST(%s AS `%c%s`)", literalString(lit.val), typedName, name)
			return n + 1, nil
		}
	}
	if tok.upper == "INTERVAL" && i+1 < len(tokens) && (tokens[i+1].kind == text || tokens[i+1].kind == number) {
		return t.interval(tokens, i)
	}
	t.name(tok)
	if calledBare[tok.upper] && !after(tokens, i, ".") && !after(tokens, i, "(") {
		t.emit(tok.at, "()")
	}
	return 1, nil
}

// interval translates INTERVAL '1 day', INTERVAL '1' DAY and INTERVAL 1 DAY.
func (t *translation) interval(tokens []token, i int) (int, error) {
	lit, n := tokens[i+1], 2
	if t.src.sql[lit.at.from] == '"' {
		return 0, t.src.errorf(lit.at, "an interval is written in single quotes: interval %s", singleQuoted(lit.val))
	}
	val, at := lit.val, tokens[i].at.until(lit.at)
	if i+2 < len(tokens) && tokens[i+2].kind == word && isIntervalUnit(tokens[i+2].val) {
		val, at, n = val+" "+tokens[i+2].val, tokens[i].at.until(tokens[i+2].at), 3
	}
	t.emit(at, "CAST(%s AS `%cinterval`)", literalString(val), intervalName)
	return n, nil
}

// calledBare are the functions that SQL calls without brackets. A column of such a name
// is written in backticks.
var calledBare = map[string]bool{"CURRENT_DATE": true, "CURRENT_TIMESTAMP": true, "CURRENT_TIME": true}

// after says whether the token at i is followed by a symbol.
func after(tokens []token, i int, symbol string) bool {
	return i+1 < len(tokens) && tokens[i+1].is(symbol)
}

// The letters before names in the translation.
const (
	unquotedName = 'u' // found whatever its case if there is none of this case
	quotedName   = 'q'
	typedName    = 't' // a type
	intervalName = 'i' // not a type that can be cast to
)

// name emits a name, behind a letter that says whether it was quoted. GoogleSQL has
// the escapes of strings within backticks too.
func (t *translation) name(tok token) {
	how := unquotedName
	if tok.kind == quoted {
		how = quotedName
	}
	s := literalString(tok.val)
	t.emit(tok.at, "`%c%s`", how, strings.ReplaceAll(s[1:len(s)-1], "`", "\\`"))
}

// endsOperand says whether the last token can be the end of an operand, after which
// only an operator makes sense.
func endsOperand(before []token) bool {
	if len(before) == 0 {
		return false
	}
	switch last := before[len(before)-1]; last.kind {
	case word:
		return !keywords[last.upper] || operandWords[last.upper]
	case symbol:
		return last.val == ")" || last.val == "]"
	}
	return true
}

// literalString writes a string in GoogleSQL.
func literalString(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r < ' ' || r == 0x7f:
			fmt.Fprintf(&b, `\x%02x`, r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// hexLiteral writes bytes, given as hexadecimal digits, in GoogleSQL.
func hexLiteral(digits string) string {
	var b strings.Builder
	b.WriteString(`b"`)
	for i := 0; i+2 <= len(digits); i += 2 {
		b.WriteString(`\x` + digits[i:i+2])
	}
	b.WriteString(`"`)
	return b.String()
}

func checkHex(src source, tok token) error {
	if len(tok.val)%2 != 0 {
		return src.errorf(tok.at, "an odd number of hexadecimal digits")
	}
	for i := 0; i < len(tok.val); i += 2 {
		if _, err := strconv.ParseUint(tok.val[i:i+2], 16, 8); err != nil {
			return src.errorf(tok.at, "%q is not a hexadecimal number", tok.val[i:i+2])
		}
	}
	return nil
}
