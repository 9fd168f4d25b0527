package encoding

import (
	"encoding/binary"
	"math"
	"math/bits"

	enc21pb "github.com/rehome-db/rehome/lance/internal/pb/enc21"
	"github.com/rehome-db/rehome/table"
)

// A sequence is whole numbers of 32 or 64 bits: positions, counts and offsets of format 2.3.
// Some are only a description: none, one number again and again, start, start+step, ...
// Others have bytes: plain or packed numbers, the differences between them, runs, or
// indices of distinct ones. Those made of two parts have the size of the first in front,
// lookups that of the second too. Runs of 64-bit numbers, 7, 7, 7, 9:
//
//	10 00 00 00 00 00 00 00                           the numbers take 16 bytes
//	07 00 00 00 00 00 00 00  09 00 00 00 00 00 00 00
//	03 00 00 00  01 00 00 00

// sequence is whole numbers: start, start+step, ... or those listed.
type sequence struct {
	n           uint64
	start, step uint64
	values      []uint64 // if not nil
}

// from returns the index of the first number from i on that is not less than least.
func (s *sequence) from(i, least uint64) uint64 {
	low, high := i, s.n
	for low < high {
		mid := low + (high-low)/2
		if s.at(mid) < least {
			low = mid + 1
		} else {
			high = mid
		}
	}
	return low
}

func (s *sequence) at(i uint64) uint64 {
	if s.values != nil {
		return s.values[i]
	}
	return s.start + i*s.step
}

// sum adds all numbers up.
func (s *sequence) sum() (uint64, error) {
	total := uint64(0)
	if s.values == nil && s.n > 0 {
		// n*start + step*n*(n-1)/2; at(n-1) is known not to overflow.
		hi, lo := bits.Mul64(s.n, s.start)
		hi2, lo2 := bits.Mul64(s.n-1, s.step)
		hi3, lo3 := bits.Mul64(lo2, s.n)
		if half := lo3 / 2; hi|hi2|hi3 == 0 && lo <= math.MaxUint64-half {
			return lo + half, nil
		}
		return 0, table.Corruptf("encoding: %d numbers from %d on in steps of %d are too large", s.n, s.start, s.step)
	}
	for _, v := range s.values {
		if v > math.MaxUint64-total {
			return 0, table.Corruptf("encoding: the sum of %d numbers is too large", s.n)
		}
		total += v
	}
	return total, nil
}

// sequenceDecoder decodes whole numbers of 32 or 64 bits of which those around it know
// how many there are. Format 2.3 has such sequences for positions, counts, the
// offsets of strings and indices. Some take no bytes at all, only a description.
type sequenceDecoder interface {
	// payload says whether there are bytes to load from.
	payload() bool
	load(n uint64, in []byte) (sequence, error)
}

// compileSequence checks the encoding of a sequence. Those that are made of others
// are not nested in each other.
func compileSequence(e *enc21pb.CompressiveEncoding, width, limit int, inside bool) (sequenceDecoder, error) {
	whole := width == 32 || width == 64
	switch c := e.GetCompression().(type) {
	case *enc21pb.CompressiveEncoding_Constant:
		if c.Constant.Value == nil {
			return noSequence{}, nil
		}
		value := c.Constant.GetValue()
		if !whole || 8*len(value) != width {
			return nil, table.Corruptf("encoding: a constant of %d bytes for numbers of %d bits", len(value), width)
		}
		return arithmetic{width: width, start: loadWord(value, width/8)}, nil
	case *enc21pb.CompressiveEncoding_Range:
		if !whole || c.Range.GetUncompressedBitsPerValue() != uint64(width) || c.Range.GetStep() == 0 {
			return nil, table.Corruptf("encoding: a range of %d bits in steps of %d, want %d bits", c.Range.GetUncompressedBitsPerValue(), c.Range.GetStep(), width)
		}
		return arithmetic{width: width, start: c.Range.GetStart(), step: c.Range.GetStep()}, nil
	}
	if inside {
		switch e.GetCompression().(type) {
		case *enc21pb.CompressiveEncoding_Flat, *enc21pb.CompressiveEncoding_InlineBitpacking, *enc21pb.CompressiveEncoding_OutOfLineBitpacking:
		default:
			return nil, unsupported(e)
		}
	}
	switch c := e.GetCompression().(type) {
	case *enc21pb.CompressiveEncoding_Delta:
		if c.Delta.GetUncompressedBitsPerValue() != uint64(width) {
			return nil, table.Corruptf("encoding: differences of %d bits, want %d", c.Delta.GetUncompressedBitsPerValue(), width)
		}
		deltas, err := compileSequence(c.Delta.GetDeltas(), width, limit, true)
		return &differences{base: c.Delta.GetBase(), width: width, limit: limit, deltas: deltas}, err
	case *enc21pb.CompressiveEncoding_Rle:
		return compileRuns(c.Rle, e, width, limit)
	case *enc21pb.CompressiveEncoding_Dictionary:
		return compileLookups(c.Dictionary, width, limit)
	default:
		d, err := compileFixed(e, width, inBlock, limit, 0)
		if err != nil {
			return nil, err
		}
		if d.buffers() != 1 {
			return nil, unsupported(e)
		}
		return plainSequence{decoder: d, width: width, limit: limit}, nil
	}
}

