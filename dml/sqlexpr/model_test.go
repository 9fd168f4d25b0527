package sqlexpr_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/rehome-db/rehome/dml/sqlexpr"
)

// The model evaluates one row at a time, in the plainest way: a value is nil, bool,
// int64, float64 or string, and a term is its text and a function of the row.

type row map[string]any

type term struct {
	text string
	eval func(r row) (any, error)
}

var modelSchema = arrow.NewSchema([]arrow.Field{
	{Name: "i", Type: arrow.PrimitiveTypes.Int64, Nullable: true},
	{Name: "j", Type: arrow.PrimitiveTypes.Int64, Nullable: true},
	{Name: "f", Type: arrow.PrimitiveTypes.Float64, Nullable: true},
	{Name: "g", Type: arrow.PrimitiveTypes.Float64, Nullable: true},
	{Name: "s", Type: arrow.BinaryTypes.String, Nullable: true},
	{Name: "t", Type: arrow.BinaryTypes.String, Nullable: true},
	{Name: "p", Type: arrow.FixedWidthTypes.Boolean, Nullable: true},
	{Name: "q", Type: arrow.FixedWidthTypes.Boolean, Nullable: true},
}, nil)

var errModel = errors.New("model: division")

// strict makes a term that is null if an operand is, in the order of evaluation.
func strict(text string, of func(v []any) (any, error), operands ...term) term {
	return term{text, func(r row) (any, error) {
		v := make([]any, len(operands))
		null := false
		for i, o := range operands {
			var err error
			if v[i], err = o.eval(r); err != nil {
				return nil, err
			}
			null = null || v[i] == nil
		}
		if null {
			return nil, nil
		}
		return of(v)
	}}
}

func compareModel(a, b any) int {
	switch a := a.(type) {
	case int64:
		return cmp.Compare(a, b.(int64))
	case float64:
		// cmp has NaN below everything, SQL above.
		return -cmp.Compare(-a, -b.(float64))
	case string:
		return strings.Compare(a, b.(string))
	}
	x, y := 0, 0
	if a.(bool) {
		x = 1
	}
	if b.(bool) {
		y = 1
	}
	return cmp.Compare(x, y)
}

// likeModel is LIKE by its definition.
func likeModel(s, p []rune) bool {
	switch {
	case len(p) == 0:
		return len(s) == 0
	case p[0] == '%':
		return likeModel(s, p[1:]) || len(s) > 0 && likeModel(s[1:], p)
	case p[0] == '\\' && len(p) > 1:
		return len(s) > 0 && s[0] == p[1] && likeModel(s[1:], p[2:])
	}
	return len(s) > 0 && (p[0] == '_' || p[0] == s[0]) && likeModel(s[1:], p[1:])
}

// generator draws terms of each type. Terms of some depth are made of shallower ones.
type generator struct{ *rapid.T }

func (g generator) pick(n int) int { return rapid.IntRange(0, n-1).Draw(g.T, "pick") }

func (g generator) of(kind byte, depth int) term {
	switch kind {
	case 'b':
		return g.boolean(depth)
	case 'i':
		return g.integer(depth)
	case 'f':
		return g.float(depth)
	}
	return g.str(depth)
}

func columnTerm(name string) term {
	return term{name, func(r row) (any, error) { return r[name], nil }}
}

func constantTerm(text string, v any) term {
	return term{text, func(row) (any, error) { return v, nil }}
}

func (g generator) leaf(kind byte) term {
	names := map[byte][]string{'b': {"p", "q"}, 'i': {"i", "j"}, 'f': {"f", "g"}, 's': {"s", "t"}}[kind]
	if k := g.pick(3); k < 2 {
		return columnTerm(names[k])
	}
	switch kind {
	case 'b':
		v := rapid.Bool().Draw(g.T, "literal")
		return constantTerm(fmt.Sprint(v), v)
	case 'i':
		v := rapid.SampledFrom([]int64{0, 1, 2, -1, 7, math.MaxInt64, -math.MaxInt64}).Draw(g.T, "literal")
		return constantTerm(fmt.Sprint(v), v)
	case 'f':
		v := rapid.SampledFrom([]float64{0.5, 1.5, -2.5, 1e300}).Draw(g.T, "literal")
		return constantTerm(fmt.Sprint(v), v)
	}
	v := rapid.SampledFrom(modelStrings).Draw(g.T, "literal")
	return constantTerm("'"+strings.ReplaceAll(v, "'", "''")+"'", v)
}

