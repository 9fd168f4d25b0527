package encoding

import (
	enc21pb "github.com/rehome-db/rehome/lance/internal/pb/enc21"
	"github.com/rehome-db/rehome/table"
)

// Byte stream split stores byte 0 of all values, then byte 1 of all, and so on: bytes that
// are alike stand together for a compressor. The int32 0x04030201 and 0x08070605:
//
//	01 05  02 06  03 07  04 08

func describeByteStreamSplit(bits int) *enc21pb.CompressiveEncoding {
	return &enc21pb.CompressiveEncoding{Compression: &enc21pb.CompressiveEncoding_ByteStreamSplit{
		ByteStreamSplit: &enc21pb.ByteStreamSplit{Values: describeFlat(bits)}}}
}

// byteStreamSplitDecoder stores byte j of every value together.
type byteStreamSplitDecoder struct{ width int }

func (byteStreamSplitDecoder) buffers() int { return 1 }

func (d byteStreamSplitDecoder) decode(dst []byte, n int, bufs [][]byte) ([]byte, error) {
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

// byteStreamSplitEncoder stores byte 0 of all values of a chunk, then byte 1 of all, and so on.
type byteStreamSplitEncoder struct{ flatEncoder }

func (c *byteStreamSplitEncoder) describe() (*enc21pb.CompressiveEncoding, int) {
	return describeByteStreamSplit(c.bits), 1
}

func (c *byteStreamSplitEncoder) append(dst []byte, sizes []int, from, to int) ([]byte, []int) {
	w, n, have := c.bits/8, to-from, len(dst)
	dst = append(dst, make([]byte, n*w)...)
	out, in := dst[have:], c.data[from*w:to*w]
	for j := range w {
		plane := out[j*n : (j+1)*n]
		for i := range plane {
			plane[i] = in[i*w+j]
		}
	}
	return padTo(dst, alignment, chunkPad), append(sizes, n*w)
}
