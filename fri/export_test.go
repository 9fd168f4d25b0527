package fri

import "github.com/rehome-db/rehome/table"

// Treemap returns the survivor bitmap as stored.
func Treemap(t *Transition) []byte { return t.treemap }

// SegmentBytes returns the memory of all segments of the history, decoded, beyond
// the stored bytes.
func SegmentBytes(h *History) int {
	n := 0
	for i := range h.hops {
		if s, err := h.segment(i); err == nil {
			n += s.bytes()
		}
	}
	return n
}

// DecodedParts counts the source fragments whose part is decoded and held.
func DecodedParts(h *History) int {
	n := 0
	for _, hop := range h.hops {
		if hop.part != nil && hop.part.memo.Load() != nil {
			n++
		}
	}
	return n
}

// Held counts the segments that a translator holds.
func Held(t *Translator) int {
	n := 0
	for i := range t.segments {
		if t.segments[i].Load() != nil {
			n++
		}
	}
	return n
}

// WalkSteps counts the lookups in single rewrites that walking a fragment takes.
func WalkSteps(h *History, id table.FragmentID) (steps, stretches int) {
	w := walker{t: h.Translator()}
	i, ok := h.hopOf.find(id)
	if !ok {
		return 0, 0
	}
	from := uint64(table.NewRowAddr(id, 0))
	for next := from; next < from+h.hops[i].physical; stretches++ {
		next = w.seek(table.RowAddr(next)).last + 1
	}
	return w.steps, stretches
}

// WaitForCache waits until what was put into the cache is in or refused.
func WaitForCache(s *Cache) { s.entries.Wait() }

// ClearCache drops all that the cache holds.
func ClearCache(s *Cache) { s.entries.Clear() }

// SmallBlocks makes blocks of 64 labels, the least that a builder can make.
func SmallBlocks(b *PartitionBuilder) { b.counts.blockRows = wordBits }
