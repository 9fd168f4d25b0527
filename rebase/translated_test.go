package rebase

import (
	"context"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/rehome-db/rehome/deletion"
	"github.com/rehome-db/rehome/fri"
	"github.com/rehome-db/rehome/table"
)

// rewriteOf records a rewrite of fragments as a fragment reuse index does.
func rewriteOf(t require.TestingT, rows []uint64, dead []*deletion.Vector, to []fri.Digest) *fri.History {
	var b fri.Builder
	for i, n := range rows {
		require.NoError(t, b.AddSource(fri.Digest{ID: table.FragmentID(i), PhysicalRows: n, DeletedRows: dead[i].Cardinality()}, dead[i]))
	}
	tr, err := b.Build(to)
	require.NoError(t, err)
	h, err := fri.Decode(nil, 0)
	require.NoError(t, err)
	h, err = h.Append(2, tr)
	require.NoError(t, err)
	return h
}

// TestReport09RunsAndRowsAgree: rows are followed through a fragment reuse index to the
// same places whether they are asked for one by one or by runs.
func TestReport09RunsAndRowsAgree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		drawSet := func(rows uint64, name string) *deletion.Vector {
			var b deletion.Builder
			for range rapid.IntRange(0, 12).Draw(t, name) {
				start := rapid.Uint64Range(0, rows).Draw(t, "start")
				b.AddRun(start, min(rows, start+rapid.Uint64Range(0, rows/2).Draw(t, "rows")))
			}
			return b.Vector()
		}
		rows := []uint64{rapid.Uint64Range(1, 300).Draw(t, "rows"), rapid.Uint64Range(1, 70_000).Draw(t, "rows")}
		dead := []*deletion.Vector{drawSet(rows[0]-1, "dead"), drawSet(rows[1]-1, "dead")}
		live := rows[0] + rows[1] - dead[0].Cardinality() - dead[1].Cardinality()
		first := rapid.Uint64Range(1, live-1).Draw(t, "first")
		h := rewriteOf(t, rows, dead, []fri.Digest{{ID: 7, PhysicalRows: first}, {ID: 8, PhysicalRows: live - first}})
		g := addressGroup{by: h.Translator()}
		for id, n := range rows {
			asked := drawSet(n, "asked")
			var each, byRuns translated
			require.NoError(t, g.translateEach(table.FragmentID(id), asked, &each))
			require.NoError(t, g.translateRuns(table.FragmentID(id), asked, &byRuns))
			for _, got := range []*translated{&each, &byRuns} {
				moved, left := RowSet{}, RowSet{}
				got.addTo(moved, left)
				require.Equal(t, asked.Cardinality(), moved.Rows()+left.Rows())
				require.True(t, left.Equal(RowSet{table.FragmentID(id): asked.Intersect(dead[id])}))
				if got == &byRuns {
					want, _ := RowSet{}, RowSet{}
					each = translated{}
					require.NoError(t, g.translateEach(table.FragmentID(id), asked, &each))
					each.addTo(want, RowSet{})
					require.True(t, moved.Equal(want), "%v %v", moved, want)
				}
			}
		}
	})
}

// TestReport09FourBillionRowsThroughAReuseIndex takes memory and time by runs.
func TestReport09FourBillionRowsThroughAReuseIndex(t *testing.T) {
	const half = 1 << 31
	dead := []*deletion.Vector{deletion.Range(100, 100_000_000), deletion.Of(5)}
	live := uint64(half - (100_000_000 - 100) + half - 1)
	h := rewriteOf(t, []uint64{half, half}, dead, []fri.Digest{{ID: 7, PhysicalRows: 1000}, {ID: 8, PhysicalRows: live - 1000}})
	c := &ChangeOfAddress{}
	require.NoError(t, c.link(addressGroup{by: h.Translator(), sources: []addressSource{{id: 0, rows: half}, {id: 1, rows: half}}}))
	rows := RowSet{0: deletion.Range(0, half), 1: deletion.Range(0, half)}

	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	moved, left, err := c.Relocate(rows)
	runtime.ReadMemStats(&after)
	require.NoError(t, err)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(200<<20))
	require.True(t, moved.Equal(RowSet{7: deletion.Range(0, 1000), 8: deletion.Range(0, live-1000)}))
	require.True(t, left.Equal(RowSet{0: dead[0], 1: dead[1]}))
}

