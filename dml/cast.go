package dml

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"unicode/utf8"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/float16"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/rehome-db/rehome/internal/gather"
	"github.com/rehome-db/rehome/table"
)

// Casts are what assignments need, with the stock engine's meaning: numbers into
// numbers, which must be in range and lose a fraction; text into what it says and
// anything into text; times into times of another unit; lists item by item. They are
// written out here because Arrow's own come with file formats and network protocols,
// which an engine would carry along.

// cast returns values as values of a field's type; a value that does not fit is an
// error. The caller releases the result.
func cast(values arrow.Array, f table.Field) (arrow.Array, error) {
	out, err := castTo(values, f.Type)
	if err != nil {
		return nil, fmt.Errorf("column %q: %w", f.Name, err)
	}
	return out, nil
}

func castTo(values arrow.Array, to arrow.DataType) (arrow.Array, error) {
	from := values.DataType()
	switch {
	case arrow.TypeEqual(from, to):
		values.Retain()
		return values, nil
	case from.ID() == arrow.NULL:
		return gather.Nulls(memory.DefaultAllocator, to, values.Len()), nil
	}
	if list, ok := values.(array.ListLike); ok {
		return castList(list, to)
	}
	if d, ok := to.(*arrow.DictionaryType); ok {
		return castDictionary(values, d)
	}
	put, b, err := castFunc(values, to)
	if err != nil {
		return nil, err
	}
	defer b.Release()
	b.Reserve(values.Len())
	for i := range values.Len() {
		if values.IsNull(i) {
			b.AppendNull()
			continue
		}
		if err := put(i); err != nil {
			return nil, fmt.Errorf("%s %q as %s: %w", from, values.ValueStr(i), to, err)
		}
	}
	return b.NewArray(), nil
}

// refused says that there is no such cast.
func refused(from, to arrow.DataType) error {
	return table.Unsupportedf("values of type %s cannot become %s", from, to)
}

// castFunc is what appends value i to a new builder of the type, which the caller
// releases.
func castFunc(values arrow.Array, to arrow.DataType) (put func(i int) error, b array.Builder, err error) {
	if from := values.DataType().ID(); arrow.IsNested(from) || from == arrow.DICTIONARY || from == arrow.EXTENSION ||
		arrow.IsNested(to.ID()) || to.ID() == arrow.EXTENSION || to.ID() == arrow.NULL {
		return nil, nil, refused(values.DataType(), to)
	}
	b = array.NewBuilder(memory.DefaultAllocator, to)
	if put = castText(values, b); put == nil {
		put = castTime(values, b)
	}
	if put == nil {
		put = castNumber(values, b)
	}
	if put == nil {
		b.Release()
		return nil, nil, refused(values.DataType(), to)
	}
	return put, b, nil
}

// castText is castFunc where one of the two is text or bytes.
func castText(values arrow.Array, b array.Builder) func(i int) error {
	text := func(i int) string { return values.ValueStr(i) }
	isText, isBytes := false, false
	switch v := values.(type) {
	case array.StringLike:
		text, isText = v.Value, true
	case *array.Binary:
		text, isBytes = v.ValueString, true
	case *array.LargeBinary:
		text, isBytes = v.ValueString, true
	}
	switch b := b.(type) {
	case array.StringLikeBuilder:
		return func(i int) error {
			s := text(i)
			if isBytes && !utf8.ValidString(s) {
				return errors.New("it is not UTF-8")
			}
			b.Append(s)
			return nil
		}
	case *array.BinaryBuilder: // of both sizes of offset
		if !isText && !isBytes {
			return nil
		}
		return func(i int) error { b.Append([]byte(text(i))); return nil }
	case *array.FixedSizeBinaryBuilder:
		if !isBytes {
			return nil
		}
		return func(i int) error {
			if width := b.Type().(*arrow.FixedSizeBinaryType).ByteWidth; len(text(i)) != width {
				return fmt.Errorf("it has %d bytes, not %d", len(text(i)), width)
			}
			b.Append([]byte(text(i)))
			return nil
		}
	}
	if !isText {
		return nil
	}
	return func(i int) error {
		if text(i) == array.NullValueStr { // which the builder takes for a null
			return strconv.ErrSyntax
		}
		return b.AppendValueFromString(text(i))
	}
}

// castNumber is castFunc for numbers and truth values.
func castNumber(values arrow.Array, b array.Builder) func(i int) error {
	get := numberOf(values)
	if get == nil {
		return nil
	}
	switch b := b.(type) {
	case *array.BooleanBuilder:
		return func(i int) error { b.Append(!get(i).isZero()); return nil }
	case *array.Int8Builder:
		return putSigned(get, b.Append, 8)
	case *array.Int16Builder:
		return putSigned(get, b.Append, 16)
	case *array.Int32Builder:
		return putSigned(get, b.Append, 32)
	case *array.Int64Builder:
		return putSigned(get, b.Append, 64)
	case *array.Uint8Builder:
		return putUnsigned(get, b.Append, 8)
	case *array.Uint16Builder:
		return putUnsigned(get, b.Append, 16)
	case *array.Uint32Builder:
		return putUnsigned(get, b.Append, 32)
	case *array.Uint64Builder:
		return putUnsigned(get, b.Append, 64)
	case *array.Float16Builder:
		return func(i int) error { b.Append(float16.New(float32(get(i).float()))); return nil }
	case *array.Float32Builder:
		return func(i int) error { b.Append(float32(get(i).float())); return nil }
	case *array.Float64Builder:
		return func(i int) error { b.Append(get(i).float()); return nil }
	case *array.Decimal128Builder, *array.Decimal256Builder:
		return func(i int) error { return b.AppendValueFromString(get(i).decimal()) }
	}
	return nil
}

