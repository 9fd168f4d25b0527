package interop_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"

	"github.com/rehome-db/rehome/dml/sqlexpr"
	"github.com/rehome-db/rehome/interop"
	"github.com/rehome-db/rehome/table"
)

// dialectStrings are values of text columns, among them the columns' own names.
var dialectStrings = []string{"D", "x", "s", "Mixed", "n", "it's", `a\b`, "", "50%", "a_b", `say "hi"`, "x`y"}

func dialectRows(rng *rand.Rand, rows int) arrow.RecordBatch {
	schema := arrow.NewSchema([]arrow.Field{
		{Name: "id", Type: arrow.PrimitiveTypes.Int64},
		{Name: "s", Type: arrow.BinaryTypes.String, Nullable: true},
		{Name: "x", Type: arrow.BinaryTypes.String, Nullable: true},
		{Name: "Mixed", Type: arrow.BinaryTypes.String, Nullable: true},
		{Name: "n", Type: arrow.PrimitiveTypes.Int32, Nullable: true},
		{Name: "f", Type: arrow.PrimitiveTypes.Float64, Nullable: true},
		{Name: "p", Type: arrow.FixedWidthTypes.Boolean, Nullable: true},
	}, nil)
	b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
	defer b.Release()
	for i := range rows {
		b.Field(0).(*array.Int64Builder).Append(int64(i))
		for c := 1; c < schema.NumFields(); c++ {
			if rng.IntN(5) == 0 {
				b.Field(c).AppendNull()
				continue
			}
			switch fb := b.Field(c).(type) {
			case *array.StringBuilder:
				fb.Append(dialectStrings[rng.IntN(len(dialectStrings))])
			case *array.Int32Builder:
				fb.Append(rng.Int32N(9) - 4)
			case *array.Float64Builder:
				fb.Append(float64(rng.IntN(9)) + 0.5) // no zeros: 0.31 tells them apart
			case *array.BooleanBuilder:
				fb.Append(rng.IntN(2) == 0)
			}
		}
	}
	return b.NewRecordBatch()
}

// dialect draws predicates as users of either dialect write them: with strings and
// names in every kind of quotes, in the right one and in the wrong one.
type dialect struct{ *rand.Rand }

func (d dialect) pick(of ...string) string { return of[d.IntN(len(of))] }

func (d dialect) quoted(s string) string {
	q := d.pick("'", "'", `"`)
	return q + strings.ReplaceAll(s, q, q+q) + q
}

func (d dialect) text() string {
	switch d.IntN(6) {
	case 0, 1:
		return d.pick("s", "x", "S", "`s`", "`x`", "`Mixed`", "Mixed", "mixed")
	case 2:
		return d.pick(`"s"`, `"x"`, `"Mixed"`, `"mixed"`, `"colour"`)
	case 3:
		return d.pick("lower", "upper") + "(" + d.text() + ")"
	}
	return d.quoted(dialectStrings[d.IntN(len(dialectStrings))])
}

func (d dialect) number() string {
	switch d.IntN(7) {
	case 0, 1, 2:
		return d.pick("n", "`n`", "N", "id", "cast(n as bigint)", "n::bigint")
	case 3:
		return fmt.Sprintf("(%s %s %s)", d.number(), d.pick("+", "-", "*"), d.number())
	case 4:
		return fmt.Sprintf("%s %s %d", d.pick("n", "id"), d.pick("/", "%"), 1+d.IntN(4))
	}
	return d.pick("0", "1", "-2", "3", "7", "length("+d.text()+")")
}

func (d dialect) test() string {
	compare := d.pick("=", "==", "<>", "!=", "<", "<=", ">", ">=")
	not := d.pick("", "", "NOT ")
	switch d.IntN(10) {
	case 0, 1, 2:
		return d.text() + " " + compare + " " + d.text()
	case 3:
		return d.number() + " " + compare + " " + d.number()
	case 4:
		return d.text() + " " + not + d.pick("LIKE", "ILIKE") + " " + d.quoted(d.pick("x%", "%s", "a_b", `a\_b`, `50\%`, "%'%", "_", "D"))
	case 5:
		return fmt.Sprintf("%s %sIN (%s, %s)", d.text(), not, d.quoted(d.pick(dialectStrings...)), d.pick("NULL", d.quoted("x"), d.quoted("D")))
	case 6:
		return d.pick("s", `"s"`, "`x`", "n", `"colour"`) + " IS " + not + "NULL"
	case 7:
		return fmt.Sprintf("%s %sBETWEEN %s AND %s", d.text(), not, d.quoted("D"), d.quoted("s"))
	case 8:
		return "f " + compare + " " + d.pick("2.5", "3", "0.5 + 1", "1e1", "n")
	}
	return d.pick("p", "p IS TRUE", "p IS NOT FALSE", "p = true", "true", "1 = 1", "starts_with(s, "+d.quoted("x")+")")
}

