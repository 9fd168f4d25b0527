package gather

import (
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/bitutil"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/rehome-db/rehome/table"
)

// Range is the rows [Start, End).
type Range struct{ Start, End int }

// Len returns the number of rows that the ranges have together.
func Len(ranges []Range) int {
	n := 0
	for _, r := range ranges {
		n += r.End - r.Start
	}
	return n
}

// Check returns why arrays of the type cannot be gathered (ErrUnsupported of
// package table), or nil.
func Check(dt arrow.DataType) error {
	switch dt := dt.(type) {
	case arrow.ExtensionType:
		return Check(dt.StorageType())
	case *arrow.RunEndEncodedType:
		return table.Unsupportedf("gather: arrays of type %v", dt)
	case arrow.NestedType: // unions, maps and both kinds of lists too
		for _, f := range dt.Fields() {
			if err := Check(f.Type); err != nil {
				return err
			}
		}
		return nil
	case *arrow.NullType, *arrow.BooleanType, *arrow.DictionaryType, arrow.FixedWidthDataType, arrow.BinaryDataType:
		return nil
	default:
		return table.Unsupportedf("gather: arrays of type %v", dt)
	}
}

// Array returns the rows of arr in the ranges, one range after the other; they are
// within arr. The caller releases the result.
func Array(mem memory.Allocator, arr arrow.Array, ranges []Range) (arrow.Array, error) {
	if err := Check(arr.DataType()); err != nil {
		return nil, err
	}
	d := gather(mem, arr.Data(), ranges)
	defer d.Release()
	return array.MakeFromData(d), nil
}

// Take returns the given rows of arr, in the order given, which may be any: rows may
// come again and need not ascend. It takes a step for every run of consecutive rows.
// What rows that come again add up to must fit the offsets of arr's type: below 2 GiB
// of text in a string array, for example. The caller releases the result.
func Take(mem memory.Allocator, arr arrow.Array, rows []int) (arrow.Array, error) {
	return Array(mem, arr, Runs(rows))
}

// Runs puts row numbers in the form of ranges, in the order given.
func Runs(rows []int) []Range {
	var out []Range
	for _, r := range rows {
		if n := len(out); n > 0 && out[n-1].End == r {
			out[n-1].End++
			continue
		}
		out = append(out, Range{r, r + 1})
	}
	return out
}

// whole says whether the ranges are the rows [0, n), in order.
func whole(ranges []Range, n int) bool {
	at := 0
	for _, r := range ranges {
		if r.Start != at {
			return false
		}
		at = r.End
	}
	return at == n
}

// gather is Array on a checked type.
func gather(mem memory.Allocator, d arrow.ArrayData, ranges []Range) arrow.ArrayData {
	n := Len(ranges)
	switch {
	case n == d.Len() && whole(ranges, n):
		d.Retain()
		return d
	case n == 0:
		return array.NewSliceData(d, 0, 0)
	}
	o := output{mem: mem, dtype: d.DataType(), rows: n}
	defer o.release()

	storage := o.dtype
	for storage.ID() == arrow.EXTENSION {
		storage = storage.(arrow.ExtensionType).StorageType()
	}
	if storage.ID() == arrow.NULL {
		o.nulls = n
		o.add(nil)
		return o.data()
	}
	o.validity(d, ranges)
	switch dt := storage.(type) {
	case *arrow.BooleanType:
		bits, _ := o.bits(d.Buffers()[1], d.Offset(), ranges)
		o.add(bits)
	case *arrow.DictionaryType:
		o.fixed(d, 1, dt.IndexType.(arrow.FixedWidthDataType).Bytes(), ranges)
		o.dictionary = d.Dictionary()
	case *arrow.FixedSizeListType:
		size := int(dt.Len())
		o.child(d.Children()[0], scaled(ranges, d.Offset(), size))
	case *arrow.StructType:
		for _, c := range d.Children() {
			o.child(c, scaled(ranges, d.Offset(), 1))
		}
	case *arrow.SparseUnionType:
		o.fixed(d, 1, arrow.Int8SizeBytes, ranges)
		for _, c := range d.Children() {
			o.child(c, scaled(ranges, d.Offset(), 1))
		}
	case *arrow.DenseUnionType:
		o.fixed(d, 1, arrow.Int8SizeBytes, ranges)
		o.fixed(d, 2, arrow.Int32SizeBytes, ranges)
		o.share(d.Children()...)
	case *arrow.ListType, *arrow.MapType:
		o.child(d.Children()[0], offsets[int32](&o, d, ranges))
	case *arrow.LargeListType:
		o.child(d.Children()[0], offsets[int64](&o, d, ranges))
	case *arrow.ListViewType:
		o.fixed(d, 1, arrow.Int32SizeBytes, ranges)
		o.fixed(d, 2, arrow.Int32SizeBytes, ranges)
		o.share(d.Children()...)
	case *arrow.LargeListViewType:
		o.fixed(d, 1, arrow.Int64SizeBytes, ranges)
		o.fixed(d, 2, arrow.Int64SizeBytes, ranges)
		o.share(d.Children()...)
	case arrow.BinaryViewDataType:
		o.fixed(d, 1, arrow.ViewHeaderSizeBytes, ranges)
		for _, b := range d.Buffers()[2:] {
			b.Retain()
			o.add(b)
		}
	case *arrow.BinaryType, *arrow.StringType:
		o.bytes(d.Buffers()[2], offsets[int32](&o, d, ranges))
	case *arrow.LargeBinaryType, *arrow.LargeStringType:
		o.bytes(d.Buffers()[2], offsets[int64](&o, d, ranges))
	case arrow.FixedWidthDataType:
		o.fixed(d, 1, dt.Bytes(), ranges)
	}
	return o.data()
}

