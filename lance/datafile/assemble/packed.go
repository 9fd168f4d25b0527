package assemble

import (
	"encoding/binary"
	"math"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/rehome-db/rehome/lance/datafile/level"
	"github.com/rehome-db/rehome/lance/schema"
	"github.com/rehome-db/rehome/table"
)

// packed takes rows of a packed struct apart into an array for each field.
func (v *values) packed(mem memory.Allocator, leaf schema.Leaf, s *slots) (arrow.ArrayData, error) {
	columns, err := v.split(mem, leaf, s)
	defer releaseColumns(columns)
	if err != nil {
		return nil, err
	}
	children := make([]arrow.ArrayData, 0, len(columns))
	defer func() {
		for _, c := range children {
			c.Release()
		}
	}()
	for i := range columns {
		children = append(children, columns[i].array(leaf.Field.Children[i].Type, s.n, nil, 0))
	}
	buffers := []*memory.Buffer{s.validity(mem)}
	defer release(buffers)
	return array.NewData(leaf.Arrow, s.n, buffers, children, s.nulls, 0), nil
}

// split deals the rows out to a column for each field, which the caller releases.
func (v *values) split(mem memory.Allocator, leaf schema.Leaf, s *slots) ([]partColumn, error) {
	parts := v.typ.Parts.List()
	columns := make([]partColumn, len(parts))
	for i, p := range parts {
		columns[i] = partColumn{Part: p, data: growing{mem: mem}, offsets: growing{mem: mem}}
		if p.Variable {
			clear(columns[i].offsets.extend(p.Bits / 8))
		} else {
			columns[i].data.extend(v.n * p.Bits / 8)
			columns[i].data.n = 0
		}
	}
	return columns, v.splitRows(columns, s, leaf.Path)
}

func releaseColumns(columns []partColumn) {
	for i := range columns {
		columns[i].data.release()
		columns[i].offsets.release()
	}
}

// partColumn gathers one field of packed structs.
type partColumn struct {
	level.Part
	data, offsets growing
}

// array returns what was gathered as an array of n elements, of which valid, nil for
// all, says which are there.
func (c *partColumn) array(t arrow.DataType, n int, valid *memory.Buffer, nulls int) arrow.ArrayData {
	if c.Items > 0 {
		buffers := []*memory.Buffer{nil, c.data.take()}
		defer release(buffers)
		items := array.NewData(t.(*arrow.FixedSizeListType).Elem(), n*c.Items, buffers, nil, 0, 0)
		defer items.Release()
		return array.NewData(t, n, []*memory.Buffer{valid}, []arrow.ArrayData{items}, nulls, 0)
	}
	buffers := []*memory.Buffer{valid, c.data.take()}
	if c.Variable {
		buffers = []*memory.Buffer{valid, c.offsets.take(), buffers[1]}
	}
	defer release(buffers[1:])
	return array.NewData(t, n, buffers, nil, nulls, 0)
}

// splitRows deals the rows out to the fields' columns. Rows that are null hold
// nothing that can be relied upon, and become zeros.
func (v *values) splitRows(columns []partColumn, s *slots, path string) error {
	at, offsets := 0, v.offsetsAs64()
	for i := range v.n {
		var row []byte
		if v.typ.Kind == level.Variable {
			row = v.data.bytes()[offsets(i):offsets(i+1)]
		} else {
			w := v.typ.Bits / 8
			row = v.data.bytes()[at : at+w]
			at += w
		}
		if s.nulls > 0 && s.valid[i/8]>>(i%8)&1 == 0 {
			row = nil
		}
		for k := range columns {
			var err error
			if row, err = columns[k].take(row, path); err != nil {
				return err
			}
		}
	}
	return nil
}

// take appends the field at the start of row and returns what follows; an empty
// row has all fields zero.
func (c *partColumn) take(row []byte, path string) ([]byte, error) {
	short := func() ([]byte, error) {
		return nil, table.Corruptf("assemble: column %q: a packed struct ends within a field", path)
	}
	n := c.Bits / 8
	if !c.Variable {
		if len(row) == 0 {
			clear(c.data.extend(n))
			return row, nil
		}
		if len(row) < n {
			return short()
		}
		c.data.append(row[:n])
		return row[n:], nil
	}
	size := uint64(0)
	if len(row) > 0 {
		if len(row) < n {
			return short()
		}
		if n == 4 {
			size = uint64(binary.LittleEndian.Uint32(row))
		} else {
			size = binary.LittleEndian.Uint64(row)
		}
		if row = row[n:]; size > uint64(len(row)) {
			return short()
		}
	}
	c.data.append(row[:size])
	if n == 4 {
		if c.data.n > math.MaxInt32 {
			return nil, table.Unsupportedf("assemble: column %q: more than 2 GiB under 32-bit offsets", path)
		}
		binary.LittleEndian.PutUint32(c.offsets.extend(4), uint32(c.data.n))
	} else {
		binary.LittleEndian.PutUint64(c.offsets.extend(8), uint64(c.data.n))
	}
	return row[size:], nil
}
