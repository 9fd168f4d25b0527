package fri

import (
	"github.com/rehome-db/rehome/table"
)

// lineage is the graph that transitions form over fragments: each fragment has at
// most one transition that wrote it and at most one that rewrote it, and nothing
// is its own ancestor. Because ids are never reused, an address is translated by
// following it, whatever the order in which transitions are listed.
type lineage struct {
	consumers map[table.FragmentID]edge
	producers map[table.FragmentID]edge
}

// edge is a fragment's place in a transition: its position among the sources or
// the destinations.
type edge struct {
	transition int
	position   int
}

// link builds the graph and checks it.
func link(ts []*Transition) (lineage, error) {
	var sources, destinations int
	for _, t := range ts {
		sources += len(t.sources)
		destinations += len(t.destinations)
	}
	l := lineage{
		consumers: make(map[table.FragmentID]edge, sources),
		producers: make(map[table.FragmentID]edge, destinations),
	}
	for i, t := range ts {
		for j, d := range t.sources {
			if other, ok := l.consumers[d.ID]; ok {
				return l, at(broken(RuleOneConsumer, "fragment %d was rewritten by transition %d already", d.ID, other.transition), i, t.datasetVersion)
			}
			l.consumers[d.ID] = edge{i, j}
		}
		for j, d := range t.destinations {
			if other, ok := l.producers[d.ID]; ok {
				return l, at(broken(RuleOneProducer, "fragment %d was written by transition %d already", d.ID, other.transition), i, t.datasetVersion)
			}
			l.producers[d.ID] = edge{i, j}
		}
	}
	return l, l.checkChains(ts)
}

// checkChains compares what a fragment was written with and what it was rewritten
// from, and walks the graph from its roots: transitions left over lie on a cycle.
func (l lineage) checkChains(ts []*Transition) error {
	waiting := make([]int, len(ts)) // sources that another transition must write first
	ready := make([]int, 0, len(ts))
	for i, t := range ts {
		for _, s := range t.sources {
			from, ok := l.producers[s.ID]
			if !ok {
				continue
			}
			waiting[i]++
			// Deletions may have been added in between; rows cannot.
			if d := ts[from.transition].destinations[from.position]; d.PhysicalRows != s.PhysicalRows {
				return at(broken(RuleChainRows, "fragment %d has %d rows, and had %d when transition %d wrote it",
					s.ID, s.PhysicalRows, d.PhysicalRows, from.transition), i, t.datasetVersion)
			}
		}
		if waiting[i] == 0 {
			ready = append(ready, i)
		}
	}
	seen := 0
	for len(ready) > 0 {
		t := ts[ready[len(ready)-1]]
		ready = ready[:len(ready)-1]
		seen++
		for _, d := range t.destinations {
			if to, ok := l.consumers[d.ID]; ok {
				if waiting[to.transition]--; waiting[to.transition] == 0 {
					ready = append(ready, to.transition)
				}
			}
		}
	}
	if seen == len(ts) {
		return nil
	}
	for i, n := range waiting {
		if n > 0 {
			return at(broken(RuleAcyclic, "it is, through others, its own ancestor"), i, ts[i].datasetVersion)
		}
	}
	return nil
}

// fragmentIndex finds a small number by fragment id. Ids of a table's life lie
// close together, so a plain array does almost always.
type fragmentIndex struct {
	base  table.FragmentID
	dense []int32 // position + 1, 0 for none
	wide  map[table.FragmentID]int32
}

func newFragmentIndex(ids []table.FragmentID) fragmentIndex {
	if len(ids) == 0 {
		return fragmentIndex{}
	}
	low, high := ids[0], ids[0]
	for _, id := range ids {
		low, high = min(low, id), max(high, id)
	}
	x := fragmentIndex{base: low}
	if span := uint64(high-low) + 1; span <= 8*uint64(len(ids))+1024 {
		x.dense = make([]int32, span)
		for i, id := range ids {
			x.dense[id-low] = int32(i) + 1
		}
		return x
	}
	x.wide = make(map[table.FragmentID]int32, len(ids))
	for i, id := range ids {
		x.wide[id] = int32(i) + 1
	}
	return x
}

func (x *fragmentIndex) find(id table.FragmentID) (int, bool) {
	if x.wide != nil {
		i := x.wide[id]
		return int(i) - 1, i != 0
	}
	// Below base the subtraction wraps around, far beyond the array.
	if d := uint64(id - x.base); d < uint64(len(x.dense)) {
		i := x.dense[d]
		return int(i) - 1, i != 0
	}
	return -1, false
}