var modelStrings = []string{"", "a", "b", "ab", "%", "_b", "a%", "é", "it's", `\`, `a\%`, "日本"}

func (g generator) boolean(depth int) term {
	if depth == 0 {
		return g.leaf('b')
	}
	kind := []byte("ifsb")[g.pick(4)]
	d := depth - 1
	switch g.pick(10) {
	case 0, 1:
		return g.logic(d)
	case 2:
		x := g.boolean(d)
		return strict("not ("+x.text+")", func(v []any) (any, error) { return !v[0].(bool), nil }, x)
	case 3:
		x, not := g.of(kind, d), g.pick(2) == 1
		return term{"(" + x.text + ") is" + notText(not) + " null", func(r row) (any, error) {
			v, err := x.eval(r)
			return (v == nil) != not, err
		}}
	case 4:
		x, not, what := g.boolean(d), g.pick(2) == 1, g.pick(2) == 1
		return term{fmt.Sprintf("(%s) is%s %v", x.text, notText(not), what), func(r row) (any, error) {
			v, err := x.eval(r)
			return (v == what) != not, err
		}}
	case 5:
		return g.inList(kind, d)
	case 6:
		x, lo, hi, not := g.of(kind, d), g.of(kind, d), g.of(kind, d), g.pick(2) == 1
		and := logicTerm(true, compareTerm(">=", x, lo), compareTerm("<=", x, hi))
		return term{fmt.Sprintf("(%s)%s between (%s) and (%s)", x.text, notText(not), lo.text, hi.text), func(r row) (any, error) {
			v, err := and.eval(r)
			if v != nil && not {
				v = !v.(bool)
			}
			return v, err
		}}
	case 7:
		x, p, not := g.str(d), g.str(d), g.pick(2) == 1
		return strict(fmt.Sprintf("(%s)%s like (%s)", x.text, notText(not), p.text), func(v []any) (any, error) {
			return likeModel([]rune(v[0].(string)), []rune(v[1].(string))) != not, nil
		}, x, p)
	case 8:
		l, r, not := g.of(kind, d), g.of(kind, d), g.pick(2) == 1
		return term{fmt.Sprintf("(%s) is%s distinct from (%s)", l.text, notText(not), r.text), func(rw row) (any, error) {
			a, err := l.eval(rw)
			if err != nil {
				return nil, err
			}
			b, err := r.eval(rw)
			same := a == nil && b == nil || a != nil && b != nil && compareModel(a, b) == 0
			return same == not, err
		}}
	}
	return compareTerm([]string{"=", "<>", "<", "<=", ">", ">="}[g.pick(6)], g.of(kind, d), g.of(kind, d))
}

func notText(not bool) string {
	if not {
		return " not"
	}
	return ""
}

func compareTerm(op string, l, r term) term {
	return strict(fmt.Sprintf("(%s) %s (%s)", l.text, op, r.text), func(v []any) (any, error) {
		c := compareModel(v[0], v[1])
		return map[string]bool{"=": c == 0, "<>": c != 0, "<": c < 0, "<=": c <= 0, ">": c > 0, ">=": c >= 0}[op], nil
	}, l, r)
}

func (g generator) logic(d int) term { return logicTerm(g.pick(2) == 0, g.boolean(d), g.boolean(d)) }

func logicTerm(and bool, l, r term) term {
	op := "or"
	if and {
		op = "and"
	}
	return term{"(" + l.text + ") " + op + " (" + r.text + ")", func(rw row) (any, error) {
		a, err := l.eval(rw)
		if err != nil || a == !and {
			return a, err // decided
		}
		b, err := r.eval(rw)
		switch {
		case err != nil || b == !and:
			return b, err
		case a == nil || b == nil:
			return nil, nil
		}
		return and, nil
	}}
}

func (g generator) inList(kind byte, d int) term {
	x, not := g.of(kind, d), g.pick(2) == 1
	var found term
	var texts []string
	for i := range 1 + g.pick(3) {
		e := g.of(kind, g.pick(2)*d)
		texts = append(texts, e.text)
		if eq := compareTerm("=", x, e); i == 0 {
			found = eq
		} else {
			found = logicTerm(false, found, eq)
		}
	}
	return term{"(" + x.text + ")" + notText(not) + " in (" + strings.Join(texts, ", ") + ")", func(r row) (any, error) {
		v, err := found.eval(r)
		if v != nil && not {
			v = !v.(bool)
		}
		return v, err
	}}
}

// either are the terms that there are of every type.
func (g generator) either(kind byte, d int) term {
	if g.pick(2) == 0 {
		a, b := g.of(kind, d), g.of(kind, d)
		return term{"coalesce(" + a.text + ", " + b.text + ")", func(r row) (any, error) {
			if v, err := a.eval(r); v != nil || err != nil {
				return v, err
			}
			return b.eval(r)
		}}
	}
	c, a := g.boolean(d), g.of(kind, d)
	other, text := constantTerm("null", nil), ""
	if g.pick(3) > 0 {
		other = g.of(kind, d)
		text = " else " + other.text
	}
	return term{"case when " + c.text + " then " + a.text + text + " end", func(r row) (any, error) {
		v, err := c.eval(r)
		if err != nil {
			return nil, err
		}
		if v == true {
			return a.eval(r)
		}
		return other.eval(r)
	}}
}

func (g generator) integer(depth int) term {
	if depth == 0 {
		return g.leaf('i')
	}
	d := depth - 1
	if g.pick(4) == 0 {
		return g.either('i', d)
	}
	if g.pick(4) == 0 {
		x := g.str(d)
		return strict("length("+x.text+")", func(v []any) (any, error) { return int64(utf8.RuneCountInString(v[0].(string))), nil }, x)
	}
	op := []string{"+", "-", "*", "/", "%"}[g.pick(5)]
	l, r := g.integer(d), g.integer(d)
	return strict("("+l.text+") "+op+" ("+r.text+")", func(v []any) (any, error) {
		a, b := v[0].(int64), v[1].(int64)
		switch op {
		case "+":
			return a + b, nil
		case "-":
			return a - b, nil
		case "*":
			return a * b, nil
		}
		if b == 0 || op == "/" && b == -1 && a == math.MinInt64 {
			return nil, errModel
		}
		if op == "/" {
			return a / b, nil
		}
		return a % b, nil
	}, l, r)
}

func (g generator) float(depth int) term {
	if depth == 0 {
		return g.leaf('f')
	}
	d := depth - 1
	if g.pick(4) == 0 {
		return g.either('f', d)
	}
	op := []string{"+", "-", "*", "/"}[g.pick(4)]
	l, r := g.float(d), g.float(d)
	return strict("("+l.text+") "+op+" ("+r.text+")", func(v []any) (any, error) {
		a, b := v[0].(float64), v[1].(float64)
		return map[string]float64{"+": a + b, "-": a - b, "*": a * b, "/": a / b}[op], nil
	}, l, r)
}

func (g generator) str(depth int) term {
	if depth == 0 {
		return g.leaf('s')
	}
	d := depth - 1
	switch g.pick(4) {
	case 0:
		return g.either('s', d)
	case 1:
		x := g.str(d)
		return strict("upper("+x.text+")", func(v []any) (any, error) { return strings.ToUpper(v[0].(string)), nil }, x)
	}
	l, r := g.str(d), g.str(d)
	return strict("("+l.text+") || ("+r.text+")", func(v []any) (any, error) { return v[0].(string) + v[1].(string), nil }, l, r)
}

// drawBatch draws rows, and makes a batch of them that does not begin at its arrays'
// first value.
func drawBatch(t *rapid.T, mem memory.Allocator) ([]row, arrow.RecordBatch) {
	n, skip := rapid.IntRange(0, 20).Draw(t, "rows"), rapid.IntRange(0, 9).Draw(t, "skip")
	b := array.NewRecordBuilder(mem, modelSchema)
	defer b.Release()
	rows := make([]row, n)
	for k := range n + skip {
		r := row{}
		for c, f := range modelSchema.Fields() {
			if rapid.IntRange(0, 3).Draw(t, "null") == 0 {
				b.Field(c).AppendNull()
				continue
			}
			switch fb := b.Field(c).(type) {
			case *array.Int64Builder:
				r[f.Name] = rapid.SampledFrom([]int64{0, 1, 2, -1, 7, math.MaxInt64, math.MinInt64}).Draw(t, "i")
				fb.Append(r[f.Name].(int64))
			case *array.Float64Builder:
				r[f.Name] = rapid.SampledFrom([]float64{0, 1.5, 0.5, -2.5, math.NaN(), math.Inf(1), math.Inf(-1)}).Draw(t, "f")
				fb.Append(r[f.Name].(float64))
			case *array.StringBuilder:
				r[f.Name] = rapid.SampledFrom(modelStrings).Draw(t, "s")
				fb.Append(r[f.Name].(string))
			case *array.BooleanBuilder:
				r[f.Name] = rapid.Bool().Draw(t, "b")
				fb.Append(r[f.Name].(bool))
			}
		}
		if k >= skip {
			rows[k-skip] = r
		}
	}
	whole := b.NewRecordBatch()
	defer whole.Release()
	return rows, whole.NewSlice(int64(skip), int64(skip+n))
}

// valueAt is the i-th value as the model has it.
func valueAt(a arrow.Array, i int) any {
	if a.DataType().ID() == arrow.NULL || a.IsNull(i) {
		return nil
	}
	switch a := a.(type) {
	case *array.Boolean:
		return a.Value(i)
	case *array.Int32:
		return int64(a.Value(i))
	case *array.Int64:
		return a.Value(i)
	case *array.Float64:
		return a.Value(i)
	case *array.String:
		return a.Value(i)
	}
	return fmt.Errorf("a value of type %s", a.DataType())
}

func TestExpressionsAreThoseOfTheModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		mem := memory.NewCheckedAllocator(memory.DefaultAllocator)
		defer mem.AssertSize(t, 0)
		rows, rec := drawBatch(t, mem)
		defer rec.Release()
		g := generator{t}
		x := g.of([]byte("bbifs")[g.pick(5)], rapid.IntRange(0, 4).Draw(t, "depth"))
		t.Logf("%s", x.text)

		want := make([]any, len(rows))
		var failed error
		for i, r := range rows {
			v, err := x.eval(r)
			if err != nil {
				failed = err
			}
			want[i] = v
		}
		e, err := sqlexpr.ParseExpr(x.text)
		require.NoError(t, err)
		// Some compare constants, which would be refused.
		require.NoError(t, e.BindConstants(rec.Schema()))
		got, err := e.Eval(context.Background(), rec)
		if failed != nil {
			require.Error(t, err)
			return
		}
		if len(rows) == 0 && err != nil {
			return // a constant division by zero, which no row met
		}
		require.NoError(t, err)
		defer got.Release()
		require.Equal(t, len(rows), got.Len())
		for i := range rows {
			have := valueAt(got, i)
			if (want[i] == nil) != (have == nil) || want[i] != nil && compareModel(want[i], have) != 0 {
				t.Fatalf("row %d %v: want %v, got %v", i, rows[i], want[i], have)
			}
		}
	})
}
