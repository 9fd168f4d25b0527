package compaction

import (
	"github.com/rehome-db/rehome/rebase"
	"github.com/rehome-db/rehome/table"
)

// remember puts the change of address that was published into the engine's memory,
// if it has one: a change of rows that is committed after the compaction, in the same
// session, then need not find out where its rows went. It is nothing but a help, so
// what stands in its way is passed over.
func (p *publisher) remember(published []PublishedGroup) {
	memory := rebase.MemoryOf(p.engine)
	if memory == nil || len(published) != len(p.results) {
		return
	}
	moves := make([]rebase.Move, len(p.results))
	to := make([][]table.FragmentID, len(p.results))
	for i, r := range p.results {
		for j, f := range r.Task.Sources {
			deleted, err := r.deletedAt(j)
			if err != nil {
				return
			}
			moves[i].Sources = append(moves[i].Sources, rebase.MoveSource{Fragment: f.ID, PhysicalRows: f.PhysicalRows, Deleted: deleted})
		}
		for _, f := range r.Fragments {
			moves[i].Destinations = append(moves[i].Destinations, f.PhysicalRows)
		}
		to[i] = published[i].Destinations
	}
	if c, err := rebase.NewChangeOfAddress(moves, to); err == nil {
		memory.Put(rebase.MemoryKey{Table: p.Table, Transaction: p.ID}, c)
	}
}
