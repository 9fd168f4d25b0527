package encoding

import (
	"encoding/binary"
	"sync"

	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"

	enc21pb "github.com/rehome-db/rehome/lance/internal/pb/enc21"
	"github.com/rehome-db/rehome/table"
)

// zstdDecoder is shared: DecodeAll is safe for concurrent use. It writes no
// further than the capacity that it is given.
var zstdDecoder = sync.OnceValues(func() (*zstd.Decoder, error) {
	return zstd.NewReader(nil, zstd.WithDecoderConcurrency(0), zstd.WithDecodeAllCapLimit(true))
})

// checkScheme says whether decompress knows the scheme.
func checkScheme(c *enc21pb.BufferCompression) error {
	switch s := c.GetScheme(); s {
	case enc21pb.BufferCompression_LZ4, enc21pb.BufferCompression_ZSTD:
		return nil
	default:
		return table.Unsupportedf("encoding: the compression %s is not supported", schemeName(s))
	}
}

// decompress appends what src expands to. Both schemes are framed by the length
// of the result: 32 bits for LZ4, 64 for zstd. At most limit bytes are accepted,
// and no more than the length is ever allocated.
func decompress(scheme enc21pb.BufferCompression_Scheme, dst, src []byte, limit int) ([]byte, error) {
	if len(src) == 0 {
		return dst, nil
	}
	switch scheme {
	case enc21pb.BufferCompression_LZ4:
		return decompressLZ4(dst, src, limit)
	case enc21pb.BufferCompression_ZSTD:
		return decompressZstd(dst, src, limit)
	default:
		return dst, table.Unsupportedf("encoding: the compression %s is not supported", schemeName(scheme))
	}
}

func decompressLZ4(dst, src []byte, limit int) ([]byte, error) {
	if len(src) < 4 {
		return dst, table.Corruptf("encoding: LZ4 buffer of %d bytes", len(src))
	}
	n, src := int(binary.LittleEndian.Uint32(src)), src[4:]
	// A byte of LZ4 says at most 255 bytes of output.
	if n > limit || n/255 > len(src) {
		return dst, table.Corruptf("encoding: LZ4 buffer of %d bytes claims to hold %d", len(src), n)
	}
	have := len(dst)
	if n == 0 {
		// One token that stands for nothing. The library must not see it: its
		// assembler takes the end of an empty slice for far away.
		if len(src) == 1 && src[0] == 0 {
			return dst, nil
		}
		return dst, table.Corruptf("encoding: LZ4 buffer of %d bytes claims to hold none", len(src))
	}
	dst = grow(dst, n)
	got, err := lz4.UncompressBlock(src, dst[have:have+n])
	if err != nil || got != n {
		return dst[:have], table.Corruptf("encoding: LZ4 buffer holds %d bytes, not %d: %w", got, n, orMismatch(err))
	}
	return dst[:have+n], nil
}

func decompressZstd(dst, src []byte, limit int) ([]byte, error) {
	const frameMagic = 0xFD2FB528
	var want uint64
	// Early writers left the length out. A frame has bit 4 of its fifth byte
	// clear, which tells it from a length that happens to look like the magic.
	if len(src) < 8 || binary.LittleEndian.Uint32(src) == frameMagic && src[4]&0x10 == 0 {
		var h zstd.Header
		if err := h.Decode(src); err != nil {
			return dst, table.Corruptf("encoding: zstd buffer of %d bytes: %w", len(src), err)
		}
		if !h.HasFCS {
			return dst, table.Unsupportedf("encoding: a zstd buffer that does not say how long its content is")
		}
		want = h.FrameContentSize
	} else {
		want, src = binary.LittleEndian.Uint64(src), src[8:]
	}
	// A block of zstd takes at least four bytes and gives at most 128 KiB.
	if want > uint64(limit) || want/(128<<10) > uint64(len(src))/4 {
		return dst, table.Corruptf("encoding: zstd buffer of %d bytes claims to hold %d", len(src), want)
	}
	decoder, err := zstdDecoder()
	if err != nil {
		return dst, err
	}
	have, n := len(dst), int(want)
	dst = grow(dst, n)
	out, err := decoder.DecodeAll(src, dst[:have:have+n])
	if err != nil || len(out) != have+n {
		return dst, table.Corruptf("encoding: zstd buffer holds %d bytes, not %d: %w", len(out)-have, n, orMismatch(err))
	}
	return out, nil
}

// grow returns dst with room for n more bytes.
func grow(dst []byte, n int) []byte {
	if cap(dst)-len(dst) >= n {
		return dst
	}
	out := make([]byte, len(dst), len(dst)+n)
	copy(out, dst)
	return out
}

type mismatch struct{}

func (mismatch) Error() string { return "length mismatch" }

func orMismatch(err error) error {
	if err == nil {
		return mismatch{}
	}
	return err
}
