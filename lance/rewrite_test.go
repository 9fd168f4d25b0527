package lance_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/rehome-db/rehome/deletion"
	"github.com/rehome-db/rehome/internal/testtable"
	"github.com/rehome-db/rehome/lance"
	"github.com/rehome-db/rehome/lance/store"
	"github.com/rehome-db/rehome/lance/store/fault"
	"github.com/rehome-db/rehome/table"
)

// replace commits what a rewrite of all fragments of s has written.
func replace(t require.TestingT, e *lance.Engine, s *table.Snapshot, out table.Written) *table.Snapshot {
	group := table.RewriteGroup{Old: s.Fragments}
	for i, f := range out.Fragments {
		id := s.NextFragmentID + table.FragmentID(i)
		group.New = append(group.New, table.Fragment{ID: id, PhysicalRows: f.PhysicalRows, Files: f.Files})
	}
	next, err := e.Commit(context.Background(), table.Proposal{
		Base:        s,
		Transaction: table.Transaction{ID: "rewrite", ReadVersion: s.Version, Operation: table.Rewrite{Groups: []table.RewriteGroup{group}}},
		Change:      table.Change{Remove: fragmentIDs(s), Add: group.New},
	})
	require.NoError(t, err)
	return next
}

// Every golden table that can be read can be rewritten, whatever encodings the
// stock engines chose, and has the same rows afterwards.
func TestRewriteGoldenTables(t *testing.T) {
	for _, g := range testtable.All(t) {
		t.Run(g.Name, func(t *testing.T) {
			s := inMemory(t, g.Name)
			e := openStore(t, s)
			base := load(t, e, 0)
			ids := fragmentIDs(base)
			if !readable(base.DataFormat) {
				before, err := s.List(t.Context(), "data")
				require.NoError(t, err)
				require.ErrorIs(t, e.CanRewrite(t.Context(), base, ids), table.ErrUnsupported)
				out, err := e.RewriteGroup(t.Context(), table.RewriteRequest{Snapshot: base, Sources: ids})
				require.ErrorIs(t, err, table.ErrUnsupported)
				require.Empty(t, out)
				after, err := s.List(t.Context(), "data")
				require.NoError(t, err)
				require.ElementsMatch(t, before, after)
				return
			}
			want := text(t, e, base)
			require.NoError(t, e.CanRewrite(t.Context(), base, ids))
			out, err := e.RewriteGroup(t.Context(), table.RewriteRequest{Snapshot: base, Sources: ids, Threads: 2})
			require.NoError(t, err)
			next := replace(t, e, base, out)
			require.Equal(t, want, text(t, e, next))
			require.Equal(t, base.LiveRows(), next.LiveRows())
			for _, f := range next.Fragments {
				require.Len(t, f.Files, 1)
				require.Equal(t, base.DataFormat, f.Files[0].Format)
				require.NotZero(t, f.Files[0].Bytes)
			}
		})
	}
}

// numbers is a table in memory whose only column counts up over fragments of the
// given sizes.
func numbers(t require.TestingT, sizes []int, format string) *lance.Engine {
	schema := arrow.NewSchema([]arrow.Field{{Name: "n", Type: arrow.PrimitiveTypes.Int64}}, nil)
	e, err := lance.CreateStore(context.Background(), store.NewMem(), schema, lance.CreateOptions{DataFormat: format}, lance.Options{})
	require.NoError(t, err)
	next := int64(0)
	for _, size := range sizes {
		b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
		for range size {
			b.Field(0).(*array.Int64Builder).Append(next)
			next++
		}
		rows := func(yield func(table.Batch, error) bool) { yield(table.Batch{Record: b.NewRecordBatch()}, nil) }
		_, err := e.Append(context.Background(), rows, table.WriteOptions{})
		require.NoError(t, err)
	}
	return e
}

func readNumbers(t require.TestingT, e *lance.Engine, s *table.Snapshot) []int64 {
	var out []int64
	for batch, err := range e.Rows(context.Background(), s, fragmentIDs(s), table.ReadOptions{}) {
		require.NoError(t, err)
		out = append(out, batch.Record.Column(0).(*array.Int64).Int64Values()...)
	}
	return out
}

