package encoding

import (
	"encoding/binary"
	"math/bits"

	"github.com/rehome-db/rehome/lance/datafile/fastlanes"
	enc21pb "github.com/rehome-db/rehome/lance/internal/pb/enc21"
	"github.com/rehome-db/rehome/table"
)

// Bit-packing stores values by the bits that the largest of them takes, in blocks of 1024
// in FastLanes order (package fastlanes).
//
// Inline, the values of a chunk are one block behind the width, which is as wide as a
// value. 1024 int16 of which the largest is 5:
//
//	03 00   three bits a value
//	...     384 bytes
//
// Out of line, levels, sequences and dictionaries are any number of blocks whose width the
// description says. What is left over is a block too, or the plain values if these are
// shorter. Levels of up to 5, 1026 of them:
//
//	...          384 bytes of 1024 levels
//	05 00 04 00  the last two

// packBlock is the number of values of a FastLanes block (package fastlanes), which is
// always whole: one that is not full is filled up with zeros.
const packBlock = 1024

// packBytes returns the bytes of a block of values of so many bits.
func packBytes(width int) int { return packBlock / 8 * width }

// packedWidth checks the width of values before they are packed.
func packedWidth(declared uint64, bits int) error {
	if declared != uint64(bits) {
		return table.Corruptf("encoding: bit-packed values of %d bits, want %d", declared, bits)
	}
	switch bits {
	case 8, 16, 32, 64:
		return nil
	}
	return table.Unsupportedf("encoding: bit-packed values of %d bits are not supported", bits)
}

func describeInlineBitpacking(bits int) *enc21pb.CompressiveEncoding {
	return &enc21pb.CompressiveEncoding{Compression: &enc21pb.CompressiveEncoding_InlineBitpacking{
		InlineBitpacking: &enc21pb.InlineBitpacking{UncompressedBitsPerValue: uint64(bits)}}}
}

// inlineDecoder is one word that says the width, then one FastLanes block.
type inlineDecoder struct {
	bits  int
	whole []byte
}

func (*inlineDecoder) buffers() int { return 1 }

func (d *inlineDecoder) decode(dst []byte, n int, bufs [][]byte) ([]byte, error) {
	in, word := bufs[0], d.bits/8
	if n > packBlock || len(in) < word {
		return dst, table.Corruptf("encoding: a bit-packed chunk of %d values in %d bytes", n, len(in))
	}
	width := loadWord(in, word)
	if width > uint64(d.bits) {
		return dst, table.Corruptf("encoding: values of %d bits packed into %d", d.bits, width)
	}
	return unpackTo(dst, in[word:], d.bits, int(width), n, &d.whole)
}

// inlineBytes returns what values take packed.
func inlineBytes(data []byte, bits int) (n int) {
	w := bits / 8
	for at := 0; at < len(data); at += packBlock * w {
		n += w + packBytes(fastlanes.Width(data[at:min(at+packBlock*w, len(data))], bits))
	}
	return n
}

// inlineEncoder packs a block of values to the bits that the largest of them needs.
type inlineEncoder struct {
	data    []byte
	bits    int
	scratch *[]byte
}

func (c *inlineEncoder) describe() (*enc21pb.CompressiveEncoding, int) {
	return describeInlineBitpacking(c.bits), 1
}

// limits: a chunk is one block. Of wide 64-bit values it takes 8 KiB and a little, which is
// to be no reason to halve it.
func (c *inlineEncoder) limits() (int, int) { return packBlock, 2 * fixedChunkBytes }

func (c *inlineEncoder) values(from, to int) []byte { return c.data[from*c.bits/8 : to*c.bits/8] }

func (c *inlineEncoder) size(from, to int) int {
	return c.bits/8 + packBytes(fastlanes.Width(c.values(from, to), c.bits))
}

func (c *inlineEncoder) append(dst []byte, sizes []int, from, to int) ([]byte, []int) {
	in := c.values(from, to)
	width := fastlanes.Width(in, c.bits)
	if to-from < packBlock {
		*c.scratch = append((*c.scratch)[:0], in...)
		*c.scratch = append(*c.scratch, make([]byte, packBlock*c.bits/8-len(in))...)
		in = *c.scratch
	}
	var header [8]byte
	binary.LittleEndian.PutUint64(header[:], uint64(width))
	dst = append(dst, header[:c.bits/8]...)
	have := len(dst)
	dst = append(dst, make([]byte, packBytes(width))...)
	fastlanes.Pack(dst[have:], in, c.bits, width)
	return padTo(dst, alignment, chunkPad), append(sizes, c.bits/8+packBytes(width))
}

func describeOutOfLineBitpacking(bits, width int) *enc21pb.CompressiveEncoding {
	return &enc21pb.CompressiveEncoding{Compression: &enc21pb.CompressiveEncoding_OutOfLineBitpacking{
		OutOfLineBitpacking: &enc21pb.OutOfLineBitpacking{UncompressedBitsPerValue: uint64(bits), Values: describeFlat(width)}}}
}

