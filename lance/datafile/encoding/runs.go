package encoding

import (
	"encoding/binary"

	enc21pb "github.com/rehome-db/rehome/lance/internal/pb/enc21"
	"github.com/rehome-db/rehome/table"
)

// Runs are values that follow one upon the other, and how often each is repeated. The
// int32 7, 7, 7, 9 are two buffers in a chunk:
//
//	07 00 00 00  09 00 00 00  the values
//	03 01                     the lengths
//
// In a block they are one buffer, in which the size of the values comes first, 64 bits.
// The levels 0, 0, 0, 1:
//
//	04 00 00 00 00 00 00 00   the values take 4 bytes
//	00 00  01 00              the values
//	03 01                     the lengths
//
// Lengths may be wider, and values and lengths may be packed or compressed each for itself;
// both are read and not written. Sequences have runs of their own ([runs]), in the frame of
// the block.

const (
	// maxRun is the longest run that writers store: its length is a byte. Longer ones are
	// stored as several.
	maxRun = 255
	// runChunkSlots is lower than maxChunkSlots because Lance up to 8 misread
	// run-length chunks of 4096 values.
	runChunkSlots = 2048
	// maxRunPercent is what runs may take of the bytes of the next best encoding. They are
	// the slowest to read, one value at a time, and a tenth is the least that is worth it.
	maxRunPercent = 90
)

// moreRuns is how many runs n values have besides those that their changes make: each
// maxRun values and each chunk begins a new one.
func moreRuns(n int) int { return n/maxRun + n/runChunkSlots }

func describeRLE(bits int) *enc21pb.CompressiveEncoding {
	return &enc21pb.CompressiveEncoding{Compression: &enc21pb.CompressiveEncoding_Rle{
		Rle: &enc21pb.Rle{Values: describeFlat(bits), RunLengths: describeFlat(8)}}}
}

func compileRLE(c *enc21pb.Rle, e *enc21pb.CompressiveEncoding, bits int, f form, limit int) (*rleDecoder, error) {
	runBits := widthOf(c.GetRunLengths())
	if runBits != 8 && runBits != 16 && runBits != 32 {
		return nil, unsupported(e)
	}
	if bits != 8 && bits != 16 && bits != 32 && bits != 64 {
		return nil, unsupported(e)
	}
	d := &rleDecoder{form: f, width: bits / 8, runWidth: int(runBits) / 8, limit: limit}
	var err error
	if d.values, err = compileRLEChild(c.GetValues(), e, bits, limit); err != nil {
		return nil, err
	}
	if d.runs, err = compileRLEChild(c.GetRunLengths(), e, int(runBits), limit); err != nil {
		return nil, err
	}
	if d.values.counted && d.runs.counted {
		// Neither says how many runs there are.
		return nil, unsupported(e)
	}
	return d, nil
}

// rleDecoder repeats each value as often as the length at the same place says.
// In a chunk values and lengths are two buffers; in a block they are one, in
// which a 64-bit size says where the lengths begin.
type rleDecoder struct {
	form            form
	width, runWidth int // bytes
	limit           int
	values, runs    rleChild
}

func (d *rleDecoder) buffers() int {
	if d.form == inChunk {
		return 2
	}
	return 1
}

func (d *rleDecoder) decode(dst []byte, n int, bufs [][]byte) ([]byte, error) {
	need, err := bytesFor(n, 8*d.width, d.limit)
	if err != nil {
		return dst, err
	}
	values, runs, err := d.children(bufs)
	if err != nil {
		return dst, err
	}
	have, left := len(dst), n
	dst = extend(grow(dst, need), need)
	out := dst[have:]
	for i := 0; left > 0; i++ {
		if (i+1)*d.width > len(values) || (i+1)*d.runWidth > len(runs) {
			return dst[:have], table.Corruptf("encoding: runs end %d values short of %d", left, n)
		}
		length := int(loadWord(runs[i*d.runWidth:], d.runWidth))
		if length == 0 || length > left && d.form == inBlock {
			return dst[:have], table.Corruptf("encoding: a run of %d values where %d are left", length, left)
		}
		// Some writers let the last run of a chunk reach into the next.
		length = min(length, left)
		repeat(out, values[i*d.width:], d.width, length)
		out = out[length*d.width:]
		left -= length
	}
	return dst, nil
}

