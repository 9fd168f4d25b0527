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
	// order is the transitions such that each comes after those that wrote what
	// it rewrote: the stored order, if that is one.
	order []int
}

// edge is a fragment's place in a transition: its position among the sources or
// the destinations.
type edge struct {
	transition int
	position   int
}

// link builds the graph and checks it.
//
// Transitions that are not understood have their place in it, so that what touches
// their fragments is known to, and like the others they may not share it. What they
// say of rows, and whether they make a cycle, is not looked at: a walk ends at them.
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
	maps := make(map[string]int)
	for i, t := range ts {
		for j, d := range t.sources {
			if other, ok := l.consumers[d.ID]; ok {
				if t.mapping == DamagedMapping && ts[other.transition].mapping == DamagedMapping {
					continue // lost either way
				}
				return l, at(broken(RuleOneConsumer, "fragment %d was rewritten by transition %d already", d.ID, other.transition), i, t.datasetVersion)
			}
			l.consumers[d.ID] = edge{i, j}
		}
		for j, d := range t.destinations {
			if t.mapping == DamagedMapping {
				break // a destination that it never had may be somebody else's
			}
			if other, ok := l.producers[d.ID]; ok {
				return l, at(broken(RuleOneProducer, "fragment %d was written by transition %d already", d.ID, other.transition), i, t.datasetVersion)
			}
			l.producers[d.ID] = edge{i, j}
		}
		if t.mapping == StablePartition {
			// Whoever trims the one transition deletes the file.
			key := t.partition.key()
			if other, ok := maps[key]; ok {
				return l, at(broken(RuleOwnMap, "label file %s is that of transition %d", t.partition.MapID, other), i, t.datasetVersion)
			}
			maps[key] = i
		}
	}
	var err error
	l.order, err = l.checkChains(ts)
	return l, err
}

// checkChains compares what a fragment was written with and what it was rewritten
// from, and walks the graph from its roots: transitions left over lie on a cycle.
// It returns the transitions in the order of the walk.
func (l lineage) checkChains(ts []*Transition) ([]int, error) {
	waiting := make([]int, len(ts)) // sources that another transition must write first
	for i, t := range ts {
		if !t.Followed() {
			continue
		}
		for _, s := range t.sources {
			from, ok := l.producers[s.ID]
			if !ok || !ts[from.transition].Followed() {
				continue
			}
			waiting[i]++
			// Deletions may have been added in between; rows cannot.
			if d := ts[from.transition].destinations[from.position]; d.PhysicalRows != s.PhysicalRows {
				return nil, at(broken(RuleChainRows, "fragment %d has %d rows, and had %d when transition %d wrote it",
					s.ID, s.PhysicalRows, d.PhysicalRows, from.transition), i, t.datasetVersion)
			}
		}
	}
	order := make([]int, 0, len(ts))
	// Those that a later transition feeds wait for it; the others keep their place.
	var ready []int
	for next := 0; next < len(ts) || len(ready) > 0; {
		var i int
		if len(ready) > 0 {
			i, ready = ready[len(ready)-1], ready[:len(ready)-1]
		} else {
			if i = next; waiting[i] > 0 {
				next++
				continue
			}
			next++
		}
		order = append(order, i)
		if !ts[i].Followed() {
			continue
		}
		for _, d := range ts[i].destinations {
			to, ok := l.consumers[d.ID]
			if !ok || !ts[to.transition].Followed() {
				continue
			}
			if waiting[to.transition]--; waiting[to.transition] == 0 && to.transition < next {
				ready = append(ready, to.transition)
			}
		}
	}
	if len(order) == len(ts) {
		return order, nil
	}
	for i, n := range waiting {
		if n > 0 {
			return nil, at(broken(RuleAcyclic, "it is, through others, its own ancestor"), i, ts[i].datasetVersion)
		}
	}
	return order, nil
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