// scaled moves ranges of rows to where their slots are in a child: row i of an
// array at an offset has slots [(offset+i)*size, (offset+i+1)*size).
func scaled(ranges []Range, offset, size int) []Range {
	if offset == 0 && size == 1 {
		return ranges
	}
	out := make([]Range, len(ranges))
	for i, r := range ranges {
		out[i] = Range{(offset + r.Start) * size, (offset + r.End) * size}
	}
	return out
}

// output is an array in the making. It owns its buffers and children until release.
type output struct {
	mem        memory.Allocator
	dtype      arrow.DataType
	rows       int
	nulls      int
	buffers    []*memory.Buffer
	children   []arrow.ArrayData
	dictionary arrow.ArrayData // not owned
}

func (o *output) add(b *memory.Buffer) { o.buffers = append(o.buffers, b) }

func (o *output) child(c arrow.ArrayData, ranges []Range) {
	o.children = append(o.children, gather(o.mem, c, ranges))
}

func (o *output) share(cs ...arrow.ArrayData) {
	for _, c := range cs {
		c.Retain()
		o.children = append(o.children, c)
	}
}

func (o *output) data() arrow.ArrayData {
	if o.dictionary != nil {
		return array.NewDataWithDictionary(o.dtype, o.rows, o.buffers, o.nulls, 0, o.dictionary.(*array.Data))
	}
	return array.NewData(o.dtype, o.rows, o.buffers, o.children, o.nulls, 0)
}

func (o *output) release() {
	for _, b := range o.buffers {
		if b != nil {
			b.Release()
		}
	}
	for _, c := range o.children {
		c.Release()
	}
}

func (o *output) alloc(bytes int) *memory.Buffer {
	b := memory.NewResizableBuffer(o.mem)
	b.Resize(bytes)
	return b
}

// validity adds the first buffer: which rows are not null.
func (o *output) validity(d arrow.ArrayData, ranges []Range) {
	if d.NullN() == 0 || d.Buffers()[0] == nil {
		o.add(nil)
		return
	}
	valid, set := o.bits(d.Buffers()[0], d.Offset(), ranges)
	o.nulls = o.rows - set
	o.add(valid)
}

// bits copies ranges of a bitmap and counts the bits set in them.
func (o *output) bits(from *memory.Buffer, offset int, ranges []Range) (*memory.Buffer, int) {
	b := o.alloc(int(bitutil.BytesForBits(int64(o.rows))))
	src, dst := from.Bytes(), b.Bytes()
	clear(dst)
	at := 0
	for _, r := range ranges {
		bitutil.CopyBitmap(src, offset+r.Start, r.End-r.Start, dst, at)
		at += r.End - r.Start
	}
	return b, bitutil.CountSetBits(dst, 0, o.rows)
}

// fixed adds buffer i, with so many bytes a row.
func (o *output) fixed(d arrow.ArrayData, i, width int, ranges []Range) {
	b := o.alloc(o.rows * width)
	src, dst := d.Buffers()[i].Bytes()[d.Offset()*width:], b.Bytes()
	if width == 8 {
		copyRanges(arrow.Uint64Traits.CastFromBytes(dst), arrow.Uint64Traits.CastFromBytes(src), ranges, 1)
	} else {
		copyRanges(dst, src, ranges, width)
	}
	o.add(b)
}

// bytes adds a buffer of ranges of bytes.
func (o *output) bytes(from *memory.Buffer, ranges []Range) {
	b := o.alloc(Len(ranges))
	if from != nil {
		copyRanges(b.Bytes(), from.Bytes(), ranges, 1)
	}
	o.add(b)
}

func copyRanges[T any](dst, src []T, ranges []Range, width int) {
	for _, r := range ranges {
		n := copy(dst, src[r.Start*width:r.End*width])
		dst = dst[n:]
	}
}

// offsets adds the offsets buffer of a variable-size type, and returns the ranges
// of what the offsets point into.
func offsets[T int32 | int64](o *output, d arrow.ArrayData, ranges []Range) []Range {
	width := int(arrow.Int32SizeBytes)
	cast := func(b []byte) []T { return any(arrow.Int32Traits.CastFromBytes(b)).([]T) }
	if _, large := any(T(0)).(int64); large {
		width = arrow.Int64SizeBytes
		cast = func(b []byte) []T { return any(arrow.Int64Traits.CastFromBytes(b)).([]T) }
	}
	b := o.alloc((o.rows + 1) * width)
	src, dst := cast(d.Buffers()[1].Bytes())[d.Offset():], cast(b.Bytes())
	inner := make([]Range, 0, len(ranges))
	at := T(0)
	dst[0], dst = 0, dst[1:]
	for _, r := range ranges {
		from, to := src[r.Start], src[r.End]
		delta := at - from
		for i, end := range src[r.Start+1 : r.End+1] {
			dst[i] = end + delta
		}
		dst = dst[r.End-r.Start:]
		at += to - from
		switch n := len(inner); {
		case from == to:
		case n > 0 && inner[n-1].End == int(from):
			inner[n-1].End = int(to)
		default:
			inner = append(inner, Range{int(from), int(to)})
		}
	}
	o.add(b)
	return inner
}