// sequenceWidth returns the width of the numbers that an encoding gives, 0 if it
// does not say.
func sequenceWidth(e *enc21pb.CompressiveEncoding) int {
	for range maxEncodingDepth {
		switch c := e.GetCompression().(type) {
		case *enc21pb.CompressiveEncoding_Constant:
			return 8 * min(len(c.Constant.GetValue()), 64)
		case *enc21pb.CompressiveEncoding_Range:
			return int(min(c.Range.GetUncompressedBitsPerValue(), 512))
		case *enc21pb.CompressiveEncoding_Delta:
			return int(min(c.Delta.GetUncompressedBitsPerValue(), 512))
		case *enc21pb.CompressiveEncoding_Dictionary:
			e = c.Dictionary.GetItems()
		case *enc21pb.CompressiveEncoding_Rle:
			e = c.Rle.GetValues()
		case *enc21pb.CompressiveEncoding_General:
			e = c.General.GetValues()
		default:
			return int(min(widthOf(e), 512))
		}
	}
	return 0
}

// encodeSequence encodes whole numbers; without bytes if a description will do.
func encodeSequence(values []uint64) (*enc21pb.CompressiveEncoding, []byte) {
	if len(values) == 0 {
		return describeConstant(nil), nil
	}
	ascending, arithmetic := true, true
	largest, step := values[0], uint64(0)
	if len(values) > 1 {
		step = values[1] - values[0]
	}
	for i := 1; i < len(values); i++ {
		ascending = ascending && values[i] >= values[i-1]
		arithmetic = arithmetic && values[i]-values[i-1] == step
		largest = max(largest, values[i])
	}
	switch {
	case arithmetic && step == 0:
		return describeConstant(binary.LittleEndian.AppendUint64(nil, values[0])), nil
	case arithmetic && ascending:
		return &enc21pb.CompressiveEncoding{Compression: &enc21pb.CompressiveEncoding_Range{
			Range: &enc21pb.Range{UncompressedBitsPerValue: 64, Start: values[0], Step: step}}}, nil
	}
	plain, payload := packSequence(values, largest)
	if !ascending {
		return plain, payload
	}
	steps := make([]uint64, len(values)-1)
	largest = 0
	for i := range steps {
		steps[i] = values[i+1] - values[i]
		largest = max(largest, steps[i])
	}
	child, smaller := packSequence(steps, largest)
	if len(smaller) >= len(payload) {
		return plain, payload
	}
	return &enc21pb.CompressiveEncoding{Compression: &enc21pb.CompressiveEncoding_Delta{
		Delta: &enc21pb.Delta{UncompressedBitsPerValue: 64, Base: values[0], Deltas: child}}}, smaller
}

// noSequence is a sequence without numbers.
type noSequence struct{}

func (noSequence) payload() bool { return false }

func (noSequence) load(n uint64, _ []byte) (sequence, error) {
	if n != 0 {
		return sequence{}, table.Corruptf("encoding: %d numbers of which nothing is said", n)
	}
	return sequence{}, nil
}

// arithmetic is start, start+step, and so on; a step of 0 repeats one number.
type arithmetic struct {
	width       int
	start, step uint64
}

func (arithmetic) payload() bool { return false }

func (a arithmetic) load(n uint64, _ []byte) (sequence, error) {
	if n == 0 {
		return sequence{}, table.Corruptf("encoding: no numbers, from %d on", a.start)
	}
	hi, lo := bits.Mul64(n-1, a.step)
	if last := lo + a.start; hi != 0 || last < lo || a.width < 64 && last>>a.width != 0 {
		return sequence{}, table.Corruptf("encoding: %d numbers from %d on in steps of %d are more than %d bits", n, a.start, a.step, a.width)
	}
	return sequence{n: n, start: a.start, step: a.step}, nil
}

