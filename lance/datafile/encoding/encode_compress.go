package encoding

import (
	"encoding/binary"

	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"

	enc21pb "github.com/rehome-db/rehome/lance/internal/pb/enc21"
)

// compressor holds the state of the general-purpose compressors.
type compressor struct {
	lz4 lz4.Compressor
	// values compresses large values one by one, chunks the small chunks of a
	// page.
	values, chunks *zstd.Encoder
	buf            []byte
}

const defaultZstdLevel = 3

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

func newZstd(level zstd.EncoderLevel, opts ...zstd.EOption) *zstd.Encoder {
	// One goroutine: the caller is one of several. The options are right, so
	// there is no error.
	e, _ := zstd.NewWriter(nil, append(opts, zstd.WithEncoderLevel(level), zstd.WithEncoderConcurrency(1), zstd.WithEncoderCRC(false))...)
	return e
}

func zstdFrame(e *zstd.Encoder, dst, src []byte) []byte {
	return e.EncodeAll(src, binary.LittleEndian.AppendUint64(dst, uint64(len(src))))
}

// wrap puts the general compression that the column asks for, if any, around a
// codec.
func (e *Encoder) wrap(inner valueCodec) valueCodec {
	switch e.opts.Compression {
	case "lz4":
		return &generalCodec{valueCodec: inner, e: e, scheme: enc21pb.BufferCompression_LZ4}
	case "zstd":
		return &generalCodec{valueCodec: inner, e: e, scheme: enc21pb.BufferCompression_ZSTD}
	default:
		return inner
	}
}

// generalCodec compresses the first buffer of every chunk of another codec.
type generalCodec struct {
	valueCodec
	e      *Encoder
	scheme enc21pb.BufferCompression_Scheme
}

func (c *generalCodec) describe() (*enc21pb.CompressiveEncoding, int) {
	inner, buffers := c.valueCodec.describe()
	scheme := &enc21pb.BufferCompression{Scheme: c.scheme}
	if c.scheme == enc21pb.BufferCompression_ZSTD && c.e.opts.CompressionLevel > 0 {
		level := int32(c.e.opts.CompressionLevel)
		scheme.Level = &level
	}
	return describeGeneral(scheme, inner), buffers
}

// size leaves room for data that grows.
func (c *generalCodec) size(from, to int) int {
	n := c.valueCodec.size(from, to)
	return n + n/128 + 64
}

func (c *generalCodec) append(dst []byte, sizes []int, from, to int) ([]byte, []int) {
	first := len(sizes)
	buf, sizes := c.valueCodec.append(c.e.compress.buf[:0], sizes, from, to)
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
