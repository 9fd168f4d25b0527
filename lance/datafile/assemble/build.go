package assemble

import (
	"bytes"
	"encoding/binary"
	"math"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/rehome-db/rehome/internal/gather"
	"github.com/rehome-db/rehome/lance/datafile/level"
	"github.com/rehome-db/rehome/lance/schema"
	"github.com/rehome-db/rehome/table"
)

// builder makes arrays of what the leaves gathered. leaves are those that are
// still to be used, in order.
type builder struct {
	mem    memory.Allocator
	leaves []*leafReader
}

// field builds the array of f, which is depth fields below the top and has n
// slots.
func (b *builder) field(f *schema.Field, depth, n int) (arrow.ArrayData, error) {
	all := b.leaves[:len(f.Leaves())]
	b.leaves = b.leaves[len(all):]
	first, err := agree(all, depth)
	if err != nil {
		return nil, err
	}
	if first == nil {
		null := gather.Nulls(b.mem, f.Type, n)
		defer null.Release()
		null.Data().Retain()
		return null.Data(), nil
	}
	s := first.layer(depth)
	if s.n != n {
		return nil, table.Corruptf("assemble: column %q has %d values of %q where there should be %d", first.leaf.Path, s.n, f.Name, n)
	}
	if first.leaf.Field == f {
		return first.array(b.mem, s)
	}
	inner := builder{mem: b.mem, leaves: all}
	items := n
	buffers := []*memory.Buffer{s.validity(b.mem)}
	defer func() { release(buffers) }()
	if s.list {
		items = 0
		if n > 0 {
			if s.ends[n-1] > math.MaxInt32 {
				return nil, table.Unsupportedf("assemble: column %q: more than 2^31 list items in a batch", first.leaf.Path)
			}
			items = int(s.ends[n-1])
		}
		buffers = append(buffers, s.offsets(b.mem, f.Type.ID() == arrow.LARGE_LIST))
	}
	children := make([]arrow.ArrayData, 0, len(f.Children))
	defer func() {
		for _, c := range children {
			c.Release()
		}
	}()
	for _, c := range f.Children {
		child, err := inner.field(c, depth+1, items)
		if err != nil {
			return nil, err
		}
		children = append(children, child)
	}
	if f.Type.ID() == arrow.MAP {
		if err := checkEntries(f, children[0]); err != nil {
			return nil, err
		}
	}
	return array.NewData(f.Type, n, buffers, children, s.nulls, 0), nil
}

// checkEntries checks that a map's entries and keys are there: levels can say
// otherwise, maps cannot.
func checkEntries(f *schema.Field, entries arrow.ArrayData) error {
	if entries.NullN() > 0 || entries.Children()[0].NullN() > 0 {
		return table.Corruptf("assemble: map %q has an entry or a key that is null", f.Name)
	}
	return nil
}

// layer is the slots of the leaf's ancestor at the given depth.
func (r *leafReader) layer(depth int) *slots { return &r.slots[len(r.slots)-1-depth] }

// agree returns the first leaf that has a source, after checking that the others
// know the same of their common ancestor; nil if none has one.
func agree(leaves []*leafReader, depth int) (*leafReader, error) {
	var first *leafReader
	for _, l := range leaves {
		if !l.present {
			continue
		}
		if first == nil {
			first = l
			continue
		}
		a, b := first.layer(depth), l.layer(depth)
		same := a.n == b.n && a.nulls == b.nulls && bytes.Equal(a.valid, b.valid) && len(a.ends) == len(b.ends)
		for i := 0; same && i < len(a.ends); i++ {
			same = a.ends[i] == b.ends[i]
		}
		if !same {
			return nil, table.Corruptf("assemble: columns %q and %q disagree about their common parent", first.leaf.Path, l.leaf.Path)
		}
	}
	return first, nil
}

// validity returns the slots' validity as a buffer, nil without nulls.
func (s *slots) validity(mem memory.Allocator) *memory.Buffer {
	if s.nulls == 0 {
		return nil
	}
	return newBuffer(mem, s.valid)
}

// offsets returns the bounds of a list's slots.
func (s *slots) offsets(mem memory.Allocator, large bool) *memory.Buffer {
	buf := memory.NewResizableBuffer(mem)
	if large {
		buf.Resize(8 * (s.n + 1))
		out := buf.Bytes()
		clear(out[:8])
		for i, e := range s.ends {
			binary.LittleEndian.PutUint64(out[8*(i+1):], uint64(e))
		}
		return buf
	}
	buf.Resize(4 * (s.n + 1))
	out := buf.Bytes()
	clear(out[:4])
	for i, e := range s.ends {
		binary.LittleEndian.PutUint32(out[4*(i+1):], uint32(e))
	}
	return buf
}

// array builds the leaf's own array.
func (r *leafReader) array(mem memory.Allocator, s *slots) (arrow.ArrayData, error) {
	v, t := &r.values, r.leaf.Arrow
	switch {
	case r.leaf.Dictionary != nil:
		return v.dictionary(mem, r.leaf, s)
	case r.leaf.Described:
		return v.blobs(mem, r.leaf, s)
	case v.typ.Parts != "":
		return v.packed(mem, r.leaf, s)
	case t.ID() == arrow.STRUCT && v.typ.Kind == level.Nothing:
		// Without fields: see schema.Leaf.
		return array.NewData(t, s.n, []*memory.Buffer{nil}, nil, 0, 0), nil
	case t.ID() == arrow.NULL:
		return array.NewData(t, s.n, []*memory.Buffer{nil}, nil, s.n, 0), nil
	case v.typ.Kind == level.FixedList:
		buffers := []*memory.Buffer{s.validity(mem)}
		defer release(buffers)
		items := v.list(mem, t)
		defer items.Release()
		return array.NewData(t, s.n, buffers, []arrow.ArrayData{items}, s.nulls, 0), nil
	}
	buffers := append([]*memory.Buffer{s.validity(mem)}, v.buffers(mem)...)
	defer release(buffers)
	return array.NewData(t, s.n, buffers, nil, s.nulls, 0), nil
}

// buffers returns the values as Arrow has them behind the validity.
func (v *values) buffers(mem memory.Allocator) []*memory.Buffer {
	if v.typ.Kind != level.Variable {
		return []*memory.Buffer{v.fixed(mem)}
	}
	if v.offsets.n == 0 {
		clear(v.offsets.extend(v.typ.Bits / 8)) // of no strings
	}
	return []*memory.Buffer{v.offsets.take(), v.data.take()}
}

// fixed returns the buffer of the values.
func (v *values) fixed(mem memory.Allocator) *memory.Buffer {
	if v.typ.ValueBits()%8 != 0 {
		return newBuffer(mem, v.bits)
	}
	return v.data.take()
}

func newBuffer(mem memory.Allocator, b []byte) *memory.Buffer {
	buf := memory.NewResizableBuffer(mem)
	buf.Resize(len(b))
	copy(buf.Bytes(), b)
	return buf
}

func release(buffers []*memory.Buffer) {
	for _, b := range buffers {
		if b != nil {
			b.Release()
		}
	}
}
