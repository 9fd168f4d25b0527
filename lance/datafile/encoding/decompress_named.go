package encoding

import (
	"bytes"
	"encoding/binary"
	"io"

	"github.com/klauspost/compress/zstd"

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
