package rowmap

import (
	"maps"
	"slices"

	"github.com/rehome-db/rehome/fri"
	"github.com/rehome-db/rehome/table"
)

// sources knows which fragments the transactions rewrote.
type sources map[table.FragmentID]uint64 // to physical rows

func (s sources) add(groups []Group) error {
	for _, g := range groups {
		for _, d := range g.Sources {
			if _, ok := s[d.ID]; ok {
				return table.Corruptf("rowmap: fragment %d is rewritten twice", d.ID)
			}
			s[d.ID] = d.PhysicalRows
		}
	}
	return nil
}

// missing is the answer for an address that the map does not have.
func (s sources) missing(a table.RowAddr) fri.Translation {
	if rows, ok := s[a.Fragment()]; ok && uint64(a.Offset()) < rows {
		return fri.Translation{State: fri.Deleted}
	}
	return fri.Translation{State: fri.Unaffected, Addr: a}
}

// Hash is the map as a Go map.
type Hash struct {
	to      map[table.RowAddr]table.RowAddr
	sources sources
}

// OpenHash decodes the maps of transactions, given in the order of their commits.
func OpenHash(txs []*Transaction) (*Hash, error) {
	n := uint64(0)
	for _, t := range txs {
		n += moved(t.Groups)
	}
	h := &Hash{to: make(map[table.RowAddr]table.RowAddr, n), sources: sources{}}
	for _, t := range slices.Backward(txs) {
		later := len(h.sources) > 0
		for m, err := range t.Moves() {
			if err != nil {
				return nil, err
			}
			for i := range table.RowAddr(m.Rows) {
				to := m.To + i
				if later {
					switch now := h.translate(to); now.State {
					case fri.Deleted:
						continue // and so is the row at the old address
					case fri.Moved:
						to = now.Addr
					}
				}
				h.to[m.From+i] = to
			}
		}
		if err := h.sources.add(t.Groups); err != nil {
			return nil, err
		}
	}
	return h, nil
}

func (h *Hash) translate(a table.RowAddr) fri.Translation {
	if to, ok := h.to[a]; ok {
		return fri.Translation{State: fri.Moved, Addr: to}
	}
	return h.sources.missing(a)
}

// Translate implements ChangeOfAddress.
func (h *Hash) Translate(a table.RowAddr) (fri.Translation, error) { return h.translate(a), nil }

// TranslateSorted implements ChangeOfAddress. Order does not help a hash table.
func (h *Hash) TranslateSorted(addrs []table.RowAddr, states []fri.State) error {
	for i, a := range addrs {
		if to, ok := h.to[a]; ok {
			addrs[i], states[i] = to, fri.Moved
		} else {
			states[i] = h.sources.missing(a).State
		}
	}
	return nil
}

// span is where a source fragment's rows, or runs, lie in an array.
type span struct {
	rows       uint64
	start, end int
}

// spans finds a fragment's span. Ids of one table lie close together, so an array
// does, as in package fri; a wide range of ids falls back to a map.
type spans struct {
	base  table.FragmentID
	dense []span
	wide  map[table.FragmentID]span
}

func newSpans(by map[table.FragmentID]span) spans {
	if len(by) == 0 {
		return spans{}
	}
	low, high := table.MaxFragmentID, table.FragmentID(0)
	for id := range by {
		low, high = min(low, id), max(high, id)
	}
	n := uint64(high-low) + 1
	if n > 8*uint64(len(by))+1024 {
		return spans{wide: maps.Clone(by)}
	}
	s := spans{base: low, dense: make([]span, n)}
	for id, sp := range by {
		s.dense[id-low] = sp
	}
	return s
}

// find returns an empty span for a fragment that was not rewritten.
func (s *spans) find(id table.FragmentID) span {
	if s.wide != nil {
		return s.wide[id]
	}
	if i := uint64(id - s.base); i < uint64(len(s.dense)) {
		return s.dense[i]
	}
	return span{}
}

// lastNotAbove returns the position of the last element that is not above x in an
// ascending slice, -1 if there is none.
func lastNotAbove(s []uint32, x uint32) int {
	if len(s) == 0 || s[0] > x {
		return -1
	}
	low := 0
	for n := len(s); n > 1; {
		half := n / 2
		if s[low+half] <= x {
			low += half
		}
		n -= half
	}
	return low
}

// gallop is lastNotAbove for an x that is not below the one that gave from: it
// looks near there first.
func gallop(s []uint32, from int, x uint32) int {
	step := 1
	for from+step < len(s) && s[from+step] <= x {
		from += step
		step *= 2
	}
	return from + lastNotAbove(s[from:min(from+step, len(s))], x)
}
