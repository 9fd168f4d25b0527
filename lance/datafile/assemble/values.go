package assemble

import (
	"encoding/binary"
	"math"

	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/rehome-db/rehome/lance/datafile/level"
	"github.com/rehome-db/rehome/table"
)

// growing is an Arrow buffer that is appended to.
type growing struct {
	mem memory.Allocator
	buf *memory.Buffer
	n   int
}

// extend makes the buffer n bytes longer and returns the new bytes.
func (g *growing) extend(n int) []byte {
	if g.buf == nil {
		g.buf = memory.NewResizableBuffer(g.mem)
	}
	if need := g.n + n; need > g.buf.Cap() {
		g.buf.Reserve(max(need, 2*g.buf.Cap()))
	}
	g.n += n
	g.buf.ResizeNoShrink(g.n)
	return g.buf.Bytes()[g.n-n:]
}

func (g *growing) append(b []byte) { copy(g.extend(len(b)), b) }

// take returns the buffer, which the caller releases, and begins a new one.
func (g *growing) take() *memory.Buffer {
	g.extend(0)
	out := g.buf
	g.buf, g.n = nil, 0
	return out
}

// bytes returns what was appended so far, valid until the next append.
func (g *growing) bytes() []byte {
	if g.buf == nil {
		return nil
	}
	return g.buf.Bytes()[:g.n]
}

func (g *growing) release() {
	if g.buf != nil {
		g.buf.Release()
	}
	g.buf, g.n = nil, 0
}

// values gathers the value slots of a leaf in the form of Arrow's buffers.
type values struct {
	typ     level.Type
	n       int
	data    growing
	offsets growing
	bits    []byte // of booleans
	items   []byte // validity of list items; nil if all are valid
}

func newValues(mem memory.Allocator, t level.Type) values {
	return values{typ: t, data: growing{mem: mem}, offsets: growing{mem: mem}}
}

// reset empties v for the next batch, of about rows values.
func (v *values) reset() {
	v.n, v.bits, v.items = 0, v.bits[:0], nil
	v.data.release()
	v.offsets.release()
}

// offsetsAs64 returns a function that returns offset i of strings.
func (v *values) offsetsAs64() func(i int) uint64 {
	b := v.offsets.bytes()
	if v.typ.Bits == 32 {
		return func(i int) uint64 { return uint64(binary.LittleEndian.Uint32(b[4*i:])) }
	}
	return func(i int) uint64 { return binary.LittleEndian.Uint64(b[8*i:]) }
}

// add appends the slots [from, to) of src.
func (v *values) add(src *level.Values, from, to int) error {
	n := to - from
	switch v.typ.Kind {
	case level.Variable:
		if err := v.addStrings(src, from, to); err != nil {
			return err
		}
	case level.Fixed, level.FixedList:
		if w := v.typ.ValueBits(); w%8 == 0 {
			v.data.append(src.Data[from*w/8 : to*w/8])
		} else {
			v.bits = level.AppendBits(v.bits, v.n*w, src.Data, from*w, n*w)
		}
		v.addItems(src, from, n)
	}
	v.n += n
	return nil
}

func (v *values) addItems(src *level.Values, from, n int) {
	dim := v.typ.ValidBits()
	switch {
	case src.ItemValid == nil && v.items == nil:
	case src.ItemValid == nil:
		v.items = level.AppendOnes(v.items, v.n*dim, n*dim)
	default:
		if v.items == nil {
			v.items = level.AppendOnes(nil, 0, v.n*dim)
		}
		v.items = level.AppendBits(v.items, v.n*dim, src.ItemValid, from*dim, n*dim)
	}
}

func (v *values) addStrings(src *level.Values, from, to int) error {
	if v.n == 0 && v.offsets.n == 0 {
		clear(v.offsets.extend(v.typ.Bits / 8))
	}
	if from == to {
		return nil
	}
	first, end := src.Offsets[from], src.Offsets[to]
	base := uint64(v.data.n)
	if v.typ.Bits == 32 && base+uint64(end-first) > math.MaxInt32 {
		return table.Unsupportedf("assemble: a value, or a row's values, of more than 2 GiB under 32-bit offsets")
	}
	v.data.append(src.Data[first:end])
	if v.typ.Bits == 32 {
		out := v.offsets.extend(4 * (to - from))
		for i, o := range src.Offsets[from+1 : to+1] {
			binary.LittleEndian.PutUint32(out[4*i:], o-first+uint32(base))
		}
		return nil
	}
	out := v.offsets.extend(8 * (to - from))
	for i, o := range src.Offsets[from+1 : to+1] {
		binary.LittleEndian.PutUint64(out[8*i:], uint64(o-first)+base)
	}
	return nil
}
