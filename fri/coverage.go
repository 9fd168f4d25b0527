package fri

import (
	"maps"
	"slices"

	"github.com/rehome-db/rehome/table"
)

// Follow re-targets a coverage (the fragments whose rows an index claims to hold)
// by every transition of the history, as readers do when they open an index: the
// sources of a transition go, and its destinations come if all sources were there.
// The result is ascending.
//
// A transition with only some of its sources covered is straddled: its
// destinations hold rows that the index never saw, so they do not come, and the
// rows that it did see are covered no more. The positions of such transitions are
// returned; a destination that does not come can make later ones straddled, too. So
// are those of transitions that are not understood or damaged, and of which a source was
// covered: what came of its rows cannot be said.
//
// Transitions apply in the order of the list, as in every reader of index version 0;
// in version 1, where the list need not be in that order, as the fragments depend on
// each other.
func (h *History) Follow(coverage []table.FragmentID) (now []table.FragmentID, straddled []int) {
	set := make(map[table.FragmentID]struct{}, len(coverage))
	for _, id := range coverage {
		set[id] = struct{}{}
	}
	for i := range h.transitions {
		if h.indexVersion > 0 {
			i = h.lineage.order[i]
		}
		t := h.transitions[i]
		covered := 0
		for _, d := range t.sources {
			if _, ok := set[d.ID]; ok {
				covered++
				delete(set, d.ID)
			}
		}
		switch {
		case covered == 0:
		case covered == len(t.sources) && t.Followed():
			for _, d := range t.destinations {
				set[d.ID] = struct{}{}
			}
		default:
			straddled = append(straddled, i)
		}
	}
	return slices.Sorted(maps.Keys(set)), straddled
}
