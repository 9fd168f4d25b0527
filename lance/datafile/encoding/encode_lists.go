package encoding

import (
	"github.com/rehome-db/rehome/lance/datafile/level"
	enc21pb "github.com/rehome-db/rehome/lance/internal/pb/enc21"
	"github.com/rehome-db/rehome/table"
)

// listLevels returns the levels of b's lists, and which of them hold nulls.
func (e *Encoder) listLevels(b *level.Block) ([]listLevel, error) {
	dims := e.opts.Dims
	if len(dims) == 0 && b.Type.Inner == 0 {
		dims = []int{b.Type.Dim}
	}
	levels := make([]listLevel, len(dims))
	elements, inner := 1, 0
	for i, d := range dims {
		if i > 0 {
			inner += elements
		}
		elements *= d
		levels[i].elements = elements
	}
	if elements != b.Type.Dim || inner != b.Type.Inner || len(dims) == 0 {
		return nil, table.Corruptf("encoding: dimensions %v for lists of %d items and %d lists inside", dims, b.Type.Dim, b.Type.Inner)
	}
	if b.Values.ItemValid == nil {
		return levels, nil
	}
	at := 0
	for i := range levels {
		l := &levels[i]
		for slot := 0; slot < b.Values.N && !l.validity; slot++ {
			l.validity = !allOnes(b.Values.ItemValid, slot*b.Type.ValidBits()+at, l.elements)
		}
		at += l.elements
	}
	return levels, nil
}

// allOnes says whether n bits from bit from on are all set.
func allOnes(bits []byte, from, n int) bool {
	for i := from; i < from+n; {
		if i%8 == 0 && i+8 <= from+n {
			if bits[i/8] != 0xff {
				return false
			}
			i += 8
			continue
		}
		if bits[i/8]>>(i%8)&1 == 0 {
			return false
		}
		i++
	}
	return true
}

// fixedListCodec stores lists of a fixed number of items as they are, after a
// bitmap for each level that has nulls.
type fixedListCodec struct {
	levels []listLevel
	typ    level.Type
	data   []byte
	valid  []byte
}

func (c *fixedListCodec) describe() (*enc21pb.CompressiveEncoding, int) {
	buffers := 1
	for _, l := range c.levels {
		if l.validity {
			buffers++
		}
	}
	return describeFixedList(c.levels, c.typ.Bits), buffers
}

func (c *fixedListCodec) limits() (int, int) { return maxChunkSlots, fixedChunkBytes }

func (c *fixedListCodec) size(from, to int) int {
	n := ((to-from)*c.typ.ValueBits() + 7) / 8
	for _, l := range c.levels {
		if l.validity {
			n += ((to-from)*l.elements + 7) / 8
		}
	}
	return n
}

func (c *fixedListCodec) append(dst []byte, sizes []int, from, to int) ([]byte, []int) {
	at := 0 // of the level in a value's validity
	for _, l := range c.levels {
		if l.validity {
			dst = c.appendValidity(dst, l, at, from, to)
			dst = padTo(dst, alignment, chunkPad)
			sizes = append(sizes, ((to-from)*l.elements+7)/8)
		}
		at += l.elements
	}
	w := c.typ.ValueBits()
	dst = appendBitRange(dst, c.data, from*w, to*w)
	return padTo(dst, alignment, chunkPad), append(sizes, ((to-from)*w+7)/8)
}

// appendValidity appends one level's bits of the values [from, to).
func (c *fixedListCodec) appendValidity(dst []byte, l listLevel, at, from, to int) []byte {
	width := c.typ.ValidBits()
	if l.elements == width {
		return appendBitRange(dst, c.valid, from*width, to*width)
	}
	have := 8 * len(dst)
	for i := from; i < to; i++ {
		dst = level.AppendBits(dst, have, c.valid, i*width+at, l.elements)
		have += l.elements
	}
	return dst
}
