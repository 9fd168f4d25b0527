package rowjson

import (
	"fmt"
	"math/big"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/rehome-db/rehome/table"
)

// Encoding chooses how values are written.
type Encoding int

// The encodings; see the package documentation.
const (
	Plain Encoding = iota
	Raw
)

// RowAddrName is the key under which [Encoder.AppendRow] puts the row's address.
const RowAddrName = "_rowaddr"

// Encoder writes the rows of record batches of one schema. It has no state that
// changes, so it is safe for concurrent use.
type Encoder struct {
	enc Encoding
	// keys are the quoted column names with their colon, made once.
	keys [][]byte
}

// New returns an encoder for batches of the given schema. A column of a type
// that has no encoding is ErrUnsupported, by name, before any row is read.
func New(schema *arrow.Schema, enc Encoding) (*Encoder, error) {
	e := &Encoder{enc: enc, keys: make([][]byte, schema.NumFields())}
	for i, f := range schema.Fields() {
		if err := check(f.Type); err != nil {
			return nil, table.Unsupportedf("rowjson: column %q: %w", f.Name, err)
		}
		e.keys[i] = append(appendString(nil, f.Name), ':')
	}
	return e, nil
}

// AppendRow appends row i of rec as one JSON object, without a line end. addr,
// if not nil, is added as "_rowaddr".
func (e *Encoder) AppendRow(dst []byte, rec arrow.RecordBatch, i int, addr *table.RowAddr) ([]byte, error) {
	if int(rec.NumCols()) != len(e.keys) || i < 0 || i >= int(rec.NumRows()) {
		return dst, fmt.Errorf("rowjson: row %d of a batch of %d rows and %d columns, want %d columns",
			i, rec.NumRows(), rec.NumCols(), len(e.keys))
	}
	dst = append(dst, '{')
	for c, key := range e.keys {
		if c > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, key...)
		var err error
		if dst, err = e.appendValue(dst, rec.Column(c), i); err != nil {
			return dst, fmt.Errorf("rowjson: column %s row %d: %w", rec.ColumnName(c), i, err)
		}
	}
	if addr != nil {
		if len(e.keys) > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, `"`+RowAddrName+`":`...)
		dst = e.appendUint64(dst, uint64(*addr))
	}
	return append(dst, '}'), nil
}

// check walks a type and names the first part of it that cannot be written.
func check(t arrow.DataType) error {
	switch t := t.(type) {
	case arrow.ExtensionType:
		return check(t.StorageType())
	case *arrow.DictionaryType:
		return check(t.ValueType)
	case *arrow.RunEndEncodedType:
		return check(t.Encoded())
	case *arrow.StructType:
		for _, f := range t.Fields() {
			if err := check(f.Type); err != nil {
				return fmt.Errorf("field %q: %w", f.Name, err)
			}
		}
		return nil
	case arrow.ListLikeType:
		return check(t.Elem())
	}
	switch t.ID() {
	case arrow.SPARSE_UNION, arrow.DENSE_UNION, arrow.INTERVAL_MONTHS, arrow.INTERVAL_DAY_TIME, arrow.INTERVAL_MONTH_DAY_NANO:
		return fmt.Errorf("values of type %s have no JSON form here", t)
	}
	return nil
}

// appendValue appends the value at i of a. With appendScalar and appendTime it is the
// one place that knows every array type; how a value is written is in scalar.go and
// temporal.go.
func (e *Encoder) appendValue(dst []byte, a arrow.Array, i int) ([]byte, error) {
	// The types whose own validity bits do not tell the whole truth come before
	// the null check.
	switch a := a.(type) {
	case *array.Null:
		return append(dst, "null"...), nil
	case array.ExtensionArray:
		return e.appendValue(dst, a.Storage(), i)
	case *array.Dictionary:
		if a.IsNull(i) {
			return append(dst, "null"...), nil
		}
		k := a.GetValueIndex(i)
		if k < 0 || k >= a.Dictionary().Len() {
			return dst, table.Corruptf("dictionary key %d is outside the dictionary of %d values", k, a.Dictionary().Len())
		}
		return e.appendValue(dst, a.Dictionary(), k)
	case *array.RunEndEncoded:
		return e.appendValue(dst, a.Values(), a.GetPhysicalIndex(i))
	}
	if a.IsNull(i) {
		return append(dst, "null"...), nil
	}
	switch a := a.(type) {
	case *array.Struct:
		return e.appendStruct(dst, a, i)
	case *array.Map:
		return e.appendMap(dst, a, i)
	case array.ListLike:
		return e.appendList(dst, a, i)
	}
	return e.appendScalar(dst, a, i)
}

