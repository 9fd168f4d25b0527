package fri

import (
	"github.com/rehome-db/rehome/table"
)

// NeededBy returns those of the indexes whose files may hold addresses that only
// transition i (and perhaps others) can translate. committed is the version that
// published the transition; 0 if the caller does not know it.
//
// The answer errs on the side of "needed". An index needs a transition when its
// files may be older than the rewrite and may hold rows of its sources:
//
//   - An index whose coverage is unknown needs every transition that it predates.
//   - An index whose coverage names a source needs it, whatever its version: only
//     files that were not rewritten since name a fragment that is gone.
//   - An index that predates the commit needs it also when its coverage names
//     anything that the sources became, for stock engines replace old ids by new
//     ones in the coverage and leave the files as they are; and when its coverage
//     names anything that the sources came from, for then its addresses reach
//     the sources through earlier transitions.
//   - System entries hold no addresses and need nothing.
//
// An index predates the commit if its version is older than committed. Without
// committed it does if its version is not newer than the one recorded with the
// transition. That misses one case: the recorded version of a stock writer is a
// version or more before its commit, and an index built in between, whose coverage
// a stock engine re-targeted afterwards, looks newer. To drop transitions, use
// [History.Trim], which needs more facts.
func (h *History) NeededBy(i int, committed uint64, indexes []table.IndexMeta) []table.IndexMeta {
	t := h.transitions[i]
	sources := h.sourceSet(i)
	var out []table.IndexMeta
	for _, x := range indexes {
		if x.System {
			continue
		}
		predates := x.DatasetVersion <= t.datasetVersion
		if committed != 0 {
			predates = x.DatasetVersion < committed
		}
		switch {
		case !x.CoverageKnown && predates, sources.anyOf(x.Coverage), predates && h.related(x.Coverage)[i]:
			out = append(out, x)
		}
	}
	return out
}

// related says of each transition whether some of the fragments are relatives of it:
// its sources, what they came from, or what became of them. It walks every transition
// once up and once down, whatever the number of its fragments.
func (h *History) related(ids []table.FragmentID) []bool {
	up, down := make([]bool, len(h.transitions)), make([]bool, len(h.transitions))
	h.reach(ids, up, h.lineage.producers, (*Transition).Sources)
	h.reach(ids, down, h.lineage.consumers, (*Transition).Destinations)
	for i := range up {
		up[i] = up[i] || down[i]
	}
	return up
}

// reach marks the transitions that edges lead to from the fragments, and from what
// next yields of those.
func (h *History) reach(ids []table.FragmentID, seen []bool, edges map[table.FragmentID]edge, next func(*Transition) []Digest) {
	var work []int
	visit := func(id table.FragmentID) {
		if e, ok := edges[id]; ok && !seen[e.transition] {
			seen[e.transition] = true
			work = append(work, e.transition)
		}
	}
	for _, id := range ids {
		visit(id)
	}
	for len(work) > 0 {
		t := h.transitions[work[len(work)-1]]
		work = work[:len(work)-1]
		for _, d := range next(t) {
			visit(d.ID)
		}
	}
}
