package sqlexpr

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/cloudspannerecosystem/memefish"
	"github.com/cloudspannerecosystem/memefish/ast"
	offsets "github.com/cloudspannerecosystem/memefish/token"
)

// The bounds on a text. They keep a hostile one from exhausting the stack; a list of
// a hundred thousand ids still fits.
const (
	// MaxLength is how many bytes a text may have.
	MaxLength = 1 << 20
	// MaxDepth is how deep brackets, CASE and prefix operators may nest.
	MaxDepth = 128
	// MaxOperators is how many operators there may be, each branch of CASE and each step
	// of a path counted as one; commas are free.
	MaxOperators = 10_000
)

// Option says how a text is read.
type Option func(*source)

// At makes now() and what is of its kind mean a point in time, instead of that at
// which the text is read. Texts of one statement are given the same.
func At(now time.Time) Option { return func(s *source) { s.now = now.UTC() } }

// tokenize cuts a text into tokens.
func tokenize(sql string, options ...Option) (source, []token, error) {
	if len(sql) > MaxLength {
		return source{}, nil, source{}.unsupportedf(span{}, "a text of %d bytes; the limit is %d", len(sql), MaxLength)
	}
	src := source{sql: sql, now: time.Now().UTC()}
	for _, o := range options {
		o(&src)
	}
	tokens, err := scan(src)
	return src, tokens, err
}

// parse makes a tree of tokens. It does not panic whatever they are.
func parse(src source, tokens []token) (e expr, err error) {
	if len(tokens) == 0 {
		return nil, src.errorf(span{len(src.sql), len(src.sql)}, "an expression is expected")
	}
	tokens, err = rewriteCasts(src, tokens)
	if err != nil {
		return nil, err
	}
	t, err := translate(src, tokens)
	if err != nil {
		return nil, err
	}
	// The text comes from outside and the parser is somebody else's: whatever happens
	// there is an error here.
	defer func() {
		if p := recover(); p != nil {
			e, err = nil, src.errorf(span{0, len(src.sql)}, "the parser failed: %v", p)
		}
	}()
	tree, err := memefish.ParseExpr("", t.sql.String())
	if err != nil {
		return nil, t.syntaxError(err)
	}
	c := converter{t, map[ast.Node]int{}}
	e, err = c.expr(tree)
	if err != nil {
		return nil, err
	}
	for _, m := range t.marks {
		return nil, src.errorf(m.at, "not expected here")
	}
	return e, nil
}

// syntaxError is the parser's error at the place in the user's text. What the parser
// expected is left out: it speaks of the translation.
func (t *translation) syntaxError(err error) error {
	var list memefish.MultiError
	if errors.As(err, &list) && len(list) > 0 && list[0].Position != nil {
		p := list[0].Position
		if int(p.Pos) >= t.sql.Len() {
			return t.src.errorf(span{len(t.src.sql), len(t.src.sql)}, "the text ends too early")
		}
		at := t.origin(int(p.Pos), int(p.Pos))
		if t.chains(at) {
			return t.src.errorf(at, "not expected here: comparisons do not chain, and need brackets")
		}
		return t.src.errorf(at, "not expected here")
	}
	return fmt.Errorf("sqlexpr: %w", err)
}

// chains says whether a place that the parser did not expect is a comparison of what
// may be one already.
func (t *translation) chains(at span) bool {
	switch strings.ToUpper(t.src.sql[at.from:at.to]) {
	case "=", "==", "<>", "!=", "<", "<=", ">", ">=", "IS", "IN", "LIKE", "ILIKE", "BETWEEN":
		before := strings.TrimRight(t.src.sql[:at.from], " \t\r\n")
		return before != "" && !strings.ContainsAny(before[len(before)-1:], "=<>(,.+-*/%|")
	}
	return false
}

// converter turns the parser's tree into ours.
type converter struct {
	*translation
	starts map[ast.Node]int
}

func (c *converter) at(n ast.Node) at { return at{c.origin(c.start(n), int(n.End()))} }

// start is where a node begins. A chain of operators leans to the left, and each asks
// its left side: the answers are kept.
func (c *converter) start(n ast.Node) int {
	b, ok := n.(*ast.BinaryExpr)
	if !ok {
		return int(n.Pos())
	}
	at, ok := c.starts[n]
	if !ok {
		at = c.start(b.Left)
		c.starts[n] = at
	}
	return at
}