// appendScalar appends a value that is not nested and not null.
func (e *Encoder) appendScalar(dst []byte, a arrow.Array, i int) ([]byte, error) {
	switch a := a.(type) {
	case *array.Boolean:
		if a.Value(i) {
			return append(dst, "true"...), nil
		}
		return append(dst, "false"...), nil
	case *array.Int8:
		return appendInt(dst, int64(a.Value(i))), nil
	case *array.Int16:
		return appendInt(dst, int64(a.Value(i))), nil
	case *array.Int32:
		return appendInt(dst, int64(a.Value(i))), nil
	case *array.Int64:
		return e.appendInt64(dst, a.Value(i)), nil
	case *array.Uint8:
		return appendInt(dst, int64(a.Value(i))), nil
	case *array.Uint16:
		return appendInt(dst, int64(a.Value(i))), nil
	case *array.Uint32:
		return appendInt(dst, int64(a.Value(i))), nil
	case *array.Uint64:
		return e.appendUint64(dst, a.Value(i)), nil
	case *array.Float16:
		return e.appendFloat(dst, halfToDouble(a.Value(i).Uint16())), nil
	case *array.Float32:
		return e.appendFloat(dst, float64(a.Value(i))), nil
	case *array.Float64:
		return e.appendFloat(dst, a.Value(i)), nil

	case *array.String:
		return appendString(dst, a.Value(i)), nil
	case *array.LargeString:
		return appendString(dst, a.Value(i)), nil
	case *array.StringView:
		return appendString(dst, a.Value(i)), nil
	case *array.Binary:
		return e.appendBinary(dst, a.Value(i)), nil
	case *array.LargeBinary:
		return e.appendBinary(dst, a.Value(i)), nil
	case *array.BinaryView:
		return e.appendBinary(dst, a.Value(i)), nil
	case *array.FixedSizeBinary:
		return e.appendBinary(dst, a.Value(i)), nil

	case *array.Decimal32:
		return e.appendDecimal(dst, big.NewInt(int64(a.Value(i))), 4, a.DataType()), nil
	case *array.Decimal64:
		return e.appendDecimal(dst, big.NewInt(int64(a.Value(i))), 8, a.DataType()), nil
	case *array.Decimal128:
		return e.appendDecimal(dst, a.Value(i).BigInt(), 16, a.DataType()), nil
	case *array.Decimal256:
		return e.appendDecimal(dst, a.Value(i).BigInt(), 32, a.DataType()), nil
	}
	return e.appendTime(dst, a, i)
}

// appendTime appends a date, a time or a duration.
func (e *Encoder) appendTime(dst []byte, a arrow.Array, i int) ([]byte, error) {
	switch a := a.(type) {
	case *array.Date32:
		return e.appendDate32(dst, a.Value(i)), nil
	case *array.Date64:
		return e.appendDate64(dst, a.Value(i)), nil
	case *array.Time32:
		return e.appendTime32(dst, a.Value(i), a.DataType().(*arrow.Time32Type).Unit), nil
	case *array.Time64:
		return e.appendTime64(dst, a.Value(i), a.DataType().(*arrow.Time64Type).Unit), nil
	case *array.Timestamp:
		return e.appendTimestamp(dst, a.Value(i), a.DataType().(*arrow.TimestampType)), nil
	case *array.Duration:
		return e.appendDuration(dst, a.Value(i), a.DataType().(*arrow.DurationType).Unit), nil
	}
	return dst, table.Unsupportedf("values of type %s have no JSON form here", a.DataType())
}

func (e *Encoder) appendList(dst []byte, a array.ListLike, i int) ([]byte, error) {
	from, to := a.ValueOffsets(i)
	values := a.ListValues()
	dst = append(dst, '[')
	for j := from; j < to; j++ {
		if j > from {
			dst = append(dst, ',')
		}
		var err error
		if dst, err = e.appendValue(dst, values, int(j)); err != nil {
			return dst, err
		}
	}
	return append(dst, ']'), nil
}

func (e *Encoder) appendStruct(dst []byte, a *array.Struct, i int) ([]byte, error) {
	dst = append(dst, '{')
	for c, f := range a.DataType().(*arrow.StructType).Fields() {
		if c > 0 {
			dst = append(dst, ',')
		}
		dst = append(appendString(dst, f.Name), ':')
		var err error
		// Field arrays of an array.Struct are sliced already: same index.
		if dst, err = e.appendValue(dst, a.Field(c), i); err != nil {
			return dst, fmt.Errorf("field %s: %w", f.Name, err)
		}
	}
	return append(dst, '}'), nil
}

func (e *Encoder) appendMap(dst []byte, a *array.Map, i int) ([]byte, error) {
	from, to := a.ValueOffsets(i)
	dst = append(dst, '[')
	for j := from; j < to; j++ {
		if j > from {
			dst = append(dst, ',')
		}
		var err error
		dst = append(dst, `{"key":`...)
		if dst, err = e.appendValue(dst, a.Keys(), int(j)); err != nil {
			return dst, err
		}
		dst = append(dst, `,"value":`...)
		if dst, err = e.appendValue(dst, a.Items(), int(j)); err != nil {
			return dst, err
		}
		dst = append(dst, '}')
	}
	return append(dst, ']'), nil
}
