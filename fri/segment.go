package fri

import (
	"math/bits"
	"sync"

	"github.com/rehome-db/rehome/internal/roaringbytes"
)

// part is one source fragment's share of a transition: its survivors as stored,
// and the segment decoded from them when the first address asks.
type part struct {
	rows uint64 // physical rows of the fragment
	bits []byte // checked bitmap of the surviving offsets; empty if there are none

	once sync.Once
	seg  segment
}

// segment returns the decoded form. Row counts before the fragment come from the
// digests, so no other part of the transition is touched.
func (p *part) segment() *segment {
	p.once.Do(func() { p.seg = newSegment(p.rows, p.bits) })
	return &p.seg
}

// segment answers, for one fragment: does the row at an offset survive, and how
// many survivors lie before it. It has one of two forms, whichever is smaller.
//
// As runs: the survivors are maximal ranges, found by binary search; 8 bytes a
// range, so a fragment without deletions takes 16 bytes.
//
// As bits: one bit a row, with the number of survivors before every 512 rows; the
// rank inside a block is at most eight population counts. 1.0625 bits a row.
type segment struct {
	// Runs. starts[i] is the first row of range i and ranks[i] the number of
	// survivors before it; ranks has one entry more, the total.
	starts []uint32
	ranks  []uint32
	// Bits. counts[i] is the number of survivors before row 512*i.
	words  []uint64
	counts []uint32
}

const (
	wordRows  = 64
	blockRows = 512
)

// newSegment decodes a checked bitmap of a fragment of the given physical rows.
// It takes memory in proportion to the smaller of the two.
func newSegment(rows uint64, data []byte) segment {
	if len(data) == 0 {
		return segment{}
	}
	words := (rows + wordRows - 1) / wordRows
	blocks := (rows + blockRows - 1) / blockRows
	mostRuns := int((8*words + 4*blocks) / 8)

	var s segment
	var rank uint32
	for start, end := range roaringbytes.Ranges(data) {
		if s.words == nil && len(s.starts) >= mostRuns {
			// Too many runs: from here on as bits, beginning with those so far.
			s.words = make([]uint64, words)
			for i, from := range s.starts {
				setRows(s.words, uint64(from), uint64(from)+uint64(s.ranks[i+1]-s.ranks[i]))
			}
			s.starts, s.ranks = nil, nil
		}
		if s.words != nil {
			setRows(s.words, uint64(start), end)
			continue
		}
		if s.ranks == nil {
			s.ranks = append(s.ranks, 0)
		}
		rank += uint32(end - uint64(start))
		s.starts = append(s.starts, start)
		s.ranks = append(s.ranks, rank)
	}
	if s.words != nil {
		s.counts = make([]uint32, blocks)
		rank = 0
		for i, w := range s.words {
			if i%(blockRows/wordRows) == 0 {
				s.counts[i/(blockRows/wordRows)] = rank
			}
			rank += uint32(bits.OnesCount64(w))
		}
	}
	return s
}

// setRows sets the bits [start, end).
func setRows(words []uint64, start, end uint64) {
	for start < end {
		i, bit := start/wordRows, start%wordRows
		n := min(end-start, wordRows-bit)
		words[i] |= (^uint64(0) >> (wordRows - n)) << bit
		start += n
	}
}

// rank returns the number of survivors before the offset, which is below the
// fragment's rows, and whether the row at it survives.
func (s *segment) rank(offset uint32) (rank uint32, live bool) {
	if s.words == nil {
		i := lastNotAbove(s.starts, offset)
		if i < 0 {
			return 0, false
		}
		into := offset - s.starts[i]
		if into >= s.ranks[i+1]-s.ranks[i] {
			return s.ranks[i+1], false
		}
		return s.ranks[i] + into, true
	}
	w := offset / wordRows
	rank = s.counts[offset/blockRows]
	for i := offset / blockRows * (blockRows / wordRows); i < w; i++ {
		rank += uint32(bits.OnesCount64(s.words[i]))
	}
	word, bit := s.words[w], offset%wordRows
	return rank + uint32(bits.OnesCount64(word&(1<<bit-1))), word>>bit&1 == 1
}

// lastNotAbove returns the position of the last element that is not above x in an
// ascending slice, -1 if there is none. The loop has one outcome of its comparison
// to store and nothing to skip, which suits lookups in random order.
func lastNotAbove[T uint32 | uint64](s []T, x T) int {
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

// bytes returns the memory that the decoded form takes.
func (s *segment) bytes() int {
	return 4*len(s.starts) + 4*len(s.ranks) + 8*len(s.words) + 4*len(s.counts)
}
