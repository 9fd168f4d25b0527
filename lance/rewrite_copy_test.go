package lance_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/rehome-db/rehome/deletion"
	"github.com/rehome-db/rehome/internal/testtable"
	"github.com/rehome-db/rehome/lance"
	"github.com/rehome-db/rehome/lance/datafile"
	"github.com/rehome-db/rehome/lance/readat"
	"github.com/rehome-db/rehome/lance/store"
	"github.com/rehome-db/rehome/table"
)

// pagesOf counts the pages of each column of the only file of the only fragment.
func pagesOf(t require.TestingT, s store.Store, v *table.Snapshot) (counts []int) {
	require.Len(t, v.Fragments, 1)
	require.Len(t, v.Fragments[0].Files, 1)
	path := v.Fragments[0].Files[0].Path
	data, err := store.ReadAll(context.Background(), s, path, 1<<30)
	require.NoError(t, err)
	f, err := datafile.Open(context.Background(), readat.Bytes(data), int64(len(data)), path)
	require.NoError(t, err)
	for i := range f.NumColumns() {
		c, err := f.Column(i)
		require.NoError(t, err)
		counts = append(counts, len(c.Pages()))
	}
	return counts
}

func rewriteAll(t require.TestingT, e *lance.Engine, s *table.Snapshot, opts table.WriteOptions, pages table.PageCopy) *table.Snapshot {
	out, err := e.RewriteGroup(context.Background(), table.RewriteRequest{Snapshot: s, Sources: fragmentIDs(s), Options: opts, Threads: 2, Copy: pages})
	require.NoError(t, err)
	return replace(t, e, s, out)
}

// Whether pages are copied or encoded anew makes no difference to the rows, of any
// table that a stock engine wrote.
func TestCopiedPagesHoldTheRowsOfGoldenTables(t *testing.T) {
	for _, g := range testtable.All(t) {
		t.Run(g.Name, func(t *testing.T) {
			e := openStore(t, inMemory(t, g.Name))
			base := load(t, e, 0)
			if err := e.CanRewrite(t.Context(), base, fragmentIDs(base)); err != nil {
				require.ErrorIs(t, err, table.ErrUnsupported)
				require.Equal(t, "storage_legacy", g.Name)
				return
			}
			want := text(t, e, base)
			for _, pages := range []table.PageCopy{table.CopyAlways, table.CopyNever, table.CopyAuto} {
				base = rewriteAll(t, e, base, table.WriteOptions{}, pages)
				require.Equal(t, want, text(t, e, base))
			}
		})
	}
}

func TestAPageIsCopiedIfAllItsRowsAreKept(t *testing.T) {
	s := store.NewMem()
	e := newTable(t, s, 100, 200, 300)
	base := load(t, e, 0)
	want := text(t, e, base)

	small := rewriteAll(t, e, base, table.WriteOptions{}, table.CopyAuto)
	require.Equal(t, []int{1, 1}, pagesOf(t, s, small), "small pages are put together")
	require.Equal(t, want, text(t, e, small))

	s = store.NewMem()
	e = newTable(t, s, 100, 200, 300)
	copied := rewriteAll(t, e, load(t, e, 0), table.WriteOptions{}, table.CopyAlways)
	require.Equal(t, []int{3, 3}, pagesOf(t, s, copied), "unless that is asked for")
	require.Equal(t, want, text(t, e, copied))

	// A row of the second page goes: its neighbours are copied, it is not.
	_, err := e.DeleteRows(t.Context(), table.NewRowAddr(copied.Fragments[0].ID, 150))
	require.NoError(t, err)
	base = load(t, e, 0)
	want = text(t, e, base)
	again := rewriteAll(t, e, base, table.WriteOptions{}, table.CopyAlways)
	require.Equal(t, []int{3, 3}, pagesOf(t, s, again))
	require.Equal(t, want, text(t, e, again))

	// Pages that were taken apart end where the next copied one begins.
	_, err = e.DeleteRows(t.Context(), table.NewRowAddr(again.Fragments[0].ID, 0), table.NewRowAddr(again.Fragments[0].ID, 298))
	require.NoError(t, err)
	base = load(t, e, 0)
	want = text(t, e, base)
	again = rewriteAll(t, e, base, table.WriteOptions{}, table.CopyAlways)
	require.Equal(t, []int{2, 2}, pagesOf(t, s, again), "the first two are encoded together")
	require.Equal(t, want, text(t, e, again))
}

