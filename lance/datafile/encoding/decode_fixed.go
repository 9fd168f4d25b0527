package encoding

import (
	"encoding/binary"

	"github.com/rehome-db/rehome/lance/datafile/fastlanes"
	enc21pb "github.com/rehome-db/rehome/lance/internal/pb/enc21"
	"github.com/rehome-db/rehome/table"
)

// form says where an encoding stands: some are laid out differently, or exist
// only, in one of the two places.
type form int

const (
	// inChunk: the values of a mini-block chunk, in one or more buffers.
	inChunk form = iota
	// inBlock: levels and dictionaries, in one buffer.
	inBlock
)

// fixedDecoder decodes values of a fixed number of bits.
type fixedDecoder interface {
	// buffers is the number of buffers that decode takes.
	buffers() int
	// decode appends n values, back to back and filled up to whole bytes.
	decode(dst []byte, n int, bufs [][]byte) ([]byte, error)
}

// compileFixed checks the encoding of values of the given width.
func compileFixed(e *enc21pb.CompressiveEncoding, bits int, f form, limit, depth int) (fixedDecoder, error) {
	if depth > maxEncodingDepth {
		return nil, table.Corruptf("encoding: encodings are nested more than %d deep", maxEncodingDepth)
	}
	switch c := e.GetCompression().(type) {
	case *enc21pb.CompressiveEncoding_Flat:
		if err := flatWidth(c.Flat, bits); err != nil {
			return nil, err
		}
		return flatDecoder{bits}, nil
	case *enc21pb.CompressiveEncoding_InlineBitpacking:
		if c.InlineBitpacking.GetValues() != nil {
			return nil, unsupported(e)
		}
		if err := packedWidth(c.InlineBitpacking.GetUncompressedBitsPerValue(), bits); err != nil {
			return nil, err
		}
		return &inlineBitpacking{bits: bits}, nil
	case *enc21pb.CompressiveEncoding_OutOfLineBitpacking:
		if f != inBlock {
			return nil, unsupported(e)
		}
		return compileOutOfLine(c.OutOfLineBitpacking, e, bits)
	case *enc21pb.CompressiveEncoding_Rle:
		return compileRLE(c.Rle, e, bits, f, limit)
	case *enc21pb.CompressiveEncoding_ByteStreamSplit:
		if bits%8 != 0 {
			return nil, unsupported(e)
		}
		flat, ok := c.ByteStreamSplit.GetValues().GetCompression().(*enc21pb.CompressiveEncoding_Flat)
		if !ok {
			return nil, unsupported(e)
		}
		if err := flatWidth(flat.Flat, bits); err != nil {
			return nil, err
		}
		return byteStreamSplit{bits / 8}, nil
	case *enc21pb.CompressiveEncoding_General:
		if err := checkScheme(c.General.GetCompression()); err != nil {
			return nil, err
		}
		inner, err := compileFixed(c.General.GetValues(), bits, f, limit, depth+1)
		if err != nil {
			return nil, err
		}
		if inner.buffers() == 0 {
			return nil, unsupported(e)
		}
		return &generalFixed{general{scheme: c.General.GetCompression().GetScheme(), limit: limit}, inner}, nil
	case *enc21pb.CompressiveEncoding_Constant:
		value := c.Constant.GetValue()
		if f != inBlock || bits%8 != 0 {
			return nil, unsupported(e)
		}
		if len(value)*8 != bits {
			return nil, table.Corruptf("encoding: a constant of %d bytes for values of %d bits", len(value), bits)
		}
		return constantDecoder{value, limit}, nil
	default:
		return nil, unsupported(e)
	}
}

func unsupported(e *enc21pb.CompressiveEncoding) error {
	return table.Unsupportedf("encoding: %s is not supported here", Name(e))
}

func flatWidth(f *enc21pb.Flat, bits int) error {
	if f.GetData() != nil {
		return table.Unsupportedf("encoding: a flat encoding with compressed data is not supported")
	}
	if f.GetBitsPerValue() != uint64(bits) {
		return table.Corruptf("encoding: flat values of %d bits, want %d", f.GetBitsPerValue(), bits)
	}
	return nil
}

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

