package dml_test

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"

	"github.com/rehome-db/rehome/dml"
	"github.com/rehome-db/rehome/table"
	"github.com/rehome-db/rehome/table/memengine"
)

// row is a row of the tables of these tests, as Go values. A nil pointer is a null.
type row struct {
	K *int64
	S *string
	F *float64
	N int64
}

func ptr[T any](v T) *T { return &v }

// String is the row's values; rows with the same string are the same.
func (r row) String() string {
	text := func(v any, null bool) string {
		if null {
			return "null"
		}
		return fmt.Sprint(v)
	}
	var k, s, f any
	if r.K != nil {
		k = *r.K
	}
	if r.S != nil {
		s = fmt.Sprintf("%q", *r.S)
	}
	if r.F != nil {
		f = fmt.Sprintf("%v/%x", *r.F, math.Float64bits(*r.F))
	}
	return fmt.Sprintf("{%s %s %s %d}", text(k, r.K == nil), text(s, r.S == nil), text(f, r.F == nil), r.N)
}

// columns are k, s, f, which may be null, and n, which may not.
func columns() table.Schema {
	return table.Schema{Fields: []table.Field{
		{ID: 0, Name: "k", Type: arrow.PrimitiveTypes.Int64, Nullable: true},
		{ID: 1, Name: "s", Type: arrow.BinaryTypes.String, Nullable: true},
		{ID: 2, Name: "f", Type: arrow.PrimitiveTypes.Float64, Nullable: true},
		{ID: 3, Name: "n", Type: arrow.PrimitiveTypes.Int64},
	}}
}

// batch makes a record batch of rows with the named columns, none for all.
func batch(rows []row, names ...string) arrow.RecordBatch {
	if len(names) == 0 {
		names = []string{"k", "s", "f", "n"}
	}
	var fields []arrow.Field
	for _, name := range names {
		f, _ := columns().Field(name)
		fields = append(fields, arrow.Field{Name: name, Type: f.Type, Nullable: true})
	}
	b := array.NewRecordBuilder(memory.DefaultAllocator, arrow.NewSchema(fields, nil))
	defer b.Release()
	for _, r := range rows {
		for i, name := range names {
			appendValue(b.Field(i), name, r)
		}
	}
	return b.NewRecordBatch()
}

func appendValue(b array.Builder, column string, r row) {
	switch {
	case column == "k" && r.K != nil:
		b.(*array.Int64Builder).Append(*r.K)
	case column == "s" && r.S != nil:
		b.(*array.StringBuilder).Append(*r.S)
	case column == "f" && r.F != nil:
		b.(*array.Float64Builder).Append(*r.F)
	case column == "n":
		b.(*array.Int64Builder).Append(r.N)
	default:
		b.AppendNull()
	}
}

// rowAt reads row i of a record with the columns of the test tables, their names
// behind prefix; columns that are not there are null.
func rowAt(rec arrow.RecordBatch, prefix string, i int) row {
	var out row
	for c, f := range rec.Schema().Fields() {
		name, ok := strings.CutPrefix(f.Name, prefix)
		if !ok || rec.Column(c).IsNull(i) {
			continue
		}
		switch name {
		case "k":
			out.K = ptr(rec.Column(c).(*array.Int64).Value(i))
		case "s":
			out.S = ptr(strings.Clone(rec.Column(c).(*array.String).Value(i)))
		case "f":
			out.F = ptr(rec.Column(c).(*array.Float64).Value(i))
		case "n":
			out.N = rec.Column(c).(*array.Int64).Value(i)
		}
	}
	return out
}

// where makes a predicate of a function over rows.
func where(names []string, hit func(row) bool) dml.Predicate {
	return dml.RowFunc(names, func(rec arrow.RecordBatch, i int) bool { return hit(rowAt(rec, "", i)) })
}

// pairs makes a condition for updates of a function over a row of each side.
func pairs(names []string, hit func(source, target row) bool) dml.Predicate {
	return dml.RowFunc(names, func(rec arrow.RecordBatch, i int) bool {
		return hit(rowAt(rec, "source.", i), rowAt(rec, "target.", i))
	})
}

// in splits rows into batches of at most n.
func in(n int, rows []row, names ...string) iter.Seq2[arrow.RecordBatch, error] {
	var out []arrow.RecordBatch
	for part := range slices.Chunk(rows, n) {
		out = append(out, batch(part, names...))
	}
	if len(out) == 0 {
		out = append(out, batch(nil, names...))
	}
	return dml.Records(out...)
}

// stored is a row of a table and where it is.
type stored struct {
	row
	addr table.RowAddr
	id   table.RowID
}

// contents reads a version's rows; version 0 is the latest.
func contents(t require.TestingT, e table.Engine, version uint64) []stored {
	ctx := context.Background()
	s, err := e.Load(ctx, version)
	require.NoError(t, err)
	var ids []table.FragmentID
	for _, f := range s.Fragments {
		ids = append(ids, f.ID)
		require.Positive(t, f.LiveRows(), "fragment %d without a live row", f.ID)
	}
	var out []stored
	for b, err := range e.Rows(ctx, s, ids, table.ReadOptions{WithAddrs: true}) {
		require.NoError(t, err)
		for i, a := range b.Addrs {
			out = append(out, stored{row: rowAt(b.Record, "", i), addr: a})
		}
	}
	if named, ok := table.As[table.RowIdentifier](e); ok && s.StableRowIDs {
		var addrs []table.RowAddr
		for _, r := range out {
			addrs = append(addrs, r.addr)
		}
		ids, err := named.RowIdentities(ctx, s, addrs)
		require.NoError(t, err)
		for i := range out {
			out[i].id = ids[i].ID
		}
	}
	return out
}

// values are the rows' values, in an order that does not depend on where they are.
func values[R fmt.Stringer](rows []R) []string {
	out := make([]string, 0, len(rows))
	for _, r := range rows {
		out = append(out, r.String())
	}
	slices.SortFunc(out, cmp.Compare[string])
	return out
}

// newTable makes a table of the rows, in fragments of at most n.
func newTable(t require.TestingT, n uint64, rows ...row) *memengine.Engine {
	e := memengine.New("t", columns())
	if len(rows) > 0 {
		_, err := dml.Execute(context.Background(), e, dml.Append{Rows: dml.Records(batch(rows)), Write: table.WriteOptions{MaxRows: n}}, dml.Options{})
		require.NoError(t, err)
	}
	return e
}

// numbered are rows with k and n from 0 to n-1.
func numbered(n int) []row {
	var out []row
	for i := range n {
		out = append(out, row{K: ptr(int64(i)), S: ptr(fmt.Sprint("s", i)), N: int64(i)})
	}
	return out
}

func snapshot(t testing.TB, e table.Engine, version uint64) *table.Snapshot {
	t.Helper()
	s, err := e.Load(t.Context(), version)
	require.NoError(t, err)
	return s
}
