package compaction

import (
	"cmp"
	"context"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/require"

	"github.com/rehome-db/rehome/fri"
	"github.com/rehome-db/rehome/table"
	"github.com/rehome-db/rehome/table/memengine"
)

// TestCoverageFollowsTheHistory reads testdata/coverage: which fragments a reader
// takes an index to cover, given what is stored and the history. A history is
// written one transition a line, sources -> destination; every fragment that was not
// written by one has one row.
func TestCoverageFollowsTheHistory(t *testing.T) {
	datadriven.RunTest(t, "testdata/coverage", func(t *testing.T, d *datadriven.TestData) string {
		h := &fri.History{}
		rows := map[table.FragmentID]uint64{}
		for line := range strings.Lines(d.Input) {
			from, to, _ := strings.Cut(strings.TrimSpace(line), "->")
			var b fri.Builder
			destination := ids(t, strings.TrimSpace(to))[0]
			for _, id := range ids(t, strings.TrimSpace(from)) {
				n := max(rows[id], 1)
				require.NoError(t, b.AddSource(fri.Digest{ID: id, PhysicalRows: n}, nil))
				rows[destination] += n
			}
			tr, err := b.Build([]fri.Digest{{ID: destination, PhysicalRows: rows[destination]}})
			require.NoError(t, err)
			h, err = h.Append(uint64(h.Len()+1), tr)
			require.NoError(t, err)
		}
		var stored []table.FragmentID
		if v := strings.Join(d.CmdArgs[0].Vals, ","); v != "" {
			stored = ids(t, v)
		}
		now, _ := h.Follow(stored)
		return cmp.Or(table.FragmentList(now), "nothing") + "\n"
	})
}

// TestPlanGoesByTheCoverageThatReadersSee: somebody else compacted {0,1} into 2 and
// recorded it, and left the index's stored coverage as it was. Readers take it to
// cover 2, so 2 must not share a group with a fragment that it does not cover.
func TestPlanGoesByTheCoverageThatReadersSee(t *testing.T) {
	e := newTable(t, 10, 10)
	id, err := e.AddIndex(ctx, table.IndexMeta{Name: "i", Coverage: ids(t, "0-1"), CoverageKnown: true, Reuse: table.ReuseThrough})
	require.NoError(t, err)
	_, err = Compact(ctx, unretargeted{e}, Options{})
	require.NoError(t, err)
	s, err := e.Load(ctx, 0)
	require.NoError(t, err)
	require.Equal(t, ids(t, "0-1"), s.Indexes[0].Coverage)
	require.Equal(t, ids(t, "2"), fragmentIDs(s.Fragments))
	appendRows(t, e, 10)
	appendRows(t, e, 10)

	plan, err := PlanLatest(ctx, e, Options{})
	require.NoError(t, err)
	require.Len(t, plan.Tasks, 1)
	require.Equal(t, ids(t, "3-4"), plan.Tasks[0].SourceIDs())

	// Deletions make 2 worth rewriting by itself; what is written then is what was
	// seen, brought up to date.
	require.NoError(t, e.DeleteRows(ctx, table.NewRowAddr(2, 1), table.NewRowAddr(2, 2), table.NewRowAddr(2, 3)))
	out, err := Compact(ctx, e, Options{})
	require.NoError(t, err)
	require.Equal(t, 2, out.GroupsPublished)
	s, err = e.Load(ctx, 0)
	require.NoError(t, err)
	require.Equal(t, id, s.Indexes[0].UUID)
	require.Equal(t, ids(t, "5"), s.Indexes[0].Coverage)
}

// unretargeted commits everything but the coverage.
type unretargeted struct{ *memengine.Engine }

func (u unretargeted) Commit(ctx context.Context, p table.Proposal) (*table.Snapshot, error) {
	p.Change.SetCoverage = nil
	return u.Engine.Commit(ctx, p)
}

func TestForeignHistory(t *testing.T) {
	setUp := func(t *testing.T, u table.ReuseIndexUpdate) *memengine.Engine {
		e := newTable(t, 10, 10)
		base, err := e.Load(ctx, 0)
		require.NoError(t, err)
		_, err = e.Commit(ctx, table.Proposal{Base: base, Transaction: table.Transaction{ID: "x", Operation: table.CreateIndex{}}, Change: table.Change{Reuse: &u}})
		require.NoError(t, err)
		return e
	}
	t.Run("of a version to come", func(t *testing.T) {
		// It cannot be extended, so no address is recorded; indexes are left alone.
		e := setUp(t, table.ReuseIndexUpdate{IndexVersion: fri.MaxIndexVersion + 1})
		report, err := Compact(ctx, e, Options{})
		require.NoError(t, err)
		require.False(t, report.FRI.Published)
		appendRows(t, e, 3)
		_, err = Compact(ctx, e, Options{FRI: FRIAlways, Force: true})
		require.ErrorIs(t, err, table.ErrUnsupported)
		require.Empty(t, orphans(t, e))
	})
	t.Run("with a mapping of a kind to come", func(t *testing.T) {
		// transitions=2 { sources=1 {50, 10 rows}, destinations=2 {51, 10 rows}, 99: "" }
		content := []byte{0x12, 15, 0x0a, 4, 8, 50, 16, 10, 0x12, 4, 8, 51, 16, 10, 0x9a, 0x06, 0}
		content[1] = byte(len(content) - 2)
		e := setUp(t, table.ReuseIndexUpdate{Content: content, IndexVersion: 1})
		h, err := fri.Decode(content, 1)
		require.NoError(t, err)
		require.False(t, h.Complete())
		_, err = e.AddIndex(ctx, table.IndexMeta{Name: "i", Fields: []int32{0}, Coverage: ids(t, "0-1"), CoverageKnown: true, Reuse: table.ReuseThrough})
		require.NoError(t, err)
		// An index would gain, and the refusal would come after all the work.
		report, err := Compact(ctx, e, Options{})
		require.NoError(t, err)
		require.True(t, report.Committed)
		require.Equal(t, IndexLeave, report.Policy)
		require.False(t, report.FRI.Published)
	})
	t.Run("damaged", func(t *testing.T) {
		e := setUp(t, table.ReuseIndexUpdate{Content: []byte{0x0a, 0xff}})
		_, err := Compact(ctx, e, Options{})
		require.ErrorIs(t, err, table.ErrCorrupt)
		require.ErrorContains(t, err, "table t version 4: fragment reuse index")
		require.Empty(t, orphans(t, e))
	})
	t.Run("that knows a fragment as rewritten which is there", func(t *testing.T) {
		var b fri.Builder
		require.NoError(t, b.AddSource(fri.Digest{ID: 0, PhysicalRows: 10}, nil))
		tr, err := b.Build([]fri.Digest{{ID: 7, PhysicalRows: 10}})
		require.NoError(t, err)
		h, err := (&fri.History{}).Append(2, tr)
		require.NoError(t, err)
		e := setUp(t, table.ReuseIndexUpdate{Content: h.Encode()})
		before := rowsAt(t, e, 0)
		_, err = Compact(ctx, e, Options{})
		require.ErrorContains(t, err, "fragment 0 was rewritten by transition 0 already")
		require.Equal(t, before, rowsAt(t, e, 0))
		require.Empty(t, orphans(t, e))
	})
}