// widthOf returns the width of the values that an encoding gives, for the
// indices of a dictionary, whose type says nothing of it.
func widthOf(e *enc21pb.CompressiveEncoding) uint64 {
	for range maxEncodingDepth {
		switch c := e.GetCompression().(type) {
		case *enc21pb.CompressiveEncoding_Flat:
			return c.Flat.GetBitsPerValue()
		case *enc21pb.CompressiveEncoding_InlineBitpacking:
			return c.InlineBitpacking.GetUncompressedBitsPerValue()
		case *enc21pb.CompressiveEncoding_OutOfLineBitpacking:
			return c.OutOfLineBitpacking.GetUncompressedBitsPerValue()
		case *enc21pb.CompressiveEncoding_Rle:
			e = c.Rle.GetValues()
		case *enc21pb.CompressiveEncoding_ByteStreamSplit:
			e = c.ByteStreamSplit.GetValues()
		case *enc21pb.CompressiveEncoding_General:
			e = c.General.GetValues()
		default:
			return 0
		}
	}
	return 0
}

// bytesFor returns the bytes of n values, which must not be more than limit.
func bytesFor(n, bits, limit int) (int, error) {
	if n < 0 || n > (limit/bits)*8 {
		return 0, table.Corruptf("encoding: %d values of %d bits are more than %d bytes", n, bits, limit)
	}
	return (n*bits + 7) / 8, nil
}

type flatDecoder struct{ bits int }

func (flatDecoder) buffers() int { return 1 }

func (f flatDecoder) decode(dst []byte, n int, bufs [][]byte) ([]byte, error) {
	need := (uint64(n)*uint64(f.bits) + 7) / 8
	if need > uint64(len(bufs[0])) {
		return dst, table.Corruptf("encoding: %d bytes for %d flat values of %d bits", len(bufs[0]), n, f.bits)
	}
	return append(dst, bufs[0][:need]...), nil
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

// extend returns dst made n bytes longer; what the new bytes hold is left open.
func extend(dst []byte, n int) []byte {
	if cap(dst)-len(dst) >= n {
		return dst[:len(dst)+n]
	}
	return append(dst, make([]byte, n)...)
}

func loadWord(b []byte, bytes int) uint64 {
	switch bytes {
	case 1:
		return uint64(b[0])
	case 2:
		return uint64(binary.LittleEndian.Uint16(b))
	case 4:
		return uint64(binary.LittleEndian.Uint32(b))
	default:
		return binary.LittleEndian.Uint64(b)
	}
}

// outOfLine is whole FastLanes blocks of one width, and a tail: one more block,
// or plain words if that is shorter.
type outOfLine struct {
	bits, width int
	spare       []byte
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

// maxZeros bounds how many values of no bits are taken on trust.
const maxZeros = 1 << 20

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

// byteStreamSplit stores byte j of every value together.
type byteStreamSplit struct{ width int }

func (byteStreamSplit) buffers() int { return 1 }

func (d byteStreamSplit) decode(dst []byte, n int, bufs [][]byte) ([]byte, error) {
	in, w := bufs[0], d.width
	if n > len(in)/w {
		return dst, table.Corruptf("encoding: %d bytes for %d values of %d bytes", len(in), n, w)
	}
	have := len(dst)
	dst = extend(dst, n*w)
	for j := range w {
		plane := in[j*n : (j+1)*n]
		for i, b := range plane {
			dst[have+i*w+j] = b
		}
	}
	return dst, nil
}

// constantDecoder repeats one value.
type constantDecoder struct {
	value []byte
	limit int
}

func (constantDecoder) buffers() int { return 0 }

func (d constantDecoder) decode(dst []byte, n int, _ [][]byte) ([]byte, error) {
	if _, err := bytesFor(n, 8*len(d.value), d.limit); err != nil {
		return dst, err
	}
	for range n {
		dst = append(dst, d.value...)
	}
	return dst, nil
}

// general expands the first buffer and leaves the rest to what is inside.
type general struct {
	scheme   enc21pb.BufferCompression_Scheme
	limit    int
	expanded []byte
	bufs     [][]byte
}

func (d *general) expand(bufs [][]byte) ([][]byte, error) {
	var err error
	if d.expanded, err = decompress(d.scheme, d.expanded[:0], bufs[0], d.limit); err != nil {
		return nil, err
	}
	d.bufs = append(append(d.bufs[:0], d.expanded), bufs[1:]...)
	return d.bufs, nil
}

type generalFixed struct {
	general
	inner fixedDecoder
}

func (d *generalFixed) buffers() int { return d.inner.buffers() }

func (d *generalFixed) decode(dst []byte, n int, bufs [][]byte) ([]byte, error) {
	bufs, err := d.expand(bufs)
	if err != nil {
		return dst, err
	}
	return d.inner.decode(dst, n, bufs)
}
