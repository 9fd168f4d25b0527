package rebase

import (
	"iter"
	"sort"

	"github.com/rehome-db/rehome/deletion"
	"github.com/rehome-db/rehome/table"
)

// Move is a rewrite that was computed and is not committed yet: which rows it read
// and how it laid them out. It is a change of address by rank: the k-th row that
// was alive in the sources, taken in order, is the k-th row of the destinations.
type Move struct {
	// Sources in the order in which their rows were read.
	Sources []MoveSource
	// Destinations are the rows of each new fragment, in the order in which they
	// were written. Their sum is the number of live source rows.
	Destinations []uint64
}

// MoveSource is a fragment as the rewrite read it.
type MoveSource struct {
	Fragment     table.FragmentID
	PhysicalRows uint64
	// Deleted are the rows that were dead then and were left behind; nil for none.
	Deleted *deletion.Vector
}

func (s MoveSource) live() uint64 { return s.PhysicalRows - s.Deleted.Cardinality() }

// SourceNow is what became of a source since the rewrite read it.
type SourceNow struct {
	// Removed: the fragment is gone because every row of it was deleted. It must
	// not be set for a fragment whose rows were moved elsewhere.
	Removed bool
	// Deleted are all rows that are dead now, those of then included; nil for
	// none. Meaningless if Removed.
	Deleted *deletion.Vector
}

// Relocated is what was deleted behind a rewrite's back, where the rows are now.
type Relocated struct {
	// Deleted has, for each destination, the rows to be marked deleted in it; nil
	// where there are none.
	Deleted []*deletion.Vector
	// Rows is their number, over all destinations.
	Rows uint64
	// Emptied lists the destinations, by position, that have no live row left.
	Emptied []int
}

// Relocate carries the deletions of now, which is parallel to m.Sources, to the
// destinations. Of each source that is the difference between now and then: rows
// that were dead when the rewrite read them were not copied and have no address.
// However many commits the difference came of makes no difference.
//
// The work grows with the number of fragments and with the runs of rows that were
// deleted since, not with the rows of the table. An error wraps
// [table.ErrConflict] if rows that were dead are alive again, and
// [table.ErrCorrupt] if m or now does not add up.
func (m Move) Relocate(now []SourceNow) (Relocated, error) {
	out := Relocated{Deleted: make([]*deletion.Vector, len(m.Destinations))}
	if len(now) != len(m.Sources) {
		return out, table.Corruptf("rebase: %d states of %d sources", len(now), len(m.Sources))
	}
	ends := make([]uint64, len(m.Destinations))
	var written uint64
	for i, rows := range m.Destinations {
		written += rows
		ends[i] = written
	}
	var ranks []span
	var before uint64 // live rows of the sources before
	for i, s := range m.Sources {
		if err := s.Deleted.Validate(s.PhysicalRows, 0); err != nil {
			return out, table.Corruptf("rebase: fragment %d as it was read: %w", s.Fragment, err)
		}
		if now[i].Removed {
			if s.live() > 0 {
				ranks = append(ranks, span{before, before + s.live()})
			}
		} else if now[i].Deleted != s.Deleted { // the same set by identity costs nothing
			fresh, err := s.since(now[i].Deleted)
			if err != nil {
				return out, err
			}
			// No row that was dead then lies inside a run of rows that died since.
			for start, end := range fresh.Runs() {
				rank := before + start - s.Deleted.Rank(uint32(start))
				ranks = append(ranks, span{rank, rank + end - start})
			}
		}
		before += s.live()
	}
	if before != written {
		return out, table.Corruptf("rebase: %d rows were alive in the sources, the destinations have %d", before, written)
	}
	out.place(ranks, ends)
	return out, nil
}

// since are the rows that died after the rewrite read the fragment.
func (s MoveSource) since(now *deletion.Vector) (*deletion.Vector, error) {
	if err := now.Validate(s.PhysicalRows, 0); err != nil {
		return nil, table.Corruptf("rebase: fragment %d as it is: %w", s.Fragment, err)
	}
	fresh := now.Difference(s.Deleted)
	if then, n := s.Deleted.Cardinality(), now.Cardinality(); n-fresh.Cardinality() != then {
		return nil, table.Conflictf("rebase: fragment %d: %d rows were deleted when it was read, and %d of them are alive again", s.Fragment, then, then-(n-fresh.Cardinality()))
	}
	return fresh, nil
}

// span is a range of ranks [start, end).
type span struct{ start, end uint64 }

// place cuts ascending spans at the ends of the destinations.
func (r *Relocated) place(ranks []span, ends []uint64) {
	for len(ranks) > 0 {
		// The destination that holds the next row, past any in which nothing died.
		d := sort.Search(len(ends), func(i int) bool { return ends[i] > ranks[0].start })
		var first uint64
		if d > 0 {
			first = ends[d-1]
		}
		n := sort.Search(len(ranks), func(i int) bool { return ranks[i].start >= ends[d] })
		v := deletion.CollectRuns(within(ranks[:n], first, ends[d]))
		if rows := v.Cardinality(); rows > 0 {
			r.Deleted[d] = v
			r.Rows += rows
			if rows == ends[d]-first {
				r.Emptied = append(r.Emptied, d)
			}
		}
		// What reaches beyond the destination is left for the next.
		if last := ranks[n-1]; last.end > ends[d] {
			n--
			ranks[n].start = ends[d]
		}
		ranks = ranks[n:]
	}
}

// within yields the parts of spans before end, counted from first.
func within(ranks []span, first, end uint64) iter.Seq2[uint64, uint64] {
	return func(yield func(uint64, uint64) bool) {
		for _, s := range ranks {
			if !yield(s.start-first, min(s.end, end)-first) {
				return
			}
		}
	}
}
