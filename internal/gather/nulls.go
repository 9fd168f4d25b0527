package gather

import (
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/bitutil"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// Nulls returns an array of n nulls of type t. Unlike [array.MakeArrayOfNull] it takes
// types with the null type inside.
func Nulls(mem memory.Allocator, t arrow.DataType, n int) arrow.Array {
	data := nulls(mem, t, n)
	defer data.Release()
	return array.MakeFromData(data)
}

func nulls(mem memory.Allocator, t arrow.DataType, n int) arrow.ArrayData {
	var buffers []*memory.Buffer
	zeros := func(bytes int) {
		b := memory.NewResizableBuffer(mem)
		b.Resize(bytes)
		clear(b.Bytes())
		buffers = append(buffers, b)
	}
	var children []arrow.ArrayData
	inner := func(t arrow.DataType, n int) { children = append(children, nulls(mem, t, n)) }
	defer func() {
		for _, b := range buffers {
			b.Release()
		}
		for _, c := range children {
			c.Release()
		}
	}()

	storage := t
	if e, ok := t.(arrow.ExtensionType); ok {
		storage = e.StorageType()
	}
	if storage.ID() == arrow.NULL {
		return array.NewData(t, n, []*memory.Buffer{nil}, nil, n, 0)
	}
	zeros(int(bitutil.BytesForBits(int64(n))))
	switch s := storage.(type) {
	case *arrow.StructType:
		for _, f := range s.Fields() {
			inner(f.Type, n)
		}
	case *arrow.FixedSizeListType:
		inner(s.Elem(), n*int(s.Len()))
	case *arrow.ListType, *arrow.LargeListType, *arrow.MapType:
		zeros(storage.(arrow.OffsetsDataType).OffsetTypeTraits().BytesRequired(n + 1))
		inner(storage.(arrow.ListLikeType).Elem(), 0)
	case *arrow.DictionaryType:
		zeros(s.IndexType.(arrow.FixedWidthDataType).Bytes() * n)
		dictionary := nulls(mem, s.ValueType, 0)
		defer dictionary.Release()
		return array.NewDataWithDictionary(t, n, buffers, n, 0, dictionary.(*array.Data))
	case *arrow.StringType, *arrow.LargeStringType, *arrow.BinaryType, *arrow.LargeBinaryType:
		zeros(storage.(arrow.OffsetsDataType).OffsetTypeTraits().BytesRequired(n + 1))
		zeros(0)
	case arrow.FixedWidthDataType:
		zeros(int(bitutil.BytesForBits(int64(s.BitWidth()) * int64(n))))
	default: // unions, views and run-end encoded arrays
		a := array.MakeArrayOfNull(mem, t, n)
		defer a.Release()
		a.Data().Retain()
		return a.Data()
	}
	return array.NewData(t, n, buffers, children, n, 0)
}
