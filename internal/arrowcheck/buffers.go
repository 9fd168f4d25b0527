package arrowcheck

import (
	"math"
	"math/bits"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/bitutil"
)

// buffers checks the buffers behind the first: that they are long enough, and that what
// they say of where values lie holds.
func buffers(d arrow.ArrayData, path string) *fault {
	end := d.Offset() + d.Len() // slots in the buffers
	switch t := storage(d.DataType()).(type) {
	case *arrow.NullType:
		return nil
	case *arrow.BooleanType:
		return room(d, path, 1, bitutil.BytesForBits(int64(end)), 1)
	case *arrow.DictionaryType:
		return fixed(d, path, 1, t.IndexType, end)
	case *arrow.StructType:
		for i, c := range d.Children() {
			if c.Len() < end {
				return faultf(child(d, i, path), -1, "%d values for %d slots of a struct", c.Len(), end)
			}
		}
		return nil
	case *arrow.FixedSizeListType:
		hi, items := bits.Mul64(uint64(end), uint64(max(t.Len(), 0)))
		if c := d.Children()[0]; t.Len() < 0 || hi != 0 || items > math.MaxInt || c.Len() < int(items) {
			return faultf(path, -1, "%d items for %d lists of %d", c.Len(), end, t.Len())
		}
		return nil
	case *arrow.ListType, *arrow.MapType:
		return offsets[int32](d, path, d.Children()[0].Len())
	case *arrow.LargeListType:
		return offsets[int64](d, path, d.Children()[0].Len())
	case *arrow.ListViewType:
		return listViews[int32](d, path)
	case *arrow.LargeListViewType:
		return listViews[int64](d, path)
	case arrow.UnionType:
		return unions(d, path, t)
	case *arrow.RunEndEncodedType:
		return runEnds(d, path)
	case arrow.BinaryViewDataType:
		return views(d, path)
	case *arrow.BinaryType, *arrow.StringType:
		return offsets[int32](d, path, len(buffer(d, 2)))
	case *arrow.LargeBinaryType, *arrow.LargeStringType:
		return offsets[int64](d, path, len(buffer(d, 2)))
	default:
		return fixed(d, path, 1, t, end)
	}
}

// room checks that a buffer holds n values of width bytes.
func room(d arrow.ArrayData, path string, i int, n int64, width int) *fault {
	have := len(buffer(d, i))
	if hi, need := bits.Mul64(uint64(n), uint64(width)); hi != 0 || need > uint64(have) {
		return faultf(path, -1, "a buffer of %d bytes for %d slots of type %s", have, d.Offset()+d.Len(), d.DataType())
	}
	return nil
}

func fixed(d arrow.ArrayData, path string, i int, t arrow.DataType, n int) *fault {
	w, ok := t.(arrow.FixedWidthDataType)
	if !ok || w.BitWidth() < 0 {
		return faultf(path, -1, "values of type %s", t)
	}
	return room(d, path, i, int64(n), w.Bytes())
}

// numbers is a buffer as numbers, from the array's first slot on.
func numbers[T int32 | int64](d arrow.ArrayData, i int) []T {
	var all []T
	switch p := any(&all).(type) {
	case *[]int32:
		*p = arrow.Int32Traits.CastFromBytes(buffer(d, i))
	case *[]int64:
		*p = arrow.Int64Traits.CastFromBytes(buffer(d, i))
	}
	return all[min(d.Offset(), len(all)):]
}

func width[T int32 | int64]() int {
	var v T
	if _, ok := any(v).(int64); ok {
		return 8
	}
	return 4
}

// offsets checks that offsets do not descend and lie within what they point into.
func offsets[T int32 | int64](d arrow.ArrayData, path string, within int) *fault {
	if d.Len() == 0 {
		return nil // there may be none
	}
	if f := room(d, path, 1, int64(d.Offset()+d.Len()+1), width[T]()); f != nil {
		return f
	}
	o := numbers[T](d, 1)[:d.Len()+1]
	if o[0] < 0 {
		return faultf(path, -1, "row 0 begins at offset %d", o[0])
	}
	for i := range d.Len() {
		if o[i+1] < o[i] {
			return faultf(path, -1, "row %d has %d bytes or items", i, int64(o[i+1])-int64(o[i]))
		}
	}
	if int64(o[d.Len()]) > int64(within) {
		return faultf(path, -1, "its last row ends at offset %d, and there are %d bytes or items", o[d.Len()], within)
	}
	return nil
}

func listViews[T int32 | int64](d arrow.ArrayData, path string) *fault {
	end := int64(d.Offset() + d.Len())
	for i := 1; i <= 2; i++ {
		if f := room(d, path, i, end, width[T]()); f != nil {
			return f
		}
	}
	from, size := numbers[T](d, 1), numbers[T](d, 2)
	items := int64(d.Children()[0].Len())
	for i := range d.Len() {
		if o, n := int64(from[i]), int64(size[i]); o < 0 || n < 0 || o > items || n > items-o {
			return faultf(path, -1, "row %d has %d items from %d on, of %d", i, n, o, items)
		}
	}
	return nil
}

