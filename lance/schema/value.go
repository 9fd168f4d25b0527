package schema

import (
	"fmt"
	"math"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/rehome-db/rehome/lance/datafile/level"
	"github.com/rehome-db/rehome/table"
)

// maxValueBytes bounds one fixed-size value: far above any real vector, and low
// enough that counts times widths stay far below 2^63.
const maxValueBytes = 1 << 26

// blobDescriptions is what a column of blobs of the second form holds: the kind of
// the blob, its position and size, the number of a file, and a URI.
var blobDescriptions = level.Type{Kind: level.Variable, Bits: 32,
	Parts: level.NewParts([]level.Part{{Bits: 8}, {Bits: 64}, {Bits: 64}, {Bits: 32}, {Bits: 32, Variable: true}})}

// BlobValues is the type of the blobs themselves, as blocks hold them where arrays
// are made of them or they are made of arrays: a byte that is 1 for a blob that lies
// elsewhere, the bytes of one that does not, the URI of one that does, and what part
// of it, position and size, both 0 for all.
var BlobValues = level.Type{Kind: level.Variable, Bits: 32, Parts: level.NewParts([]level.Part{
	{Bits: 8}, {Bits: 64, Variable: true}, {Bits: 32, Variable: true}, {Bits: 64}, {Bits: 64}})}

// describe finds the shape of the leaf's values, or why there is none.
func (l *Leaf) describe() {
	f := l.Field
	switch {
	case isEmptyStruct(f):
		l.Type = level.Type{Kind: level.Nothing}
		return
	case isBlobStruct(f):
		l.Described, l.Type = true, blobDescriptions
		return
	case isBlob(f):
		l.Blob = true
		if id := f.Type.ID(); id != arrow.LARGE_BINARY {
			l.Unsupported = unsupportedColumn(l.Path, "blob of "+f.Type.String())
			return
		}
	case isPacked(f) && f.LogicalType == "struct":
		l.Type, l.Unsupported = packedType(f, l.Path)
		return
	}
	t := f.Type
	if d, ok := t.(*arrow.DictionaryType); ok {
		l.Dictionary, t = d, d.ValueType
		switch t.ID() {
		case arrow.DICTIONARY, arrow.FIXED_SIZE_LIST, arrow.NULL:
			l.Unsupported = unsupportedColumn(l.Path, f.Type.String())
			return
		}
	}
	l.Type, l.Unsupported = valueType(f, t, l.Path)
}

// valueType returns the shape of values of type t, which belong to f.
func valueType(f *Field, t arrow.DataType, path string) (level.Type, error) {
	if _, opaque := t.(*Opaque); opaque {
		return level.Type{}, unsupportedColumn(path, fmt.Sprintf("%q", f.LogicalType))
	}
	dim, inner := int64(1), int64(0)
	list := false
	for {
		l, ok := t.(*arrow.FixedSizeListType)
		if !ok {
			break
		}
		if list {
			inner += dim // every item so far is a list
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
	case arrow.DICTIONARY:
	default:
		bits, ok := fixedBits(t)
		if !ok {
			break
		}
		if bits > math.MaxInt32 || bits*dim/8 > maxValueBytes {
			return level.Type{}, unsupportedColumn(path, fmt.Sprintf("%s (a value is larger than %d bytes)", f.Type, maxValueBytes))
		}
		if list {
			return level.Type{Kind: level.FixedList, Bits: int(bits), Dim: int(dim), Inner: int(inner)}, nil
		}
		return level.Type{Kind: level.Fixed, Bits: int(bits)}, nil
	}
	return level.Type{}, unsupportedColumn(path, f.Type.String())
}

// fixedBits returns the width of values of a type that is stored as they are.
func fixedBits(t arrow.DataType) (int64, bool) {
	if t.ID() == arrow.BOOL {
		return 1, true
	}
	fixed, ok := t.(arrow.FixedWidthDataType)
	if !ok || t.ID() == arrow.DICTIONARY {
		return 0, false
	}
	bits := int64(fixed.BitWidth())
	return bits, bits > 0
}

// packedType returns the shape of a packed struct: the fields of a row side by
// side. A struct of plain fixed-width fields is a fixed-width value; any other is
// bytes, which only format 2.2 has.
func packedType(f *Field, path string) (level.Type, error) {
	refuse := func(c *Field) (level.Type, error) {
		return level.Type{}, table.Unsupportedf("schema: column %q: a packed struct with the field %q of type %s is not supported", path, c.Name, c.Type)
	}
	var parts []level.Part
	total := int64(0)
	kind := level.Fixed
	for _, c := range f.Children {
		switch t := c.Type.(type) {
		case *arrow.StringType, *arrow.BinaryType:
			kind = level.Variable
			parts = append(parts, level.Part{Bits: 32, Variable: true})
		case *arrow.LargeStringType, *arrow.LargeBinaryType:
			kind = level.Variable
			parts = append(parts, level.Part{Bits: 64, Variable: true})
		case *arrow.FixedSizeListType:
			kind = level.Variable
			bits, ok := fixedBits(t.Elem())
			if !ok || bits%8 != 0 || bits*int64(t.Len())/8 > maxValueBytes {
				return refuse(c)
			}
			parts = append(parts, level.Part{Bits: int(bits) * int(t.Len()), Items: int(t.Len())})
		default:
			bits, ok := fixedBits(t)
			if total += bits; !ok || bits%8 != 0 || bits/8 > maxValueBytes || total/8 > maxValueBytes {
				return refuse(c)
			}
			parts = append(parts, level.Part{Bits: int(bits)})
		}
	}
	out := level.Type{Kind: kind, Bits: 32, Parts: level.NewParts(parts)}
	if kind == level.Fixed {
		out.Bits = int(total)
	}
	return out, nil
}
