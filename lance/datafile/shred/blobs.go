package shred

import (
	"encoding/binary"
	"math"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/rehome-db/rehome/lance/datafile/level"
	"github.com/rehome-db/rehome/table"
)

// gatherBlobs takes blobs from structs that have either the bytes or a URI, possibly
// with what part of it, and puts them into the form of schema.BlobValues.
func gatherBlobs(v *level.Values, a *array.Struct, runs []run) error {
	var data *array.LargeBinary
	var uri *array.String
	var position, size *array.Uint64
	for i, f := range a.DataType().(*arrow.StructType).Fields() {
		ok := true
		switch f.Name {
		case "data":
			data, ok = a.Field(i).(*array.LargeBinary)
		case "uri":
			uri, ok = a.Field(i).(*array.String)
		case "position":
			position, ok = a.Field(i).(*array.Uint64)
		case "size":
			size, ok = a.Field(i).(*array.Uint64)
		default:
			ok = false
		}
		if !ok {
			return table.Unsupportedf("a blob with the field %q of type %s", f.Name, f.Type)
		}
	}
	if data == nil || uri == nil {
		return table.Unsupportedf("a blob of type %s, without data or uri", a.DataType())
	}
	part := func(a *array.Uint64, i int) uint64 {
		if a == nil || a.IsNull(i) {
			return 0
		}
		return a.Value(i)
	}
	v.Offsets = append(make([]uint32, 0, v.N+1), 0)
	for _, r := range runs {
		for i := r.from; i < r.from+r.n; i++ {
			if r.from >= 0 && a.IsValid(i) {
				if data.IsValid(i) == uri.IsValid(i) {
					return table.Unsupportedf("a blob that has both data and a uri, or neither")
				}
				if data.IsValid(i) {
					b := data.Value(i)
					v.Data = binary.LittleEndian.AppendUint64(append(v.Data, 0), uint64(len(b)))
					v.Data = append(v.Data, b...)
					v.Data = append(v.Data, make([]byte, 4+8+8)...)
				} else {
					u := uri.Value(i)
					v.Data = binary.LittleEndian.AppendUint64(append(v.Data, 1), 0)
					v.Data = binary.LittleEndian.AppendUint32(v.Data, uint32(len(u)))
					v.Data = append(v.Data, u...)
					v.Data = binary.LittleEndian.AppendUint64(v.Data, part(position, i))
					v.Data = binary.LittleEndian.AppendUint64(v.Data, part(size, i))
				}
			}
			if len(v.Data) > math.MaxUint32 {
				return table.Unsupportedf("%d bytes of blobs in one batch: at most 4 GiB", len(v.Data))
			}
			v.Offsets = append(v.Offsets, uint32(len(v.Data)))
		}
	}
	return nil
}
