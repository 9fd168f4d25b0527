package encoding20

import (
	"context"
	"encoding/binary"

	"github.com/rehome-db/rehome/lance/datafile/fastlanes"
	enc20pb "github.com/rehome-db/rehome/lance/internal/pb/enc20"
	"github.com/rehome-db/rehome/lance/readat"
	"github.com/rehome-db/rehome/table"
)

// blockValues is how many values a block of package fastlanes has.
const blockValues = 1024

// packing is how the values of a buffer are stored in fewer bits than they have.
type packing struct {
	width uint64 // of a stored value, in bits: at least 1
	// signed says that the highest bit of a stored value is its sign.
	signed bool
	// blocks says that there are blocks of 1024 values, of which the last is filled
	// up (package fastlanes). If not, values follow each other as one stream of
	// bits, lowest first.
	blocks bool
}

// packings returns the packing that an encoding describes and its buffer, or nil if it
// is none, for values of the given width.
func packings(e *enc20pb.ArrayEncoding, bits uint64) (*packing, *enc20pb.Buffer, error) {
	var p packing
	var buffer *enc20pb.Buffer
	var of uint64
	switch c := e.GetArrayEncoding().(type) {
	case *enc20pb.ArrayEncoding_Bitpacked:
		p = packing{width: c.Bitpacked.GetCompressedBitsPerValue(), signed: c.Bitpacked.GetSigned()}
		of, buffer = c.Bitpacked.GetUncompressedBitsPerValue(), c.Bitpacked.GetBuffer()
	case *enc20pb.ArrayEncoding_BitpackedForNonNeg:
		p = packing{width: c.BitpackedForNonNeg.GetCompressedBitsPerValue(), blocks: true}
		of, buffer = c.BitpackedForNonNeg.GetUncompressedBitsPerValue(), c.BitpackedForNonNeg.GetBuffer()
	default:
		return nil, nil, nil
	}
	switch {
	case bits != 8 && bits != 16 && bits != 32 && bits != 64:
		return nil, nil, unsupported(e) // only integers are packed
	case of != bits:
		return nil, nil, table.Corruptf("encoding: values of %d bits, want %d", of, bits)
	case p.width == 0 || p.width > bits:
		return nil, nil, table.Corruptf("encoding: values of %d bits packed into %d", bits, p.width)
	}
	return &p, buffer, nil
}

// blockBytes is the size of a block.
func (p *packing) blockBytes() uint64 { return blockValues / 8 * p.width }

// stored is how many bytes n values take.
func (p *packing) stored(n uint64) uint64 {
	if p.blocks {
		return (n + blockValues - 1) / blockValues * p.blockBytes()
	}
	return (n*p.width + 7) / 8
}

// most is how many values a buffer of so many bytes can have.
func (p *packing) most(size uint64) uint64 {
	if p.blocks {
		return size / p.blockBytes() * blockValues
	}
	return size * 8 / p.width
}

// unpack fills dst with values from the given one on.
func (f *flat) unpack(ctx context.Context, file readat.ReaderAt, dst []byte, from uint64) error {
	n := uint64(len(dst)) / (f.bits / 8)
	if n == 0 {
		return nil
	}
	if f.packing.blocks {
		return f.unpackBlocks(ctx, file, dst, from, n)
	}
	p := f.packing
	first, end := from*p.width/8, ((from+n)*p.width+7)/8
	// Filled up, so that the last value can be read as a word and a byte, too.
	f.raw = resize(f.raw, int(end-first)+9)
	clear(f.raw[end-first:])
	if err := readat.Full(ctx, file, f.raw[:end-first], f.buffer.Offset+first); err != nil {
		return err
	}
	unused := 64 - p.width
	for i := range n {
		at := from*p.width%8 + i*p.width
		in, shift := f.raw[at/8:], at%8
		v := binary.LittleEndian.Uint64(in)>>shift | uint64(in[8])<<(64-shift)
		if p.signed {
			v = uint64(int64(v<<unused) >> unused)
		} else {
			v = v << unused >> unused
		}
		switch f.bits {
		case 8:
			dst[i] = byte(v)
		case 16:
			binary.LittleEndian.PutUint16(dst[2*i:], uint16(v))
		case 32:
			binary.LittleEndian.PutUint32(dst[4*i:], uint32(v))
		default:
			binary.LittleEndian.PutUint64(dst[8*i:], v)
		}
	}
	return nil
}

// unpackBlocks is unpack for n values that are stored in blocks.
func (f *flat) unpackBlocks(ctx context.Context, file readat.ReaderAt, dst []byte, from, n uint64) error {
	p, w := f.packing, f.bits/8
	first, end := from/blockValues, (from+n+blockValues-1)/blockValues
	f.raw = resize(f.raw, int((end-first)*p.blockBytes()))
	if err := readat.Full(ctx, file, f.raw, f.buffer.Offset+first*p.blockBytes()); err != nil {
		return err
	}
	f.unpacked = resize(f.unpacked, int(blockValues*w))
	for k := first; k < end; k++ {
		if err := fastlanes.Unpack(f.unpacked, f.raw[(k-first)*p.blockBytes():], int(f.bits), int(p.width)); err != nil {
			return err
		}
		skip := max(from, k*blockValues) - k*blockValues
		dst = dst[copy(dst, f.unpacked[skip*w:]):]
	}
	return nil
}
