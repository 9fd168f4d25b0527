package remap_test

import (
	"slices"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/rehome-db/rehome/fri"
	"github.com/rehome-db/rehome/remap"
	"github.com/rehome-db/rehome/table"
)

// TestCoverageNeverClaimsAForeignRow: whatever was covered, every row of a
// fragment that comes was covered row by row; and a fragment whose rows were all
// covered comes unless a straddle that is reported lies on the way.
func TestCoverageNeverClaimsAForeignRow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := drawModel(t)
		covered := m.DrawCoverage(t, "covered")
		r := remap.New(m.History, remap.Options{Unchecked: true})
		got, err := r.Coverage(covered)
		require.NoError(t, err)
		require.True(t, slices.IsSorted(got.Fragments))

		// Rows that the index holds, at today's addresses.
		holds := map[table.RowAddr]bool{}
		for _, f := range m.All {
			if slices.Contains(covered, f.ID) {
				for o := uint64(0); o < f.Rows; o++ {
					if tr := m.Translate(table.NewRowAddr(f.ID, uint32(o))); tr.State != fri.Deleted {
						holds[tr.Addr] = true
					}
				}
			}
		}
		for _, f := range m.All {
			if _, rewritten := m.History.Consumer(f.ID); rewritten {
				require.NotContains(t, got.Fragments, f.ID, "it is gone")
				continue
			}
			if slices.Contains(got.Fragments, f.ID) {
				for o := range f.Rows {
					a := table.NewRowAddr(f.ID, uint32(o))
					require.True(t, holds[a], "%v is claimed and was not covered", a)
				}
			}
		}

		// Straddles mix, and what they wrote does not come of itself.
		for _, s := range got.Straddles {
			require.NotEmpty(t, s.Covered)
			require.NotEmpty(t, s.Missing)
			tr := m.History.At(s.Transition)
			require.Len(t, tr.Sources(), len(s.Covered)+len(s.Missing))
			require.Len(t, tr.Destinations(), len(s.Destinations))
			for _, d := range s.Destinations {
				if !slices.Contains(covered, d) {
					require.NotContains(t, got.Fragments, d)
				}
			}
		}
		if len(got.Straddles) == 0 {
			// Then no covered row was lost.
			for a := range holds {
				require.Contains(t, got.Fragments, a.Fragment())
			}
		}

		bm := roaring.New()
		for _, id := range covered {
			bm.Add(uint32(id))
		}
		out, again, err := r.CoverageBitmap(bm)
		require.NoError(t, err)
		require.Equal(t, got, again)
		require.EqualValues(t, len(got.Fragments), out.GetCardinality())
		for _, id := range got.Fragments {
			require.True(t, out.Contains(uint32(id)))
		}
	})
}

// A straddle is reported with what was covered at its turn, also when that came by
// earlier rewrites, and one straddle makes the next.
func TestCoverageReportsStraddles(t *testing.T) {
	m := newModel(0)
	for range 4 {
		m.Add(10)
	}
	m.Commit(t, m.Compact(t, []int{0, 1}, nil, false)) // 0 1 -> 4, covered as a whole
	m.Commit(t, m.Compact(t, []int{0, 2}, nil, false)) // 2 4 -> 5: only 4 is
	m.Commit(t, m.Compact(t, []int{0, 1}, nil, false)) // 3 5 -> 6: only 3 is
	r := remap.New(m.History, remap.Options{Unchecked: true})
	got, err := r.Coverage([]table.FragmentID{3, 1, 0})
	require.NoError(t, err)
	require.Empty(t, got.Fragments)
	require.Equal(t, []remap.Straddle{
		{Transition: 1, Covered: []table.FragmentID{4}, Missing: []table.FragmentID{2}, Destinations: []table.FragmentID{5}},
		{Transition: 2, Covered: []table.FragmentID{3}, Missing: []table.FragmentID{5}, Destinations: []table.FragmentID{6}},
	}, got.Straddles)
	require.Equal(t, "transition 1 wrote covered [4] and uncovered [2] into [5]", got.Straddles[0].String())

	got, err = r.Coverage([]table.FragmentID{0, 1, 2, 3, 77})
	require.NoError(t, err)
	require.Equal(t, remap.Coverage{Fragments: []table.FragmentID{6, 77}}, got)

	strict := remap.New(m.History, remap.Options{Strict: true})
	_, err = strict.Coverage([]table.FragmentID{0, 1, 2, 3, 77})
	require.ErrorIs(t, err, table.ErrNotFound)
	_, _, err = strict.CoverageBitmap(roaring.BitmapOf(77))
	require.ErrorIs(t, err, table.ErrNotFound)
}
