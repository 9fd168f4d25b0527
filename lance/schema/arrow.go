package schema

import (
	"fmt"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/rehome-db/rehome/table"
)

const (
	extensionNameKey = "ARROW:extension:name"
	// jsonExtension is what Lance calls its binary JSON.
	jsonExtension = "lance.json"

	blobKey   = "lance-encoding:blob"
	packedKey = "lance-encoding:packed"
)

func notFound(name string) error {
	return fmt.Errorf("schema: column %q: %w", name, table.ErrNotFound)
}

// typeOf builds the Arrow type of a field whose children have theirs.
func typeOf(f *Field) (arrow.DataType, error) {
	childless := func(t arrow.DataType) (arrow.DataType, error) {
		if len(f.Children) != 0 {
			return nil, table.Corruptf("schema: field %q of type %q has children", f.Name, f.LogicalType)
		}
		return t, nil
	}
	one := func() (arrow.Field, error) {
		if len(f.Children) != 1 {
			return arrow.Field{}, table.Corruptf("schema: field %q of type %q has %d children, want 1", f.Name, f.LogicalType, len(f.Children))
		}
		return f.Children[0].Arrow(), nil
	}
	switch {
	case f.LogicalType == "struct":
		fields := make([]arrow.Field, len(f.Children))
		for i, c := range f.Children {
			fields[i] = c.Arrow()
		}
		return arrow.StructOf(fields...), nil
	case f.LogicalType == "list" || f.LogicalType == "list.struct":
		item, err := one()
		if err != nil {
			return nil, err
		}
		return arrow.ListOfField(item), nil
	case f.LogicalType == "large_list" || f.LogicalType == "large_list.struct":
		item, err := one()
		if err != nil {
			return nil, err
		}
		return arrow.LargeListOfField(item), nil
	case f.LogicalType == "map":
		entries, err := one()
		if err != nil {
			return nil, err
		}
		kv, ok := entries.Type.(*arrow.StructType)
		if !ok || kv.NumFields() != 2 || kv.Field(0).Nullable {
			return nil, table.Corruptf("schema: map %q has no entries of a non-null key and a value", f.Name)
		}
		return arrow.MapOfFields(kv.Field(0), kv.Field(1)), nil
	case strings.HasPrefix(f.LogicalType, "fixed_size_list:struct:"):
		item, err := one()
		if err != nil {
			return nil, err
		}
		n, ok := dimension(strings.TrimPrefix(f.LogicalType, "fixed_size_list:struct:"))
		if !ok {
			return &Opaque{Logical: f.LogicalType}, nil
		}
		return arrow.FixedSizeListOfField(n, item), nil
	}
	t := ParseLogicalType(f.LogicalType)
	if _, opaque := t.(*Opaque); opaque {
		return t, nil // who knows what children it may have
	}
	return childless(t)
}

// Arrow returns the field in Arrow's terms; the id is left out.
func (f *Field) Arrow() arrow.Field {
	return arrow.Field{Name: f.Name, Type: f.Type, Nullable: f.Nullable, Metadata: arrowMetadata(f.Metadata)}
}

// Arrow returns the schema in Arrow's terms; ids are left out.
func (s *Schema) Arrow() *arrow.Schema {
	fields := make([]arrow.Field, len(s.Fields))
	for i, f := range s.Fields {
		fields[i] = f.Arrow()
	}
	md := arrowMetadata(s.Metadata)
	return arrow.NewSchema(fields, &md)
}

// ToTable returns the schema in the terms of package table.
func (s *Schema) ToTable() table.Schema {
	return table.Schema{Fields: tableFields(s.Fields), Metadata: s.Metadata}
}

func tableFields(fields []*Field) []table.Field {
	if len(fields) == 0 {
		return nil
	}
	out := make([]table.Field, len(fields))
	for i, f := range fields {
		out[i] = table.Field{ID: f.ID, Name: f.Name, Type: f.Type, Nullable: f.Nullable,
			Metadata: f.Metadata, Children: tableFields(f.Children)}
	}
	return out
}

