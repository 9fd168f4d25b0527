package sqlexpr_test

import (
	"context"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/rehome-db/rehome/dml/sqlexpr"
	"github.com/rehome-db/rehome/table"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A text that would be too much is refused, and one at the bounds is done in time.
func TestTextsAreBounded(t *testing.T) {
	rec := readBatch(t, "rows.arrow")
	schema := schemaOf(rec)
	nest := func(open, x, closing string, depth int) string {
		return strings.Repeat(open, depth) + x + strings.Repeat(closing, depth)
	}
	const deep, many = sqlexpr.MaxDepth, sqlexpr.MaxOperators
	for name, c := range map[string]struct {
		text string
		fits bool
	}{
		"brackets":               {nest("(", "n = 1", ")", deep), true},
		"more brackets":          {nest("(", "n = 1", ")", deep+1), false},
		"NOT":                    {nest("not ", "b", "", deep), true},
		"more NOT":               {nest("not ", "b", "", deep+1), false},
		"signs":                  {nest("- ", "n", "", deep-1) + " = 1", true},
		"more signs":             {nest("- ", "n", "", deep+1) + " = 1", false},
		"CASE":                   {nest("case when b then ", "b", " end", deep), true},
		"more CASE":              {nest("case when b then ", "b", " end", deep+1), false},
		"calls":                  {nest("coalesce(", "b", ", b2)", deep), true},
		"BETWEEN":                {nest("(", "b", " between false and b2)", deep), true},
		"a chain of AND":         {nest("n > 0 and ", "b", "", many/2), true},
		"a longer chain":         {nest("n > 0 and ", "b", "", many/2+1), false},
		"a chain of OR":          {"1 / n = 1" + strings.Repeat(" or 1 / n = 1", 1000), false},
		"a sum":                  {"1" + strings.Repeat(" + n", many-1) + " > 0", true},
		"a longer sum":           {"1" + strings.Repeat(" + n", many) + " > 0", false},
		"a path":                 {"st" + strings.Repeat(".x", many+1) + " = 1", false},
		"branches":               {"case" + strings.Repeat(" when n = 77 then b", many/2) + " else true end", true},
		"a list":                 {"n in (1" + strings.Repeat(", -2", 100_000) + ")", true},
		"a long string":          {"s = '" + strings.Repeat("x", sqlexpr.MaxLength-8) + "'", true},
		"too long":               {"s = '" + strings.Repeat("x", sqlexpr.MaxLength) + "'", false},
		"a pattern of wildcards": {"s like '" + strings.Repeat("%a", 10_000) + "'", true},
	} {
		start := time.Now()
		_, err := matches(c.text, schema, rec)
		if c.fits {
			require.NoError(t, err, name)
		} else if name != "a chain of OR" { // which fails by zero
			require.ErrorIs(t, err, table.ErrUnsupported, name)
		}
		require.Less(t, time.Since(start), time.Minute, name)
	}
}

// What is made on the way is released, and columns are given back as they were taken.
func TestEvaluationsKeepNothing(t *testing.T) {
	mem := memory.NewCheckedAllocator(memory.DefaultAllocator)
	defer mem.AssertSize(t, 0)
	shared := readBatch(t, "rows.arrow")
	var columns []arrow.Array
	for _, c := range shared.Columns() {
		copied, err := array.Concatenate([]arrow.Array{c}, mem)
		require.NoError(t, err)
		defer copied.Release()
		columns = append(columns, copied)
	}
	rec := array.NewRecordBatch(shared.Schema(), columns, shared.NumRows())
	defer rec.Release()
	for _, c := range readCases(t, "expressions.txt") {
		if x, err := sqlexpr.ParseExpr(c.text); err == nil {
			if v, err := x.Eval(context.Background(), rec); err == nil {
				v.Release()
			}
		}
	}
	for _, c := range readCases(t, "predicates.txt") {
		_, _ = matches(c.text, schemaOf(rec), rec)
	}
}

// What a row comes to does not depend on the batch that it is in.
func TestRowsDoNotDependOnTheirBatch(t *testing.T) {
	rec := readBatch(t, "rows.arrow")
	first, second := rec.NewSlice(0, 13), rec.NewSlice(13, rec.NumRows())
	defer first.Release()
	defer second.Release()
	for _, c := range append(readCases(t, "expressions.txt"), readCases(t, "predicates.txt")...) {
		x, err := sqlexpr.ParseExpr(c.text)
		if err != nil {
			continue
		}
		whole, err := x.Eval(context.Background(), rec)
		if err != nil {
			continue // some row makes it fail, perhaps not in each part
		}
		a, err := x.Eval(context.Background(), first)
		require.NoError(t, err, c.text)
		b, err := x.Eval(context.Background(), second)
		require.NoError(t, err, c.text)
		for i, part := range []arrow.Array{a, b} {
			want := array.NewSlice(whole, int64(i)*13, int64(i)*13+int64(part.Len()))
			require.True(t, sameValues(want, part, math.SmallestNonzeroFloat64), "%s: want %v, got %v", c.text, want, part)
			want.Release()
			part.Release()
		}
		whole.Release()
	}
}

// Batches may have the columns in any order, more of them or just those needed, and
// other rows.
func TestBatchesOfSeveralSchemas(t *testing.T) {
	rec := readBatch(t, "rows.arrow")
	p, err := sqlexpr.ParsePredicate("n > 2 and s like 'x%'")
	require.NoError(t, err)
	project := func(names ...string) arrow.RecordBatch {
		var fields []arrow.Field
		var columns []arrow.Array
		for _, name := range names {
			i := rec.Schema().FieldIndices(name)[0]
			fields, columns = append(fields, rec.Schema().Field(i)), append(columns, rec.Column(i))
		}
		return array.NewRecordBatch(arrow.NewSchema(fields, nil), columns, rec.NumRows())
	}
	want, err := p.Matches(context.Background(), rec)
	require.NoError(t, err)
	defer want.Release()
	var wg sync.WaitGroup
	for _, names := range [][]string{{"n", "s"}, {"s", "n"}, {"id", "s", "f64", "n"}} {
		wg.Go(func() {
			some := project(names...)
			defer some.Release()
			for range 50 {
				got, err := p.Matches(context.Background(), some)
				if err != nil || !array.Equal(want, got) {
					t.Errorf("%v: %v %v", names, got, err)
					return
				}
				got.Release()
			}
		})
	}
	wg.Wait()

	lacking := project("n")
	defer lacking.Release()
	_, err = p.Matches(context.Background(), lacking)
	require.ErrorIs(t, err, table.ErrNotFound)

	none := rec.NewSlice(0, 0)
	defer none.Release()
	got, err := p.Matches(context.Background(), none)
	require.NoError(t, err)
	require.Zero(t, got.Len())
	got.Release()

	cancelled, cancel := context.WithCancel(context.Background())
	cancel()
	_, err = p.Matches(cancelled, rec)
	require.ErrorIs(t, err, context.Canceled)
}
