package enginetest

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/rehome-db/rehome/table"
)

func testRewriter(t *testing.T, cfg Config) {
	cases{
		{"gives the rows that reading and writing would give", rewriterGivesTheRowsThatReadingAndWritingWouldGive},
		{"takes the sources in the order given", rewriterTakesTheSourcesInTheOrderGiven},
		{"reads the version it was given", rewriterReadsTheVersionItWasGiven},
		{"makes nothing of sources without a live row", rewriterMakesNothingOfSourcesWithoutALiveRow},
		{"reports progress", rewriterReportsProgress},
		{"names its objects when it is cancelled", rewriterNamesItsObjectsWhenItIsCancelled},
		{"refuses a fragment that is not there", rewriterRefusesAFragmentThatIsNotThere},
		{"refuses what it cannot rewrite before it writes", rewriterRefusesWhatItCannotRewriteBeforeItWrites},
	}.run(t, cfg)
}

// compactable makes a table with three fragments and some deletions, and lists
// the live rows of the first and the last fragment.
func compactable(t *testing.T, cfg Config) (*fixture, table.Rewriter, []table.FragmentID, []int64) {
	f := newFixture(t, cfg, 500, 300, 400)
	rw, ok := table.As[table.Rewriter](f.engine)
	if !ok {
		t.Skip("the engine does not implement table.Rewriter")
	}
	ids := fragmentIDs(f.latest())
	f.delete(table.NewRowAddr(ids[0], 0), table.NewRowAddr(ids[0], 17), table.NewRowAddr(ids[0], 18),
		table.NewRowAddr(ids[1], 5), table.NewRowAddr(ids[2], 399))
	live := append(without(numbers(0, 500), 0, 17, 18), without(numbers(800, 400), 1199)...)
	return f, rw, []table.FragmentID{ids[0], ids[2]}, live
}

func rewriterGivesTheRowsThatReadingAndWritingWouldGive(t *testing.T, cfg Config) {
	for _, maxRows := range []uint64{0, 100, 896, 897} {
		for _, threads := range []int{1, 3} {
			f, rw, sources, live := compactable(t, cfg)
			s, before := f.latest(), f.objects()
			f.NoError(rw.CanRewrite(f.ctx, s, sources))
			out, err := rw.RewriteGroup(f.ctx, table.RewriteRequest{
				Snapshot: s, Sources: sources, Options: table.WriteOptions{MaxRows: maxRows}, Threads: threads,
			})
			f.NoError(err)
			f.named(before, out)
			f.unchangedSince(s)
			f.NotZero(out.BytesRead)
			f.NotZero(out.BytesWritten)

			slow, err := f.engine.WriteFragments(f.ctx, s.Schema, f.engine.Rows(f.ctx, s, sources, table.ReadOptions{}), table.WriteOptions{MaxRows: maxRows})
			f.NoError(err)
			f.Len(out.Fragments, len(slow.Fragments))
			for i := range slow.Fragments {
				f.Equal(slow.Fragments[i].PhysicalRows, out.Fragments[i].PhysicalRows)
			}
			next := f.commit(table.Change{Remove: sources, Add: place(s, out.Fragments)})
			f.hasRows(next, append(without(numbers(500, 300), 505), live...))
		}
	}
}

func rewriterTakesTheSourcesInTheOrderGiven(t *testing.T, cfg Config) {
	f, rw, sources, live := compactable(t, cfg)
	s := f.latest()
	out, err := rw.RewriteGroup(f.ctx, table.RewriteRequest{Snapshot: s, Sources: []table.FragmentID{sources[1], sources[0]}})
	f.NoError(err)
	next := f.commit(table.Change{Remove: fragmentIDs(s), Add: place(s, out.Fragments)})
	f.hasRows(next, append(append([]int64{}, live[497:]...), live[:497]...))
}

func rewriterReadsTheVersionItWasGiven(t *testing.T, cfg Config) {
	f, rw, sources, live := compactable(t, cfg)
	s := f.latest()
	f.delete(table.NewRowAddr(sources[0], 100))
	out, err := rw.RewriteGroup(f.ctx, table.RewriteRequest{Snapshot: s, Sources: sources})
	f.NoError(err)
	base := f.latest()
	next := f.commit(table.Change{Remove: fragmentIDs(base), Add: place(base, out.Fragments)})
	f.hasRows(next, live)
}

func rewriterMakesNothingOfSourcesWithoutALiveRow(t *testing.T, cfg Config) {
	f := newFixture(t, cfg, 10, 10)
	rw, ok := table.As[table.Rewriter](f.engine)
	if !ok {
		t.Skip("the engine does not implement table.Rewriter")
	}
	s := f.latest()
	ref, err := f.engine.WriteDeletions(f.ctx, s.Fragments[0].ID, s.Version, offsets(0, 1, 2, 3, 4, 5, 6, 7, 8, 9))
	f.NoError(err)
	s = f.commit(table.Change{SetDeletion: map[table.FragmentID]*table.DeletionRef{s.Fragments[0].ID: &ref}})
	before := f.objects()
	out, err := rw.RewriteGroup(f.ctx, table.RewriteRequest{Snapshot: s, Sources: fragmentIDs(s)[:1]})
	f.NoError(err)
	f.Empty(out.Fragments)
	f.Empty(out.Objects)
	f.Equal(before, f.objects())
}

func rewriterReportsProgress(t *testing.T, cfg Config) {
	f, rw, sources, _ := compactable(t, cfg)
	var calls atomic.Int64
	_, err := rw.RewriteGroup(f.ctx, table.RewriteRequest{
		Snapshot: f.latest(), Sources: sources, Threads: 2,
		Progress: func(_, _ uint64) { calls.Add(1) },
	})
	f.NoError(err)
	f.NotZero(calls.Load())
}

func rewriterNamesItsObjectsWhenItIsCancelled(t *testing.T, cfg Config) {
	f, rw, sources, _ := compactable(t, cfg)
	before := f.objects()
	ctx, cancel := context.WithCancel(f.ctx)
	cancel()
	out, err := rw.RewriteGroup(ctx, table.RewriteRequest{Snapshot: f.latest(), Sources: sources})
	f.ErrorIs(err, context.Canceled)
	f.cleanUp(before, out)
}

func rewriterRefusesAFragmentThatIsNotThere(t *testing.T, cfg Config) {
	f, rw, sources, _ := compactable(t, cfg)
	before := f.objects()
	missing := append(sources, f.latest().NextFragmentID+3)
	out, err := rw.RewriteGroup(f.ctx, table.RewriteRequest{Snapshot: f.latest(), Sources: missing})
	f.Error(err)
	f.cleanUp(before, out)
}

func rewriterRefusesWhatItCannotRewriteBeforeItWrites(t *testing.T, cfg Config) {
	if cfg.Unrewritable == nil {
		t.Skip("Config.Unrewritable is not set")
	}
	f := newFixture(t, cfg)
	f.engine, f.ops = cfg.Unrewritable(t)
	rw, ok := table.As[table.Rewriter](f.engine)
	f.True(ok, "Config.Unrewritable is set for an engine that is no Rewriter")
	s, before := f.latest(), f.objects()
	f.ErrorIs(rw.CanRewrite(f.ctx, s, fragmentIDs(s)), table.ErrUnsupported)
	out, err := rw.RewriteGroup(f.ctx, table.RewriteRequest{Snapshot: s, Sources: fragmentIDs(s)})
	f.ErrorIs(err, table.ErrUnsupported)
	f.Empty(out.Objects)
	f.Equal(before, f.objects())
}
