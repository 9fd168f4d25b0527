package encoding

import (
	"bytes"
	"encoding/binary"
	"io"
	"sync"

	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"

	enc21pb "github.com/rehome-db/rehome/lance/internal/pb/enc21"
	"github.com/rehome-db/rehome/table"
)

// Decompress appends what src expands to, at most limit bytes, to dst. The scheme is
// "lz4" or "zstd"; formats frame both alike.
func Decompress(scheme string, dst, src []byte, limit int) ([]byte, error) {
	switch scheme {
	case "lz4":
		return decompress(enc21pb.BufferCompression_LZ4, dst, src, limit)
	case "zstd":
		if unsized(src) {
			return decompressUnsized(dst, src, limit)
		}
		return decompress(enc21pb.BufferCompression_ZSTD, dst, src, limit)
	default:
		return dst, table.Unsupportedf("encoding: the compression %q is not supported", scheme)
	}
}

// Compress appends src, compressed by a scheme that [Decompress] knows, to dst. Level
// 0 is the scheme's default.
func Compress(scheme string, level int, dst, src []byte) ([]byte, error) {
	var c compressor
	switch scheme {
	case "lz4":
		return c.lz4Block(dst, src), nil
	case "zstd":
		return c.zstdValue(dst, src, level), nil
	default:
		return dst, table.Unsupportedf("encoding: the compression %q is not supported", scheme)
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

// zstdDecoder is shared: DecodeAll is safe for concurrent use. It writes no
// further than the capacity that it is given.
var zstdDecoder = sync.OnceValues(func() (*zstd.Decoder, error) {
	return zstd.NewReader(nil, zstd.WithDecoderConcurrency(0), zstd.WithDecodeAllCapLimit(true))
})

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

// unsized says whether src is a zstd frame that does not say how long its content is,
// as Lance wrote them before 1.0.
func unsized(src []byte) bool {
	var h zstd.Header
	return len(src) >= 4 && binary.LittleEndian.Uint32(src) == 0xFD2FB528 && h.Decode(src) == nil && !h.HasFCS
}

// decompressUnsized expands such a frame.
func decompressUnsized(dst, src []byte, limit int) ([]byte, error) {
	d, err := zstd.NewReader(bytes.NewReader(src), zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(32<<20))
	if err != nil {
		return dst, err
	}
	defer d.Close()
	out := bytes.NewBuffer(dst)
	n, err := io.Copy(out, io.LimitReader(d, int64(limit)+1))
	switch {
	case err != nil:
		return dst, table.Corruptf("encoding: zstd buffer of %d bytes: %w", len(src), err)
	case n > int64(limit):
		return dst, table.Corruptf("encoding: zstd buffer of %d bytes holds more than %d", len(src), limit)
	}
	return out.Bytes(), nil
}

type mismatch struct{}

func (mismatch) Error() string { return "length mismatch" }

func orMismatch(err error) error {
	if err == nil {
		return mismatch{}
	}
	return err
}

// compressor holds the state of the general-purpose compressors.
type compressor struct {
	lz4 lz4.Compressor
	// values compresses large values one by one, chunks the small chunks of a
	// page.
	values, chunks *zstd.Encoder
	buf            []byte
}

// lz4Block appends src to dst as one block behind its length in 32 bits.
func (c *compressor) lz4Block(dst, src []byte) []byte {
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(src)))
	bound := lz4.CompressBlockBound(len(src))
	have := len(dst)
	dst = append(dst, make([]byte, bound)...)
	n, err := c.lz4.CompressBlock(src, dst[have:])
	if err == nil && n > 0 {
		return dst[:have+n]
	}
	// What cannot be compressed is one sequence of literals.
	return appendLiterals(dst[:have], src)
}

// zstdValue appends src to dst as a frame behind its length in 64 bits.
func (c *compressor) zstdValue(dst, src []byte, level int) []byte {
	if c.values == nil {
		if level <= 0 {
			level = defaultZstdLevel
		}
		c.values = newZstd(zstd.EncoderLevelFromZstd(level))
	}
	return zstdFrame(c.values, dst, src)
}

// zstdChunk is zstdValue for a few KiB. What other implementations reach there at
// their default level takes this one its best.
func (c *compressor) zstdChunk(dst, src []byte) []byte {
	if c.chunks == nil {
		c.chunks = newZstd(zstd.SpeedBestCompression, zstd.WithWindowSize(hardChunk), zstd.WithLowerEncoderMem(true))
	}
	return zstdFrame(c.chunks, dst, src)
}

const defaultZstdLevel = 3

// appendLiterals writes an LZ4 block without matches.
func appendLiterals(dst, src []byte) []byte {
	if len(src) < 15 {
		dst = append(dst, byte(len(src))<<4)
	} else {
		dst = append(dst, 0xf0)
		left := len(src) - 15
		for ; left >= 255; left -= 255 {
			dst = append(dst, 255)
		}
		dst = append(dst, byte(left))
	}
	return append(dst, src...)
}

func newZstd(level zstd.EncoderLevel, opts ...zstd.EOption) *zstd.Encoder {
	// One goroutine: the caller is one of several. The options are right, so
	// there is no error.
	e, _ := zstd.NewWriter(nil, append(opts, zstd.WithEncoderLevel(level), zstd.WithEncoderConcurrency(1), zstd.WithEncoderCRC(false))...)
	return e
}

func zstdFrame(e *zstd.Encoder, dst, src []byte) []byte {
	return e.EncodeAll(src, binary.LittleEndian.AppendUint64(dst, uint64(len(src))))
}