// Files are cut at exactly MaxRows live rows, and hold the live rows in order.
func TestRewriteCutsFilesByRows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sizes := rapid.SliceOfN(rapid.IntRange(1, 60), 1, 5).Draw(t, "sizes")
		e := numbers(t, sizes, rapid.SampledFrom([]string{"2.1", "2.2"}).Draw(t, "format"))
		defer e.Close()
		s, err := e.Load(context.Background(), 0)
		require.NoError(t, err)
		var live []int64
		change := table.Change{SetDeletion: map[table.FragmentID]*table.DeletionRef{}}
		next := int64(0)
		for i, f := range s.Fragments {
			kept := rapid.SliceOfN(rapid.Bool(), sizes[i], sizes[i]).Draw(t, "kept")
			if rapid.IntRange(0, 3).Draw(t, "deletes") == 0 {
				kept = nil
			}
			var dead []uint32
			for k := range sizes[i] {
				if kept == nil || kept[k] {
					live = append(live, next)
				} else {
					dead = append(dead, uint32(k))
				}
				next++
			}
			if len(dead) > 0 {
				ref, err := e.WriteDeletions(context.Background(), f.ID, s.Version, deletion.Of(dead...))
				require.NoError(t, err)
				change.SetDeletion[f.ID] = &ref
			}
		}
		if len(change.SetDeletion) > 0 {
			s, err = e.Commit(context.Background(), table.Proposal{Base: s, Change: change,
				Transaction: table.Transaction{ID: "delete", ReadVersion: s.Version, Operation: table.Delete{}}})
			require.NoError(t, err)
		}
		maxRows := rapid.Uint64Range(1, 80).Draw(t, "max rows")
		out, err := e.RewriteGroup(context.Background(), table.RewriteRequest{
			Snapshot: s, Sources: fragmentIDs(s), Options: table.WriteOptions{MaxRows: maxRows}, Threads: rapid.IntRange(0, 3).Draw(t, "threads"),
		})
		require.NoError(t, err)
		require.Len(t, out.Fragments, (len(live)+int(maxRows)-1)/int(maxRows))
		require.Len(t, out.Objects, len(out.Fragments))
		for i, f := range out.Fragments {
			require.Equal(t, min(maxRows, uint64(len(live))-maxRows*uint64(i)), f.PhysicalRows)
			require.Equal(t, table.Object{Kind: table.ObjectData, Path: f.Files[0].Path, Bytes: f.Files[0].Bytes}, out.Objects[i])
		}
		require.Equal(t, live, readNumbers(t, e, replace(t, e, s, out)))
	})
}

func TestRewriteCutsFilesByBytes(t *testing.T) {
	sizes := make([]int, 20)
	for i := range sizes {
		sizes[i] = 5000
	}
	e := numbers(t, sizes, "2.1")
	s := load(t, e, 0)
	whole, err := e.RewriteGroup(t.Context(), table.RewriteRequest{Snapshot: s, Sources: fragmentIDs(s)})
	require.NoError(t, err)
	require.Len(t, whole.Fragments, 1)
	out, err := e.RewriteGroup(t.Context(), table.RewriteRequest{Snapshot: s, Sources: fragmentIDs(s),
		Options: table.WriteOptions{MaxBytes: whole.BytesWritten / 4}})
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(out.Fragments), 4)
	require.LessOrEqual(t, len(out.Fragments), 6)
	for _, f := range out.Fragments {
		require.Less(t, f.Files[0].Bytes, whole.BytesWritten*3/8)
	}
	require.Len(t, readNumbers(t, e, replace(t, e, s, out)), 100_000)
}

// Progress adds up to what was read and written.
func TestRewriteProgressAddsUp(t *testing.T) {
	e := numbers(t, []int{3000, 4000, 5000}, "2.2")
	s := load(t, e, 0)
	var mu sync.Mutex
	var read, written uint64
	out, err := e.RewriteGroup(t.Context(), table.RewriteRequest{
		Snapshot: s, Sources: fragmentIDs(s), Options: table.WriteOptions{MaxRows: 5000}, Threads: 2,
		Progress: func(r, w uint64) {
			mu.Lock()
			defer mu.Unlock()
			read, written = read+r, written+w
		},
	})
	require.NoError(t, err)
	require.Equal(t, out.BytesRead, read)
	require.Equal(t, out.BytesWritten, written)
}

// Whichever operation of the store fails, the rewrite fails, no goroutine is left,
// and what lies in the store is named in the result.
func TestRewriteFailsCleanlyAtEveryOperation(t *testing.T) {
	defer goleak.VerifyNone(t)
	mem := store.NewMem()
	require.NoError(t, newTable(t, mem, 20, 25, 30).Close())
	before, err := mem.List(t.Context(), "data")
	require.NoError(t, err)
	known := map[string]bool{}
	for _, o := range before {
		known["data/"+o.Name] = true
	}
	for n := 1; ; n++ {
		armed := false
		seen := 0
		s := fault.New(mem, func(fault.Op) fault.Action {
			if !armed {
				return fault.Pass
			}
			if seen++; seen == n {
				return fault.Before
			}
			return fault.Pass
		})
		e, err := lance.OpenStore(t.Context(), s, lance.Options{OpenFiles: 1})
		require.NoError(t, err)
		base := load(t, e, 0)
		armed = true
		out, err := e.RewriteGroup(t.Context(), table.RewriteRequest{Snapshot: base, Sources: fragmentIDs(base),
			Options: table.WriteOptions{MaxRows: 30}, Threads: 2})
		armed = false
		require.NoError(t, e.Close())
		named := map[string]bool{}
		for _, o := range out.Objects {
			named[o.Path] = true
		}
		after, listErr := mem.List(t.Context(), "data")
		require.NoError(t, listErr)
		for _, o := range after {
			path := "data/" + o.Name
			require.True(t, known[path] || named[path], "operation %d: %s is left and not named", n, path)
		}
		for path := range named {
			require.NoError(t, mem.Delete(t.Context(), path))
		}
		if seen < n {
			require.NoError(t, err)
			require.Greater(t, n, 20)
			return
		}
		require.ErrorIs(t, err, fault.ErrInjected, "operation %d", n)
		require.Empty(t, out.Fragments)
	}
}