// views checks where text and bytes lie that are referred to.
func views(d arrow.ArrayData, path string) *fault {
	end := d.Offset() + d.Len()
	if f := room(d, path, 1, int64(end), arrow.ViewHeaderSizeBytes); f != nil {
		return f
	}
	data := d.Buffers()[2:]
	for i, h := range arrow.ViewHeaderTraits.CastFromBytes(buffer(d, 1))[d.Offset():end] {
		n := h.Len()
		switch {
		case isNull(d, i):
		case n < 0:
			return faultf(path, -1, "row %d has %d bytes", i, n)
		case h.IsInline():
		case h.BufferIndex() < 0 || int(h.BufferIndex()) >= len(data):
			return faultf(path, -1, "row %d lies in buffer %d of %d", i, h.BufferIndex(), len(data))
		default:
			have := len(buffer(d, 2+int(h.BufferIndex())))
			if o := int(h.BufferOffset()); o < 0 || o > have || n > have-o {
				return faultf(path, -1, "row %d has %d bytes from %d on, of %d", i, n, o, have)
			}
		}
	}
	return nil
}

func unions(d arrow.ArrayData, path string, t arrow.UnionType) *fault {
	end := d.Offset() + d.Len()
	if f := room(d, path, 1, int64(end), 1); f != nil {
		return f
	}
	dense := t.Mode() == arrow.DenseMode
	var at []int32
	if dense {
		if f := room(d, path, 2, int64(end), arrow.Int32SizeBytes); f != nil {
			return f
		}
		at = numbers[int32](d, 2)
	}
	ids := t.ChildIDs()
	for i, code := range buffer(d, 1)[d.Offset():end] {
		if int(code) >= len(ids) || ids[code] < 0 || ids[code] >= len(d.Children()) {
			return faultf(path, -1, "row %d has the type code %d", i, code)
		}
		if c := d.Children()[ids[code]]; dense && (at[i] < 0 || int(at[i]) >= c.Len()) {
			return faultf(path, -1, "row %d is value %d of %d", i, at[i], c.Len())
		}
	}
	for i, c := range d.Children() {
		if !dense && c.Len() < end {
			return faultf(child(d, i, path), -1, "%d values for %d slots of a union", c.Len(), end)
		}
	}
	return nil
}

func runEnds(d arrow.ArrayData, path string) *fault {
	ends, items := d.Children()[0], d.Children()[1]
	if f := structure(ends, path); f != nil {
		return f
	}
	if ends.NullN() != 0 || ends.Len() > items.Len() {
		return faultf(path, -1, "%d runs, %d of them null, of %d values", ends.Len(), ends.NullN(), items.Len())
	}
	last := int64(0)
	for i := range ends.Len() {
		end, ok := integer(ends, i)
		if !ok || end <= last {
			return faultf(path, -1, "run %d ends at %d, after %d", i, end, last)
		}
		last = end
	}
	if last < int64(d.Offset()+d.Len()) {
		return faultf(path, -1, "its runs end at %d, and it has %d slots", last, d.Offset()+d.Len())
	}
	return nil
}

// integer is a slot of an array of any integer type; false if it is none or does not
// fit.
func integer(d arrow.ArrayData, i int) (int64, bool) {
	t := d.DataType()
	if dict, ok := t.(*arrow.DictionaryType); ok {
		t = dict.IndexType
	}
	if !arrow.IsInteger(t.ID()) {
		return 0, false
	}
	w := t.(arrow.FixedWidthDataType).Bytes()
	b := buffer(d, 1)[(d.Offset()+i)*w:][:w]
	var v uint64
	for k := w - 1; k >= 0; k-- {
		v = v<<8 | uint64(b[k])
	}
	if arrow.IsSignedInteger(t.ID()) {
		shift := 64 - 8*w
		return int64(v<<shift) >> shift, true
	}
	return int64(v), v <= math.MaxInt64
}

// dictionary checks the values that the indices are of, all of them.
func dictionary(d arrow.ArrayData, path string) *fault {
	t := storage(d.DataType()).(*arrow.DictionaryType)
	items := d.Dictionary()
	if items == nil {
		return faultf(path, -1, "it has no dictionary")
	}
	if !arrow.TypeEqual(items.DataType(), t.ValueType) {
		return faultf(path, -1, "a dictionary of type %s where %s belongs", items.DataType(), t.ValueType)
	}
	if f := structure(items, path); f != nil {
		return f
	}
	if f := allValues.values(items, path, []run{{0, items.Len()}}); f != nil {
		return faultf(f.path, -1, "value %d of the dictionary: %s", f.slot, f.reason)
	}
	return nil
}
