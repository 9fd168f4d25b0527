package rowids

import (
	"encoding/binary"
	"math"
	"sort"
)

// array is numbers as offsets from a base, as they are stored: little-endian, of
// width bytes each.
type array struct {
	width int // 2, 4 or 8
	base  uint64
	bytes []byte
}

func (a array) len() int {
	if a.width == 0 {
		return 0
	}
	return len(a.bytes) / a.width
}

func (a array) at(i int) uint64 {
	switch a.width {
	case 2:
		return a.base + uint64(binary.LittleEndian.Uint16(a.bytes[2*i:]))
	case 4:
		return a.base + uint64(binary.LittleEndian.Uint32(a.bytes[4*i:]))
	default:
		return binary.LittleEndian.Uint64(a.bytes[8*i:])
	}
}

// search returns how many numbers are below v, in an array that ascends.
func (a array) search(v uint64) int {
	return sort.Search(a.len(), func(i int) bool { return a.at(i) >= v })
}

// ascends says whether every number is above the one before it.
func (a array) ascends() bool {
	for i := 1; i < a.len(); i++ {
		if a.at(i-1) >= a.at(i) {
			return false
		}
	}
	return true
}

// bounds returns the smallest and the largest number of an array that is not empty.
func (a array) bounds() (low, high uint64) {
	low = math.MaxUint64
	for i := range a.len() {
		v := a.at(i)
		low, high = min(low, v), max(high, v)
	}
	return low, high
}

// arrayBuilder packs n numbers between low and high as narrowly as they allow.
type arrayBuilder struct{ array }

func newArrayBuilder(n int, low, high uint64) arrayBuilder {
	b := arrayBuilder{array{width: 8}}
	switch {
	case n == 0:
	case high-low <= math.MaxUint16:
		b.width, b.base = 2, low
	case high-low <= math.MaxUint32:
		b.width, b.base = 4, low
	}
	b.bytes = make([]byte, 0, n*b.width)
	return b
}

func (b *arrayBuilder) add(v uint64) {
	switch b.width {
	case 2:
		b.bytes = binary.LittleEndian.AppendUint16(b.bytes, uint16(v-b.base))
	case 4:
		b.bytes = binary.LittleEndian.AppendUint32(b.bytes, uint32(v-b.base))
	default:
		b.bytes = binary.LittleEndian.AppendUint64(b.bytes, v)
	}
}
