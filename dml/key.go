package dml

import (
	"encoding/binary"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/rehome-db/rehome/table"
)

// keyReader makes comparable keys of the key columns of a batch: two rows have equal
// keys, none of them null, exactly if they have equal bytes. All NaN are one key, whatever
// their bits: what NaN a program writes is not its choice (JSON has one, and processors
// make another), and a table must match itself. The zeros are two keys, as in stock
// engines.
type keyReader struct {
	names   []string
	columns []arrow.Array
	parts   []keyPart
	buf     []byte
}

// keyPart appends the bytes of row i of a column, in a form that no other value of
// the column has as its beginning: keys of several columns are put together of them.
type keyPart func(buf []byte, i int) []byte

// checkKeyType says why a column cannot be a key, or nil.
func checkKeyType(f table.Field) error {
	t := f.Type
	if d, ok := t.(*arrow.DictionaryType); ok {
		t = d.ValueType
	}
	switch t.(type) {
	case *arrow.BooleanType, *arrow.StringType, *arrow.LargeStringType, *arrow.BinaryType, *arrow.LargeBinaryType:
		return nil
	case arrow.NestedType, arrow.ExtensionType, *arrow.DictionaryType, *arrow.NullType:
	case arrow.FixedWidthDataType:
		return nil
	}
	return table.Unsupportedf("column %q of type %s cannot be a key", f.Name, f.Type)
}

// newKeyReader reads keys of a record that has the given columns, of types that
// checkKeyType has passed.
func newKeyReader(rec arrow.RecordBatch, names []string) (*keyReader, error) {
	k := &keyReader{names: names}
	for _, name := range names {
		c, err := column(rec, name)
		if err != nil {
			return nil, err
		}
		part, err := partOf(c)
		if err != nil {
			return nil, fmt.Errorf("column %q: %w", name, err)
		}
		k.columns, k.parts = append(k.columns, c), append(k.parts, part)
	}
	return k, nil
}

// key returns row i's key, which is valid until the next call; false if some part of
// it is null: such a row is equal to none, itself included.
func (k *keyReader) key(i int) ([]byte, bool) {
	k.buf = k.buf[:0]
	for j, c := range k.columns {
		if nullAt(c, i) {
			return nil, false
		}
		k.buf = k.parts[j](k.buf, i)
	}
	return k.buf, true
}

// text says what row i's key is, for messages.
func (k *keyReader) text(i int) string {
	var out []string
	for j, c := range k.columns {
		v := c.ValueStr(i)
		if nullAt(c, i) {
			v = "null"
		} else if arrow.IsBaseBinary(c.DataType().ID()) {
			v = strconv.Quote(v)
		}
		out = append(out, k.names[j]+" = "+v)
	}
	return strings.Join(out, ", ")
}

// nullAt says whether row i is null, in the dictionary if not by itself.
func nullAt(c arrow.Array, i int) bool {
	if c.IsNull(i) {
		return true
	}
	d, ok := c.(*array.Dictionary)
	return ok && d.Dictionary().IsNull(d.GetValueIndex(i))
}

func partOf(c arrow.Array) (keyPart, error) {
	switch c := c.(type) {
	case *array.Boolean:
		return func(buf []byte, i int) []byte {
			if c.Value(i) {
				return append(buf, 1)
			}
			return append(buf, 0)
		}, nil
	case *array.String:
		return func(buf []byte, i int) []byte { return appendText(buf, c.Value(i)) }, nil
	case *array.LargeString:
		return func(buf []byte, i int) []byte { return appendText(buf, c.Value(i)) }, nil
	case *array.Binary:
		return func(buf []byte, i int) []byte { return appendText(buf, c.Value(i)) }, nil
	case *array.LargeBinary:
		return func(buf []byte, i int) []byte { return appendText(buf, c.Value(i)) }, nil
	case *array.Float16:
		return func(buf []byte, i int) []byte {
			v := c.Value(i).Uint16()
			if v&0x7fff > 0x7c00 {
				v = 0x7e00
			}
			return binary.LittleEndian.AppendUint16(buf, v)
		}, nil
	case *array.Float32:
		return func(buf []byte, i int) []byte {
			v := math.Float32bits(c.Value(i))
			if v&(1<<31-1) > 0x7f800000 {
				v = 0x7fc00000
			}
			return binary.LittleEndian.AppendUint32(buf, v)
		}, nil
	case *array.Float64:
		return func(buf []byte, i int) []byte {
			v := math.Float64bits(c.Value(i))
			if v&(1<<63-1) > 0x7ff0<<48 {
				v = 0x7ff8 << 48
			}
			return binary.LittleEndian.AppendUint64(buf, v)
		}, nil
	case *array.Dictionary:
		value, err := partOf(c.Dictionary())
		if err != nil {
			return nil, err
		}
		return func(buf []byte, i int) []byte { return value(buf, c.GetValueIndex(i)) }, nil
	}
	// Everything else of a fixed width is its bytes.
	t, ok := c.DataType().(arrow.FixedWidthDataType)
	if !ok || len(c.Data().Buffers()) < 2 {
		return nil, table.Unsupportedf("type %s cannot be a key", c.DataType())
	}
	if c.Len() == c.NullN() {
		return func(buf []byte, _ int) []byte { return buf }, nil
	}
	width, offset, values := t.Bytes(), c.Data().Offset(), c.Data().Buffers()[1].Bytes()
	return func(buf []byte, i int) []byte {
		at := (offset + i) * width
		return append(buf, values[at:at+width]...)
	}, nil
}

// appendText appends bytes of any length behind their number.
func appendText[T ~string | ~[]byte](buf []byte, v T) []byte {
	return append(binary.AppendUvarint(buf, uint64(len(v))), v...)
}