func compileOutOfLine(c *enc21pb.OutOfLineBitpacking, e *enc21pb.CompressiveEncoding, bits int) (*outOfLineDecoder, error) {
	if err := packedWidth(c.GetUncompressedBitsPerValue(), bits); err != nil {
		return nil, err
	}
	flat, ok := c.GetValues().GetCompression().(*enc21pb.CompressiveEncoding_Flat)
	if !ok || flat.Flat.GetData() != nil {
		return nil, unsupported(e)
	}
	width := flat.Flat.GetBitsPerValue()
	if width > uint64(bits) {
		return nil, table.Corruptf("encoding: values of %d bits packed into %d", bits, width)
	}
	return &outOfLineDecoder{bits: bits, width: int(width)}, nil
}

// outOfLineDecoder is whole FastLanes blocks of one width, and a tail: one more block,
// or plain words if that is shorter.
type outOfLineDecoder struct {
	bits, width int
	spare       []byte
}

func (*outOfLineDecoder) buffers() int { return 1 }

func (d *outOfLineDecoder) decode(dst []byte, n int, bufs [][]byte) ([]byte, error) {
	in, block := bufs[0], packBytes(d.width)
	whole, tail := n/packBlock, n%packBlock
	if d.width > 0 && whole > len(in)/block || d.width == 0 && n > maxZeros {
		return dst, table.Corruptf("encoding: %d bytes for %d values of %d bits", len(in), n, d.width)
	}
	for range whole {
		var err error
		if dst, err = unpackTo(dst, in, d.bits, d.width, packBlock, &d.spare); err != nil {
			return dst, err
		}
		in = in[block:]
	}
	if tail == 0 {
		return dst, nil
	}
	if len(in) == tail*d.bits/8 {
		return append(dst, in...), nil
	}
	return unpackTo(dst, in, d.bits, d.width, tail, &d.spare)
}

// maxZeros bounds how many values of no bits are taken on trust.
const maxZeros = 1 << 20

// outOfLineLevels packs blocks of levels to width bits each. A tail that would
// be no smaller packed stays raw, and a tail that would be as large packed as raw
// has to: readers tell the two apart by the size.
type outOfLineLevels struct {
	width   int
	scratch *[]byte
}

func (p outOfLineLevels) describe() *enc21pb.CompressiveEncoding {
	return describeOutOfLineBitpacking(16, p.width)
}

func (p outOfLineLevels) size(levels []uint16) int { return packedSize(len(levels), p.width) }

func (p outOfLineLevels) append(dst []byte, levels []uint16) []byte {
	for len(levels) > 0 {
		n := min(len(levels), packBlock)
		if 2*n <= packBytes(p.width) && n < packBlock {
			return appendUint16s(dst, levels)
		}
		in := appendUint16s((*p.scratch)[:0], levels[:n])
		for len(in) < 2*packBlock {
			in = append(in, 0)
		}
		have := len(dst)
		dst = append(dst, make([]byte, packBytes(p.width))...)
		fastlanes.Pack(dst[have:], in, 16, p.width)
		*p.scratch = in
		levels = levels[n:]
	}
	return dst
}

// packSequence packs blocks of numbers to the bits that the largest takes. A tail
// is packed like [outOfLineLevels] packs one.
func packSequence(values []uint64, largest uint64) (*enc21pb.CompressiveEncoding, []byte) {
	width := bits.Len64(largest)
	if width == 64 {
		return describeFlat(64), appendUint64s(nil, values)
	}
	width = max(width, 1)
	var out, in []byte
	for rest := values; len(rest) > 0; {
		n := min(len(rest), packBlock)
		if 8*n <= packBytes(width) && n < packBlock {
			out = appendUint64s(out, rest)
			break
		}
		in = appendUint64s(in[:0], rest[:n])
		in = append(in, make([]byte, 8*packBlock-len(in))...)
		have := len(out)
		out = append(out, make([]byte, packBytes(width))...)
		fastlanes.Pack(out[have:], in, 64, width)
		rest = rest[n:]
	}
	return describeOutOfLineBitpacking(64, width), out
}

// packedSize returns the bytes of n levels of so many bits, see [outOfLineLevels].
func packedSize(n, width int) int {
	whole, tail := n/packBlock, n%packBlock
	return whole*packBytes(width) + min(2*tail, packBytes(width))
}

// unpackTo appends the first n values of a FastLanes block.
func unpackTo(dst, in []byte, bits, width, n int, spare *[]byte) ([]byte, error) {
	have := len(dst)
	if n == packBlock {
		dst = extend(dst, packBytes(bits))
		return dst, fastlanes.Unpack(dst[have:], in, bits, width)
	}
	*spare = resize(*spare, packBytes(bits))
	if err := fastlanes.Unpack(*spare, in, bits, width); err != nil {
		return dst, err
	}
	return append(dst, (*spare)[:n*bits/8]...), nil
}
