package shred

import (
	"encoding/binary"
	"math"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/rehome-db/rehome/lance/datafile/level"
	"github.com/rehome-db/rehome/table"
)

// gatherPacked writes the fields of each row side by side. Fields of packed
// structs cannot be null: there is no place that says so.
func gatherPacked(v *level.Values, t level.Type, a *array.Struct, runs []run) error {
	parts := t.Parts.List()
	fields := make([]func(dst []byte, i int) []byte, len(parts))
	for k, p := range parts {
		var err error
		if fields[k], err = packedField(p, a.Field(k), a.DataType().(*arrow.StructType).Field(k).Name); err != nil {
			return err
		}
	}
	if t.Kind == level.Variable {
		v.Offsets = append(make([]uint32, 0, v.N+1), 0)
	}
	empty := make([]byte, t.ValueBits()/8)
	for _, r := range runs {
		for i := range r.n {
			at := r.from + i
			if r.from < 0 || a.IsNull(at) {
				v.Data = append(v.Data, empty...)
			} else {
				for k := range fields {
					if f := a.Field(k); f.IsNull(at) || innerNull(f, at) {
						return table.Unsupportedf("a null in the field %q of a packed struct", a.DataType().(*arrow.StructType).Field(k).Name)
					}
					v.Data = fields[k](v.Data, at)
				}
			}
			if t.Kind == level.Variable {
				if len(v.Data) > math.MaxUint32 {
					return table.Unsupportedf("%d bytes of values in one batch: at most 4 GiB", len(v.Data))
				}
				v.Offsets = append(v.Offsets, uint32(len(v.Data)))
			}
		}
	}
	return nil
}

// innerNull says whether an item of the fixed-size list at i is null.
func innerNull(a arrow.Array, i int) bool {
	list, ok := a.(*array.FixedSizeList)
	if !ok || list.ListValues().NullN() == 0 {
		return false
	}
	from, to := list.ValueOffsets(i)
	for k := from; k < to; k++ {
		if list.ListValues().IsNull(int(k)) {
			return true
		}
	}
	return false
}

// packedField returns a function that appends a field's value.
func packedField(p level.Part, a arrow.Array, name string) (func(dst []byte, i int) []byte, error) {
	if ext, ok := a.(array.ExtensionArray); ok {
		a = ext.Storage()
	}
	if p.Variable {
		var value func(i int) string
		switch x := a.(type) {
		case *array.String:
			value = x.Value
		case *array.LargeString:
			value = x.Value
		case *array.Binary:
			value = x.ValueString
		case *array.LargeBinary:
			value = x.ValueString
		default:
			return nil, table.Unsupportedf("a field %q of type %s in a packed struct", name, a.DataType())
		}
		return func(dst []byte, i int) []byte {
			s := value(i)
			if p.Bits == 32 {
				dst = binary.LittleEndian.AppendUint32(dst, uint32(len(s)))
			} else {
				dst = binary.LittleEndian.AppendUint64(dst, uint64(len(s)))
			}
			return append(dst, s...)
		}, nil
	}
	offset, data := a.Data().Offset(), a.Data()
	if list, ok := a.(*array.FixedSizeList); ok {
		// The list's items begin at its offset times its length.
		data = list.ListValues().Data()
		w := p.Bits / 8
		from := offset*w + data.Offset()*w/max(p.Items, 1)
		bytes := bufferBytes(data, 1)
		return func(dst []byte, i int) []byte { return append(dst, bytes[from+i*w:from+(i+1)*w]...) }, nil
	}
	w := p.Bits / 8
	bytes := bufferBytes(data, 1)
	return func(dst []byte, i int) []byte { return append(dst, bytes[(offset+i)*w:(offset+i+1)*w]...) }, nil
}
