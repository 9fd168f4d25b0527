package rebase_test

import (
	"fmt"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/rehome-db/rehome/deletion"
	"github.com/rehome-db/rehome/fri"
	"github.com/rehome-db/rehome/rebase"
	"github.com/rehome-db/rehome/table"
	"github.com/rehome-db/rehome/table/memengine"
)

// TestOtherOrder is the second example of the package's documentation.
func TestOtherOrder(t *testing.T) {
	c, err := rebase.NewChangeOfAddress(groupsOf(move{
		Sources: []source{
			{Fragment: 10, PhysicalRows: 8, Deleted: deletion.Of(2, 5)},
			{Fragment: 11, PhysicalRows: 4},
		},
		Destinations: []uint64{7, 3},
	}), [][]table.FragmentID{{20, 21}})
	require.NoError(t, err)
	moved, dead, err := c.Relocate(rebase.RowSet{10: deletion.Of(2, 4, 7), 11: deletion.Of(1, 2), 12: deletion.Of(0)})
	require.NoError(t, err)
	require.True(t, moved.Equal(rebase.RowSet{20: deletion.Of(3, 5), 21: deletion.Of(0, 1), 12: deletion.Of(0)}), moved)
	require.True(t, dead.Equal(rebase.RowSet{10: deletion.Of(2)}), dead)
}

// TestRelocateRowByRow compares with a walk over all rows, for several groups whose
// fragments were read in any order.
func TestRelocateRowByRow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ids := rapid.Permutation([]table.FragmentID{0, 1, 2, 3, 4, 5}).Draw(t, "order")
		next := table.FragmentID(100)
		var moves []move
		var to [][]table.FragmentID
		rows, moved, dead := rebase.RowSet{}, rebase.RowSet{}, rebase.RowSet{}
		add := func(s rebase.RowSet, id table.FragmentID, o uint32) { s.Add(id, deletion.Of(o)) }
		for range rapid.IntRange(1, 3).Draw(t, "groups") {
			n := rapid.IntRange(1, min(3, len(ids))).Draw(t, "sources")
			var m move
			var live []table.RowAddr
			for _, id := range ids[:n] {
				f := drawSources(t)[0]
				m.Sources = append(m.Sources, source{Fragment: id, PhysicalRows: uint64(len(f.then)), Deleted: vectorOf(f.then)})
				for o, isDead := range f.then {
					if f.now[o] {
						add(rows, id, uint32(o))
					}
					if !isDead {
						live = append(live, table.NewRowAddr(id, uint32(o)))
					} else if f.now[o] {
						add(dead, id, uint32(o))
					}
				}
			}
			ids = ids[n:]
			var dest []table.FragmentID
			for len(live) > 0 {
				k := rapid.IntRange(1, len(live)).Draw(t, "destination rows")
				for o, a := range live[:k] {
					if rows.Contains(a) {
						add(moved, next, uint32(o))
					}
				}
				live, dest = live[k:], append(dest, next)
				m.Destinations = append(m.Destinations, uint64(k))
				next++
			}
			moves, to = append(moves, m), append(to, dest)
			if len(ids) == 0 {
				break
			}
		}
		for _, id := range ids { // not rewritten
			add(rows, id, 3)
			add(moved, id, 3)
		}
		c, err := rebase.NewChangeOfAddress(groupsOf(moves...), to)
		require.NoError(t, err)
		gotMoved, gotDead, err := c.Relocate(rows)
		require.NoError(t, err)
		require.True(t, moved.Equal(gotMoved), "%v, want %v", gotMoved, moved)
		require.True(t, dead.Equal(gotDead), "%v, want %v", gotDead, dead)
	})
}

func TestChangeOfAddressRefusesWhatDoesNotAddUp(t *testing.T) {
	from := func(id table.FragmentID, rows uint64, dead ...uint32) source {
		return source{Fragment: id, PhysicalRows: rows, Deleted: deletion.Of(dead...)}
	}
	for want, c := range map[string]struct {
		moves []move
		to    [][]table.FragmentID
	}{
		"1 groups, and destinations of 2":                           {[]move{{}}, make([][]table.FragmentID, 2)},
		"1 destinations have 2 ids":                                 {[]move{{Destinations: []uint64{1}}}, [][]table.FragmentID{{1, 2}}},
		"offset 7 is deleted in a fragment of 3 rows":               {[]move{{Sources: []source{from(1, 3, 7)}}}, [][]table.FragmentID{{}}},
		"2 rows were alive in the sources, the destinations have 3": {[]move{{Sources: []source{from(1, 3, 1)}, Destinations: []uint64{3}}}, [][]table.FragmentID{{2}}},
		"fragment 1 is a source of groups 0 and 1": {[]move{
			{Sources: []source{from(1, 1)}, Destinations: []uint64{1}},
			{Sources: []source{from(1, 1)}, Destinations: []uint64{1}}}, [][]table.FragmentID{{2}, {3}}},
		"fragment 1 has 8589934592 rows": {[]move{{Sources: []source{from(1, 1<<33)}, Destinations: []uint64{1}}}, [][]table.FragmentID{{2}}},
	} {
		_, err := rebase.NewChangeOfAddress(groupsOf(c.moves...), c.to)
		require.ErrorIs(t, err, table.ErrCorrupt, want)
		require.ErrorContains(t, err, want)
	}
	one := []move{{Sources: []source{from(1, 3)}, Destinations: []uint64{3}}}
	c, err := rebase.NewChangeOfAddress(groupsOf(one...), [][]table.FragmentID{{2}})
	require.NoError(t, err)
	_, _, err = c.Relocate(rebase.Rows(table.NewRowAddr(1, 3)))
	require.ErrorIs(t, err, table.ErrCorrupt)
}

