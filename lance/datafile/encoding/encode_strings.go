package encoding

import (
	"encoding/binary"

	"github.com/rehome-db/rehome/lance/datafile/level"
	enc21pb "github.com/rehome-db/rehome/lance/internal/pb/enc21"
)

// stringCodec compresses strings with a symbol table if that pays.
func (e *Encoder) stringCodec(b *level.Block) *stringCodec {
	c := &stringCodec{data: b.Values.Data, offsets: b.Values.Offsets, width: b.Type.Bits / 8, chunk: stringChunkBytes}
	if n := e.opts.ChunkBytes; n > 0 {
		c.chunk = min(max(n, 256), hardChunk/2)
	}
	c.encoding = describeVariable(b.Type.Bits)
	if e.useSymbols(b) {
		c.data, c.offsets = e.encodeStrings(b)
		c.encoding = describeFSST(e.symbols.Table(), c.encoding)
	}
	return c
}

// useSymbols says whether b's strings are to be compressed with e.symbols, which
// it prepares.
func (e *Encoder) useSymbols(b *level.Block) bool {
	if e.opts.Compression != "" && e.opts.Compression != "fsst" {
		return false
	}
	v := &b.Values
	total := int(v.Offsets[v.N] - v.Offsets[0])
	if total < minSymbolBytes || widestValue(b) < minSymbolWidth {
		return false
	}
	return e.symbolRatio(b) < maxSymbolRatio
}

// symbolRatio sets e.symbols and returns the size that it makes of b's strings,
// as a fraction. The table of the page before is kept while it still does as well
// as it did there: neighbouring pages are mostly alike.
func (e *Encoder) symbolRatio(b *level.Block) float64 {
	const slack = 1.02
	v := &b.Values
	if e.symbols != nil {
		if r := e.trainer.Measure(e.symbols, v.Data, v.Offsets); r <= e.symbols.Ratio()*slack {
			return r
		}
	}
	e.symbols = e.trainer.Train(v.Data, v.Offsets)
	return e.symbols.Ratio()
}

func (e *Encoder) encodeStrings(b *level.Block) ([]byte, []uint32) {
	v := &b.Values
	e.strings, e.ends = e.symbols.Append(e.strings[:0], e.ends[:0], v.Data, v.Offsets[:v.N+1])
	return e.strings, e.ends
}

// stringCodec stores offsets from the beginning of the buffer, then the bytes.
type stringCodec struct {
	data     []byte
	offsets  []uint32
	width    int // of an offset, in bytes
	chunk    int // bytes to keep below
	encoding *enc21pb.CompressiveEncoding
}

func (c *stringCodec) describe() (*enc21pb.CompressiveEncoding, int) { return c.encoding, 1 }

func (c *stringCodec) limits() (int, int) { return maxChunkSlots, c.chunk }

// size includes the filler up to a whole offset, without which readers panic.
func (c *stringCodec) size(from, to int) int {
	n := (to-from+1)*c.width + int(c.offsets[to]-c.offsets[from])
	return (n + c.width - 1) / c.width * c.width
}

const offsetsPad = 0x48

func (c *stringCodec) append(dst []byte, sizes []int, from, to int) ([]byte, []int) {
	start := len(dst)
	first := (to - from + 1) * c.width
	dst = append(dst, make([]byte, first)...)
	table := dst[start:]
	base := uint32(first) - c.offsets[from]
	for i, o := range c.offsets[from : to+1] {
		if c.width == 4 {
			binary.LittleEndian.PutUint32(table[4*i:], o+base)
		} else {
			binary.LittleEndian.PutUint64(table[8*i:], uint64(o+base))
		}
	}
	dst = append(dst, c.data[c.offsets[from]:c.offsets[to]]...)
	dst = padTo(dst, c.width, offsetsPad)
	sizes = append(sizes, len(dst)-start)
	return padTo(dst, alignment, chunkPad), sizes
}
