package rowjson

import (
	"errors"
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/rehome-db/rehome/table"
)

// appender takes one value from the text and appends it to the builder that it was
// made for. After an error the builder is of no use.
type appender func(s *scanner) error

// checkDecode walks a type and names the first part of it that cannot be read.
func checkDecode(t arrow.DataType) error {
	switch t := t.(type) {
	case *arrow.StructType:
		for _, f := range t.Fields() {
			if err := checkDecode(f.Type); err != nil {
				return fmt.Errorf("field %q: %w", f.Name, err)
			}
		}
		return nil
	case *arrow.MapType:
		if err := checkDecode(t.KeyType()); err != nil {
			return err
		}
		return checkDecode(t.ItemType())
	case *arrow.ListType:
		return checkDecode(t.Elem())
	case *arrow.LargeListType:
		return checkDecode(t.Elem())
	case *arrow.FixedSizeListType:
		return checkDecode(t.Elem())
	case *arrow.DictionaryType:
		if _, nested := t.ValueType.(arrow.NestedType); nested {
			return table.Unsupportedf("values of type %s cannot be read from JSON", t)
		}
		return checkDecode(t.ValueType)
	}
	switch t.ID() {
	case arrow.NULL, arrow.BOOL,
		arrow.INT8, arrow.INT16, arrow.INT32, arrow.INT64, arrow.UINT8, arrow.UINT16, arrow.UINT32, arrow.UINT64,
		arrow.FLOAT16, arrow.FLOAT32, arrow.FLOAT64,
		arrow.STRING, arrow.LARGE_STRING, arrow.STRING_VIEW, arrow.BINARY, arrow.LARGE_BINARY, arrow.BINARY_VIEW, arrow.FIXED_SIZE_BINARY,
		arrow.DECIMAL32, arrow.DECIMAL64, arrow.DECIMAL128, arrow.DECIMAL256,
		arrow.DATE32, arrow.DATE64, arrow.TIME32, arrow.TIME64, arrow.TIMESTAMP, arrow.DURATION:
		return nil
	}
	return table.Unsupportedf("values of type %s cannot be read from JSON", t)
}

var errNotNullable = errors.New("null, and the column has none")

// newAppender returns what reads values of the field, whose type checkDecode has
// passed, into b.
func newAppender(f arrow.Field, b array.Builder) appender {
	value := newValueAppender(f.Type, b)
	appendNull := b.AppendNull
	if list, ok := b.(*array.FixedSizeListBuilder); ok {
		// The builder's own would make null items, also where items cannot be null.
		n := int(f.Type.(*arrow.FixedSizeListType).Len())
		appendNull = func() {
			list.Append(false)
			list.ValueBuilder().AppendEmptyValues(n)
		}
	}
	return func(s *scanner) error {
		if !s.null() {
			return value(s)
		}
		if !f.Nullable {
			return errNotNullable
		}
		appendNull()
		return nil
	}
}

func newValueAppender(t arrow.DataType, b array.Builder) appender {
	switch b := b.(type) {
	case *array.NullBuilder:
		return func(s *scanner) error { return s.unexpected("null, the only value of the column's type,") }
	case *array.BooleanBuilder:
		return func(s *scanner) error {
			switch {
			case s.peek() == 't' && s.word("true"):
				b.Append(true)
			case s.peek() == 'f' && s.word("false"):
				b.Append(false)
			default:
				return s.unexpected("true or false")
			}
			return nil
		}
	case *array.StructBuilder:
		return structAppender(t.(*arrow.StructType), b)
	case *array.MapBuilder: // before lists, which it is one of
		return mapAppender(t.(*arrow.MapType), b)
	case *array.FixedSizeListBuilder:
		fixed := t.(*arrow.FixedSizeListType)
		return listAppender(fixed.ElemField(), b, int(fixed.Len()))
	case *array.ListBuilder:
		return listAppender(t.(*arrow.ListType).ElemField(), b, -1)
	case *array.LargeListBuilder:
		return listAppender(t.(*arrow.LargeListType).ElemField(), b, -1)
	}
	if a := numberAppender(t, b); a != nil {
		return a
	}
	if a := bytesAppender(t, b); a != nil {
		return a
	}
	return temporalAppender(t, b)
}

// listAppender reads a list of n items; of any number if n is negative.
func listAppender(item arrow.Field, b array.ListLikeBuilder, n int) appender {
	value := newAppender(item, b.ValueBuilder())
	return func(s *scanner) error {
		if !s.next('[') {
			return s.unexpected("a list")
		}
		b.Append(true)
		i := 0
		for ; !s.next(']'); i++ {
			if i > 0 {
				if err := s.expect(','); err != nil {
					return err
				}
			}
			if n >= 0 && i == n {
				return fmt.Errorf("a list of more than %d items, and the column's have %d", n, n)
			}
			if err := value(s); err != nil {
				return fmt.Errorf("item %d: %w", i, err)
			}
		}
		if n >= 0 && i < n {
			return fmt.Errorf("a list of %d items, and the column's have %d", i, n)
		}
		return nil
	}
}

func structAppender(t *arrow.StructType, b *array.StructBuilder) appender {
	o := object{names: make([]string, t.NumFields()), values: make([]appender, t.NumFields())}
	for i, f := range t.Fields() {
		o.names[i], o.values[i] = f.Name, newAppender(f, b.FieldBuilder(i))
	}
	return func(s *scanner) error {
		b.Append(true)
		return o.read(s)
	}
}

func mapAppender(t *arrow.MapType, b *array.MapBuilder) appender {
	entry := object{
		names:  []string{"key", "value"},
		values: []appender{newAppender(t.KeyField(), b.KeyBuilder()), newAppender(t.ItemField(), b.ItemBuilder())},
	}
	return func(s *scanner) error {
		if !s.next('[') {
			return s.unexpected(`a list of {"key","value"}`)
		}
		b.Append(true)
		for i := 0; !s.next(']'); i++ {
			if i > 0 {
				if err := s.expect(','); err != nil {
					return err
				}
			}
			if err := entry.read(s); err != nil {
				return fmt.Errorf("entry %d: %w", i, err)
			}
		}
		return nil
	}
}

// object reads an object with exactly the given members, in any order.
type object struct {
	names  []string
	values []appender
}

func (o object) read(s *scanner) error {
	if !s.next('{') {
		return s.unexpected("an object")
	}
	seen := make([]bool, len(o.names))
	for n := 0; !s.next('}'); n++ {
		if n > 0 {
			if err := s.expect(','); err != nil {
				return err
			}
		}
		name, err := s.str()
		if err != nil {
			return fmt.Errorf("the name of a field: %w", err)
		}
		i := 0
		for i < len(o.names) && o.names[i] != string(name) {
			i++
		}
		switch {
		case i == len(o.names):
			return fmt.Errorf("there is no field %s", shorten(name, 60))
		case seen[i]:
			return fmt.Errorf("field %q is there twice", name)
		}
		seen[i] = true
		if err := s.expect(':'); err != nil {
			return err
		}
		if err := o.values[i](s); err != nil {
			return fmt.Errorf("field %q: %w", name, err)
		}
	}
	for i, name := range o.names {
		if !seen[i] {
			return fmt.Errorf("field %q is missing: write null for no value", name)
		}
	}
	return nil
}
