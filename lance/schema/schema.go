package schema

import (
	"iter"
	"math"

	"github.com/apache/arrow-go/v18/arrow"
	"google.golang.org/protobuf/proto"

	filepb "github.com/rehome-db/rehome/lance/internal/pb/file"
	"github.com/rehome-db/rehome/table"
)

// maxDepth bounds the nesting of a schema. Arrow itself has no bound; real
// schemas stay below ten.
const maxDepth = 64

// Schema is a tree of fields. It is immutable and safe for concurrent use.
type Schema struct {
	Fields   []*Field
	Metadata map[string]string
}

// Field is one node of the tree. It is immutable.
type Field struct {
	// ID is the field's id, unique in the schema and never reused in a table; -1
	// for the parts of a blob in a data file's schema.
	ID int32
	// Name is unique among siblings in a table that Lance wrote.
	Name     string
	Nullable bool
	// LogicalType is Lance's spelling of the type.
	LogicalType string
	// Type is the whole Arrow type, children included. It is an [Opaque], or
	// contains one, where the spelling is not known.
	Type     arrow.DataType
	Metadata map[string]string
	// Children of a struct, a list (one), a map (one) or a fixed-size list of
	// structs.
	Children []*Field

	message *filepb.Field
}

// FromProto builds the tree from a pre-order list of messages, which it keeps
// and does not change. Ids that occur twice or parents that do not come before
// their children are ErrCorrupt.
func FromProto(fields []*filepb.Field, metadata map[string][]byte) (*Schema, error) {
	s := &Schema{Metadata: stringMap(metadata)}
	type node struct {
		field *Field
		depth int
	}
	byID := make(map[int32]node, len(fields))
	order := make([]*Field, 0, len(fields))
	var blob *Field // the last field, if it is one
	for i, m := range fields {
		if m == nil {
			return nil, table.Corruptf("schema: field %d of the list is empty", i)
		}
		// In data files the parts of a blob have neither ids nor a parent: they
		// just follow it.
		blobPart := m.GetId() == -1 && blob != nil
		if m.GetId() < 0 && !blobPart {
			return nil, table.Corruptf("schema: field %q has the id %d", m.GetName(), m.GetId())
		}
		if _, dup := byID[m.GetId()]; dup {
			return nil, table.Corruptf("schema: two fields have the id %d, one is %q", m.GetId(), m.GetName())
		}
		f := &Field{
			ID:          m.GetId(),
			Name:        m.GetName(),
			Nullable:    m.GetNullable(),
			LogicalType: m.GetLogicalType(),
			Metadata:    stringMap(m.GetMetadata()),
			message:     m,
		}
		n := node{field: f}
		if blobPart {
			blob.Children = append(blob.Children, f)
			order = append(order, f)
			continue
		}
		if blob = nil; isBlob(f) {
			blob = f
		}
		if m.GetParentId() == -1 {
			s.Fields = append(s.Fields, f)
		} else {
			parent, ok := byID[m.GetParentId()]
			if !ok {
				return nil, table.Corruptf("schema: field %q (id %d) comes before its parent %d", f.Name, f.ID, m.GetParentId())
			}
			if n.depth = parent.depth + 1; n.depth > maxDepth {
				return nil, table.Corruptf("schema: field %q is nested more than %d deep", f.Name, maxDepth)
			}
			parent.field.Children = append(parent.field.Children, f)
		}
		byID[f.ID] = n
		order = append(order, f)
	}
	// Children come after their parent, so backwards every child has its type
	// when the parent needs it.
	for i := len(order) - 1; i >= 0; i-- {
		t, err := typeOf(order[i])
		if err != nil {
			return nil, err
		}
		order[i].Type = t
	}
	return s, nil
}

// Proto returns the schema as messages in pre-order. The messages are shared
// with the schema: do not change them.
func (s *Schema) Proto() []*filepb.Field {
	var out []*filepb.Field
	for f := range s.All() {
		out = append(out, f.message)
	}
	return out
}