// BenchmarkDeleteOverCompaction carries a delete of 1,000 scattered rows over a
// compaction of more and more rows, a tenth of which was dead before, and makes the
// proposal: all that a commit has to do for it beyond writing two small files. The
// change of address is remembered, or found in the fragment reuse index. The table
// has a column of nulls, so that there are only addresses.
func BenchmarkDeleteOverCompaction(b *testing.B) {
	const perFragment = 1 << 20
	for _, rows := range []int{1_000_000, 10_000_000, 100_000_000} {
		for _, found := range []string{"remembered", "recorded"} {
			b.Run(fmt.Sprintf("rows=%d/%s", rows, found), func(b *testing.B) {
				e := memengine.New("t", table.Schema{Fields: []table.Field{{ID: 0, Name: "x", Type: arrow.Null, Nullable: true}}})
				s, err := e.Load(ctx, 0)
				require.NoError(b, err)
				record := func(n int) arrow.RecordBatch {
					return array.NewRecordBatch(s.Schema.Arrow(), []arrow.Array{array.NewNull(n)}, int64(n))
				}
				fragments := (rows + perFragment - 1) / perFragment
				var history fri.Builder
				var g table.RewriteGroup
				affected := rebase.RowSet{}
				change := table.Change{}
				m := move{}
				var to []table.FragmentID
				for id := range fragments {
					require.NoError(b, e.Append(ctx, record(perFragment)))
					var dead, fresh []uint32
					for o := uint32(0); o < perFragment; o += 10 {
						dead = append(dead, o)
					}
					each := uint32(1000 / fragments)
					for i := range each {
						fresh = append(fresh, i*(perFragment/each)/10*10+1)
					}
					then := deletion.Of(dead...)
					ref, err := e.WriteDeletions(ctx, table.FragmentID(id), 1, then)
					require.NoError(b, err)
					s, err = e.Load(ctx, 0)
					require.NoError(b, err)
					f := s.Fragments[id]
					f.Deletion = &ref
					affected[f.ID] = deletion.Of(fresh...)
					g.Old = append(g.Old, f)
					change.Remove = append(change.Remove, f.ID)
					m.Sources = append(m.Sources, source{Fragment: f.ID, PhysicalRows: f.PhysicalRows, Deleted: then})
					m.Destinations = append(m.Destinations, f.LiveRows())
					require.NoError(b, history.AddSource(fri.DigestOf(f), then))
				}
				u := rebase.Uncommitted{Table: "t", Affected: affected, Transaction: table.Transaction{ID: "x", ReadVersion: s.Version, Operation: table.Delete{}}}
				var digests []fri.Digest
				for i, n := range m.Destinations {
					batch := record(int(n))
					written, err := e.WriteFragments(ctx, s.Schema, func(yield func(table.Batch, error) bool) { yield(table.Batch{Record: batch}, nil) }, table.WriteOptions{MaxRows: perFragment})
					require.NoError(b, err)
					f := table.Fragment{ID: s.NextFragmentID + table.FragmentID(i), PhysicalRows: n, Files: written.Fragments[0].Files}
					g.New, to, digests = append(g.New, f), append(to, f.ID), append(digests, fri.DigestOf(f))
				}
				change.Add = g.New
				var opts rebase.Options
				if found == "remembered" {
					c, err := rebase.NewChangeOfAddress(groupsOf(m), [][]table.FragmentID{to})
					require.NoError(b, err)
					opts.Addresses = append(opts.Addresses, c)
				} else {
					step, err := history.Build(digests)
					require.NoError(b, err)
					h, err := (&fri.History{}).Append(s.Version+1, step)
					require.NoError(b, err)
					change.Reuse = &table.ReuseIndexUpdate{Content: h.Encode()}
				}
				base, err := e.Commit(ctx, table.Proposal{Base: s, Change: change,
					Transaction: table.Transaction{ID: "r", ReadVersion: s.Version, Operation: table.Rewrite{Groups: []table.RewriteGroup{g}}}})
				require.NoError(b, err)
				txs, err := e.TransactionsSince(ctx, s.Version, 0)
				require.NoError(b, err)
				for b.Loop() {
					r, err := rebase.NewRebasing(e, u, opts)
					if err == nil {
						err = r.Over(ctx, base, txs)
					}
					if err != nil {
						b.Fatal(err)
					}
					p, err := r.Propose(ctx, base)
					if err != nil || r.Rows().Rows() < 900 || len(p.Change.SetDeletion) != fragments {
						b.Fatal(err, r.Rows().Rows())
					}
				}
			})
		}
	}
}
