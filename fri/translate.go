package fri

import (
	"fmt"
	"slices"

	"github.com/rehome-db/rehome/table"
)

// State is what became of the row at an address.
type State uint8

// The three answers, and that there is none. That a history does not mention an
// address does not mean that the row is gone, so "unaffected" and "deleted" are
// never one.
const (
	// Unaffected: no transition rewrote the row; the address stands as it is.
	Unaffected State = iota
	// Moved: the row is at another address now.
	Moved
	// Deleted: the row was deleted before one of the rewrites that its address
	// went through.
	Deleted
	// Untranslatable: the history cannot say what became of the row, because a
	// rewrite that its address went through is damaged or recorded in a form that
	// this release does not understand, or because the label file of a stable
	// partition could not be read. The row may be anywhere or gone: to find it, scan.
	Untranslatable
)

// String returns the state as the command line prints it.
func (s State) String() string {
	switch s {
	case Unaffected:
		return "unaffected"
	case Moved:
		return "moved"
	case Deleted:
		return "deleted"
	case Untranslatable:
		return "untranslatable"
	default:
		return fmt.Sprintf("state %d", uint8(s))
	}
}

// Translation is the answer for one address.
type Translation struct {
	State State
	// Addr is where the row is now: the new address if it moved, the one asked
	// for if it is unaffected. Meaningless if it is deleted or untranslatable.
	Addr table.RowAddr
}

// hop is one source fragment, with what a lookup needs of its transition.
type hop struct {
	part       *part // nil if rows says where the rows went
	rows       rowMap
	physical   uint64 // rows of the fragment
	before     uint64 // survivors (rows, for a rowMap) in the sources before it
	to         *layout
	transition int  // position in the history
	last       bool // nothing rewrote the destinations since
}

// rowMap says where the rows of a transition went that is no ordered compaction.
// The sources laid end to end number its rows, deleted ones included.
type rowMap interface {
	// row returns the new address of row k, and whether it has one. The n rows
	// from k on share its fate: they have the addresses that follow, or none. n is
	// at least 1 and may lead beyond the fragment. An error means that the fate of
	// the row cannot be known; it is a *TransitionError that is not placed yet.
	row(k uint64) (addr table.RowAddr, live bool, n uint64, err error)
}

// Translate follows the row at an address through every rewrite of the history
// and says where it is now. It takes a few array reads for each rewrite that the
// row went through, and checks and decodes a source fragment's bitmap the first
// time that an address of it is asked for; no other fragment's. Safe for concurrent
// use, and does not allocate once the fragment is decoded.
//
// An offset beyond a fragment's rows is no row of it and is unaffected. A row that
// was deleted after the last rewrite still has an address: whether it is alive is
// for the deletion vector of its fragment to say. An address that leads through
// damage is [Untranslatable]; [History.Validate] and a [Translator] say what the
// damage is.
//
// Who has many addresses uses a Translator, which is also what to use with a
// [Cache]: there, a Translate may have to look into the cache.
func (h *History) Translate(addr table.RowAddr) Translation {
	state := Unaffected
	// The lineage has no cycle, so the walk ends.
	for {
		i, ok := h.hopOf.find(addr.Fragment())
		if !ok {
			return Translation{state, addr}
		}
		hop := &h.hops[i]
		offset := addr.Offset()
		if uint64(offset) >= hop.physical {
			return Translation{state, addr}
		}
		var rank uint32
		var live bool
		if hop.part != nil {
			s, err := h.segment(i)
			if err != nil {
				return Translation{State: Untranslatable}
			}
			if rank, live = s.rank(offset); live {
				addr = hop.to.locate(hop.before + uint64(rank))
			}
		} else {
			var err error
			if addr, live, _, err = hop.rows.row(hop.before + uint64(offset)); err != nil {
				return Translation{State: Untranslatable}
			}
		}
		if !live {
			return Translation{State: Deleted}
		}
		if state = Moved; hop.last {
			return Translation{state, addr}
		}
	}
}

// segment returns the decoded part of hop i, from where the history keeps them.
func (h *History) segment(i int) (*segment, error) {
	var s *segment
	var err error
	if h.attached != nil {
		s, err = h.attached.segment(i, h.hops[i].part)
	} else if d := h.hops[i].part.memo.Load(); d != nil {
		s, err = d.segment, d.err
	} else {
		s, err = h.hops[i].part.segment()
	}
	if err != nil {
		return nil, h.place(i, err)
	}
	return s, nil
}

// place says in which transition an error of hop i is.
func (h *History) place(i int, err error) error {
	t := h.hops[i].transition
	return at(err, t, h.transitions[t].datasetVersion)
}

// Validate reads every bitmap of the history and returns the first error in one, a
// [*TransitionError] that wraps table.ErrCorrupt. Opening a history reads only
// headers, so that a first answer comes early; call Validate before you trust a whole
// history, or carry it into a new version. It takes the time of reading the bytes; it
// keeps nothing.
func (h *History) Validate() error {
	for i, t := range h.transitions {
		if err := t.validate(); err != nil {
			return at(err, i, t.datasetVersion)
		}
	}
	return nil
}

func (t *Transition) validate() error {
	if t.damage != nil {
		return t.damage
	}
	for _, p := range t.parts {
		if err := p.check(); err != nil {
			return err
		}
	}
	return nil
}

// markLast sets last in every hop.
func (h *History) markLast() {
	for i := range h.hops {
		x := &h.hops[i]
		if i > 0 && h.hops[i-1].transition == x.transition {
			x.last = h.hops[i-1].last
			continue
		}
		x.last = !slices.ContainsFunc(h.transitions[x.transition].destinations, func(d Digest) bool { return h.Touched(d.ID) })
	}
}

// Touched says whether a transition of the history rewrote the fragment: if not,
// its addresses stand as they are.
func (h *History) Touched(id table.FragmentID) bool {
	_, ok := h.hopOf.find(id)
	return ok
}
