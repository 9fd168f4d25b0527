package encoding

import (
	enc21pb "github.com/rehome-db/rehome/lance/internal/pb/enc21"
	"github.com/rehome-db/rehome/table"
)

// Flat values stand one after the other, little-endian. The int16 7 and 8, and the
// booleans true, false, true:
//
//	07 00 08 00
//	05
//
// A constant, which only stands for levels and dictionaries, has no bytes: its description
// holds the value.

func describeFlat(bits int) *enc21pb.CompressiveEncoding {
	return &enc21pb.CompressiveEncoding{Compression: &enc21pb.CompressiveEncoding_Flat{
		Flat: &enc21pb.Flat{BitsPerValue: uint64(bits)}}}
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

type flatDecoder struct{ bits int }

func (flatDecoder) buffers() int { return 1 }

func (f flatDecoder) decode(dst []byte, n int, bufs [][]byte) ([]byte, error) {
	need := (uint64(n)*uint64(f.bits) + 7) / 8
	if need > uint64(len(bufs[0])) {
		return dst, table.Corruptf("encoding: %d bytes for %d flat values of %d bits", len(bufs[0]), n, f.bits)
	}
	return append(dst, bufs[0][:need]...), nil
}

// flatEncoder stores values as they are.
type flatEncoder struct {
	data []byte
	bits int
}

func (c *flatEncoder) describe() (*enc21pb.CompressiveEncoding, int) { return describeFlat(c.bits), 1 }

func (c *flatEncoder) limits() (int, int) { return maxChunkSlots, fixedChunkBytes }

func (c *flatEncoder) size(from, to int) int { return ((to-from)*c.bits + 7) / 8 }

func (c *flatEncoder) append(dst []byte, sizes []int, from, to int) ([]byte, []int) {
	dst = appendBitRange(dst, c.data, from*c.bits, to*c.bits)
	return padTo(dst, alignment, chunkPad), append(sizes, c.size(from, to))
}

// flatLevels stores levels as they are.
type flatLevels struct{}

func (flatLevels) describe() *enc21pb.CompressiveEncoding { return describeFlat(16) }

func (flatLevels) size(levels []uint16) int { return 2 * len(levels) }

func (flatLevels) append(dst []byte, levels []uint16) []byte { return appendUint16s(dst, levels) }

func describeConstant(value []byte) *enc21pb.CompressiveEncoding {
	return &enc21pb.CompressiveEncoding{Compression: &enc21pb.CompressiveEncoding_Constant{Constant: &enc21pb.Constant{Value: value}}}
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
