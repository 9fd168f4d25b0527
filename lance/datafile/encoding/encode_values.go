package encoding

import (
	"encoding/binary"

	"github.com/rehome-db/rehome/lance/datafile/fastlanes"
	"github.com/rehome-db/rehome/lance/datafile/level"
	enc21pb "github.com/rehome-db/rehome/lance/internal/pb/enc21"
)

const (
	// fixedChunkBytes and stringChunkBytes are what chunks of fixed-width values
	// and of strings are kept below: reading one row decodes a chunk.
	fixedChunkBytes  = 8*1024 - 6
	stringChunkBytes = 4 * 1024
	// runChunkSlots is lower than maxChunkSlots because Lance up to 8 misread
	// run-length chunks of 4096 values.
	runChunkSlots = 2048

	// Strings are worth a symbol table from these sizes on.
	minSymbolBytes = 32 * 1024
	minSymbolWidth = 5
	// A symbol table costs 2312 bytes and time: it has to save this much.
	maxSymbolRatio = 0.95
)

// chooseCodec returns the codec that makes the values of b smallest.
func (e *Encoder) chooseCodec(b *level.Block) (valueCodec, error) {
	v := &b.Values
	switch b.Type.Kind {
	case level.Variable:
		return e.wrap(e.stringCodec(b)), nil
	case level.FixedList:
		levels, err := e.listLevels(b)
		if err != nil {
			return nil, err
		}
		return e.wrap(&fixedListCodec{levels: levels, typ: b.Type, data: v.Data, valid: v.ItemValid}), nil
	default:
		return e.wrap(e.fixedCodec(v.Data, v.N, b.Type.Bits)), nil
	}
}

// fixedCodec chooses between storing values as they are, packing them to the bits
// that each 1024 need, and storing runs.
func (e *Encoder) fixedCodec(data []byte, n, bits int) valueCodec {
	flat := &flatCodec{data: data, bits: bits}
	if bits != 8 && bits != 16 && bits != 32 && bits != 64 || e.opts.Compression == "none" {
		return flat
	}
	w := bits / 8
	data = data[:n*w]
	packed := 0
	for at := 0; at < len(data); at += 1024 * w {
		packed += w + 128*fastlanes.Width(data[at:min(at+1024*w, len(data))], bits)
	}
	// Runs are the slowest to read and have to be worth it.
	limit := min(packed, len(data)) * 9 / 10 / (w + 1)
	if most := e.opts.RunThreshold; most > 0 {
		limit = min(limit, int(float64(n)*most))
	}
	if e.opts.SplitBytes && (bits == 32 || bits == 64) && (e.opts.Compression == "lz4" || e.opts.Compression == "zstd") {
		return &splitCodec{flatCodec{data: data, bits: bits}}
	}
	switch {
	case countRuns(data, w, limit)+n/255+n/runChunkSlots < limit:
		return &runCodec{data: data, bits: bits}
	case packed < len(data):
		return &bitpackCodec{data: data, bits: bits, scratch: &e.scratch}
	default:
		return flat
	}
}

// flatCodec stores values as they are.
type flatCodec struct {
	data []byte
	bits int
}

func (c *flatCodec) describe() (*enc21pb.CompressiveEncoding, int) { return describeFlat(c.bits), 1 }

func (c *flatCodec) limits() (int, int) { return maxChunkSlots, fixedChunkBytes }

func (c *flatCodec) size(from, to int) int { return ((to-from)*c.bits + 7) / 8 }

func (c *flatCodec) append(dst []byte, sizes []int, from, to int) ([]byte, []int) {
	dst = appendBitRange(dst, c.data, from*c.bits, to*c.bits)
	return padTo(dst, alignment, chunkPad), append(sizes, c.size(from, to))
}

// splitCodec stores byte 0 of all values of a chunk, then byte 1 of all, and so on.
type splitCodec struct{ flatCodec }

func (c *splitCodec) describe() (*enc21pb.CompressiveEncoding, int) {
	return describeByteStreamSplit(c.bits), 1
}

