package rowjson

import (
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/rehome-db/rehome/internal/gather"
)

// Text has what dictionaries stand for. So values are gathered plain, and dictionaries
// are made of them a batch at a time.

// plainType returns t with the types of their values in the place of dictionaries.
func plainType(t arrow.DataType) arrow.DataType {
	plain := func(f arrow.Field) arrow.Field {
		f.Type = plainType(f.Type)
		return f
	}
	switch t := t.(type) {
	case *arrow.DictionaryType:
		return plainType(t.ValueType)
	case *arrow.StructType:
		fields := t.Fields()
		for i := range fields {
			fields[i] = plain(fields[i])
		}
		return arrow.StructOf(fields...)
	case *arrow.MapType:
		return arrow.MapOfFields(plain(t.KeyField()), plain(t.ItemField()))
	case *arrow.ListType:
		return arrow.ListOfField(plain(t.ElemField()))
	case *arrow.LargeListType:
		return arrow.LargeListOfField(plain(t.ElemField()))
	case *arrow.FixedSizeListType:
		return arrow.FixedSizeListOfField(t.Len(), plain(t.ElemField()))
	default:
		return t
	}
}

// hasDictionary says whether plainType changes t.
func hasDictionary(t arrow.DataType) bool {
	if t.ID() == arrow.DICTIONARY {
		return true
	}
	if n, ok := t.(arrow.NestedType); ok {
		for _, f := range n.Fields() {
			if hasDictionary(f.Type) {
				return true
			}
		}
	}
	return false
}

// toDictionaries makes an array of type t of one of plainType(t), which it releases.
func toDictionaries(plain arrow.Array, t arrow.DataType) (arrow.Array, error) {
	defer plain.Release()
	data, err := dictionaryData(plain.Data(), t)
	if err != nil {
		return nil, err
	}
	defer data.Release()
	return array.MakeFromData(data), nil
}

func dictionaryData(plain arrow.ArrayData, t arrow.DataType) (arrow.ArrayData, error) {
	if d, ok := t.(*arrow.DictionaryType); ok {
		values := array.MakeFromData(plain)
		defer values.Release()
		a, err := gather.Dictionary(memory.DefaultAllocator, values, d)
		if err != nil {
			return nil, err
		}
		defer a.Release()
		a.Data().Retain()
		return a.Data(), nil
	}
	if !hasDictionary(t) {
		plain.Retain()
		return plain, nil
	}
	var children []arrow.ArrayData
	defer func() {
		for _, c := range children {
			c.Release()
		}
	}()
	for i, f := range t.(arrow.NestedType).Fields() {
		c, err := dictionaryData(plain.Children()[i], f.Type)
		if err != nil {
			return nil, err
		}
		children = append(children, c)
	}
	return array.NewData(t, plain.Len(), plain.Buffers(), children, plain.NullN(), plain.Offset()), nil
}