// take takes up the mark between two offsets of the output.
func (c *converter) take(from, to offsets.Pos) (mark, bool) {
	for i := int(from); i < int(to); i++ {
		if m, ok := c.marks[i]; ok {
			delete(c.marks, i)
			return m, true
		}
	}
	return mark{}, false
}

func (c *converter) exprs(nodes []ast.Expr) ([]expr, error) {
	out := make([]expr, len(nodes))
	for i, n := range nodes {
		e, err := c.expr(n)
		if err != nil {
			return nil, err
		}
		out[i] = e
	}
	return out, nil
}

func (c *converter) expr(node ast.Expr) (expr, error) {
	where := c.at(node)
	switch n := node.(type) {
	case *ast.ParenExpr:
		return c.expr(n.Expr)
	case *ast.NullLiteral:
		return &literal{at: where}, nil
	case *ast.BoolLiteral:
		return &literal{at: where, value: n.Value}, nil
	case *ast.IntLiteral:
		return c.number(where, n.Value)
	case *ast.FloatLiteral:
		return c.number(where, n.Value)
	case *ast.StringLiteral:
		return &literal{at: where, value: n.Value}, nil
	case *ast.BytesLiteral:
		return &literal{at: where, value: slices.Clone(n.Value)}, nil
	case *ast.Ident:
		return c.column(n), nil
	case *ast.Path:
		var e expr = c.column(n.Idents[0])
		for _, id := range n.Idents[1:] {
			e = &field{at: at{e.place().until(c.at(id).span)}, of: e, name: id.Name[1:]}
		}
		return e, nil
	case *ast.SelectorExpr:
		x, err := c.expr(n.Expr)
		return &field{at: where, of: x, name: n.Ident.Name[1:]}, err
	case *ast.IndexExpr:
		return c.index(where, n)
	case *ast.UnaryExpr:
		x, err := c.expr(n.Expr)
		if n.Op == ast.OpPlus {
			return x, err
		}
		if i, ok := x.(*interval); ok && n.Op == ast.OpMinus {
			return &interval{where, arrow.MonthDayNanoInterval{Months: -i.Months, Days: -i.Days, Nanoseconds: -i.Nanoseconds}}, err
		}
		return &unary{at: where, op: string(n.Op), x: x}, err
	case *ast.BinaryExpr:
		return c.binary(where, n)
	case *ast.IsNullExpr:
		x, err := c.expr(n.Left)
		return &test{at: where, x: x, is: "NULL", not: n.Not}, err
	case *ast.IsBoolExpr:
		x, err := c.expr(n.Left)
		return &test{at: where, x: x, is: strings.ToUpper(strconv.FormatBool(n.Right)), not: n.Not}, err
	case *ast.InExpr:
		values, ok := n.Right.(*ast.ValuesInCondition)
		if !ok {
			return nil, c.src.unsupportedf(where.span, "IN with anything but a list")
		}
		all, err := c.exprs(append([]ast.Expr{n.Left}, values.Exprs...))
		if err != nil {
			return nil, err
		}
		return &in{at: where, x: all[0], list: all[1:], not: n.Not}, nil
	case *ast.BetweenExpr:
		all, err := c.exprs([]ast.Expr{n.Left, n.RightStart, n.RightEnd})
		if err != nil {
			return nil, err
		}
		return &between{at: where, x: all[0], low: all[1], high: all[2], not: n.Not}, nil
	case *ast.CaseExpr:
		return c.caseOf(where, n)
	case *ast.CastExpr:
		return c.cast(where, n)
	case *ast.CallExpr:
		return c.call(where, n)
	case *ast.ArrayLiteral:
		elems, err := c.exprs(n.Values)
		return &list{at: where, elems: elems}, err
	}
	return nil, c.src.unsupportedf(where.span, "this kind of expression")
}

func (c *converter) column(id *ast.Ident) *column {
	return &column{at: c.at(id), name: id.Name[1:], quoted: id.Name[0] == quotedName}
}

// number is a literal of the first of bigint, bigint unsigned and double that holds
// it, as in DataFusion.
func (c *converter) number(where at, digits string) (expr, error) {
	lit := &literal{at: where, digits: strings.TrimPrefix(digits, "+")}
	if i, err := strconv.ParseInt(lit.digits, 10, 64); err == nil {
		lit.value = i
	} else if u, err := strconv.ParseUint(lit.digits, 10, 64); err == nil {
		lit.value = u
	} else if f, err := strconv.ParseFloat(lit.digits, 64); err == nil || math.IsInf(f, 0) {
		lit.value = f
	} else {
		return nil, c.src.errorf(where.span, "not a number")
	}
	return lit, nil
}

