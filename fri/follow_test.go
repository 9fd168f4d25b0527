package fri_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/rehome-db/rehome/fri"
	"github.com/rehome-db/rehome/fri/fritest"
	"github.com/rehome-db/rehome/table"
)

// TestFollowCoversWhatItSaysAndNoMore holds a followed coverage against the rows:
// each fragment that comes has only rows that were covered, and a covered row that
// is covered no more passed through a rewrite that is reported.
func TestFollowCoversWhatItSaysAndNoMore(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := drawModel(t)
		covered := m.DrawCoverage(t, "covered")
		now, straddled := m.History.Follow(covered)
		require.True(t, slices.IsSorted(now))
		require.True(t, slices.IsSorted(straddled))
		require.Equal(t, len(slices.Compact(slices.Clone(now))), len(now))

		// Few rows of each fragment are enough: a rewrite takes all or none.
		had := map[table.RowAddr]bool{}
		for _, f := range m.All {
			for o := uint64(0); o < f.Rows; o += 1 + f.Rows/50 {
				if slices.Contains(covered, f.ID) {
					if tr := m.Translate(table.NewRowAddr(f.ID, uint32(o))); tr.State != fri.Deleted {
						had[tr.Addr] = true
					}
				}
			}
		}
		for a := range had {
			if !slices.Contains(now, a.Fragment()) {
				require.True(t, reaches(m, straddled, a.Fragment()), "%v is covered no more, and no straddle says why", a)
			}
		}
		for _, id := range now {
			_, gone := m.History.Consumer(id)
			require.False(t, gone, "fragment %d was rewritten", id)
			require.True(t, coveredWhole(m, covered, id), "fragment %d holds rows that were not covered", id)
		}
	})
}

// reaches says whether one of the transitions wrote the fragment or an ancestor.
func reaches(m *fritest.Model, transitions []int, id table.FragmentID) bool {
	i, ok := m.History.Producer(id)
	if !ok {
		return false
	}
	return slices.Contains(transitions, i) || slices.ContainsFunc(m.History.At(i).Sources(), func(s fri.Digest) bool {
		return reaches(m, transitions, s.ID)
	})
}

// coveredWhole says whether the fragment was covered, or everything it came of was.
func coveredWhole(m *fritest.Model, covered []table.FragmentID, id table.FragmentID) bool {
	if slices.Contains(covered, id) {
		return true
	}
	i, ok := m.History.Producer(id)
	if !ok {
		return false
	}
	for _, s := range m.History.At(i).Sources() {
		if !coveredWhole(m, covered, s.ID) {
			return false
		}
	}
	return true
}

// Following is settled at once, and covering more never covers less, except that a
// rewrite can be straddled that was not touched before.
func TestFollowIsSettledAndMonotone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := drawModel(t)
		a, b := m.DrawCoverage(t, "a"), m.DrawCoverage(t, "b")
		nowA, _ := m.History.Follow(a)
		again, straddled := m.History.Follow(nowA)
		require.Empty(t, straddled)
		require.True(t, slices.Equal(nowA, again))

		nowB, _ := m.History.Follow(b)
		both, _ := m.History.Follow(slices.Concat(a, b, a))
		for _, id := range slices.Concat(nowA, nowB) {
			require.Contains(t, both, id)
		}

		var all []table.FragmentID
		for _, f := range m.All {
			if _, written := m.History.Producer(f.ID); !written {
				all = append(all, f.ID)
			}
		}
		now, straddled := m.History.Follow(all)
		require.Empty(t, straddled, "an index of the whole table is never straddled")
		for _, f := range m.Live {
			require.Contains(t, now, f.ID)
		}
	})
}

// FuzzFollow: whatever a history holds, unknown mappings, lists in a strange order
// and fragments that are their neighbours' sources included, a coverage that is
// followed names what was covered or written, and each transition once.
func FuzzFollow(f *testing.F) {
	h, _ := benchHistory(f, false)
	f.Add(h.Encode(), int32(0), []byte{0, 1, 2})
	f.Add([]byte{0x12, 0x09, 0x0a, 0x02, 0x08, 0x01, 0x12, 0x02, 0x08, 0x02, 0x2a, 0x00}, int32(1), []byte{1})
	f.Fuzz(func(t *testing.T, content []byte, version int32, ids []byte) {
		h, err := fri.Decode(content, version)
		if err != nil {
			return
		}
		known := map[table.FragmentID]bool{}
		var covered []table.FragmentID
		for _, id := range ids {
			covered = append(covered, table.FragmentID(id))
			known[table.FragmentID(id)] = true
		}
		for _, tr := range h.All() {
			for _, d := range tr.Destinations() {
				known[d.ID] = true
			}
		}
		now, straddled := h.Follow(covered)
		require.True(t, slices.IsSorted(now))
		for _, id := range now {
			require.True(t, known[id], "fragment %d comes from nowhere", id)
		}
		seen := map[int]bool{}
		for _, i := range straddled {
			require.False(t, seen[i])
			require.Less(t, i, h.Len())
			seen[i] = true
		}
		require.Len(t, slices.Collect(maps.Keys(seen)), len(straddled))
	})
}
