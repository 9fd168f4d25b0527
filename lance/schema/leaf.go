package schema

import (
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
	// Lists are the ids of the lists around the leaf, outermost first. In format 2.0
	// they own columns too.
	Lists []int32
	// Dictionary is the leaf's Arrow type if that is a dictionary, else nil. The
	// rows hold the values that it stands for, of the shape Type: dictionaries are
	// the business of pages and of arrays, each of which has its own.
	Dictionary *arrow.DictionaryType
	// Blob says that the values are kept apart from their pages.
	Blob bool
	// Described says that the values are descriptions of where blobs are
	// (lance.blob.v2), Type being theirs; the field has the fields of the blobs
	// themselves.
	Described bool
	// Map says that the leaf lies in a map.
	Map bool
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

// IsLeaf says whether f owns a column from format 2.1 on.
func (f *Field) IsLeaf() bool {
	leaves := f.Leaves()
	return len(leaves) == 1 && leaves[0].Field == f
}

// Leaves lists the leaves below f as [Schema.Leaves] does, f being top-level.
func (f *Field) Leaves() []Leaf {
	var w leafWalk
	w.walk(f, f.Name, nil, nil)
	return w.leaves
}

// Indexes returns how many values the indices of the leaf's dictionaries tell apart,
// where that is few enough to matter; 0 for more, and for leaves of other types.
func (l *Leaf) Indexes() int {
	if l.Dictionary == nil || l.Type.Kind == level.Fixed && l.Type.Bits == 1 {
		return 0
	}
	bits := l.Dictionary.IndexType.(arrow.FixedWidthDataType).BitWidth()
	switch {
	case bits > 16:
		return 0
	case arrow.IsSignedInteger(l.Dictionary.IndexType.ID()):
		return 1 << (bits - 1)
	default:
		return 1 << bits
	}
}

type leafWalk struct {
	leaves []Leaf
	maps   int // around the field
	lists  []int32
}

// walk visits f, whose ancestors have the given layers, outermost first. reason
// is why the ancestors already make every leaf below unsupported.
func (w *leafWalk) walk(f *Field, path string, outer []level.Layer, reason error) {
	if reason == nil {
		reason = unsupportedNode(f, path, len(outer) == 0)
	}
	switch {
	case isList(f.LogicalType) || f.LogicalType == "map":
		layer := level.EmptyableList
		if f.Nullable {
			layer = level.NullAndEmptyList
		}
		if f.LogicalType == "map" {
			w.maps++
			defer func() { w.maps-- }()
		}
		w.lists = append(w.lists, f.ID)
		w.descend(f, path, append(slices.Clone(outer), layer), reason)
		w.lists = w.lists[:len(w.lists)-1]
	case f.LogicalType == "struct" && !isPacked(f) && !isBlob(f) && len(f.Children) > 0,
		strings.HasPrefix(f.LogicalType, "fixed_size_list:struct:"):
		w.descend(f, path, append(slices.Clone(outer), itemLayer(f)), reason)
	default:
		leaf := Leaf{FieldID: f.ID, Path: path, Field: f, Arrow: f.Type, Map: w.maps > 0, Lists: slices.Clone(w.lists), Unsupported: reason}
		leaf.Layers = append(slices.Clone(outer), itemLayer(f))
		slices.Reverse(leaf.Layers)
		if reason == nil {
			leaf.describe()
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

// isEmptyStruct says whether f is a struct without fields. Its column holds nothing,
// and says that everything is null: what it means is that everything is there.
func isEmptyStruct(f *Field) bool {
	return f.LogicalType == "struct" && len(f.Children) == 0 && !isBlob(f)
}

func isList(logical string) bool {
	switch logical {
	case "list", "list.struct", "large_list", "large_list.struct":
		return true
	}
	return false
}

func isPacked(f *Field) bool {
	return f.Metadata["packed"] == "true" || f.Metadata[packedKey] == "true"
}

// isBlob says whether f's values are kept apart from their pages, whatever the
// form.
func isBlob(f *Field) bool {
	return f.Metadata[blobKey] == "true" || strings.HasPrefix(f.Metadata[extensionNameKey], "lance.blob")
}

// isBlobStruct says whether f is a blob in its second form: a struct of data and
// URI in a table's schema, a struct of descriptions in a file's.
func isBlobStruct(f *Field) bool { return isBlob(f) && f.LogicalType == "struct" }

// unsupportedNode says why nothing at or below f can be read, or nil.
func unsupportedNode(f *Field, path string, top bool) error {
	if class := f.message.GetStorageClass(); class != "" && class != "default" {
		// Lance up to 0.39 kept such rows in a table below this one.
		return table.Unsupportedf("schema: column %q: its rows are stored apart (storage class %q), which is not supported", path, class)
	}
	switch {
	case isEmptyStruct(f) && !top:
		// Stock engines lose the fields beside it.
		return unsupportedColumn(path, "struct without fields inside another type")
	case strings.HasPrefix(f.LogicalType, "fixed_size_list:struct:"):
		// Files that have one count its structs for rows, which no engine reads.
		return unsupportedColumn(path, "fixed-size list of structs")
	}
	return nil
}

func unsupportedColumn(path, what string) error {
	return table.Unsupportedf("schema: column %q: type %s is not supported", path, what)
}