func TestRewriteStopsWhenCancelled(t *testing.T) {
	defer goleak.VerifyNone(t)
	e := numbers(t, []int{20_000, 20_000, 20_000}, "2.1")
	s := load(t, e, 0)
	ctx, cancel := context.WithCancel(t.Context())
	out, err := e.RewriteGroup(ctx, table.RewriteRequest{
		Snapshot: s, Sources: fragmentIDs(s), Options: table.WriteOptions{MaxRows: 25_000},
		Progress: func(uint64, uint64) { cancel() },
	})
	require.ErrorIs(t, err, context.Canceled)
	require.Empty(t, out.Fragments)
	require.Len(t, out.Objects, 1, "no further file is begun")
	require.NoError(t, e.Close())
}

// A column that cannot be read is refused with all that somebody has to know, and
// nothing is written.
func TestRewriteNamesWhatItRefuses(t *testing.T) {
	e := open(t, "../testdata/unreadable/fixed_lists_of_structs.lance")
	s := load(t, e, 0)
	err := e.CanRewrite(t.Context(), s, fragmentIDs(s))
	require.ErrorIs(t, err, table.ErrUnsupported)
	require.ErrorContains(t, err, fmt.Sprintf("version %d", s.Version))
	require.ErrorContains(t, err, `column "a"`)
	require.ErrorContains(t, err, "fixed-size list of structs")
}

func BenchmarkRewrite(b *testing.B) {
	const fragments, rows, dim = 20, 5000, 128
	schema := arrow.NewSchema([]arrow.Field{
		{Name: "id", Type: arrow.PrimitiveTypes.Int64},
		{Name: "text", Type: arrow.BinaryTypes.String},
		{Name: "vector", Type: arrow.FixedSizeListOf(dim, arrow.PrimitiveTypes.Float32)},
	}, nil)
	s, err := store.NewLocal(b.TempDir() + "/t.lance")
	require.NoError(b, err)
	e, err := lance.CreateStore(b.Context(), s, schema, lance.CreateOptions{DataFormat: "2.1"}, lance.Options{})
	require.NoError(b, err)
	defer e.Close()
	r := rand.New(rand.NewPCG(1, 2))
	for range fragments {
		rb := array.NewRecordBuilder(memory.DefaultAllocator, schema)
		items := rb.Field(2).(*array.FixedSizeListBuilder)
		for i := range rows {
			rb.Field(0).(*array.Int64Builder).Append(int64(i))
			rb.Field(1).(*array.StringBuilder).Append(fmt.Sprintf("document %d of collection %d, revision %d", r.IntN(1e6), r.IntN(50), r.IntN(9)))
			items.Append(true)
			for range dim {
				items.ValueBuilder().(*array.Float32Builder).Append(r.Float32())
			}
		}
		batch := func(yield func(table.Batch, error) bool) { yield(table.Batch{Record: rb.NewRecordBatch()}, nil) }
		_, err := e.Append(b.Context(), batch, table.WriteOptions{NoSync: true})
		require.NoError(b, err)
	}
	base := load(b, e, 0)
	var addrs []table.RowAddr
	for _, f := range base.Fragments {
		for i := 7; i < rows; i += 100 {
			addrs = append(addrs, table.NewRowAddr(f.ID, uint32(i)))
		}
	}
	base, err = e.DeleteRows(b.Context(), addrs...)
	require.NoError(b, err)
	b.ReportAllocs()
	for b.Loop() {
		out, err := e.RewriteGroup(b.Context(), table.RewriteRequest{Snapshot: base, Sources: fragmentIDs(base), Threads: 2,
			Options: table.WriteOptions{NoSync: true}})
		require.NoError(b, err)
		b.SetBytes(int64(out.BytesRead))
		for _, o := range out.Objects {
			require.NoError(b, e.Delete(b.Context(), o))
		}
	}
}
