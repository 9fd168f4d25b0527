package cli

import (
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/bitutil"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/rehome-db/rehome/table"
)

// projection picks columns and fields of structs from the rows that an engine reads,
// which are whole columns.
type projection struct {
	// read are the top-level columns to ask the engine for; none asks for all.
	read []string
	// schema is that of the rows that pick returns.
	schema *arrow.Schema
	// paths are, for each column of schema, where it lies in the rows that were read:
	// the place of its column, then of the field in each struct on the way.
	paths [][]int
}

// project finds the named columns, all if there are none. "user.id" is a column of that
// name or, if there is none, the field id of the struct user; it keeps its dotted name,
// as in stock engines.
func project(schema table.Schema, columns []string) (*projection, error) {
	if len(columns) == 0 {
		return &projection{schema: schema.Arrow()}, nil
	}
	p := &projection{}
	var fields []arrow.Field
	for i, name := range columns {
		if slices.Contains(columns[:i], name) {
			return nil, usagef("--columns: column %q is named twice", name)
		}
		top, rest, err := findColumn(schema, name)
		if err != nil {
			return nil, err
		}
		at := slices.Index(p.read, top.Name)
		if at < 0 {
			at = len(p.read)
			p.read = append(p.read, top.Name)
		}
		field := arrow.Field{Name: name, Type: top.Type, Nullable: top.Nullable, Metadata: arrow.MetadataFrom(top.Metadata)}
		path := []int{at}
		for len(rest) > 0 {
			i, n, err := findField(field.Type, name, rest)
			if err != nil {
				return nil, err
			}
			child := field.Type.(*arrow.StructType).Field(i)
			field.Type, field.Metadata, field.Nullable = child.Type, child.Metadata, field.Nullable || child.Nullable
			path, rest = append(path, i), rest[n:]
		}
		fields, p.paths = append(fields, field), append(p.paths, path)
	}
	md := arrow.MetadataFrom(schema.Metadata)
	p.schema = arrow.NewSchema(fields, &md)
	return p, nil
}

// findColumn finds the column that a dotted name begins with, the longest name first,
// and returns what is left of the name.
func findColumn(schema table.Schema, name string) (table.Field, []string, error) {
	parts := strings.Split(name, ".")
	for n := len(parts); n > 0; n-- {
		if f, ok := schema.Field(strings.Join(parts[:n], ".")); ok {
			return f, parts[n:], nil
		}
	}
	return table.Field{}, nil, usagef("--columns: the table has no column %q, it has %s", name, strings.Join(columnNames(schema), ", "))
}

// findField finds the field of a struct that the rest of a dotted name begins with, and
// says how many of its parts that takes.
func findField(t arrow.DataType, name string, rest []string) (at, parts int, err error) {
	s, ok := t.(*arrow.StructType)
	if !ok {
		return 0, 0, usagef("--columns: %q: no field %q in a value of type %s", name, rest[0], t)
	}
	for n := len(rest); n > 0; n-- {
		if i, ok := s.FieldIdx(strings.Join(rest[:n], ".")); ok {
			return i, n, nil
		}
	}
	var names []string
	for _, f := range s.Fields() {
		names = append(names, f.Name)
	}
	return 0, 0, usagef("--columns: %q: the struct has no field %q, it has %s", name, rest[0], strings.Join(names, ", "))
}

// pick returns the columns of the projection. The caller releases the result.
func (p *projection) pick(rec arrow.RecordBatch) arrow.RecordBatch {
	if p.paths == nil {
		rec.Retain()
		return rec
	}
	columns := make([]arrow.Array, len(p.paths))
	for i, path := range p.paths {
		arr := rec.Column(path[0])
		arr.Retain()
		for _, field := range path[1:] {
			child := childOf(arr.(*array.Struct), field)
			arr.Release()
			arr = child
		}
		columns[i] = arr
	}
	out := array.NewRecordBatch(p.schema, columns, rec.NumRows())
	for _, c := range columns {
		c.Release()
	}
	return out
}

// childOf returns a field of a struct, null where the struct is: below a null struct
// there may be a value, which does not count.
func childOf(s *array.Struct, field int) arrow.Array {
	child := s.Field(field)
	if s.NullN() == 0 || child.DataType().ID() == arrow.NULL {
		child.Retain()
		return child
	}
	d := child.Data()
	bits := make([]byte, bitutil.BytesForBits(int64(d.Offset()+d.Len())))
	for i := range d.Len() {
		if s.IsValid(i) && child.IsValid(i) {
			bitutil.SetBit(bits, d.Offset()+i)
		}
	}
	buffers := slices.Clone(d.Buffers())
	buffers[0] = memory.NewBufferBytes(bits)
	var data *array.Data
	if dictionary, ok := d.Dictionary().(*array.Data); ok && dictionary != nil {
		data = array.NewDataWithDictionary(d.DataType(), d.Len(), buffers, array.UnknownNullCount, d.Offset(), dictionary)
	} else {
		data = array.NewData(d.DataType(), d.Len(), buffers, d.Children(), array.UnknownNullCount, d.Offset())
	}
	defer data.Release()
	return array.MakeFromData(data)
}
