package fri

import (
	"fmt"

	"github.com/rehome-db/rehome/table"
)

// State is what became of the row at an address.
type State uint8

// The three answers. That a history does not mention an address does not mean
// that the row is gone, so "unaffected" and "deleted" are never one.
const (
	// Unaffected: no transition rewrote the row; the address stands as it is.
	Unaffected State = iota
	// Moved: the row is at another address now.
	Moved
	// Deleted: the row was deleted before one of the rewrites that its address
	// went through.
	Deleted
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
	default:
		return fmt.Sprintf("state %d", uint8(s))
	}
}

// Translation is the answer for one address.
type Translation struct {
	State State
	// Addr is where the row is now: the new address if it moved, the one asked
	// for if it is unaffected. Meaningless if it is deleted.
	Addr table.RowAddr
}

// hop is one source fragment, with what a lookup needs of its transition.
type hop struct {
	part   *part
	rows   uint64
	before uint64
	to     *layout
}

// Translate follows the row at an address through every rewrite of the history
// and says where it is now. It takes a few array reads for each rewrite that the
// row went through, and decodes a source fragment's bitmap the first time that an
// address of it is asked for. Safe for concurrent use.
//
// An offset beyond a fragment's rows is no row of it and is unaffected. A row that
// was deleted after the last rewrite still has an address: whether it is alive is
// for the deletion vector of its fragment to say.
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
		if uint64(offset) >= hop.rows {
			return Translation{state, addr}
		}
		rank, live := hop.part.segment().rank(offset)
		if !live {
			return Translation{State: Deleted}
		}
		addr = hop.to.locate(hop.before + uint64(rank))
		state = Moved
	}
}