// plainSequence is numbers in block form.
type plainSequence struct {
	decoder fixedDecoder
	width   int
	limit   int
}

func (plainSequence) payload() bool { return true }

func (p plainSequence) load(n uint64, in []byte) (sequence, error) {
	if n > uint64(p.limit)/8 {
		return sequence{}, table.Corruptf("encoding: %d numbers in %d bytes", n, len(in))
	}
	words, err := p.decoder.decode(nil, int(n), [][]byte{in})
	if err != nil {
		return sequence{}, err
	}
	out := sequence{n: n, values: make([]uint64, n)}
	w := p.width / 8
	for i := range out.values {
		out.values[i] = loadWord(words[i*w:], w)
	}
	return out, nil
}

// differences is the first number and what each is more than the one before.
type differences struct {
	base         uint64
	width, limit int
	deltas       sequenceDecoder
}

func (d *differences) payload() bool { return d.deltas.payload() }

func (d *differences) load(n uint64, in []byte) (sequence, error) {
	if n < 2 || n > uint64(d.limit)/8 {
		return sequence{}, table.Corruptf("encoding: differences of %d numbers", n)
	}
	deltas, err := d.deltas.load(n-1, in)
	if err != nil {
		return sequence{}, err
	}
	largest := uint64(math.MaxUint64)
	if d.width == 32 {
		largest = math.MaxUint32
	}
	out := sequence{n: n, values: make([]uint64, n)}
	v := d.base
	for i := uint64(0); ; i++ {
		if v > largest {
			return sequence{}, table.Corruptf("encoding: number %d of a sequence is more than %d bits", i, d.width)
		}
		out.values[i] = v
		if i == n-1 {
			return out, nil
		}
		step := deltas.at(i)
		if step > largest-v {
			return sequence{}, table.Corruptf("encoding: number %d of a sequence is more than %d bits", i+1, d.width)
		}
		v += step
	}
}

// lookups is indices and what they stand for: the sizes of both, then both.
type lookups struct {
	indices, items sequenceDecoder
	count          uint64
	limit          int
}

func (d *lookups) payload() bool { return d.indices.payload() || d.items.payload() }

func (d *lookups) load(n uint64, in []byte) (sequence, error) {
	if n > uint64(d.limit)/8 {
		return sequence{}, table.Corruptf("encoding: %d numbers of a dictionary", n)
	}
	parts, err := framed(in, 2, d.indices.payload(), d.items.payload())
	if err != nil {
		return sequence{}, err
	}
	indices, err := d.indices.load(n, parts[0])
	if err != nil {
		return sequence{}, err
	}
	items, err := d.items.load(d.count, parts[1])
	if err != nil {
		return sequence{}, err
	}
	out := sequence{n: n, values: make([]uint64, n)}
	for i := range out.values {
		at := indices.at(uint64(i))
		if at >= d.count {
			return sequence{}, table.Corruptf("encoding: index %d into a dictionary of %d numbers", at, d.count)
		}
		out.values[i] = items.at(at)
	}
	return out, nil
}

func compileLookups(c *enc21pb.Dictionary, width, limit int) (*lookups, error) {
	d := &lookups{count: uint64(c.GetNumDictionaryItems()), limit: limit}
	if d.count == 0 || d.count > uint64(limit)/8 {
		return nil, table.Corruptf("encoding: a dictionary of %d numbers", d.count)
	}
	var err error
	if d.indices, err = compileSequence(c.GetIndices(), 32, limit, true); err != nil {
		return nil, err
	}
	d.items, err = compileSequence(c.GetItems(), width, limit, true)
	return d, err
}

// framed takes two parts apart that stand behind the sizes of the first, or of both.
// If neither part has bytes there is nothing at all.
func framed(in []byte, sizes int, has ...bool) (parts [2][]byte, err error) {
	if !has[0] && !has[1] {
		return parts, nil
	}
	if len(in) < 8*sizes {
		return parts, table.Corruptf("encoding: %d bytes of two parts", len(in))
	}
	first, rest := binary.LittleEndian.Uint64(in), in[8*sizes:]
	if first > uint64(len(rest)) || sizes == 2 && binary.LittleEndian.Uint64(in[8:]) != uint64(len(rest))-first {
		return parts, table.Corruptf("encoding: the first of two parts takes %d of %d bytes", first, len(rest))
	}
	parts[0], parts[1] = rest[:first], rest[first:]
	for i := range parts {
		if !has[i] && len(parts[i]) > 0 {
			return parts, table.Corruptf("encoding: %d bytes of a part that has none", len(parts[i]))
		}
	}
	return parts, nil
}
