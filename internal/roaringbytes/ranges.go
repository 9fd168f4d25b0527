package roaringbytes

import (
	"encoding/binary"
	"iter"
	"math/bits"
)

// Ranges yields the bitmap's values as maximal half-open ranges [start, end),
// ascending; end is 64 bits wide because it can be 2^32. The bytes must have
// passed [Check]; on others the result means nothing.
func Ranges(data []byte) iter.Seq2[uint32, uint64] {
	return func(yield func(uint32, uint64) bool) {
		c, err := newCursor(data)
		if err != nil {
			return
		}
		m := merger{yield: yield}
		for c.i < c.n && !m.stopped {
			k, err := c.next()
			if err != nil {
				return
			}
			k.ranges(&m)
		}
		m.flush()
	}
}

// merger joins ranges that touch, which happens between containers and, in
// arrays, between neighbours.
type merger struct {
	yield      func(uint32, uint64) bool
	start, end uint64
	stopped    bool
}

func (m *merger) add(start, end uint64) {
	if m.end == start && m.end > m.start {
		m.end = end
		return
	}
	m.flush()
	m.start, m.end = start, end
}

func (m *merger) flush() {
	if m.end > m.start && !m.stopped {
		m.stopped = !m.yield(uint32(m.start), m.end)
	}
	m.start, m.end = 0, 0
}

func (k container) ranges(m *merger) {
	base := uint64(k.base)
	switch k.kind {
	case Array:
		for i := 0; i < len(k.body) && !m.stopped; i += 2 {
			v := base + uint64(binary.LittleEndian.Uint16(k.body[i:]))
			m.add(v, v+1)
		}
	case Bitmap:
		for i := 0; i < len(k.body) && !m.stopped; i += 8 {
			w := binary.LittleEndian.Uint64(k.body[i:])
			at := base + uint64(i)*8
			// A full word is the common case of a fragment with few deletions.
			if w == ^uint64(0) {
				m.add(at, at+64)
				continue
			}
			for w != 0 {
				lo := bits.TrailingZeros64(w)
				n := bits.TrailingZeros64(^(w >> lo))
				m.add(at+uint64(lo), at+uint64(lo+n))
				w &^= (1<<n - 1) << lo
			}
		}
	default:
		for i := 0; i < len(k.body) && !m.stopped; i += 4 {
			v := base + uint64(binary.LittleEndian.Uint16(k.body[i:]))
			m.add(v, v+uint64(binary.LittleEndian.Uint16(k.body[i+2:]))+1)
		}
	}
}
