package lance_test

import (
	"context"
	"io/fs"
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"

	"github.com/rehome-db/rehome/internal/rowjson"
	"github.com/rehome-db/rehome/internal/testtable"
	"github.com/rehome-db/rehome/lance"
	"github.com/rehome-db/rehome/lance/store"
	"github.com/rehome-db/rehome/table"
)

func open(t testing.TB, dir string) *lance.Engine {
	t.Helper()
	e, err := lance.Open(context.Background(), dir, lance.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, e.Close()) })
	return e
}

func openStore(t testing.TB, s store.Store) *lance.Engine {
	t.Helper()
	e, err := lance.OpenStore(context.Background(), s, lance.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, e.Close()) })
	return e
}

// inMemory copies a golden table into a store in memory.
func inMemory(t testing.TB, name string) *store.Mem {
	t.Helper()
	m := store.NewMem()
	dir := os.DirFS(testtable.Get(t, name).Dir)
	require.NoError(t, fs.WalkDir(dir, ".", func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := fs.ReadFile(dir, p)
		require.NoError(t, err)
		return m.PutIfAbsent(context.Background(), p, data)
	}))
	return m
}

func load(t testing.TB, e table.Engine, version uint64) *table.Snapshot {
	t.Helper()
	s, err := e.Load(context.Background(), version)
	require.NoError(t, err)
	return s
}

func fragmentIDs(s *table.Snapshot) []table.FragmentID {
	var out []table.FragmentID
	for _, f := range s.Fragments {
		out = append(out, f.ID)
	}
	return out
}

// scan returns all rows of a version, all columns or those named, in the encoding
// of the golden tables.
func scan(t testing.TB, e table.Engine, s *table.Snapshot, columns ...string) ([][]byte, error) {
	t.Helper()
	var rows [][]byte
	for batch, err := range e.Rows(context.Background(), s, fragmentIDs(s), table.ReadOptions{Columns: columns}) {
		if err != nil {
			return nil, err
		}
		enc, err := rowjson.New(batch.Record.Schema(), rowjson.Raw)
		require.NoError(t, err)
		for i := range int(batch.Record.NumRows()) {
			row, err := enc.AppendRow(nil, batch.Record, i, nil)
			require.NoError(t, err)
			rows = append(rows, row)
		}
	}
	return rows, nil
}

// text is scan as one string, to compare a table with itself.
func text(t testing.TB, e table.Engine, s *table.Snapshot) string {
	t.Helper()
	rows, err := scan(t, e, s)
	require.NoError(t, err)
	var b strings.Builder
	for _, row := range rows {
		b.Write(row)
		b.WriteByte('\n')
	}
	return b.String()
}

// people is a schema of two columns, and rows of it.
var people = arrow.NewSchema([]arrow.Field{
	{Name: "id", Type: arrow.PrimitiveTypes.Int64},
	{Name: "name", Type: arrow.BinaryTypes.String, Nullable: true},
}, nil)

// rows are count rows from id on; every fifth has no name.
func rows(from, count int64) func(yield func(table.Batch, error) bool) {
	b := array.NewRecordBuilder(memory.DefaultAllocator, people)
	for id := from; id < from+count; id++ {
		b.Field(0).(*array.Int64Builder).Append(id)
		if id%5 == 0 {
			b.Field(1).AppendNull()
		} else {
			b.Field(1).(*array.StringBuilder).Append("name" + strings.Repeat("x", int(id%7)))
		}
	}
	rec := b.NewRecordBatch()
	return func(yield func(table.Batch, error) bool) { yield(table.Batch{Record: rec}, nil) }
}

// newTable makes a table in s with fragments of the given numbers of rows.
func newTable(t testing.TB, s store.Store, counts ...int64) *lance.Engine {
	t.Helper()
	e, err := lance.CreateStore(context.Background(), s, people, lance.CreateOptions{}, lance.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, e.Close()) })
	var next int64
	for _, n := range counts {
		_, err := e.Append(context.Background(), rows(next, n), table.WriteOptions{})
		require.NoError(t, err)
		next += n
	}
	return e
}

// rewrite writes the live rows of the given fragments of s as new ones and returns
// the change that puts them in place.
func rewrite(t testing.TB, e table.Engine, s *table.Snapshot, ids ...table.FragmentID) table.Proposal {
	t.Helper()
	ctx := context.Background()
	out, err := e.WriteFragments(ctx, s.Schema, e.Rows(ctx, s, ids, table.ReadOptions{}), table.WriteOptions{})
	require.NoError(t, err)
	group := table.RewriteGroup{}
	for _, id := range ids {
		f, ok := s.Fragment(id)
		require.True(t, ok)
		group.Old = append(group.Old, f)
	}
	for i, f := range out.Fragments {
		id := s.NextFragmentID + table.FragmentID(i)
		group.New = append(group.New, table.Fragment{ID: id, PhysicalRows: f.PhysicalRows, Files: f.Files})
	}
	return table.Proposal{
		Base:        s,
		Transaction: table.Transaction{ID: "rewrite-1", ReadVersion: s.Version, Operation: table.Rewrite{Groups: []table.RewriteGroup{group}}},
		Change:      table.Change{Remove: ids, Add: group.New},
	}
}

// heapBytes is what the program holds.
func heapBytes() int64 {
	runtime.GC()
	runtime.GC() // finds what finalizers let go of
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