func (c *converter) index(where at, n *ast.IndexExpr) (expr, error) {
	arg, ok := n.Index.(*ast.ExprArg)
	if !ok {
		return nil, c.src.unsupportedf(where.span, "this kind of index")
	}
	all, err := c.exprs([]ast.Expr{n.Expr, arg.Expr})
	if err != nil {
		return nil, err
	}
	if lit, ok := all[1].(*literal); ok {
		if name, ok := lit.value.(string); ok {
			return &field{at: where, of: all[0], name: name, key: lit}, nil
		}
	}
	return &field{at: where, of: all[0], elem: all[1]}, nil
}

func (c *converter) binary(where at, n *ast.BinaryExpr) (expr, error) {
	m, marked := c.take(n.Left.End(), n.Right.Pos())
	all, err := c.exprs([]ast.Expr{n.Left, n.Right})
	if err != nil {
		return nil, err
	}
	switch op := n.Op; op {
	case ast.OpLike, ast.OpNotLike:
		e := &like{at: where, x: all[0], pattern: all[1], not: op == ast.OpNotLike, fold: marked && m.kind == markFold, escape: '\\'}
		if esc, ok := c.marks[int(n.Right.End())+1]; ok && esc.kind == markEscape {
			delete(c.marks, int(n.Right.End())+1)
			e.escape, e.span = esc.escape, e.span.until(esc.at)
		}
		return e, nil
	case ast.OpBitOr, ast.OpBitAnd, ast.OpBitXor:
		return nil, c.src.unsupportedf(where.span, "the operator %s", op)
	case ast.OpMul:
		if marked {
			return &binary{at: where, op: "%", l: all[0], r: all[1]}, nil
		}
	}
	return &binary{at: where, op: string(n.Op), nullsEqual: marked && m.kind == markNullsEqual, l: all[0], r: all[1]}, nil
}

func (c *converter) caseOf(where at, n *ast.CaseExpr) (expr, error) {
	e := &caseOf{at: where}
	var err error
	if n.Expr != nil {
		if e.x, err = c.expr(n.Expr); err != nil {
			return nil, err
		}
	}
	for _, w := range n.Whens {
		all, err := c.exprs([]ast.Expr{w.Cond, w.Then})
		if err != nil {
			return nil, err
		}
		e.when, e.then = append(e.when, all[0]), append(e.then, all[1])
	}
	if n.Else != nil {
		e.other, err = c.expr(n.Else.Expr)
	}
	return e, err
}

func (c *converter) cast(where at, n *ast.CastExpr) (expr, error) {
	named, ok := n.Type.(*ast.NamedType)
	if !ok || len(named.Path) != 1 {
		return nil, c.src.unsupportedf(where.span, "this type")
	}
	if text, ok := n.Expr.(*ast.StringLiteral); ok && named.Path[0].Name[0] == intervalName {
		v, err := parseInterval(text.Value)
		if err != nil {
			return nil, c.src.errorf(where.span, "%w", err)
		}
		return &interval{where, v}, nil
	}
	to, err := dataType(named.Path[0].Name[1:])
	if err != nil {
		return nil, c.src.unsupportedf(where.span, "%w", err)
	}
	x, err := c.expr(n.Expr)
	return &cast{at: where, x: x, to: to, try: n.Safe}, err
}

func (c *converter) call(where at, n *ast.CallExpr) (expr, error) {
	if n.Distinct || n.NamedArgs != nil || n.NullHandling != nil || n.Having != nil || n.OrderBy != nil || n.Limit != nil || n.Hint != nil || len(n.Func.Idents) != 1 {
		return nil, c.src.unsupportedf(where.span, "this kind of call")
	}
	e := &call{at: where, name: strings.ToLower(n.Func.Idents[0].Name[1:])}
	for _, a := range n.Args {
		arg, ok := a.(*ast.ExprArg)
		if !ok {
			return nil, c.src.unsupportedf(where.span, "this kind of argument")
		}
		x, err := c.expr(arg.Expr)
		if err != nil {
			return nil, err
		}
		e.args = append(e.args, x)
	}
	return e, nil
}
