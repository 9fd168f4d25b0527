package remap

import (
	"fmt"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/rehome-db/rehome/table"
)

// Coverage is what became of a coverage, the fragments whose rows an index claims
// to hold.
type Coverage struct {
	// Fragments is the coverage now, ascending: every row in them was covered
	// before, unless it was written since.
	Fragments []table.FragmentID
	// Gone are covered fragments that [Options.Current] does not have, and of which the
	// history does not say what became: ascending, not in Fragments. Entries for their
	// rows cannot be translated.
	Gone []table.FragmentID
	// Straddles are the rewrites that mixed covered fragments with others, in the
	// order in which they apply. What they wrote is not in Fragments, and the
	// covered rows among it are covered no more: they have to be scanned, or
	// indexed anew.
	Straddles []Straddle
}

// Straddle is one rewrite of which only some sources were covered.
type Straddle struct {
	// Transition is the position in the history.
	Transition int
	// Unknown says that the rewrite is not understood, or its record damaged. Then all of its sources may
	// have been covered: where their rows are cannot be said.
	Unknown bool
	// Covered and Missing are the sources that were and were not covered when the
	// rewrite's turn came, in the order of the sources.
	Covered, Missing []table.FragmentID
	// Destinations are the fragments that hold rows of both.
	Destinations []table.FragmentID
}

// String says what was mixed with what.
func (s Straddle) String() string {
	if s.Unknown {
		return fmt.Sprintf("transition %d, which is not understood or damaged, rewrote covered %v", s.Transition, s.Covered)
	}
	return fmt.Sprintf("transition %d wrote covered %v and uncovered %v into %v", s.Transition, s.Covered, s.Missing, s.Destinations)
}

// Coverage re-targets a coverage, in any order: covered fragments that were
// rewritten go, and what they became comes if all of its sources were covered. A
// rewrite of which only a part was covered is reported and never guessed. It reads
// digests and no bitmap, and takes time in the number of fragments in the history.
//
// It says nothing about the addresses inside the index, which are translated by
// themselves. With [Options.Strict] a covered fragment that nothing rewrote is an
// [*OutsideError].
func (r *Remapper) Coverage(covered []table.FragmentID) (Coverage, error) {
	if r.opts.Strict {
		for _, id := range covered {
			if !r.history.Touched(id) {
				return Coverage{}, &OutsideError{Addr: table.NewRowAddr(id, 0)}
			}
		}
	}
	now, straddled := r.history.Follow(covered)
	out := Coverage{Fragments: now}
	if r.current != nil {
		out.Fragments = make([]table.FragmentID, 0, len(now))
		for _, id := range now {
			if _, ok := r.current.rows[id]; ok {
				out.Fragments = append(out.Fragments, id)
			} else {
				out.Gone = append(out.Gone, id)
			}
		}
	}
	if len(straddled) == 0 {
		return out, nil
	}
	// Follow says which; what was covered at its turn follows from the lineage: a
	// fragment that was covered at first, or that a wholly covered rewrite wrote.
	w := witness{r: r, straddled: straddled, covered: make(map[table.FragmentID]bool, len(covered))}
	for _, id := range covered {
		w.covered[id] = true
	}
	for _, i := range straddled {
		t := r.history.At(i)
		s := Straddle{Transition: i, Unknown: !t.Followed()}
		for _, d := range t.Sources() {
			if w.was(d.ID) {
				s.Covered = append(s.Covered, d.ID)
			} else {
				s.Missing = append(s.Missing, d.ID)
			}
		}
		for _, d := range t.Destinations() {
			s.Destinations = append(s.Destinations, d.ID)
		}
		out.Straddles = append(out.Straddles, s)
	}
	return out, nil
}

// witness remembers which fragments were covered before they were rewritten.
type witness struct {
	r         *Remapper
	straddled []int
	covered   map[table.FragmentID]bool
}

func (w *witness) was(id table.FragmentID) bool {
	is, known := w.covered[id]
	if known {
		return is
	}
	h := w.r.history
	i, ok := h.Producer(id)
	if next, consumed := h.Consumer(id); consumed && next < i && h.IndexVersion() == 0 {
		ok = false // there the list rules: what is written later comes too late
	}
	if ok && !slices.Contains(w.straddled, i) {
		if from := h.At(i).Sources(); len(from) > 0 {
			is = w.was(from[0].ID) // not straddled, so the first speaks for all
		}
	}
	w.covered[id] = is
	return is
}

// CoverageBitmap is [Remapper.Coverage] for a coverage as a bitmap of fragment
// ids. The bitmap returned is new.
func (r *Remapper) CoverageBitmap(covered *roaring.Bitmap) (*roaring.Bitmap, Coverage, error) {
	ids := make([]table.FragmentID, 0, covered.GetCardinality())
	covered.Iterate(func(id uint32) bool {
		ids = append(ids, table.FragmentID(id))
		return true
	})
	c, err := r.Coverage(ids)
	if err != nil {
		return nil, Coverage{}, err
	}
	out := roaring.New()
	for _, id := range c.Fragments {
		out.Add(uint32(id))
	}
	return out, c, nil
}