// FileProto returns the messages that a data file has for the schema. They are
// those of the table, except that blobs of the second form are what the file holds:
// descriptions, whose fields have no ids.
func (s *Schema) FileProto() []*filepb.Field {
	var out []*filepb.Field
	var walk func(fields []*Field)
	walk = func(fields []*Field) {
		for _, f := range fields {
			if !isBlobStruct(f) {
				out = append(out, f.message)
				walk(f.Children)
				continue
			}
			m := f.Clone()
			m.ExtensionName = ""
			m.Metadata = map[string][]byte{blobKey: []byte("true"), packedKey: []byte("true")}
			out = append(out, m)
			for _, part := range descriptionFields {
				out = append(out, newField(-1, -1, part.name, part.logical, false, nil).message)
			}
		}
	}
	walk(s.Fields)
	return out
}

// descriptionFields are the fields of a description of a blob.
var descriptionFields = []struct{ name, logical string }{
	{"kind", "uint8"}, {"position", "uint64"}, {"size", "uint64"}, {"blob_id", "uint32"}, {"blob_uri", "string"},
}

// ProtoMetadata returns the schema's metadata in the form of the messages.
func (s *Schema) ProtoMetadata() map[string][]byte { return bytesMap(s.Metadata) }

// All yields every field in pre-order.
func (s *Schema) All() iter.Seq[*Field] {
	return func(yield func(*Field) bool) {
		var walk func(fields []*Field) bool
		walk = func(fields []*Field) bool {
			for _, f := range fields {
				if !yield(f) || !walk(f.Children) {
					return false
				}
			}
			return true
		}
		walk(s.Fields)
	}
}

// Field returns the top-level field with the given name, or false.
func (s *Schema) Field(name string) (*Field, bool) {
	for _, f := range s.Fields {
		if f.Name == name {
			return f, true
		}
	}
	return nil, false
}

// FieldByID returns the field with the given id at any depth, or false.
func (s *Schema) FieldByID(id int32) (*Field, bool) {
	for f := range s.All() {
		if f.ID == id {
			return f, true
		}
	}
	return nil, false
}

// MaxFieldID returns the largest field id, -1 without fields. Ids of dropped
// columns are not known here: a table's next id also looks at its data files.
func (s *Schema) MaxFieldID() int32 {
	id := int32(-1)
	for f := range s.All() {
		id = max(id, f.ID)
	}
	return id
}

// Select returns a schema with the named top-level fields in the order given.
// A name that is not there is ErrNotFound.
func (s *Schema) Select(names []string) (*Schema, error) {
	out := &Schema{Metadata: s.Metadata, Fields: make([]*Field, 0, len(names))}
	for _, name := range names {
		f, ok := s.Field(name)
		if !ok {
			return nil, notFound(name)
		}
		out.Fields = append(out.Fields, f)
	}
	return out, nil
}

// newField makes a field together with its message.
func newField(id, parent int32, name, logical string, nullable bool, md map[string]string) *Field {
	m := &filepb.Field{
		Id:            id,
		ParentId:      parent,
		Name:          name,
		LogicalType:   logical,
		Nullable:      nullable,
		Encoding:      legacyEncoding(logical),
		Metadata:      bytesMap(md),
		ExtensionName: md[extensionNameKey],
	}
	if m.Encoding == filepb.Encoding_DICTIONARY {
		m.Dictionary = &filepb.Dictionary{} // its place in files of the first format
	}
	return &Field{ID: id, Name: name, Nullable: nullable, LogicalType: logical, Metadata: md, message: m}
}

// Clone returns the field's message as a copy that may be changed.
func (f *Field) Clone() *filepb.Field { return proto.Clone(f.message).(*filepb.Field) }

// nextID is a counter of fresh ids that notices when there are no more.
type nextID struct{ id int64 }

func (n *nextID) take() (int32, error) {
	if n.id > math.MaxInt32 {
		return 0, table.Unsupportedf("schema: no field ids are left")
	}
	n.id++
	return int32(n.id - 1), nil
}

func stringMap(m map[string][]byte) map[string]string {
	if len(m) == 0 {
		return nil
	}
	out := make(map[string]string, len(m))
	for k, v := range m {
		out[k] = string(v)
	}
	return out
}

func bytesMap(m map[string]string) map[string][]byte {
	if len(m) == 0 {
		return nil
	}
	out := make(map[string][]byte, len(m))
	for k, v := range m {
		out[k] = []byte(v)
	}
	return out
}
