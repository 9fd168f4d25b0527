package arrowipc

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
)

// The codecs of buffers.
const (
	codecLZ4  = 0
	codecZstd = 1
)

// stored is what stands before a buffer that was not compressed after all, in the place
// of its size.
const stored = -1

const (
	// ratio is what Zstandard makes of bytes at best: 128 KiB of four.
	ratio = 32 << 10
	// smallWindow is the window that a decoder is given for any buffer, largeWindow the
	// most that it is given.
	smallWindow, largeWindow = 8 << 20, 128 << 20
)

// extent is where a buffer lies in a body.
type extent struct{ offset, length int64 }

// inflate decompresses the buffers of a record batch. It returns the new body, and
// changes the metadata so that they describe it: the buffers are stored in it.
func (m *message) inflate(body []byte) ([]byte, error) {
	compression := m.table(m.batch, 3)
	if compression == 0 {
		return body, nil
	}
	codec := uint8(codecLZ4)
	if at := m.field(compression, 0); at != 0 {
		codec = m.u8(at)
	}
	if at := m.field(compression, 1); at != 0 && m.u8(at) != 0 {
		return nil, fmt.Errorf("buffers compressed by method %d", m.u8(at))
	}
	first, n := m.vector(m.batch, 2, 16)
	var out []byte
	total := int64(0)
	known := map[extent]extent{} // old to new
	for i := range n {
		at := first + 16*i
		old := extent{m.i64(at), m.i64(at + 8)}
		if old.length == 0 {
			continue
		}
		now, ok := known[old]
		if !ok {
			if total += old.length; total > int64(len(body)) {
				return nil, errors.New("compressed buffers that overlap")
			}
			plain, err := decompress(codec, body[old.offset:old.offset+old.length])
			if err != nil {
				return nil, fmt.Errorf("a compressed buffer: %w", err)
			}
			out = append(out, make([]byte, -len(out)&7)...)
			now = extent{int64(len(out)), 8 + int64(len(plain))}
			out = binary.LittleEndian.AppendUint64(out, math.MaxUint64) // stored
			out = append(out, plain...)
			known[old] = now
		}
		binary.LittleEndian.PutUint64(m.bytes[at:], uint64(now.offset))
		binary.LittleEndian.PutUint64(m.bytes[at+8:], uint64(now.length))
	}
	if m.err() != nil {
		return nil, m.err()
	}
	return out, checkStored(m.bytes, out)
}

// checkStored looks at changed metadata anew: where parts of them overlap, a change of
// one changed another. All buffers have to be stored by now.
func checkStored(metadata, body []byte) error {
	m, err := parseWith(metadata, len(body))
	if err != nil {
		return err
	}
	if m.table(m.batch, 3) == 0 {
		return errMetadata
	}
	first, n := m.vector(m.batch, 2, 16)
	for i := range n {
		offset, length := m.i64(first+16*i), m.i64(first+16*i+8)
		if length == 0 {
			continue
		}
		if length < 8 || binary.LittleEndian.Uint64(body[offset:]) != math.MaxUint64 {
			return errors.New("the metadata of a message overlap")
		}
	}
	return m.err()
}

// decompress returns what a buffer with its size before it holds.
func decompress(codec uint8, b []byte) ([]byte, error) {
	if len(b) < 8 {
		return nil, io.ErrUnexpectedEOF
	}
	size := int64(binary.LittleEndian.Uint64(b))
	b = b[8:]
	if size == stored {
		return b, nil
	}
	if size < 0 || size > ratio*int64(len(b)+2) {
		return nil, fmt.Errorf("it says that its %d bytes are %d", len(b), size)
	}
	var in io.Reader
	switch codec {
	case codecLZ4:
		in = lz4.NewReader(bytes.NewReader(b))
	case codecZstd:
		window := uint64(smallWindow)
		for window < uint64(size) && window < largeWindow {
			window *= 2
		}
		d, err := zstd.NewReader(bytes.NewReader(b), zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(window))
		if err != nil {
			return nil, err
		}
		defer d.Close()
		in = d
	default:
		return nil, fmt.Errorf("codec %d is not known", codec)
	}
	var out bytes.Buffer
	n, err := io.Copy(&out, io.LimitReader(in, size))
	if err != nil {
		return nil, err
	}
	if n < size {
		return nil, fmt.Errorf("it says that it has %d bytes, and has %d", size, n)
	}
	return out.Bytes(), nil
}
