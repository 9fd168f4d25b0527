package fri

// Treemap returns the survivor bitmap as stored.
func Treemap(t *Transition) []byte { return t.treemap }

// SegmentBytes returns the memory of all segments of the history, decoded.
func SegmentBytes(h *History) int {
	n := 0
	for _, hop := range h.hops {
		n += hop.part.segment().bytes()
	}
	return n
}

// DecodedParts counts the source fragments whose bitmap was decoded.
func DecodedParts(h *History) int {
	n := 0
	for _, hop := range h.hops {
		if hop.part.seg.ranks != nil || hop.part.seg.words != nil {
			n++
		}
	}
	return n
}
