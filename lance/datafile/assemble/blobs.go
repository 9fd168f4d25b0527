package assemble

import (
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/rehome-db/rehome/lance/schema"
	"github.com/rehome-db/rehome/table"
)

// blobs builds the structs that blobs are to their readers: the bytes, or a URI.
func (v *values) blobs(mem memory.Allocator, leaf schema.Leaf, s *slots) (arrow.ArrayData, error) {
	columns, err := v.split(mem, leaf, s)
	defer releaseColumns(columns)
	if err != nil {
		return nil, err
	}
	elsewhere := columns[0].data.bytes()
	there := func(i int) bool { return s.nulls == 0 || s.valid[i/8]>>(i%8)&1 == 1 }
	positions, sizes := columns[3].data.bytes(), columns[4].data.bytes()
	ranged := func(i int) bool {
		for k := 8 * i; k < 8*i+8; k++ {
			if positions[k] != 0 || sizes[k] != 0 {
				return true
			}
		}
		return false
	}
	children := make([]arrow.ArrayData, 0, len(leaf.Field.Children))
	defer func() {
		for _, c := range children {
			c.Release()
		}
	}()
	for _, c := range leaf.Field.Children {
		var column *partColumn
		var has func(i int) bool
		switch {
		case c.Name == "data" && c.Type.ID() == arrow.LARGE_BINARY:
			column, has = &columns[1], func(i int) bool { return there(i) && elsewhere[i] == 0 }
		case c.Name == "uri" && c.Type.ID() == arrow.STRING:
			column, has = &columns[2], func(i int) bool { return there(i) && elsewhere[i] != 0 }
		case c.Name == "position" && c.Type.ID() == arrow.UINT64:
			column, has = &columns[3], func(i int) bool { return there(i) && elsewhere[i] != 0 && ranged(i) }
		case c.Name == "size" && c.Type.ID() == arrow.UINT64:
			column, has = &columns[4], func(i int) bool { return there(i) && elsewhere[i] != 0 && ranged(i) }
		default:
			return nil, table.Unsupportedf("assemble: column %q: a blob with the field %q of type %s is not supported", leaf.Path, c.Name, c.Type)
		}
		valid, nulls := make([]byte, (s.n+7)/8), 0
		for i := range s.n {
			if has(i) {
				valid[i/8] |= 1 << (i % 8)
			} else {
				nulls++
			}
		}
		buf := newBuffer(mem, valid)
		children = append(children, column.array(c.Type, s.n, buf, nulls))
		buf.Release()
	}
	buffers := []*memory.Buffer{s.validity(mem)}
	defer release(buffers)
	return array.NewData(leaf.Arrow, s.n, buffers, children, s.nulls, 0), nil
}