func (c *splitCodec) append(dst []byte, sizes []int, from, to int) ([]byte, []int) {
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

// appendBitRange appends the bits [from, to) of src, which begin a new byte of
// dst.
func appendBitRange(dst, src []byte, from, to int) []byte {
	if from%8 == 0 && to%8 == 0 {
		return append(dst, src[from/8:to/8]...)
	}
	return level.AppendBits(dst, 8*len(dst), src, from, to-from)
}

// bitpackCodec packs 1024 values to the bits that the largest of them needs.
type bitpackCodec struct {
	data    []byte
	bits    int
	scratch *[]byte
}

func (c *bitpackCodec) describe() (*enc21pb.CompressiveEncoding, int) {
	return describeInlineBitpacking(c.bits), 1
}

// A chunk of wide 64-bit values takes 8 KiB and a little.
func (c *bitpackCodec) limits() (int, int) { return 1024, 2 * fixedChunkBytes }

func (c *bitpackCodec) values(from, to int) []byte { return c.data[from*c.bits/8 : to*c.bits/8] }

func (c *bitpackCodec) size(from, to int) int {
	return c.bits/8 + 128*fastlanes.Width(c.values(from, to), c.bits)
}

func (c *bitpackCodec) append(dst []byte, sizes []int, from, to int) ([]byte, []int) {
	in := c.values(from, to)
	width := fastlanes.Width(in, c.bits)
	if to-from < 1024 {
		*c.scratch = append((*c.scratch)[:0], in...)
		*c.scratch = append(*c.scratch, make([]byte, 1024*c.bits/8-len(in))...)
		in = *c.scratch
	}
	var header [8]byte
	binary.LittleEndian.PutUint64(header[:], uint64(width))
	dst = append(dst, header[:c.bits/8]...)
	have := len(dst)
	dst = append(dst, make([]byte, 128*width)...)
	fastlanes.Pack(dst[have:], in, c.bits, width)
	return padTo(dst, alignment, chunkPad), append(sizes, c.bits/8+128*width)
}

// runCodec stores each run of equal values once, with its length as a byte.
type runCodec struct {
	data []byte
	bits int
}

func (c *runCodec) describe() (*enc21pb.CompressiveEncoding, int) { return describeRLE(c.bits), 2 }

func (c *runCodec) limits() (int, int) { return runChunkSlots, fixedChunkBytes }

func (c *runCodec) values(from, to int) []byte { return c.data[from*c.bits/8 : to*c.bits/8] }

func (c *runCodec) size(from, to int) int {
	w := c.bits / 8
	return runEntries(c.values(from, to), w) * (w + 1)
}

func (c *runCodec) append(dst []byte, sizes []int, from, to int) ([]byte, []int) {
	w := c.bits / 8
	values := c.values(from, to)
	start := len(dst)
	var lengths [runChunkSlots]byte
	n := 0
	for i := 0; i < len(values); {
		run := valueRun(values[i:], w)
		for left := run; left > 0; left -= 255 {
			dst = append(dst, values[i:i+w]...)
			lengths[n] = byte(min(left, 255))
			n++
		}
		i += run * w
	}
	sizes = append(sizes, len(dst)-start, n)
	dst = padTo(dst, alignment, chunkPad)
	dst = append(dst, lengths[:n]...)
	return padTo(dst, alignment, chunkPad), sizes
}

// runEntries returns how many runs of at most 255 values data has.
func runEntries(data []byte, width int) int {
	n := 0
	for len(data) > 0 {
		run := valueRun(data, width)
		n += (run + 254) / 255
		data = data[run*width:]
	}
	return n
}

// countRuns returns how many runs data has, or some number above limit if they
// are more than that: most columns have no runs, and that shows early.
func countRuns(data []byte, width, limit int) int {
	const step = 1024
	runs := 1
	for at := width; at < len(data) && runs <= limit; at += step * width {
		// Each value against the one before it.
		part := data[at-width : min(at+step*width, len(data))]
		switch width {
		case 1:
			for i := 1; i < len(part); i++ {
				if part[i] != part[i-1] {
					runs++
				}
			}
		case 2:
			prev := binary.LittleEndian.Uint16(part)
			for i := 2; i+2 <= len(part); i += 2 {
				v := binary.LittleEndian.Uint16(part[i:])
				if v != prev {
					runs++
				}
				prev = v
			}
		case 4:
			prev := binary.LittleEndian.Uint32(part)
			for i := 4; i+4 <= len(part); i += 4 {
				v := binary.LittleEndian.Uint32(part[i:])
				if v != prev {
					runs++
				}
				prev = v
			}
		default:
			prev := binary.LittleEndian.Uint64(part)
			for i := 8; i+8 <= len(part); i += 8 {
				v := binary.LittleEndian.Uint64(part[i:])
				if v != prev {
					runs++
				}
				prev = v
			}
		}
	}
	return runs
}

// valueRun returns how many of the first values, of 1, 2, 4 or 8 bytes, are equal.
func valueRun(b []byte, width int) int {
	n := 1
	switch width {
	case 1:
		for first := b[0]; n < len(b) && b[n] == first; n++ {
		}
	case 2:
		first := binary.LittleEndian.Uint16(b)
		for ; 2*n+2 <= len(b) && binary.LittleEndian.Uint16(b[2*n:]) == first; n++ {
		}
	case 4:
		first := binary.LittleEndian.Uint32(b)
		for ; 4*n+4 <= len(b) && binary.LittleEndian.Uint32(b[4*n:]) == first; n++ {
		}
	default:
		first := binary.LittleEndian.Uint64(b)
		for ; 8*n+8 <= len(b) && binary.LittleEndian.Uint64(b[8*n:]) == first; n++ {
		}
	}
	return n
}