// number is a number of any type: a whole one, with its sign apart, or f.
type number struct {
	whole    bool
	negative bool
	abs      uint64
	f        float64
}

func signed(v int64) number {
	if v < 0 {
		return number{whole: true, negative: true, abs: uint64(-(v + 1)) + 1}
	}
	return number{whole: true, abs: uint64(v)}
}

func unsigned(v uint64) number { return number{whole: true, abs: v} }

func (n number) isZero() bool { return n.whole && n.abs == 0 || !n.whole && n.f == 0 }

func (n number) float() float64 {
	switch {
	case !n.whole:
		return n.f
	case n.negative:
		return -float64(n.abs)
	default:
		return float64(n.abs)
	}
}

// decimal is the number in digits.
func (n number) decimal() string {
	switch {
	case !n.whole:
		return strconv.FormatFloat(n.f, 'f', -1, 64)
	case n.negative:
		return "-" + strconv.FormatUint(n.abs, 10)
	default:
		return strconv.FormatUint(n.abs, 10)
	}
}

// truncate is the number without its fraction; false if that has more than 64 bits.
func (n number) truncate() (number, bool) {
	if n.whole {
		return n, true
	}
	f := math.Trunc(n.f)
	if math.IsNaN(f) || math.Abs(f) >= 1<<64 {
		return n, false
	}
	return number{whole: true, negative: f < 0, abs: uint64(math.Abs(f))}, true
}

var errRange = errors.New("it is out of range")

func putSigned[T int8 | int16 | int32 | int64](get func(int) number, put func(T), bits int) func(int) error {
	return func(i int) error {
		n, ok := get(i).truncate()
		most := uint64(1)<<(bits-1) - 1
		switch {
		case !ok, !n.negative && n.abs > most, n.negative && n.abs > most+1:
			return errRange
		case n.negative:
			put(T(-int64(n.abs-1) - 1)) // abs is not 0
		default:
			put(T(n.abs))
		}
		return nil
	}
}

func putUnsigned[T uint8 | uint16 | uint32 | uint64](get func(int) number, put func(T), bits int) func(int) error {
	return func(i int) error {
		n, ok := get(i).truncate()
		if !ok || n.negative || n.abs > math.MaxUint64>>(64-bits) {
			return errRange
		}
		put(T(n.abs))
		return nil
	}
}

// numberOf reads numbers and truth values; nil if values are none.
func numberOf(values arrow.Array) func(i int) number {
	switch v := values.(type) {
	case *array.Boolean:
		return func(i int) number {
			if v.Value(i) {
				return unsigned(1)
			}
			return unsigned(0)
		}
	case *array.Int8:
		return func(i int) number { return signed(int64(v.Value(i))) }
	case *array.Int16:
		return func(i int) number { return signed(int64(v.Value(i))) }
	case *array.Int32:
		return func(i int) number { return signed(int64(v.Value(i))) }
	case *array.Int64:
		return func(i int) number { return signed(v.Value(i)) }
	case *array.Uint8:
		return func(i int) number { return unsigned(uint64(v.Value(i))) }
	case *array.Uint16:
		return func(i int) number { return unsigned(uint64(v.Value(i))) }
	case *array.Uint32:
		return func(i int) number { return unsigned(uint64(v.Value(i))) }
	case *array.Uint64:
		return func(i int) number { return unsigned(v.Value(i)) }
	case *array.Float16:
		return func(i int) number { return number{f: float64(v.Value(i).Float32())} }
	case *array.Float32:
		return func(i int) number { return number{f: float64(v.Value(i))} }
	case *array.Float64:
		return func(i int) number { return number{f: v.Value(i)} }
	case *array.Decimal128:
		scale := v.DataType().(*arrow.Decimal128Type).Scale
		return func(i int) number { return fromDigits(v.Value(i).ToString(scale)) }
	case *array.Decimal256:
		scale := v.DataType().(*arrow.Decimal256Type).Scale
		return func(i int) number { return fromDigits(v.Value(i).ToString(scale)) }
	}
	return nil
}

// fromDigits reads a decimal as a number: exactly if it is whole and fits.
func fromDigits(s string) number {
	if v, err := strconv.ParseInt(s, 10, 64); err == nil {
		return signed(v)
	}
	f, _ := strconv.ParseFloat(s, 64) // its digits are a number; too large is infinite
	return number{f: f}
}