func (d *rleDecoder) children(bufs [][]byte) (values, runs []byte, err error) {
	if d.form == inBlock {
		in := bufs[0]
		if len(in) < 8 {
			return nil, nil, table.Corruptf("encoding: runs in %d bytes", len(in))
		}
		size := binary.LittleEndian.Uint64(in)
		if in = in[8:]; size > uint64(len(in)) {
			return nil, nil, table.Corruptf("encoding: the values of runs take %d of %d bytes", size, len(in))
		}
		values, runs = in[:size], in[size:]
	} else {
		values, runs = bufs[0], bufs[1]
	}
	if d.values.counted {
		if runs, err = d.runs.decode(runs, 0); err != nil {
			return nil, nil, err
		}
		values, err = d.values.decode(values, len(runs)/d.runWidth)
		return values, runs, err
	}
	if values, err = d.values.decode(values, 0); err != nil {
		return nil, nil, err
	}
	runs, err = d.runs.decode(runs, len(values)/d.width)
	return values, runs, err
}

// rleChild decodes a buffer whose number of values is known only by its size, or
// (counted) by the other child's.
type rleChild struct {
	decoder fixedDecoder // nil if the bytes are the values
	counted bool
	general *general
	out     []byte
}

func (c *rleChild) decode(in []byte, count int) ([]byte, error) {
	if c.general != nil {
		bufs, err := c.general.expand([][]byte{in})
		if err != nil {
			return nil, err
		}
		in = bufs[0]
	}
	if c.decoder == nil {
		return in, nil
	}
	var err error
	c.out, err = c.decoder.decode(c.out[:0], count, [][]byte{in})
	return c.out, err
}

func compileRLEChild(c, rle *enc21pb.CompressiveEncoding, bits, limit int) (rleChild, error) {
	var out rleChild
	if g, ok := c.GetCompression().(*enc21pb.CompressiveEncoding_General); ok {
		if err := checkScheme(g.General.GetCompression()); err != nil {
			return out, err
		}
		out.general = &general{scheme: g.General.GetCompression().GetScheme(), limit: limit}
		c = g.General.GetValues()
	}
	switch c := c.GetCompression().(type) {
	case *enc21pb.CompressiveEncoding_Flat:
		return out, flatWidth(c.Flat, bits)
	case *enc21pb.CompressiveEncoding_OutOfLineBitpacking:
		d, err := compileOutOfLine(c.OutOfLineBitpacking, rle, bits)
		out.decoder, out.counted = d, true
		return out, err
	default:
		return out, unsupported(rle)
	}
}

// repeat writes the first value of src, width bytes long, n times.
func repeat(dst, src []byte, width, n int) {
	switch width {
	case 1:
		dst = dst[:n]
		for i := range dst {
			dst[i] = src[0]
		}
	case 2:
		v := binary.LittleEndian.Uint16(src)
		for i := range n {
			binary.LittleEndian.PutUint16(dst[2*i:], v)
		}
	case 4:
		v := binary.LittleEndian.Uint32(src)
		for i := range n {
			binary.LittleEndian.PutUint32(dst[4*i:], v)
		}
	default:
		v := binary.LittleEndian.Uint64(src)
		for i := range n {
			binary.LittleEndian.PutUint64(dst[8*i:], v)
		}
	}
}

// rleEncoder stores each run of equal values once, with its length as a byte.
type rleEncoder struct {
	data []byte
	bits int
}

func (c *rleEncoder) describe() (*enc21pb.CompressiveEncoding, int) { return describeRLE(c.bits), 2 }

func (c *rleEncoder) limits() (int, int) { return runChunkSlots, fixedChunkBytes }

func (c *rleEncoder) values(from, to int) []byte { return c.data[from*c.bits/8 : to*c.bits/8] }

func (c *rleEncoder) size(from, to int) int {
	w := c.bits / 8
	return runEntries(c.values(from, to), w) * (w + 1)
}

func (c *rleEncoder) append(dst []byte, sizes []int, from, to int) ([]byte, []int) {
	w := c.bits / 8
	values := c.values(from, to)
	start := len(dst)
	var lengths [runChunkSlots]byte
	n := 0
	for i := 0; i < len(values); {
		run := valueRun(values[i:], w)
		for left := run; left > 0; left -= maxRun {
			dst = append(dst, values[i:i+w]...)
			lengths[n] = byte(min(left, maxRun))
			n++
		}
		i += run * w
	}
	sizes = append(sizes, len(dst)-start, n)
	dst = padTo(dst, alignment, chunkPad)
	dst = append(dst, lengths[:n]...)
	return padTo(dst, alignment, chunkPad), sizes
}

// runEntries returns how many runs of at most maxRun values data has.
func runEntries(data []byte, width int) int {
	n := 0
	for len(data) > 0 {
		run := valueRun(data, width)
		n += (run + maxRun - 1) / maxRun
		data = data[run*width:]
	}
	return n
}

