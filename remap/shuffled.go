package remap

import (
	"github.com/rehome-db/rehome/fri"
	"github.com/rehome-db/rehome/table"
)

const (
	// blockAddrs of a large input in no order are sorted at a time: 4 MiB twice.
	// The more there are, the more of them share the runs that a walk passes.
	blockAddrs = 1 << 18
	// deepHistory is the number of stacked rewrites from which on sorting a block
	// and walking costs less than following each address through all of them.
	deepHistory = 5
)

// deep says whether some address goes through many rewrites.
func (r *Remapper) deep() bool {
	r.depthOnce.Do(func() {
		// Rewrites are listed after those that wrote what they read. Where one is
		// not, the estimate is too low, which costs time and nothing else.
		depth := make([]int, r.history.Len())
		for i := len(depth) - 1; i >= 0; i-- {
			depth[i] = 1
			for _, d := range r.history.At(i).Destinations() {
				if next, ok := r.history.Consumer(d.ID); ok {
					depth[i] = max(depth[i], 1+depth[next])
				}
			}
			r.depth = max(r.depth, depth[i])
		}
	})
	return r.depth >= deepHistory
}

// shuffled is scratch for translating addresses in no order by way of a sorted
// copy.
type shuffled struct {
	entries, spare []entry
	sorted         []table.RowAddr
	states         []fri.State
}

// entry is an address and where it came from.
type entry struct {
	addr table.RowAddr
	at   uint32
}

// translate is TranslateBatch on at most blockAddrs.
func (s *shuffled) translate(t *fri.Translator, addrs []table.RowAddr, states []fri.State) error {
	if s.entries == nil {
		s.entries, s.spare = make([]entry, len(addrs)), make([]entry, len(addrs))
		s.sorted, s.states = make([]table.RowAddr, len(addrs)), make([]fri.State, len(addrs))
	}
	n := len(addrs)
	for i, a := range addrs {
		s.entries[i] = entry{a, uint32(i)}
	}
	order := radixSort(s.entries[:n], s.spare[:n])
	for i, e := range order {
		s.sorted[i] = e.addr
	}
	err := t.TranslateSorted(s.sorted[:n], s.states[:n])
	for i, e := range order {
		addrs[e.at], states[e.at] = s.sorted[i], s.states[i]
	}
	return err
}

// radixSort sorts by address, and returns whichever of the two has the result. It
// passes over the entries once for every 11 bits in which any two of them differ:
// the ids and offsets of one table leave most of the 64 bits alike.
func radixSort(entries, spare []entry) []entry {
	const width = 11
	differ := table.RowAddr(0)
	for _, e := range entries {
		differ |= e.addr ^ entries[0].addr
	}
	for shift := 0; shift < 64; shift += width {
		const mask = 1<<width - 1
		if differ>>shift&mask == 0 {
			continue
		}
		var starts [mask + 1]uint32
		for _, e := range entries {
			starts[e.addr>>shift&mask]++
		}
		at := uint32(0)
		for i, n := range starts {
			starts[i] = at
			at += n
		}
		for _, e := range entries {
			digit := e.addr >> shift & mask
			spare[starts[digit]] = e
			starts[digit]++
		}
		entries, spare = spare, entries
	}
	return entries
}