// TestReport09IdentitiesArePiecewise: the stable ids of rows are asked for some at a
// time, and what is kept of them is runs.
func TestReport09IdentitiesArePiecewise(t *testing.T) {
	var e idEngine
	var to addressList
	before, after := &table.Snapshot{}, &table.Snapshot{}
	g := table.RewriteGroup{New: []table.Fragment{{ID: 9}}}
	var piece []table.RowAddr
	for i := range uint32(3 * 1000) {
		if piece = append(piece, table.NewRowAddr(1, i)); len(piece) == 1000 {
			require.NoError(t, identify(t.Context(), e, before, after, g, piece, &to))
			piece = piece[:0]
		}
	}
	require.Equal(t, addressList{{from: table.NewRowAddr(1, 0), to: table.NewRowAddr(9, 50), rows: 3000}}, to)
	states := make([]fri.State, 3)
	addrs := []table.RowAddr{table.NewRowAddr(0, 5), table.NewRowAddr(1, 2999), table.NewRowAddr(1, 3000)}
	require.NoError(t, to.TranslateSorted(addrs, states))
	require.Equal(t, []fri.State{fri.Untranslatable, fri.Moved, fri.Untranslatable}, states)
	require.Equal(t, table.NewRowAddr(9, 3049), addrs[1])
	for r, err := range to.Runs(1) {
		require.NoError(t, err)
		require.Equal(t, fri.Run{From: table.NewRowAddr(1, 0), To: table.NewRowAddr(9, 50), Len: 3000}, r)
	}
	for range to.Runs(0) {
		require.Fail(t, "fragment 0 has no rows")
	}
}

// idEngine knows rows by their offsets, which grew by 50.
type idEngine struct{}

func (idEngine) RowIdentities(_ context.Context, _ *table.Snapshot, addrs []table.RowAddr) (out []table.RowIdentity, err error) {
	for _, a := range addrs {
		out = append(out, table.RowIdentity{ID: table.RowID(a.Offset())})
	}
	return out, nil
}

func (idEngine) FindRows(_ context.Context, _ *table.Snapshot, ids []table.RowID) (map[table.RowID]table.RowAddr, error) {
	out := map[table.RowID]table.RowAddr{}
	for _, id := range ids {
		out[id] = table.NewRowAddr(9, uint32(id)+50)
	}
	return out, nil
}

// TestReport09GapsAreErrors: rows that a translator does not know are an error, however
// they are asked for.
func TestReport09GapsAreErrors(t *testing.T) {
	g := addressGroup{by: addressList{{from: table.NewRowAddr(1, 10), to: table.NewRowAddr(2, 0), rows: 10}, {from: table.NewRowAddr(1, 30), to: table.NewRowAddr(2, 10), rows: 5}}}
	for _, rows := range []*deletion.Vector{deletion.Of(9), deletion.Range(15, 31), deletion.Range(30, 36), deletion.Of(12, 40)} {
		for _, ask := range []func(table.FragmentID, *deletion.Vector, *translated) error{g.translateEach, g.translateRuns} {
			require.ErrorIs(t, ask(1, rows, &translated{}), table.ErrCorrupt)
		}
	}
	var out translated
	require.NoError(t, g.translateRuns(1, deletion.Range(12, 20).Union(deletion.Of(30, 34)), &out))
	moved, dead := RowSet{}, RowSet{}
	out.addTo(moved, dead)
	require.True(t, moved.Equal(RowSet{2: deletion.Range(2, 11).Union(deletion.Of(14))}))
}
