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
// a stock engine re-targeted afterwards, looks newer. Whoever drops transitions asks
// [History.Trim], which wants to know more.
func (h *History) NeededBy(i int, committed uint64, indexes []table.IndexMeta) []table.IndexMeta {
	t := h.transitions[i]
	sources, relatives := h.sourceSet(i), h.relatives(t)
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
		case !x.CoverageKnown && predates, sources.anyOf(x.Coverage), predates && relatives.anyOf(x.Coverage):
			out = append(out, x)
		}
	}
	return out
}

// relatives returns the sources of t with all their ancestors and descendants.
func (h *History) relatives(t *Transition) fragmentSet {
	out := make(fragmentSet)
	var stack []table.FragmentID
	for _, s := range t.sources {
		stack = append(stack, s.ID)
	}
	for f := range h.descendants(stack...) {
		out[f] = struct{}{}
	}
	seen := make(fragmentSet)
	for len(stack) > 0 {
		f := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if _, ok := seen[f]; ok {
			continue
		}
		seen[f], out[f] = struct{}{}, struct{}{}
		if e, ok := h.lineage.producers[f]; ok {
			for _, s := range h.transitions[e.transition].sources {
				stack = append(stack, s.ID)
			}
		}
	}
	return out
}
