package gather

import (
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/bitutil"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/rehome-db/rehome/table"
)

// Dictionary returns values, which have the type of to's values, as a dictionary array:
// distinct values in the order in which they come first, nulls among the indices. Values
// are the same if their bytes are. It takes any values of a fixed width, strings and
// bytes, which array.DictionaryBuilder does not; another type is ErrUnsupported, and more
// values than the indices tell apart an error.
func Dictionary(mem memory.Allocator, values arrow.Array, to *arrow.DictionaryType) (arrow.Array, error) {
	key, err := bytesOf(values)
	if err != nil {
		return nil, err
	}
	width := to.IndexType.(arrow.FixedWidthDataType).Bytes()
	most := uint64(1) << min(8*width-1, 62)
	if !arrow.IsSignedInteger(to.IndexType.ID()) {
		most = uint64(1) << min(8*width, 62)
	}
	var first []int
	seen := map[string]uint64{}
	indices := memory.NewResizableBuffer(mem)
	defer indices.Release()
	indices.Resize(width * values.Len())
	clear(indices.Bytes())
	valid := memory.NewResizableBuffer(mem)
	defer valid.Release()
	valid.Resize(int(bitutil.BytesForBits(int64(values.Len()))))
	clear(valid.Bytes())
	for i := range values.Len() {
		if values.IsNull(i) {
			continue
		}
		bitutil.SetBit(valid.Bytes(), i)
		k := key(i)
		n, known := seen[string(k)]
		if !known {
			if n = uint64(len(first)); n == most {
				return nil, fmt.Errorf("gather: more than %d distinct values, which is all that the indices of %s tell apart", most, to)
			}
			seen[string(k)] = n
			first = append(first, i)
		}
		at := indices.Bytes()[i*width : (i+1)*width]
		for b := range at {
			at[b] = byte(n >> (8 * b))
		}
	}
	dictionary, err := Take(mem, values, first)
	if err != nil {
		return nil, err
	}
	defer dictionary.Release()
	data := array.NewDataWithDictionary(to, values.Len(), []*memory.Buffer{valid, indices}, values.NullN(), 0, dictionary.Data().(*array.Data))
	defer data.Release()
	return array.MakeFromData(data), nil
}

// bytesOf returns what gets at the bytes of the value in a slot.
func bytesOf(values arrow.Array) (func(i int) []byte, error) {
	switch a := values.(type) {
	case *array.Boolean:
		return func(i int) []byte {
			if a.Value(i) {
				return []byte{1}
			}
			return []byte{0}
		}, nil
	case *array.String:
		return func(i int) []byte { return []byte(a.Value(i)) }, nil
	case *array.LargeString:
		return func(i int) []byte { return []byte(a.Value(i)) }, nil
	case *array.Binary:
		return a.Value, nil
	case *array.LargeBinary:
		return a.Value, nil
	}
	t, ok := values.DataType().(arrow.FixedWidthDataType)
	if _, nested := values.DataType().(arrow.NestedType); !ok || nested {
		return nil, table.Unsupportedf("gather: dictionaries of type %s", values.DataType())
	}
	if values.Len() == values.NullN() {
		return func(int) []byte { return nil }, nil // there may be no buffer
	}
	width, offset, bytes := t.Bytes(), values.Data().Offset(), values.Data().Buffers()[1].Bytes()
	return func(i int) []byte { return bytes[(offset+i)*width : (offset+i+1)*width] }, nil
}
