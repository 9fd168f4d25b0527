package encoding20

import (
	"context"

	"github.com/rehome-db/rehome/lance/datafile/encoding"
	"github.com/rehome-db/rehome/lance/datafile/level"
	enc20pb "github.com/rehome-db/rehome/lance/internal/pb/enc20"
	"github.com/rehome-db/rehome/lance/readat"
	"github.com/rehome-db/rehome/table"
)

// flat is a buffer of values of one width.
type flat struct {
	bits   uint64
	buffer encoding.Buffer
	scheme string // of compression, or ""
	// size is how many bytes the values take, 0 if that is not known before they are
	// read.
	size  uint64
	limit int
	whole []byte // of a compressed buffer, once it was read

	packing  *packing // nil if values are stored as they are
	raw      []byte   // what unpack has read
	unpacked []byte   // a block
}

// dense returns what is inside a nullable encoding that says that all is there.
func dense(e *enc20pb.ArrayEncoding) *enc20pb.ArrayEncoding {
	for range maxDepth {
		n, ok := e.GetArrayEncoding().(*enc20pb.ArrayEncoding_Nullable)
		if !ok {
			break
		}
		all, ok := n.Nullable.GetNullability().(*enc20pb.Nullable_NoNulls)
		if !ok {
			break
		}
		e = all.NoNulls.GetValues()
	}
	return e
}

// compileFlat checks a buffer of n values of the given width. n times bits must not
// overflow.
func compileFlat(e *enc20pb.ArrayEncoding, p *Page, bits, n uint64, limit int) (*flat, error) {
	f, err := compileBuffer(e, p, bits, limit)
	if err != nil {
		return nil, err
	}
	f.size = (n*bits + 7) / 8
	switch {
	case f.packing != nil && f.packing.stored(n) > f.buffer.Size:
		return nil, table.Corruptf("encoding: a buffer of %d bytes for %d values packed into %d bits", f.buffer.Size, n, f.packing.width)
	case f.packing != nil:
	case f.scheme == "" && f.size > f.buffer.Size:
		return nil, table.Corruptf("encoding: a buffer of %d bytes for %d values of %d bits", f.buffer.Size, n, bits)
	case f.scheme != "" && f.size > uint64(limit):
		return nil, table.Unsupportedf("encoding: a compressed buffer of more than %d bytes", limit)
	}
	return f, nil
}

// compileBuffer is compileFlat for a number of values that is not known.
func compileBuffer(e *enc20pb.ArrayEncoding, p *Page, bits uint64, limit int) (*flat, error) {
	if packing, buffer, err := packings(dense(e), bits); err != nil || packing != nil {
		if err != nil {
			return nil, err
		}
		b, err := bufferOf(buffer, p)
		return &flat{bits: bits, buffer: b, limit: limit, packing: packing}, err
	}
	c, ok := dense(e).GetArrayEncoding().(*enc20pb.ArrayEncoding_Flat)
	if !ok {
		return nil, unsupported(e)
	}
	if got := c.Flat.GetBitsPerValue(); got != bits {
		return nil, table.Corruptf("encoding: values of %d bits, want %d", got, bits)
	}
	b, err := bufferOf(c.Flat.GetBuffer(), p)
	if err != nil {
		return nil, err
	}
	f := &flat{bits: bits, buffer: b, limit: limit}
	switch scheme := c.Flat.GetCompression().GetScheme(); {
	case scheme == "", scheme == "none":
	case bits == 1:
		// Lance 0.14 said that bits are compressed, and did not do it.
	case scheme == "zstd", scheme == "lz4":
		f.scheme = scheme
	default:
		return nil, table.Unsupportedf("encoding: the compression %q is not supported", scheme)
	}
	return f, nil
}

// bufferOf finds a buffer. One that is not named is the first.
func bufferOf(b *enc20pb.Buffer, p *Page) (encoding.Buffer, error) {
	if b.GetBufferType() != enc20pb.Buffer_PAGE {
		return encoding.Buffer{}, table.Unsupportedf("encoding: a page that uses buffers other than its own is not supported")
	}
	if uint64(b.GetBufferIndex()) >= uint64(len(p.Buffers)) {
		return encoding.Buffer{}, table.Corruptf("encoding: there is no buffer %d in a page of %d", b.GetBufferIndex(), len(p.Buffers))
	}
	return p.Buffers[b.GetBufferIndex()], nil
}

// load reads a compressed buffer.
func (f *flat) load(ctx context.Context, file readat.ReaderAt) error {
	if f.scheme == "" || f.whole != nil {
		return nil
	}
	if f.buffer.Size > uint64(f.limit) {
		return table.Unsupportedf("encoding: a compressed buffer of %d bytes", f.buffer.Size)
	}
	in := make([]byte, f.buffer.Size)
	if err := readat.Full(ctx, file, in, f.buffer.Offset); err != nil {
		return err
	}
	out, err := encoding.Decompress(f.scheme, nil, in, f.limit)
	if err != nil {
		return err
	}
	if uint64(len(out)) < f.size {
		return table.Corruptf("encoding: a compressed buffer of %d bytes, want %d", len(out), f.size)
	}
	if out == nil {
		out = []byte{}
	}
	f.whole = out
	return nil
}

// length is the number of bytes that there are; of a compressed buffer only after
// load.
func (f *flat) length() uint64 {
	switch {
	case f.scheme != "":
		return uint64(len(f.whole))
	case f.packing != nil:
		return f.packing.most(f.buffer.Size) * f.bits / 8
	}
	return f.buffer.Size
}

// read fills dst with the bytes from the given one on. Of packed values these are those
// of whole values.
func (f *flat) read(ctx context.Context, file readat.ReaderAt, dst []byte, from uint64) error {
	if err := f.load(ctx, file); err != nil {
		return err
	}
	if n := f.length(); from > n || uint64(len(dst)) > n-from {
		return table.Corruptf("encoding: %d bytes at %d of a buffer of %d", len(dst), from, n)
	}
	if f.scheme != "" {
		copy(dst, f.whole[from:])
		return nil
	}
	if f.packing != nil {
		return f.unpack(ctx, file, dst, from/(f.bits/8))
	}
	return readat.Full(ctx, file, dst, f.buffer.Offset+from)
}

// appendBits appends the bits from lo to hi to the stream dst of have bits, by way
// of spare.
func (f *flat) appendBits(ctx context.Context, r *Reader, dst []byte, have int, lo, hi uint64) ([]byte, error) {
	from := lo / 8
	r.spare = resize(r.spare, int((hi+7)/8-from))
	if err := f.read(ctx, r.source.File, r.spare, from); err != nil {
		return dst, err
	}
	return level.AppendBits(dst, have, r.spare, int(lo%8), int(hi-lo)), nil
}

// resize returns a slice of n bytes that reuses b's memory if it can.
func resize(b []byte, n int) []byte {
	if cap(b) < n {
		return make([]byte, n, n+n/8)
	}
	return b[:n]
}
