package fri

import (
	"encoding/binary"
	"math/bits"

	"github.com/rehome-db/rehome/internal/roaringbytes"
)

// A segment answers for one source fragment: does the row at an offset survive,
// and how many survivors lie before it.
//
// The stored bitmap is most of what that takes. Its containers are blocks of 65,536
// rows, each in the form that is smallest for it, and any of them can be searched
// where it lies. What is missing is how many survivors come before a place, so that
// is all that decoding makes: a directory of counts beside the stored bytes. Nothing
// of the bitmap is copied.
//
//	none     no row of the block survives                 nothing
//	all      every row does                               nothing
//	offsets  few do: sorted u16 offsets, as stored        hints
//	bits     one bit a row, as stored                     counts, one for 64 rows
//	ranges   ranges of rows do: (start, length-1) pairs   counts, one a range; hints
//
// Counts and hints are u16 and relative to the block. Hints say, for every
// 2^shift rows of the block, how many offsets or ranges begin before them, so that
// a search has one candidate, or a few where there are thousands in a block. A count
// for 64 rows leaves one word to count bits in, and takes 1/32 byte a row.
//
// A fragment without deletions, or without survivors, has no blocks at all.
type segment struct {
	directory
	raw []byte // the stored bitmap
}

// directory is the part of a segment that is made and not stored. It depends on the
// bitmap alone and not on where its bytes lie, so that equal bitmaps share it.
type directory struct {
	blocks []block // one for each 65,536 rows; nil if all rows are alike
	counts []uint16
	all    bool // if there are no blocks: does every row survive, or none
	rows   uint64
}

// block is one container's place, in the bitmap and in the directory.
type block struct {
	base   uint32 // survivors before the block
	body   uint32 // where the container's contents begin in the bitmap
	counts uint32 // where the block's counts and hints begin
	n      uint16 // offsets or ranges
	form   blockForm
	shift  uint8 // log2 of the rows for a hint
}

type blockForm uint8

const (
	formNone blockForm = iota
	formAll
	formOffsets
	formBits
	formRanges
)

const (
	blockShift = 16
	blockRows  = 1 << blockShift
	wordRows   = 64
	wordBytes  = wordRows / 8
)

// hintShift returns log2 of the rows for a hint, such that few of n offsets or
// ranges fall on one if they are spread evenly. There are never more than 256 hints.
func hintShift(n int) uint8 {
	return uint8(blockShift - min(bits.Len(uint(n)), 8))
}

func hints(shift uint8) int { return blockRows>>shift + 1 }

// plan lays out the directory of a bitmap whose headers are in order, and reads
// nothing else. The counts are left out; their number is returned.
func planDirectory(d Digest, raw []byte) (directory, int) {
	out := directory{rows: d.PhysicalRows}
	switch live := d.LiveRows(); live {
	case 0:
		return out, 0
	case d.PhysicalRows:
		out.all = true
		return out, 0
	}
	out.blocks = make([]block, (d.PhysicalRows+blockRows-1)/blockRows)
	var base uint64
	counts, next := 0, 0
	for c := range roaringbytes.Containers(raw) {
		at := int(c.Base >> blockShift)
		if at >= len(out.blocks) {
			break // refused by check
		}
		for ; next < at; next++ {
			out.blocks[next].base = uint32(base)
		}
		b := block{base: uint32(base), body: uint32(c.Body), counts: uint32(counts)}
		switch {
		case uint64(c.Cardinality) == min(blockRows, d.PhysicalRows-uint64(c.Base)):
			b.form = formAll
		case c.Kind == roaringbytes.Array:
			b.form, b.n, b.shift = formOffsets, uint16(c.Size/2), hintShift(c.Size/2)
			counts += hints(b.shift)
		case c.Kind == roaringbytes.Bitmap:
			b.form = formBits
			counts += blockRows / wordRows
		default:
			b.form, b.n, b.shift = formRanges, uint16(c.Size/4), hintShift(c.Size/4)
			counts += int(b.n) + hints(b.shift)
		}
		out.blocks[at] = b
		base += uint64(c.Cardinality)
		next = at + 1
	}
	for ; next < len(out.blocks); next++ {
		out.blocks[next].base = uint32(base)
	}
	return out, counts
}

// newDirectory makes the directory of a bitmap that was checked against d.
func newDirectory(d Digest, raw []byte) directory {
	out, n := planDirectory(d, raw)
	if n > 0 {
		out.counts = make([]uint16, n)
	}
	for i := range out.blocks {
		b := &out.blocks[i]
		counts := out.counts[b.counts:]
		switch b.form {
		case formOffsets:
			fillHints(counts[:hints(b.shift)], b.shift, raw[b.body:], 2, int(b.n))
		case formBits:
			fillBits(counts[:blockRows/wordRows], raw[b.body:])
		case formRanges:
			var rank uint16
			for j := range int(b.n) {
				counts[j] = rank
				rank += binary.LittleEndian.Uint16(raw[int(b.body)+4*j+2:]) + 1
			}
			fillHints(counts[b.n:][:hints(b.shift)], b.shift, raw[b.body:], 4, int(b.n))
		}
	}
	return out
}

// fillHints counts, for each hint, the n values that are below its first row. The
// values ascend and lie stride bytes apart.
func fillHints(out []uint16, shift uint8, values []byte, stride, n int) {
	i := 0
	for h := range out {
		for i < n && int(binary.LittleEndian.Uint16(values[i*stride:]))>>shift < h {
			i++
		}
		out[h] = uint16(i)
	}
}

