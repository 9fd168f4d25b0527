package encoding

import (
	"encoding/binary"
	"math/bits"

	"github.com/rehome-db/rehome/lance/datafile/fastlanes"
	enc21pb "github.com/rehome-db/rehome/lance/internal/pb/enc21"
	"github.com/rehome-db/rehome/table"
)

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

// inlineBitpacking is one word that says the width, then one FastLanes block.
type inlineBitpacking struct {
	bits  int
	whole []byte
}

func (*inlineBitpacking) buffers() int { return 1 }

func (d *inlineBitpacking) decode(dst []byte, n int, bufs [][]byte) ([]byte, error) {
	in, word := bufs[0], d.bits/8
	if n > 1024 || len(in) < word {
		return dst, table.Corruptf("encoding: a bit-packed chunk of %d values in %d bytes", n, len(in))
	}
	width := loadWord(in, word)
	if width > uint64(d.bits) {
		return dst, table.Corruptf("encoding: values of %d bits packed into %d", d.bits, width)
	}
	return unpackTo(dst, in[word:], d.bits, int(width), n, &d.whole)
}

// bitpackCodec packs 1024 values to the bits that the largest of them needs.
type bitpackCodec struct {
	data    []byte
	bits    int
	scratch *[]byte
}

func (c *bitpackCodec) describe() (*enc21pb.CompressiveEncoding, int) {
	return describeInlineBitpacking(c.bits), 1
}

// A chunk of wide 64-bit values takes 8 KiB and a little.
func (c *bitpackCodec) limits() (int, int) { return 1024, 2 * fixedChunkBytes }

func (c *bitpackCodec) values(from, to int) []byte { return c.data[from*c.bits/8 : to*c.bits/8] }

func (c *bitpackCodec) size(from, to int) int {
	return c.bits/8 + 128*fastlanes.Width(c.values(from, to), c.bits)
}

func (c *bitpackCodec) append(dst []byte, sizes []int, from, to int) ([]byte, []int) {
	in := c.values(from, to)
	width := fastlanes.Width(in, c.bits)
	if to-from < 1024 {
		*c.scratch = append((*c.scratch)[:0], in...)
		*c.scratch = append(*c.scratch, make([]byte, 1024*c.bits/8-len(in))...)
		in = *c.scratch
	}
	var header [8]byte
	binary.LittleEndian.PutUint64(header[:], uint64(width))
	dst = append(dst, header[:c.bits/8]...)
	have := len(dst)
	dst = append(dst, make([]byte, 128*width)...)
	fastlanes.Pack(dst[have:], in, c.bits, width)
	return padTo(dst, alignment, chunkPad), append(sizes, c.bits/8+128*width)
}

func describeOutOfLineBitpacking(bits, width int) *enc21pb.CompressiveEncoding {
	return &enc21pb.CompressiveEncoding{Compression: &enc21pb.CompressiveEncoding_OutOfLineBitpacking{
		OutOfLineBitpacking: &enc21pb.OutOfLineBitpacking{UncompressedBitsPerValue: uint64(bits), Values: describeFlat(width)}}}
}

func compileOutOfLine(c *enc21pb.OutOfLineBitpacking, e *enc21pb.CompressiveEncoding, bits int) (*outOfLine, error) {
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
	return &outOfLine{bits: bits, width: int(width)}, nil
}

// outOfLine is whole FastLanes blocks of one width, and a tail: one more block,
// or plain words if that is shorter.
type outOfLine struct {
	bits, width int
	spare       []byte
}

func (*outOfLine) buffers() int { return 1 }

func (d *outOfLine) decode(dst []byte, n int, bufs [][]byte) ([]byte, error) {
	in, block := bufs[0], 128*d.width
	whole, tail := n/1024, n%1024
	if d.width > 0 && whole > len(in)/block || d.width == 0 && n > maxZeros {
		return dst, table.Corruptf("encoding: %d bytes for %d values of %d bits", len(in), n, d.width)
	}
	for range whole {
		var err error
		if dst, err = unpackTo(dst, in, d.bits, d.width, 1024, &d.spare); err != nil {
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

// packedLevels packs blocks of 1024 levels to width bits each. A tail that would
// be no smaller packed stays raw, and a tail that would be as large packed as raw
// has to: readers tell the two apart by the size.
type packedLevels struct {
	width   int
	scratch *[]byte
}

func (p packedLevels) describe() *enc21pb.CompressiveEncoding {
	return describeOutOfLineBitpacking(16, p.width)
}

func (p packedLevels) size(levels []uint16) int { return packedSize(len(levels), p.width) }

func (p packedLevels) append(dst []byte, levels []uint16) []byte {
	for len(levels) > 0 {
		n := min(len(levels), 1024)
		if 2*n <= 128*p.width && n < 1024 {
			return appendUint16s(dst, levels)
		}
		in := appendUint16s((*p.scratch)[:0], levels[:n])
		for len(in) < 2048 {
			in = append(in, 0)
		}
		have := len(dst)
		dst = append(dst, make([]byte, 128*p.width)...)
		fastlanes.Pack(dst[have:], in, 16, p.width)
		*p.scratch = in
		levels = levels[n:]
	}
	return dst
}

// packSequence packs blocks of 1024 numbers to the bits that the largest takes. A tail
// is packed like [packedLevels] packs one.
func packSequence(values []uint64, largest uint64) (*enc21pb.CompressiveEncoding, []byte) {
	width := bits.Len64(largest)
	if width == 64 {
		return describeFlat(64), appendUint64s(nil, values)
	}
	width = max(width, 1)
	var out, in []byte
	for rest := values; len(rest) > 0; {
		n := min(len(rest), 1024)
		if 8*n <= 128*width && n < 1024 {
			out = appendUint64s(out, rest)
			break
		}
		in = appendUint64s(in[:0], rest[:n])
		in = append(in, make([]byte, 8192-len(in))...)
		have := len(out)
		out = append(out, make([]byte, 128*width)...)
		fastlanes.Pack(out[have:], in, 64, width)
		rest = rest[n:]
	}
	return describeOutOfLineBitpacking(64, width), out
}

func packedSize(n, width int) int {
	whole, tail := n/1024, n%1024
	return whole*128*width + min(2*tail, 128*width)
}

// unpackTo appends the first n values of a FastLanes block.
func unpackTo(dst, in []byte, bits, width, n int, spare *[]byte) ([]byte, error) {
	have := len(dst)
	if n == 1024 {
		dst = extend(dst, 128*bits)
		return dst, fastlanes.Unpack(dst[have:], in, bits, width)
	}
	*spare = resize(*spare, 128*bits)
	if err := fastlanes.Unpack(*spare, in, bits, width); err != nil {
		return dst, err
	}
	return append(dst, (*spare)[:n*bits/8]...), nil
}