// countRuns returns how many runs data has, or some number above limit if they
// are more than that: most columns have no runs, and that shows early.
func countRuns(data []byte, width, limit int) int {
	const step = 1024 // values between two looks at the limit
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

// rleLevels stores runs of equal levels: the size of the values as 64 bits, the
// values, and the lengths as bytes.
type rleLevels struct{}

func (rleLevels) describe() *enc21pb.CompressiveEncoding { return describeRLE(16) }

func (rleLevels) size(levels []uint16) int {
	n := 0
	for i := 0; i < len(levels); {
		run := levelRun(levels[i:])
		n += (run + maxRun - 1) / maxRun
		i += run
	}
	return 8 + 3*n
}

func (r rleLevels) append(dst []byte, levels []uint16) []byte {
	n := (r.size(levels) - 8) / 3
	dst = binary.LittleEndian.AppendUint64(dst, uint64(2*n))
	have := len(dst)
	dst = append(dst, make([]byte, 3*n)...)
	values, lengths := dst[have:have+2*n], dst[have+2*n:]
	k := 0
	for i := 0; i < len(levels); {
		run := levelRun(levels[i:])
		for left := run; left > 0; left -= maxRun {
			binary.LittleEndian.PutUint16(values[2*k:], levels[i])
			lengths[k] = byte(min(left, maxRun))
			k++
		}
		i += run
	}
	return dst
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

// runs is numbers, and how often each is repeated: the size of the first part, then
// both.
type runs struct {
	values, lengths sequenceDecoder
	width, limit    int
	// counts says how many runs n numbers are, given the bytes of both parts.
	count func(n uint64, values, lengths []byte) (uint64, error)
}

func compileRuns(c *enc21pb.Rle, e *enc21pb.CompressiveEncoding, width, limit int) (*runs, error) {
	r := &runs{width: width, limit: limit}
	var err error
	if r.values, err = compileSequence(c.GetValues(), width, limit, true); err != nil {
		return nil, err
	}
	if r.lengths, err = compileSequence(c.GetRunLengths(), 32, limit, true); err != nil {
		return nil, err
	}
	_, flatValues := c.GetValues().GetCompression().(*enc21pb.CompressiveEncoding_Flat)
	_, flatLengths := c.GetRunLengths().GetCompression().(*enc21pb.CompressiveEncoding_Flat)
	a, arithmeticLengths := r.lengths.(arithmetic)
	switch {
	case arithmeticLengths:
		r.count = func(n uint64, _, _ []byte) (uint64, error) { return a.runs(n) }
	case flatValues:
		r.count = func(_ uint64, values, _ []byte) (uint64, error) { return uint64(len(values)) / uint64(width/8), nil }
	case flatLengths:
		r.count = func(_ uint64, _, lengths []byte) (uint64, error) { return uint64(len(lengths)) / 4, nil }
	default:
		return nil, unsupported(e) // nothing says how many runs there are
	}
	return r, nil
}

func (r *runs) payload() bool { return r.values.payload() || r.lengths.payload() }

func (r *runs) load(n uint64, in []byte) (sequence, error) {
	if n == 0 || n > uint64(r.limit)/8 {
		return sequence{}, table.Corruptf("encoding: runs of %d numbers", n)
	}
	parts, err := framed(in, 1, r.values.payload(), r.lengths.payload())
	if err != nil {
		return sequence{}, err
	}
	count, err := r.count(n, parts[0], parts[1])
	if err != nil {
		return sequence{}, err
	}
	if count == 0 || count > n {
		return sequence{}, table.Corruptf("encoding: %d runs of %d numbers", count, n)
	}
	values, err := r.values.load(count, parts[0])
	if err != nil {
		return sequence{}, err
	}
	lengths, err := r.lengths.load(count, parts[1])
	if err != nil {
		return sequence{}, err
	}
	out := sequence{n: n, values: make([]uint64, 0, n)}
	for i := range count {
		length := lengths.at(i)
		if length == 0 || length > n-uint64(len(out.values)) {
			return sequence{}, table.Corruptf("encoding: a run of %d where %d numbers are left", length, n-uint64(len(out.values)))
		}
		for range length {
			out.values = append(out.values, values.at(i))
		}
	}
	if uint64(len(out.values)) != n {
		return sequence{}, table.Corruptf("encoding: runs of %d numbers, want %d", len(out.values), n)
	}
	return out, nil
}

// runs returns how many of the numbers, from the first on, have the sum n.
func (a arithmetic) runs(n uint64) (uint64, error) {
	if a.start == 0 {
		return 0, table.Corruptf("encoding: a run of no numbers")
	}
	if a.step == 0 {
		if n%a.start != 0 {
			return 0, table.Corruptf("encoding: runs of %d in %d numbers", a.start, n)
		}
		return n / a.start, nil
	}
	count := uint64(0)
	for length := a.start; n > 0; length += a.step {
		if length > n {
			return 0, table.Corruptf("encoding: a run of %d where %d numbers are left", length, n)
		}
		n -= length
		count++
	}
	return count, nil
}
