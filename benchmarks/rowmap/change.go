package rowmap

import (
	"fmt"
	"iter"
	"slices"

	"github.com/rehome-db/rehome/deletion"
	"github.com/rehome-db/rehome/fri"
	"github.com/rehome-db/rehome/table"
)

// ChangeOfAddress answers where rows are now. All forms of the change of address
// are asked through it; [fri.Translator] implements it. Safe for concurrent use.
type ChangeOfAddress interface {
	// Translate answers for one address.
	Translate(a table.RowAddr) (fri.Translation, error)
	// TranslateSorted answers for ascending addresses, duplicates allowed, in place:
	// an address becomes the new one if its row moved and stays as it is otherwise.
	// states is as long as addrs and says which.
	TranslateSorted(addrs []table.RowAddr, states []fri.State) error
}

// Move is a run of rows that stayed together: Rows rows of one source fragment
// from From on are rows of one destination from To on.
type Move struct {
	From, To table.RowAddr
	Rows     uint64
}

// Group is one rewrite task: sources, what of them was deleted, and destinations.
type Group struct {
	Sources      []fri.Digest
	Deleted      []*deletion.Vector // parallel to Sources
	Destinations []fri.Digest
	// Order is nil if the rewrite kept the order of rows. Otherwise survivor k
	// became row Order[k] of the destinations laid end to end.
	Order []uint32
}

// Moves yields what the group moved, by ascending old address if the sources
// ascend.
func (g Group) Moves() iter.Seq[Move] {
	return func(yield func(Move) bool) {
		k := uint64(0) // survivors so far
		for i, s := range g.Sources {
			for start, end := range g.Deleted[i].Live(s.PhysicalRows) {
				for start < end {
					at, n := k, end-start
					if g.Order != nil {
						at, n = uint64(g.Order[k]), 1
					}
					to, left := place(g.Destinations, at)
					n = min(n, left)
					if !yield(Move{From: table.NewRowAddr(s.ID, uint32(start)), To: to, Rows: n}) {
						return
					}
					k, start = k+n, start+n
				}
			}
		}
	}
}

// place finds row k of the fragments laid end to end, and how many follow it in
// its fragment, itself included.
func place(ds []fri.Digest, k uint64) (a table.RowAddr, left uint64) {
	for _, d := range ds {
		if k < d.PhysicalRows {
			return table.NewRowAddr(d.ID, uint32(k)), d.PhysicalRows - k
		}
		k -= d.PhysicalRows
	}
	return 0, 0 // not reached: as many rows arrive as survive
}

// moved counts the surviving rows.
func moved(gs []Group) (n uint64) {
	for _, g := range gs {
		for _, s := range g.Sources {
			n += s.LiveRows()
		}
	}
	return n
}

// OpenHistory decodes the content of a fragment reuse index.
func OpenHistory(content []byte) (ChangeOfAddress, error) {
	h, err := fri.Decode(content, 0)
	if err != nil {
		return nil, err
	}
	return h.Translator(), nil
}

// Rebase carries the rows that a concurrent delete affected, ascending, through
// the change of address: the deletion vectors to add to the fragments where the
// rows are now, and how many rows were gone already.
func Rebase(c ChangeOfAddress, affected []table.RowAddr) (map[table.FragmentID]*deletion.Vector, int, error) {
	now, states := slices.Clone(affected), make([]fri.State, len(affected))
	if err := c.TranslateSorted(now, states); err != nil {
		return nil, 0, fmt.Errorf("rowmap: rebase of %d rows: %w", len(affected), err)
	}
	offsets := make(map[table.FragmentID][]uint32)
	gone := 0
	var last table.FragmentID
	var run []uint32 // the rows of last that offsets does not have yet
	for i, a := range now {
		if states[i] == fri.Deleted {
			gone++
			continue
		}
		if f := a.Fragment(); f != last {
			if len(run) > 0 {
				offsets[last] = run
			}
			last, run = f, offsets[f]
		}
		run = append(run, a.Offset())
	}
	if len(run) > 0 {
		offsets[last] = run
	}
	out := make(map[table.FragmentID]*deletion.Vector, len(offsets))
	for f, o := range offsets {
		out[f] = deletion.Of(o...)
	}
	return out, gone, nil
}