func (d dialect) predicate(depth int) string {
	if depth == 0 || d.IntN(3) == 0 {
		return d.test()
	}
	switch l := d.predicate(depth - 1); d.IntN(4) {
	case 0:
		return "NOT " + l
	case 1:
		return "(" + l + ") AND " + d.predicate(depth-1)
	case 2:
		return l + " OR " + d.predicate(depth-1) // and whatever binds closer
	default:
		return l + " AND " + d.predicate(depth-1)
	}
}

// firstColumn are the whole numbers in the first column of an answer, in order.
func firstColumn(a *interop.Answer) []int64 {
	defer a.Release()
	ids := []int64{}
	for _, rec := range a.Batches {
		ids = append(ids, rec.Column(0).(*array.Int64).Int64Values()...)
	}
	slices.Sort(ids)
	return ids
}

// TestReport03PredicatesOfBothDialects asks every engine random predicates in which
// names and strings are quoted in every way. What rehome takes has the rows of every
// engine that takes it; what has other rows in pylance than in LanceDB is refused as
// having two readings; and rehome refuses nothing else that an engine takes, but
// conditions that look at no column.
func TestReport03PredicatesOfBothDialects(t *testing.T) {
	ctx := needEngines(t)
	n := 400
	if everything() {
		n = 5000
	}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	d := dialect{rand.New(rand.NewPCG(seed, 3))}
	rec := dialectRows(d.Rand, 80)
	defer rec.Release()
	path := filepath.Join(t.TempDir(), "t.lance")
	_, err := pylance.Create(ctx, path, rec, interop.CreateOptions{DataFormat: "2.1"})
	require.NoError(t, err)
	defer forget(ctx, path)
	var schema table.Schema
	for i, f := range rec.Schema().Fields() {
		schema.Fields = append(schema.Fields, table.Field{ID: int32(i), Name: f.Name, Type: f.Type, Nullable: f.Nullable})
	}
	ours := func(text string) ([]int64, error) {
		p, err := sqlexpr.ParsePredicate(text)
		if err != nil {
			return nil, err
		}
		if _, err := p.Columns(schema); err != nil {
			return nil, err
		}
		hit, err := p.Matches(ctx, rec)
		if err != nil {
			return nil, err
		}
		defer hit.Release()
		ids := []int64{}
		for i := range hit.Len() {
			if hit.IsValid(i) && hit.Value(i) {
				ids = append(ids, int64(i))
			}
		}
		return ids, nil
	}
	count := map[string]int{}
	for range n {
		text := d.predicate(2)
		got, err := ours(text)
		readings := map[string][]int64{}
		for _, e := range engines {
			r, err := e.Query(ctx, path, interop.Query{Columns: []string{"id"}, Where: text})
			if reported := (*interop.EngineError)(nil); errors.As(err, &reported) {
				continue // it does not take the text
			}
			require.NoError(t, err, text)
			readings[e.Name] = firstColumn(r)
		}
		two, same := err != nil && strings.Contains(err.Error(), "two readings"), err != nil && strings.Contains(err.Error(), "looks at no column")
		switch p14, l39 := readings[pylance.Name], readings[lancedb39.Name]; {
		case err == nil:
			count["taken"]++
			for name, ids := range readings {
				require.Equal(t, ids, got, "%s: %s", name, text)
			}
		case two:
			count["two readings"]++
			if p14 != nil && l39 != nil && !slices.Equal(p14, l39) {
				count["of which differ in the rows"]++
			}
		case same:
			count["no column"]++
		default:
			count["refused"]++
			require.Empty(t, readings, "%s: %v", text, err)
		}
	}
	t.Logf("%v", count)
	for _, what := range []string{"taken", "two readings", "of which differ in the rows", "no column"} {
		require.NotZero(t, count[what], what)
	}
}
