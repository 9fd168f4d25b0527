package assemble

import (
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/rehome-db/rehome/lance/datafile/level"
)

// list builds what is inside the fixed-size list type t: more of them, or the
// items.
func (v *values) list(mem memory.Allocator, t arrow.DataType) arrow.ArrayData {
	var lists []arrow.DataType
	var elements []int // in one value: lists, or at last items
	n := 1
	for {
		l, ok := t.(*arrow.FixedSizeListType)
		if !ok {
			break
		}
		lists = append(lists, t)
		n *= int(l.Len())
		elements = append(elements, n)
		t = l.Elem()
	}
	at := v.typ.ValidBits() // of the level in a value's validity, from behind
	last := len(elements) - 1
	at -= elements[last]
	valid, nulls := v.levelValidity(mem, at, elements[last])
	buffers := []*memory.Buffer{valid, v.fixed(mem)}
	var out arrow.ArrayData = array.NewData(t, v.n*elements[last], buffers, nil, nulls, 0)
	release(buffers)
	for i := last; i > 0; i-- {
		at -= elements[i-1]
		valid, nulls := v.levelValidity(mem, at, elements[i-1])
		buffers := []*memory.Buffer{valid}
		outer := array.NewData(lists[i], v.n*elements[i-1], buffers, []arrow.ArrayData{out}, nulls, 0)
		release(buffers)
		out.Release()
		out = outer
	}
	return out
}

// levelValidity returns the validity of one level of lists, which is n bits from
// bit at on of each value's, and the number of nulls; nil for none.
func (v *values) levelValidity(mem memory.Allocator, at, n int) (*memory.Buffer, int) {
	if v.items == nil {
		return nil, 0
	}
	bits, width := v.items, v.typ.ValidBits()
	if n != width {
		bits = make([]byte, 0, (v.n*n+7)/8)
		for i := range v.n {
			bits = level.AppendBits(bits, i*n, v.items, i*width+at, n)
		}
	}
	nulls := v.n*n - countBits(bits)
	if nulls == 0 {
		return nil, 0
	}
	return newBuffer(mem, bits), nulls
}
