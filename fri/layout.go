package fri

import (
	"math/bits"

	"github.com/rehome-db/rehome/table"
)

// layout lays the destinations end to end.
type layout struct {
	rows   uint64
	starts []uint64 // of each destination that has rows, ascending; then rows
	ids    []table.FragmentID
	// hints[k>>shift] is the destination of the first row with that quotient, so
	// that the search for row k begins there and mostly ends there.
	hints []uint32
	shift uint8
}

func newLayout(destinations []Digest) *layout {
	l := &layout{
		starts: make([]uint64, 0, len(destinations)+1),
		ids:    make([]table.FragmentID, 0, len(destinations)),
	}
	for _, d := range destinations {
		// A destination without rows is never the answer; with it left out,
		// starts is strictly ascending.
		if d.PhysicalRows > 0 {
			l.starts = append(l.starts, l.rows)
			l.ids = append(l.ids, d.ID)
			l.rows += d.PhysicalRows
		}
	}
	l.starts = append(l.starts, l.rows)
	n := len(l.ids)
	if n < 2 {
		return l
	}
	// With a hint for as many rows as the smallest destination has, at most one
	// starts after the hinted one. The last is what was left over, and may be as
	// small as it likes; others are not let make many more hints than there are
	// destinations.
	smallest := l.rows
	for i := range n - 1 {
		smallest = min(smallest, l.starts[i+1]-l.starts[i])
	}
	l.shift = uint8(max(bits.Len64(smallest)-1, bits.Len64(l.rows/(16*uint64(n)))))
	l.hints = make([]uint32, (l.rows-1)>>l.shift+1)
	i := 0
	for h := range l.hints {
		for l.starts[i+1] <= uint64(h)<<l.shift {
			i++
		}
		l.hints[h] = uint32(i)
	}
	return l
}

// locate returns the address of row k, which is below l.rows.
func (l *layout) locate(k uint64) table.RowAddr {
	i := l.find(k)
	return table.NewRowAddr(l.ids[i], uint32(k-l.starts[i]))
}

// place is locate, and says how many rows from k on lie one after the other.
func (l *layout) place(k uint64) (table.RowAddr, uint64) {
	i := l.find(k)
	return table.NewRowAddr(l.ids[i], uint32(k-l.starts[i])), l.starts[i+1] - k
}

// span returns the rows of the destination that has row k: the first, their number,
// and the address of the first.
func (l *layout) span(k uint64) (from, rows uint64, addr table.RowAddr) {
	i := l.find(k)
	return l.starts[i], l.starts[i+1] - l.starts[i], table.NewRowAddr(l.ids[i], 0)
}

func (l *layout) find(k uint64) int {
	if l.hints == nil {
		return 0
	}
	i := int(l.hints[k>>l.shift])
	// One more if that one ends before k. Written as arithmetic because for rows
	// in random order a branch on it would often be mispredicted.
	i += int((l.starts[i+1] - k - 1) >> 63)
	if l.starts[i+1] > k {
		return i
	}
	// Small destinations beside large ones: between here and the next hint.
	low, high := i+1, len(l.ids)-1
	if h := k>>l.shift + 1; h < uint64(len(l.hints)) {
		high = int(l.hints[h])
	}
	for low < high {
		middle := int(uint(low+high+1) / 2)
		if l.starts[middle] <= k {
			low = middle
		} else {
			high = middle - 1
		}
	}
	return low
}
