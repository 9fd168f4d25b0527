package rowids

import (
	"encoding/binary"
	"math/bits"
	"sort"
)

// blockBytes is the part of a bitmap whose ones are counted in advance.
const blockBytes = 64

// bitmap is a set of numbers below 8*len(bytes), lowest bit of a byte first.
type bitmap struct {
	bytes []byte
	ranks []uint64 // the ones before each block
	ones  uint64
}

func newBitmap(b []byte) bitmap {
	m := bitmap{bytes: b, ranks: make([]uint64, 0, (len(b)+blockBytes-1)/blockBytes)}
	for at := 0; at < len(b); at += blockBytes {
		m.ranks = append(m.ranks, m.ones)
		m.ones += ones(b[at:min(at+blockBytes, len(b))])
	}
	return m
}

func ones(b []byte) (n uint64) {
	for ; len(b) >= 8; b = b[8:] {
		n += uint64(bits.OnesCount64(binary.LittleEndian.Uint64(b)))
	}
	for _, x := range b {
		n += uint64(bits.OnesCount8(x))
	}
	return n
}

func (m bitmap) contains(v uint64) bool { return m.bytes[v/8]>>(v%8)&1 != 0 }

// rank returns how many of the set's numbers are below v, which is below the end.
func (m bitmap) rank(v uint64) uint64 {
	block := v / (8 * blockBytes)
	at := v / 8
	n := m.ranks[block] + ones(m.bytes[block*blockBytes:at])
	return n + uint64(bits.OnesCount8(m.bytes[at]<<(8-v%8)))
}

// selects returns the number before which the set has i others; i is below ones.
func (m bitmap) selects(i uint64) uint64 {
	block := sort.Search(len(m.ranks), func(k int) bool { return m.ranks[k] > i }) - 1
	i -= m.ranks[block]
	for at := block * blockBytes; ; at++ {
		b := m.bytes[at]
		n := uint64(bits.OnesCount8(b))
		if i < n {
			for ; i > 0; i-- {
				b &= b - 1
			}
			return uint64(8*at + bits.TrailingZeros8(b))
		}
		i -= n
	}
}

// run returns the first maximal run [start, end) of the set's numbers that are not
// below v; false if there is none.
func (m bitmap) run(v uint64) (start, end uint64, ok bool) {
	start = m.next(v, 0)
	if start >= uint64(8*len(m.bytes)) {
		return 0, 0, false
	}
	return start, m.next(start, 0xff), true
}

// next returns the first number from v on that is in the set, or, with flip 0xff,
// that is not: the end if there is none.
func (m bitmap) next(v uint64, flip byte) uint64 {
	for at := v / 8; at < uint64(len(m.bytes)); at++ {
		b := m.bytes[at] ^ flip
		if at == v/8 {
			b &= 0xff << (v % 8)
		}
		if b != 0 {
			return 8*at + uint64(bits.TrailingZeros8(b))
		}
	}
	return uint64(8 * len(m.bytes))
}
