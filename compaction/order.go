package compaction

import (
	"slices"

	"github.com/rehome-db/rehome/table"
)

// A scan reads fragments by ascending id, and new fragments get the highest: whatever
// is rewritten moves behind everything that stays. So a compaction keeps the order in
// which rows are scanned only if what it takes is the end of the table. It does not
// promise that, no engine does; but it says so, and keeps it if it is asked to.

// keepsOrder says whether a scan of s after the given groups were rewritten, one after
// the other, reads the live rows in the order in which it reads them before.
func keepsOrder(s *table.Snapshot, groups [][]table.FragmentID) bool {
	rewritten := map[table.FragmentID]bool{}
	var moved []table.FragmentID
	for _, g := range groups {
		for _, id := range g {
			rewritten[id] = true
		}
		moved = append(moved, g...)
	}
	var before, after []table.FragmentID
	live := map[table.FragmentID]bool{}
	for _, f := range s.Fragments {
		if f.LiveRows() == 0 {
			continue // no row of it is anywhere
		}
		live[f.ID] = true
		before = append(before, f.ID)
		if !rewritten[f.ID] {
			after = append(after, f.ID)
		}
	}
	for _, id := range moved {
		if live[id] {
			after = append(after, id)
		}
	}
	return slices.Equal(before, after)
}

// inOrder gives up groups until the rest keeps the order: what stays has to come
// before all that is rewritten.
func (p *planner) inOrder(groups grouping) grouping {
	for !keepsOrder(p.snapshot, groups.ids()) {
		in := map[table.FragmentID]int{} // 1 + the group that takes it
		for i, ids := range groups.ids() {
			for _, id := range ids {
				in[id] = i + 1
			}
		}
		// The groups that take something before the last fragment that stays have to
		// go. If none does, groups interleave: then it is all of them.
		give := map[int]bool{}
		var before []int
		for _, f := range p.snapshot.Fragments {
			switch i := in[f.ID]; {
			case f.LiveRows() == 0:
			case i > 0:
				before = append(before, i)
			default:
				for _, i := range before {
					give[i] = true
				}
				before = before[:0]
			}
		}
		var left grouping
		for i, g := range groups {
			if len(give) > 0 && !give[i+1] {
				left = append(left, g)
				continue
			}
			p.keep(g.members, keptOrder)
		}
		groups = left
	}
	return groups
}