// Large pages are copied without being asked to.
func TestLargePagesAreCopied(t *testing.T) {
	s := store.NewMem()
	e := newTable(t, s, 600_000, 600_000)
	base := load(t, e, 0)
	want := text(t, e, base)
	next := rewriteAll(t, e, base, table.WriteOptions{MaxRows: 1 << 21}, table.CopyAuto)
	counts := pagesOf(t, s, next)
	require.Equal(t, 2, counts[0], "4.8 MB of integers a page")
	require.Equal(t, want, text(t, e, next))
}

// Random fragments, deletions and cuts: what copying makes is what encoding makes.
func TestCopyingPagesIsLikeEncodingThem(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ctx := context.Background()
		sizes := rapid.SliceOfN(rapid.Int64Range(1, 40), 1, 6).Draw(t, "sizes")
		format := rapid.SampledFrom([]string{"2.1", "2.2"}).Draw(t, "format")
		s := store.NewMem()
		e, err := lance.CreateStore(ctx, s, people, lance.CreateOptions{DataFormat: format}, lance.Options{})
		require.NoError(t, err)
		defer e.Close()
		next := int64(0)
		for _, n := range sizes {
			_, err := e.Append(ctx, rows(next, n), table.WriteOptions{})
			require.NoError(t, err)
			next += n
		}
		base, err := e.Load(ctx, 0)
		require.NoError(t, err)
		base = rewriteAll(t, e, base, table.WriteOptions{}, table.CopyAlways) // one file of many pages

		var dead []uint32
		for at := uint32(0); at < uint32(next); {
			at += rapid.Uint32Range(0, 50).Draw(t, "kept")
			for range rapid.IntRange(1, 30).Draw(t, "deleted") {
				if at < uint32(next) {
					dead = append(dead, at)
				}
				at++
			}
		}
		if len(dead) == int(next) {
			dead = dead[1:]
		}
		if len(dead) > 0 {
			ref, err := e.WriteDeletions(ctx, base.Fragments[0].ID, base.Version, deletion.Of(dead...))
			require.NoError(t, err)
			f := base.Fragments[0]
			f.Deletion = &ref
			base, err = e.Commit(ctx, table.Proposal{
				Base: base, Transaction: table.Transaction{ID: "delete", ReadVersion: base.Version, Operation: table.Delete{Updated: []table.Fragment{f}}},
				Change: table.Change{SetDeletion: map[table.FragmentID]*table.DeletionRef{f.ID: &ref}},
			})
			require.NoError(t, err)
		}
		want := ids(t, e, base)
		opts := table.WriteOptions{MaxRows: rapid.Uint64Range(1, uint64(next)).Draw(t, "rows a file")}
		after := rewriteAll(t, e, base, opts, table.CopyAlways)
		require.Equal(t, want, ids(t, e, after))
		for i, f := range after.Fragments {
			if i < len(after.Fragments)-1 {
				require.Equal(t, opts.MaxRows, f.PhysicalRows)
			}
		}
	})
}

// ids reads the first column, and with it proves that the second can be read.
func ids(t require.TestingT, e *lance.Engine, s *table.Snapshot) (out []string) {
	for batch, err := range e.Rows(context.Background(), s, fragmentIDs(s), table.ReadOptions{}) {
		require.NoError(t, err)
		for i := range int(batch.Record.NumRows()) {
			out = append(out, batch.Record.Column(0).ValueStr(i)+batch.Record.Column(1).ValueStr(i))
		}
	}
	return out
}
