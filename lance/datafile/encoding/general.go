package encoding

import (
	enc21pb "github.com/rehome-db/rehome/lance/internal/pb/enc21"
	"github.com/rehome-db/rehome/table"
)

// General compression is around another encoding: of the first of its buffers in a chunk,
// of the one of a block, or of each value of a full-zip page. Compressed bytes stand behind
// the length that they expand to: 32 bits for LZ4, 64 for zstd. The bytes "abcd" by LZ4, which
// cannot make them shorter:
//
//	04 00 00 00
//	40 61 62 63 64  four bytes as they are

func describeGeneral(c *enc21pb.BufferCompression, values *enc21pb.CompressiveEncoding) *enc21pb.CompressiveEncoding {
	return &enc21pb.CompressiveEncoding{Compression: &enc21pb.CompressiveEncoding_General{
		General: &enc21pb.General{Compression: c, Values: values}}}
}

// checkScheme says whether decompress knows the scheme.
func checkScheme(c *enc21pb.BufferCompression) error {
	switch s := c.GetScheme(); s {
	case enc21pb.BufferCompression_LZ4, enc21pb.BufferCompression_ZSTD:
		return nil
	default:
		return table.Unsupportedf("encoding: the compression %s is not supported", schemeName(s))
	}
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

type generalStrings struct {
	general
	inner stringDecoder
}

func (d *generalStrings) buffers() int { return d.inner.buffers() }

func (d *generalStrings) decode(n int, bufs [][]byte) (stringView, error) {
	bufs, err := d.expand(bufs)
	if err != nil {
		return stringView{}, err
	}
	return d.inner.decode(n, bufs)
}

// wrap puts the general compression that the column asks for, if any, around a
// codec.
func (e *Encoder) wrap(inner valueEncoder) valueEncoder {
	switch e.opts.Compression {
	case "lz4":
		return &generalEncoder{valueEncoder: inner, e: e, scheme: enc21pb.BufferCompression_LZ4}
	case "zstd":
		return &generalEncoder{valueEncoder: inner, e: e, scheme: enc21pb.BufferCompression_ZSTD}
	default:
		return inner
	}
}

// generalEncoder compresses the first buffer of every chunk of another codec.
type generalEncoder struct {
	valueEncoder
	e      *Encoder
	scheme enc21pb.BufferCompression_Scheme
}

func (c *generalEncoder) describe() (*enc21pb.CompressiveEncoding, int) {
	inner, buffers := c.valueEncoder.describe()
	scheme := &enc21pb.BufferCompression{Scheme: c.scheme}
	if c.scheme == enc21pb.BufferCompression_ZSTD && c.e.opts.CompressionLevel > 0 {
		level := int32(c.e.opts.CompressionLevel)
		scheme.Level = &level
	}
	return describeGeneral(scheme, inner), buffers
}

// maxGrowth and maxFrame bound what the compressors make of data that cannot be
// compressed: LZ4 adds a byte to each 255 and zstd three to each block of 128 KiB, so 1 in
// 128 is more than either; and both add a length, a header and a few bytes besides.
const (
	maxGrowth = 128
	maxFrame  = 64
)

// size leaves room for data that grows.
func (c *generalEncoder) size(from, to int) int {
	n := c.valueEncoder.size(from, to)
	return n + n/maxGrowth + maxFrame
}

func (c *generalEncoder) append(dst []byte, sizes []int, from, to int) ([]byte, []int) {
	first := len(sizes)
	buf, sizes := c.valueEncoder.append(c.e.compress.buf[:0], sizes, from, to)
	c.e.compress.buf = buf
	n := sizes[first]
	have := len(dst)
	if c.scheme == enc21pb.BufferCompression_LZ4 {
		dst = c.e.compress.lz4Block(dst, buf[:n])
	} else {
		dst = c.e.compress.zstdChunk(dst, buf[:n])
	}
	sizes[first] = len(dst) - have
	dst = padTo(dst, alignment, chunkPad)
	return append(dst, buf[(n+alignment-1)/alignment*alignment:]...), sizes
}
