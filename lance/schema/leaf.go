package schema

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/rehome-db/rehome/lance/datafile/level"
	"github.com/rehome-db/rehome/table"
)

// Leaf is a field that owns a column from format 2.1 on.
type Leaf struct {
	// FieldID is Field.ID, which data files are listed by.
	FieldID int32
	// Path is the dotted name from the top-level field down, for messages.
	Path string
	// Field is the leaf itself, Arrow its Arrow type.
	Field *Field
	Arrow arrow.DataType
	// Type is the shape of the values.
	Type level.Type
	// Layers, leaf first, are the widest that the schema allows: an item is
	// NullableItem if the field is nullable, else AllValidItem; a list is
	// NullAndEmptyList if nullable, else EmptyableList. A page may use other
	// kinds than these, but never another number of layers, nor an item where
	// the schema has a list.
	Layers []level.Layer
	// Unsupported says why the column can be neither read nor written
	// (ErrUnsupported, naming column and type); nil for most. Type is then zero.
	Unsupported error
}

// Leaves lists the leaves in pre-order, which is the order of columns in a file
// that holds the whole schema. Structs and lists own no column, except that a
// packed struct, a blob and a struct without fields are one leaf each.
func (s *Schema) Leaves() []Leaf {
	var w leafWalk
	for _, f := range s.Fields {
		w.walk(f, f.Name, nil, nil)
	}
	return w.leaves
}

// Leaves lists the leaves below f as [Schema.Leaves] does, f being top-level.
func (f *Field) Leaves() []Leaf {
	var w leafWalk
	w.walk(f, f.Name, nil, nil)
	return w.leaves
}

type leafWalk struct{ leaves []Leaf }

// walk visits f, whose ancestors have the given layers, outermost first. reason
// is why the ancestors already make every leaf below unsupported.
func (w *leafWalk) walk(f *Field, path string, outer []level.Layer, reason error) {
	if reason == nil {
		reason = unsupportedNode(f, path)
	}
	switch {
	case isList(f.LogicalType) || f.LogicalType == "map":
		layer := level.EmptyableList
		if f.Nullable {
			layer = level.NullAndEmptyList
		}
		w.descend(f, path, append(slices.Clone(outer), layer), reason)
	case f.LogicalType == "struct" && !isPacked(f) && !isBlob(f) && len(f.Children) > 0,
		strings.HasPrefix(f.LogicalType, "fixed_size_list:struct:"):
		w.descend(f, path, append(slices.Clone(outer), itemLayer(f)), reason)
	default:
		leaf := Leaf{FieldID: f.ID, Path: path, Field: f, Arrow: f.Type, Unsupported: reason}
		leaf.Layers = append(slices.Clone(outer), itemLayer(f))
		slices.Reverse(leaf.Layers)
		if reason == nil {
			leaf.Type, leaf.Unsupported = valueType(f, path)
		}
		w.leaves = append(w.leaves, leaf)
	}
}

func (w *leafWalk) descend(f *Field, path string, outer []level.Layer, reason error) {
	for _, c := range f.Children {
		w.walk(c, path+"."+c.Name, outer, reason)
	}
}

func itemLayer(f *Field) level.Layer {
	if f.Nullable {
		return level.NullableItem
	}
	return level.AllValidItem
}

func isList(logical string) bool {
	switch logical {
	case "list", "list.struct", "large_list", "large_list.struct":
		return true
	}
	return false
}

func isPacked(f *Field) bool {
	return f.Metadata["packed"] == "true" || f.Metadata["lance-encoding:packed"] == "true"
}

func isBlob(f *Field) bool {
	return f.Metadata["lance-encoding:blob"] == "true" || strings.HasPrefix(f.Metadata[extensionNameKey], "lance.blob")
}

// unsupportedNode says why nothing at or below f can be read, or nil.
func unsupportedNode(f *Field, path string) error {
	switch {
	case isBlob(f):
		return unsupportedColumn(path, "blob")
	case isPacked(f):
		return unsupportedColumn(path, "packed struct")
	case f.LogicalType == "struct" && len(f.Children) == 0:
		return unsupportedColumn(path, "struct without fields")
	case f.LogicalType == "map":
		return unsupportedColumn(path, "map")
	case strings.HasPrefix(f.LogicalType, "fixed_size_list:struct:"):
		return unsupportedColumn(path, "fixed-size list of structs")
	}
	return nil
}

func unsupportedColumn(path, what string) error {
	return table.Unsupportedf("schema: column %q: type %s is not supported", path, what)
}

// maxValueBytes bounds one fixed-size value: far above any real vector, and low
// enough that counts times widths stay far below 2^63.
const maxValueBytes = 1 << 26

// valueType returns the shape of a leaf's values.
func valueType(f *Field, path string) (level.Type, error) {
	t := f.Type
	if _, opaque := t.(*Opaque); opaque {
		return level.Type{}, unsupportedColumn(path, fmt.Sprintf("%q", f.LogicalType))
	}
	dim := int64(1)
	list := false
	for {
		l, ok := t.(*arrow.FixedSizeListType)
		if !ok {
			break
		}
		list = true
		if dim *= int64(l.Len()); dim > maxValueBytes {
			return level.Type{}, unsupportedColumn(path, fmt.Sprintf("%s (more than %d items)", f.Type, maxValueBytes))
		}
		t = l.Elem()
	}
	switch t.ID() {
	case arrow.NULL:
		if !list {
			return level.Type{Kind: level.Nothing}, nil
		}
	case arrow.STRING, arrow.BINARY:
		if !list {
			return level.Type{Kind: level.Variable, Bits: 32}, nil
		}
	case arrow.LARGE_STRING, arrow.LARGE_BINARY:
		if !list {
			return level.Type{Kind: level.Variable, Bits: 64}, nil
		}
	case arrow.BOOL:
		if !list {
			return level.Type{Kind: level.Fixed, Bits: 1}, nil
		}
	case arrow.DICTIONARY:
	default:
		fixed, ok := t.(arrow.FixedWidthDataType)
		if !ok {
			break
		}
		bits := int64(fixed.BitWidth())
		if bits <= 0 || bits > math.MaxInt32 || bits/8*dim > maxValueBytes {
			return level.Type{}, unsupportedColumn(path, fmt.Sprintf("%s (a value is larger than %d bytes)", f.Type, maxValueBytes))
		}
		if list {
			return level.Type{Kind: level.FixedList, Bits: int(bits), Dim: int(dim)}, nil
		}
		return level.Type{Kind: level.Fixed, Bits: int(bits)}, nil
	}
	return level.Type{}, unsupportedColumn(path, f.Type.String())
}
