package arrowcheck

import (
	"fmt"
	"math"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/bitutil"
)

// Error is what is wrong with an array.
type Error struct {
	// Column is the path of what is wrong: names joined by dots, of list items "item".
	Column string
	// Row is the row of the batch, -1 if the array as a whole is wrong.
	Row int
	// Reason says what is wrong with the value, or the array.
	Reason string
}

func (e *Error) Error() string {
	if e.Row < 0 {
		return fmt.Sprintf("column %q: %s", e.Column, e.Reason)
	}
	return fmt.Sprintf("column %q row %d: %s", e.Column, e.Row, e.Reason)
}

// Record checks the columns of a batch, in order, and returns an [*Error] for the first
// thing that is wrong.
func Record(rec arrow.RecordBatch) error {
	for i, c := range rec.Columns() {
		name := rec.ColumnName(i)
		if int64(c.Len()) != rec.NumRows() {
			return &Error{name, -1, fmt.Sprintf("it has %d values, the batch has %d rows", c.Len(), rec.NumRows())}
		}
		if err := Column(name, c); err != nil {
			return err
		}
	}
	return nil
}

// Column checks an array, which is a column of the given name, and returns an [*Error]
// or nil.
func Column(name string, a arrow.Array) error {
	if f := structure(a.Data(), name); f != nil {
		return &Error{f.path, -1, f.reason}
	}
	return allValues.column(name, a)
}

// Text checks only that the text in an array, of which the structure is right, is UTF-8,
// and returns an [*Error] or nil.
func Text(name string, a arrow.Array) error { return textAlone.column(name, a) }

func (w what) column(name string, a arrow.Array) error {
	if f := w.values(a.Data(), name, []run{{0, a.Len()}}); f != nil {
		return &Error{f.path, f.slot, f.reason}
	}
	return nil
}

// fault is something wrong with a slot of an array, or with all of it.
type fault struct {
	path   string
	slot   int
	reason string
}

func faultf(path string, slot int, format string, args ...any) *fault {
	return &fault{path, slot, fmt.Sprintf(format, args...)}
}

// storage is the type that says how the buffers are laid out.
func storage(t arrow.DataType) arrow.DataType {
	for {
		ext, ok := t.(arrow.ExtensionType)
		if !ok {
			return t
		}
		t = ext.StorageType()
	}
}

func buffer(d arrow.ArrayData, i int) []byte {
	if b := d.Buffers()[i]; b != nil {
		return b.Bytes()
	}
	return nil
}

// structure checks an array's buffers and those of all arrays below it.
func structure(d arrow.ArrayData, path string) *fault {
	n, offset := d.Len(), d.Offset()
	if n < 0 || offset < 0 || n > math.MaxInt-offset-1 {
		return faultf(path, -1, "an array of %d slots from slot %d on", n, offset)
	}
	l, ok := layoutOf(storage(d.DataType()))
	switch {
	case !ok:
		return faultf(path, -1, "arrays of type %s are not supported", d.DataType())
	case len(d.Buffers()) < l.buffers:
		return faultf(path, -1, "it has %d buffers, the type %s has %d", len(d.Buffers()), d.DataType(), l.buffers)
	case len(d.Children()) != l.children:
		return faultf(path, -1, "it has %d children, the type %s has %d", len(d.Children()), d.DataType(), l.children)
	}
	if l.nulls {
		if f := validity(d, path); f != nil {
			return f
		}
	}
	if f := buffers(d, path); f != nil {
		return f
	}
	for i, c := range d.Children() {
		if f := structure(c, child(d, i, path)); f != nil {
			return f
		}
	}
	if storage(d.DataType()).ID() == arrow.DICTIONARY {
		return dictionary(d, path)
	}
	return nil
}

// layout is how many parts an array of a type has.
type layout struct {
	buffers, children int
	nulls             bool // the first buffer says what is null
}

func layoutOf(t arrow.DataType) (layout, bool) {
	switch t := t.(type) {
	case *arrow.NullType:
		return layout{}, true
	case *arrow.StructType:
		return layout{1, t.NumFields(), true}, true
	case *arrow.FixedSizeListType:
		return layout{1, 1, true}, true
	case *arrow.ListType, *arrow.LargeListType, *arrow.MapType:
		return layout{2, 1, true}, true
	case *arrow.ListViewType, *arrow.LargeListViewType:
		return layout{3, 1, true}, true
	case *arrow.SparseUnionType:
		return layout{2, t.NumFields(), false}, true
	case *arrow.DenseUnionType:
		return layout{3, t.NumFields(), false}, true
	case *arrow.RunEndEncodedType:
		return layout{0, 2, false}, true
	case arrow.BinaryViewDataType:
		return layout{2, 0, true}, true
	case arrow.BinaryDataType:
		return layout{3, 0, true}, true
	case *arrow.DictionaryType, arrow.FixedWidthDataType:
		return layout{2, 0, true}, true
	}
	return layout{}, false
}

// validity checks the bitmap of what is not null, and the number of nulls.
func validity(d arrow.ArrayData, path string) *fault {
	bits := buffer(d, 0)
	if len(bits) == 0 {
		if d.NullN() > 0 {
			return faultf(path, -1, "%d of %d slots are null, and nothing says which", d.NullN(), d.Len())
		}
		return nil
	}
	if need := bitutil.BytesForBits(int64(d.Offset() + d.Len())); int64(len(bits)) < need {
		return faultf(path, -1, "%d bytes say what is null of %d slots", len(bits), d.Offset()+d.Len())
	}
	if nulls := d.Len() - bitutil.CountSetBits(bits, d.Offset(), d.Len()); d.NullN() >= 0 && nulls != d.NullN() {
		return faultf(path, -1, "%d slots are null, and it says that %d are", nulls, d.NullN())
	}
	return nil
}

// isNull says whether a slot is null by itself.
func isNull(d arrow.ArrayData, i int) bool {
	if d.NullN() == 0 || len(d.Buffers()) == 0 {
		return false
	}
	bits := buffer(d, 0)
	return len(bits) > 0 && bitutil.BitIsNotSet(bits, d.Offset()+i)
}

// child is the path of a child.
func child(d arrow.ArrayData, i int, path string) string {
	switch t := storage(d.DataType()).(type) {
	case *arrow.MapType:
		return path
	case arrow.ListLikeType:
		return path + ".item"
	case arrow.NestedType:
		return path + "." + t.Fields()[i].Name
	}
	return path
}
