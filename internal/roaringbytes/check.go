package roaringbytes

import (
	"encoding/binary"
	"fmt"
	"math/bits"
)

const (
	cookieNoRuns = 12346
	cookieRuns   = 12347
	// With runs and fewer containers than this there is no offset header.
	offsetsFrom = 4

	blockValues   = 1 << 16 // values a container spans
	arrayMax      = 4096    // most values of an array container
	bitmapBytes   = 8192
	maxContainers = 1 << 16
)

// Shape describes a serialized bitmap.
type Shape struct {
	// Size is the number of bytes that the bitmap takes.
	Size int
	// Containers is the number of containers.
	Containers int
	// Cardinality is the number of values.
	Cardinality uint64
	// Max is the largest value; 0 also if there is none. Only Check sets it.
	Max uint32
}

// Kind is the form of a container.
type Kind uint8

// The kinds of container; see the package's documentation for their bytes.
const (
	Array Kind = iota
	Bitmap
	Run
)

// container is one container's place in the bytes.
type container struct {
	kind Kind
	base uint32 // the block's first value
	card int
	body []byte // without a run container's count
}

// cursor walks the containers of a serialized bitmap.
type cursor struct {
	data    []byte
	n       int    // containers
	i       int    // the next one
	runs    []byte // is-run bits, nil if the form has none
	desc    []byte // (key, cardinality-1) pairs
	offsets []byte // nil if the form has none
	pos     int    // where the next container's body begins
	prevKey int
}

func newCursor(data []byte) (cursor, error) {
	c := cursor{data: data, prevKey: -1}
	if len(data) < 4 {
		return c, fmt.Errorf("%d bytes are too few for a Roaring bitmap", len(data))
	}
	cookie := binary.LittleEndian.Uint32(data)
	pos := 4
	switch {
	case cookie&0xffff == cookieRuns:
		c.n = int(cookie>>16) + 1
		flags := (c.n + 7) / 8
		if len(data)-pos < flags {
			return c, fmt.Errorf("%d bytes end inside the run flags of %d containers", len(data), c.n)
		}
		c.runs = data[pos : pos+flags]
		pos += flags
	case cookie == cookieNoRuns:
		if len(data) < 8 {
			return c, fmt.Errorf("%d bytes end before the container count", len(data))
		}
		n := binary.LittleEndian.Uint32(data[pos:])
		if n > maxContainers {
			return c, fmt.Errorf("%d containers, where %d are possible", n, maxContainers)
		}
		c.n = int(n)
		pos += 4
	default:
		return c, fmt.Errorf("cookie %#x is not that of a Roaring bitmap", cookie)
	}
	if len(data)-pos < 4*c.n {
		return c, fmt.Errorf("%d bytes end inside the header of %d containers", len(data), c.n)
	}
	c.desc = data[pos : pos+4*c.n]
	pos += 4 * c.n
	if c.runs == nil || c.n >= offsetsFrom {
		if len(data)-pos < 4*c.n {
			return c, fmt.Errorf("%d bytes end inside the offsets of %d containers", len(data), c.n)
		}
		c.offsets = data[pos : pos+4*c.n]
		pos += 4 * c.n
	}
	c.pos = pos
	return c, nil
}

// next returns the next container, having checked that it lies within the bytes,
// in order and where the offset header says.
func (c *cursor) next() (container, error) {
	i := c.i
	key := int(binary.LittleEndian.Uint16(c.desc[4*i:]))
	out := container{base: uint32(key) << 16, card: int(binary.LittleEndian.Uint16(c.desc[4*i+2:])) + 1}
	if key <= c.prevKey {
		return out, fmt.Errorf("container %d has key %d after key %d", i, key, c.prevKey)
	}
	if c.offsets != nil {
		if at := binary.LittleEndian.Uint32(c.offsets[4*i:]); uint64(at) != uint64(c.pos) {
			return out, fmt.Errorf("container %d begins at byte %d, its offset says %d", i, c.pos, at)
		}
	}
	var size int
	switch {
	case c.runs != nil && c.runs[i/8]&(1<<(i%8)) != 0:
		out.kind = Run
		if len(c.data)-c.pos < 2 {
			return out, fmt.Errorf("container %d is cut off before its run count", i)
		}
		n := int(binary.LittleEndian.Uint16(c.data[c.pos:]))
		if n == 0 {
			return out, fmt.Errorf("container %d has no run", i)
		}
		size = 4 * n
		c.pos += 2
	case out.card > arrayMax:
		out.kind = Bitmap
		size = bitmapBytes
	default:
		out.kind = Array
		size = 2 * out.card
	}
	if len(c.data)-c.pos < size {
		return out, fmt.Errorf("container %d needs %d bytes at byte %d of %d", i, size, c.pos, len(c.data))
	}
	out.body = c.data[c.pos : c.pos+size]
	c.pos += size
	c.prevKey = key
	c.i++
	return out, nil
}

// Measure reads the headers of the bitmap at the start of data, which may go on
// after it. It takes time in the number of containers; what is in them stays
// unread, so cardinalities are only what the headers claim.
func Measure(data []byte) (Shape, error) { return scan(data, false) }

// Check is Measure and reads everything: each container must be sorted, without
// duplicates, within its block, and as large as its header says. Bytes that pass
// mean the same set to every conforming reader.
func Check(data []byte) (Shape, error) { return scan(data, true) }

func scan(data []byte, contents bool) (Shape, error) {
	c, err := newCursor(data)
	if err != nil {
		return Shape{}, err
	}
	s := Shape{Containers: c.n}
	for c.i < c.n {
		k, err := c.next()
		if err != nil {
			return Shape{}, err
		}
		if contents {
			last, err := k.check()
			if err != nil {
				return Shape{}, fmt.Errorf("container %d: %w", c.i-1, err)
			}
			s.Max = k.base + uint32(last)
		}
		s.Cardinality += uint64(k.card)
	}
	s.Size = c.pos
	return s, nil
}

// check reads the container and returns its largest value within the block.
func (k container) check() (last uint16, err error) {
	switch k.kind {
	case Array:
		last = binary.LittleEndian.Uint16(k.body)
		for i := 2; i < len(k.body); i += 2 {
			v := binary.LittleEndian.Uint16(k.body[i:])
			if v <= last {
				return 0, fmt.Errorf("value %d follows %d in an array", v, last)
			}
			last = v
		}
		return last, nil
	case Bitmap:
		n, top := 0, 0
		for i := 0; i < bitmapBytes; i += 8 {
			if w := binary.LittleEndian.Uint64(k.body[i:]); w != 0 {
				n += bits.OnesCount64(w)
				top = i*8 + 63 - bits.LeadingZeros64(w)
			}
		}
		if n != k.card {
			return 0, fmt.Errorf("%d bits are set, the header says %d", n, k.card)
		}
		return uint16(top), nil
	default:
		n, end := 0, -2 // end is the last value of the run before
		for i := 0; i < len(k.body); i += 4 {
			start := int(binary.LittleEndian.Uint16(k.body[i:]))
			length := int(binary.LittleEndian.Uint16(k.body[i+2:]))
			// Touching runs are refused with overlapping ones: no writer makes
			// them and the library's operations rely on their absence.
			if start <= end+1 {
				return 0, fmt.Errorf("a run at %d follows one that ends at %d", start, end)
			}
			end = start + length
			if end >= blockValues {
				return 0, fmt.Errorf("a run at %d of %d values leaves its block", start, length+1)
			}
			n += length + 1
		}
		if n != k.card {
			return 0, fmt.Errorf("the runs hold %d values, the header says %d", n, k.card)
		}
		return uint16(end), nil
	}
}