// FromArrow makes a schema with fresh ids, counted in pre-order from firstID: 0
// for a new table. A type that Lance does not have is ErrUnsupported.
func FromArrow(s *arrow.Schema, firstID int32) (*Schema, error) {
	b := builder{next: nextID{int64(firstID)}}
	out := &Schema{Metadata: metadataMap(s.Metadata())}
	for _, f := range s.Fields() {
		field, err := b.field(f, -1, nil, f.Name, 0)
		if err != nil {
			return nil, err
		}
		out.Fields = append(out.Fields, field)
	}
	return out, nil
}

// FromTable makes a schema with the ids that s has. Where an id tree does not
// fit the field's Arrow type, the result is ErrUnsupported.
func FromTable(s table.Schema) (*Schema, error) {
	var b builder
	out := &Schema{Metadata: s.Metadata}
	for i := range s.Fields {
		f := &s.Fields[i]
		af := arrow.Field{Name: f.Name, Type: f.Type, Nullable: f.Nullable, Metadata: arrowMetadata(f.Metadata)}
		field, err := b.field(af, -1, f, f.Name, 0)
		if err != nil {
			return nil, err
		}
		out.Fields = append(out.Fields, field)
	}
	return out, nil
}

type builder struct{ next nextID }

// field converts f; ids come from known if that is not nil.
func (b *builder) field(f arrow.Field, parent int32, known *table.Field, path string, depth int) (*Field, error) {
	if depth > maxDepth {
		return nil, table.Unsupportedf("schema: column %q is nested more than %d deep", path, maxDepth)
	}
	if f.Type == nil {
		return nil, table.Unsupportedf("schema: column %q has no type", path)
	}
	logical, err := LogicalType(f.Type)
	if err != nil {
		return nil, fmt.Errorf("schema: column %q: %w", path, err)
	}
	md := metadataMap(f.Metadata)
	if md[extensionNameKey] == jsonExtension && logical == "large_binary" {
		logical = "json"
	}
	var id int32
	if known != nil {
		id = known.ID
	} else if id, err = b.next.take(); err != nil {
		return nil, err
	}
	if id < 0 {
		parent = -1 // of a blob in a file's schema
	}
	out := newField(id, parent, f.Name, logical, f.Nullable, md)
	out.Type = f.Type
	children := childFields(f.Type)
	if known != nil && len(known.Children) != len(children) {
		return nil, table.Unsupportedf("schema: column %q of type %s has ids for %d children, want %d", path, f.Type, len(known.Children), len(children))
	}
	for i, c := range children {
		var k *table.Field
		if known != nil {
			k = &known.Children[i]
			// The table's own field knows more than the type: its metadata.
			c = arrow.Field{Name: k.Name, Type: k.Type, Nullable: k.Nullable, Metadata: arrowMetadata(k.Metadata)}
		}
		child, err := b.field(c, id, k, path+"."+c.Name, depth+1)
		if err != nil {
			return nil, err
		}
		out.Children = append(out.Children, child)
	}
	return out, nil
}

// childFields are the children that Lance gives ids to.
func childFields(t arrow.DataType) []arrow.Field {
	switch t := t.(type) {
	case *arrow.StructType:
		return t.Fields()
	case *arrow.ListType:
		return []arrow.Field{t.ElemField()}
	case *arrow.LargeListType:
		return []arrow.Field{t.ElemField()}
	case *arrow.MapType:
		return []arrow.Field{{Name: "entries", Type: arrow.StructOf(t.KeyField(), t.ItemField())}}
	case *arrow.FixedSizeListType:
		if t.Elem().ID() == arrow.STRUCT {
			return []arrow.Field{t.ElemField()}
		}
	}
	return nil
}

func metadataMap(m arrow.Metadata) map[string]string {
	if m.Len() == 0 {
		return nil
	}
	return m.ToMap()
}

// arrowMetadata is the zero value for no metadata: Arrow tells an empty list of
// keys from none when it compares types.
func arrowMetadata(m map[string]string) arrow.Metadata {
	if len(m) == 0 {
		return arrow.Metadata{}
	}
	return arrow.MetadataFrom(m)
}