// fillBits counts the bits before each word.
func fillBits(out []uint16, words []byte) {
	rank := 0
	for i := range out {
		out[i] = uint16(rank)
		rank += bits.OnesCount64(binary.LittleEndian.Uint64(words[i*wordBytes:]))
	}
}

// rank returns the number of survivors before the offset, which is below the
// fragment's rows, and whether the row at it survives. The number means nothing if
// it does not.
func (s *segment) rank(offset uint32) (rank uint32, live bool) {
	i := int(offset >> blockShift)
	if i >= len(s.blocks) { // there are none
		return offset, s.all
	}
	b := &s.blocks[i]
	low := offset % blockRows
	if b.form == formBits {
		i := low / wordRows
		word, bit := s.word(b, i), low%wordRows
		n := uint32(s.counts[b.counts+i]) + uint32(bits.OnesCount64(word&(1<<bit-1)))
		return b.base + n, word>>bit&1 != 0
	}
	return s.search(b, low)
}

// search is rank in the other forms.
func (s *segment) search(b *block, low uint32) (rank uint32, live bool) {
	switch b.form {
	case formAll:
		return b.base + low, true
	case formOffsets:
		i := s.findOffset(b, low)
		return b.base + uint32(i), i < int(b.n) && s.value(b, 2*i) == low
	case formRanges:
		i := s.findRange(b, low)
		if i < 0 {
			return 0, false
		}
		into := low - s.value(b, 4*i)
		return b.base + uint32(s.counts[int(b.counts)+i]) + into, into <= s.value(b, 4*i+2)
	}
	return 0, false
}

// word reads a word of a block in bits.
func (s *segment) word(b *block, i uint32) uint64 {
	return binary.LittleEndian.Uint64(s.raw[b.body+i*wordBytes:])
}

// value reads the u16 at a byte of the block's contents.
func (s *segment) value(b *block, at int) uint32 {
	return uint32(binary.LittleEndian.Uint16(s.raw[int(b.body)+at:]))
}

// findOffset returns the number of the block's offsets that are below low.
func (s *segment) findOffset(b *block, low uint32) int {
	h := s.counts[b.counts+low>>b.shift:][:2]
	return lowerBound(s.raw[b.body:], 2, int(h[0]), int(h[1]), low)
}

// findRange returns the last of the block's ranges that does not begin after low,
// -1 if all do.
func (s *segment) findRange(b *block, low uint32) int {
	h := s.counts[b.counts+uint32(b.n)+low>>b.shift:][:2]
	return lowerBound(s.raw[b.body:], 4, int(h[0]), int(h[1]), low+1) - 1
}

// lowerBound returns the first position in [from, to) whose value is not below x,
// to if there is none. What it compares decides what it stores next and not where
// it goes next, which suits searches in random order.
func lowerBound(values []byte, stride, from, to int, x uint32) int {
	n := to - from
	if n == 0 {
		return from
	}
	for n > 1 {
		half := n / 2
		v := uint32(binary.LittleEndian.Uint16(values[(from+half-1)*stride:]))
		from += half & below(v, x)
		n -= half
	}
	return from - below(uint32(binary.LittleEndian.Uint16(values[from*stride:])), x)
}

// below returns -1, which has all bits set, if v < x, and 0 if not. Both are small.
func below(v, x uint32) int { return int(int32(v-x) >> 31) }

// state is rank, and says up to which row (exclusive) the rows after the offset
// share its fate: they survive too, or they do not either. That is a row after
// which it changes or after which it is cheaper to ask again.
func (s *segment) state(offset uint32) (rank uint32, live bool, end uint64) {
	i := int(offset >> blockShift)
	if i >= len(s.blocks) {
		return offset, s.all, s.rows
	}
	b := &s.blocks[i]
	low := offset % blockRows
	start := uint64(offset - low)
	last := min(start+blockRows, s.rows) // where the block ends
	switch b.form {
	case formAll:
		return b.base + low, true, last
	case formBits:
		rank, live = s.rank(offset)
		rest := s.word(b, low/wordRows) >> (low % wordRows)
		if live {
			rest = ^rest
		}
		// Of what was shifted in, no bit counts: the word ends there.
		n := min(uint32(bits.TrailingZeros64(rest)), wordRows-low%wordRows)
		return rank, live, min(uint64(offset)+uint64(n), last)
	case formOffsets:
		i := s.findOffset(b, low)
		switch {
		case i == int(b.n):
			return 0, false, last
		case s.value(b, 2*i) != low:
			return 0, false, start + uint64(s.value(b, 2*i))
		}
		n := 1
		for i+n < int(b.n) && s.value(b, 2*(i+n)) == low+uint32(n) {
			n++
		}
		return b.base + uint32(i), true, uint64(offset) + uint64(n)
	case formRanges:
		i := s.findRange(b, low)
		if i >= 0 {
			from := s.value(b, 4*i)
			into, length := low-from, s.value(b, 4*i+2)
			if into <= length {
				return b.base + uint32(s.counts[int(b.counts)+i]) + into, true, start + uint64(from+length) + 1
			}
		}
		if i+1 < int(b.n) {
			last = start + uint64(s.value(b, 4*(i+1)))
		}
	}
	return 0, false, last
}

// bytes returns the memory that the directory takes.
func (d *directory) bytes() int {
	const blockBytes, headerBytes = 16, 104
	return headerBytes + blockBytes*len(d.blocks) + 2*len(d.counts)
}
