package encoding

import (
	"encoding/binary"
	"math/bits"

	"github.com/rehome-db/rehome/lance/datafile/fastlanes"
	enc21pb "github.com/rehome-db/rehome/lance/internal/pb/enc21"
)

// levelCodec encodes repetition or definition levels in block form.
type levelCodec interface {
	describe() *enc21pb.CompressiveEncoding
	size(levels []uint16) int
	append(dst []byte, levels []uint16) []byte
}

func levelWidth(maxLevel uint16) int { return bits.Len16(maxLevel) }

// chooseLevelCodec returns the codec that makes the levels of all of e.chunks
// smallest.
func (e *Encoder) chooseLevelCodec(levels []uint16, maxLevel uint16) levelCodec {
	candidates := []levelCodec{packedLevels{width: levelWidth(maxLevel), scratch: &e.levelBuf}, flatLevels{}}
	if e.opts.Version.finished() {
		candidates = append(candidates, runLevels{})
	}
	var best levelCodec
	bestSize := 0
	for _, c := range candidates {
		total, ok := 0, true
		for _, k := range e.chunks {
			n := c.size(levels[k.entry:k.entryEnd])
			ok = ok && n <= hardLevels // its size is stored in 16 bits
			total += n
		}
		if ok && (best == nil || total < bestSize) {
			best, bestSize = c, total
		}
	}
	return best
}

// flatLevels stores levels as they are.
type flatLevels struct{}

func (flatLevels) describe() *enc21pb.CompressiveEncoding { return describeFlat(16) }

func (flatLevels) size(levels []uint16) int { return 2 * len(levels) }

func (flatLevels) append(dst []byte, levels []uint16) []byte { return appendUint16s(dst, levels) }

func appendUint16s(dst []byte, values []uint16) []byte {
	have := len(dst)
	dst = append(dst, make([]byte, 2*len(values))...)
	for i, v := range values {
		binary.LittleEndian.PutUint16(dst[have+2*i:], v)
	}
	return dst
}

// packedLevels packs blocks of 1024 levels to width bits each. A tail that would
// be no smaller packed stays raw, and a tail that would be as large packed as raw
// has to: readers tell the two apart by the size.
type packedLevels struct {
	width   int
	scratch *[]byte
}

func packedSize(n, width int) int {
	whole, tail := n/1024, n%1024
	return whole*128*width + min(2*tail, 128*width)
}

func (p packedLevels) describe() *enc21pb.CompressiveEncoding {
	return describeOutOfLineBitpacking(16, p.width)
}

func (p packedLevels) size(levels []uint16) int { return packedSize(len(levels), p.width) }

func (p packedLevels) append(dst []byte, levels []uint16) []byte {
	for len(levels) > 0 {
		n := min(len(levels), 1024)
		if 2*n <= 128*p.width && n < 1024 {
			return appendUint16s(dst, levels)
		}
		in := appendUint16s((*p.scratch)[:0], levels[:n])
		for len(in) < 2048 {
			in = append(in, 0)
		}
		have := len(dst)
		dst = append(dst, make([]byte, 128*p.width)...)
		fastlanes.Pack(dst[have:], in, 16, p.width)
		*p.scratch = in
		levels = levels[n:]
	}
	return dst
}

// runLevels stores runs of equal levels: the size of the values as 64 bits, the
// values, and the lengths as bytes.
type runLevels struct{}

func (runLevels) describe() *enc21pb.CompressiveEncoding { return describeRLE(16) }

func (runLevels) size(levels []uint16) int {
	n := 0
	for i := 0; i < len(levels); {
		run := levelRun(levels[i:])
		n += (run + 254) / 255
		i += run
	}
	return 8 + 3*n
}

// levelRun returns how many of the first levels are equal.
func levelRun(levels []uint16) int {
	for i, v := range levels {
		if v != levels[0] {
			return i
		}
	}
	return len(levels)
}

func (r runLevels) append(dst []byte, levels []uint16) []byte {
	n := (r.size(levels) - 8) / 3
	dst = binary.LittleEndian.AppendUint64(dst, uint64(2*n))
	have := len(dst)
	dst = append(dst, make([]byte, 3*n)...)
	values, lengths := dst[have:have+2*n], dst[have+2*n:]
	k := 0
	for i := 0; i < len(levels); {
		run := levelRun(levels[i:])
		for left := run; left > 0; left -= 255 {
			binary.LittleEndian.PutUint16(values[2*k:], levels[i])
			lengths[k] = byte(min(left, 255))
			k++
		}
		i += run
	}
	return dst
}
