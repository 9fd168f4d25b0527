package rowjson_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"math/big"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/decimal256"
	"github.com/apache/arrow-go/v18/arrow/float16"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/rehome-db/rehome/internal/rowjson"
	"github.com/rehome-db/rehome/table"
)

// lines encodes a record batch, a row a line.
func lines(t require.TestingT, enc rowjson.Encoding, rec arrow.RecordBatch) string {
	e, err := rowjson.New(rec.Schema(), enc)
	require.NoError(t, err)
	var out []byte
	for i := range int(rec.NumRows()) {
		out, err = e.AppendRow(out, rec, i, nil)
		require.NoError(t, err)
		out = append(out, '\n')
	}
	return string(out)
}

// decode reads all batches; the caller need not release them.
func decode(schema *arrow.Schema, text string) (out []arrow.RecordBatch, err error) {
	for rec, err := range rowjson.NewDecoder(strings.NewReader(text), schema).Batches() {
		if err != nil {
			return out, err
		}
		rec.Retain()
		out = append(out, rec)
	}
	return out, nil
}

// drawType draws a type that can be read and written.
func drawType(t *rapid.T, depth int) arrow.DataType {
	unit := func() arrow.TimeUnit { return arrow.TimeUnit(rapid.IntRange(0, 3).Draw(t, "unit")) }
	kinds := 25
	if depth == 0 {
		kinds = 20
	}
	switch rapid.IntRange(0, kinds).Draw(t, "kind") {
	case 0:
		return arrow.FixedWidthTypes.Boolean
	case 1:
		return rapid.SampledFrom([]arrow.DataType{arrow.PrimitiveTypes.Int8, arrow.PrimitiveTypes.Int16, arrow.PrimitiveTypes.Int32, arrow.PrimitiveTypes.Int64}).Draw(t, "int")
	case 2:
		return rapid.SampledFrom([]arrow.DataType{arrow.PrimitiveTypes.Uint8, arrow.PrimitiveTypes.Uint16, arrow.PrimitiveTypes.Uint32, arrow.PrimitiveTypes.Uint64}).Draw(t, "uint")
	case 3:
		return arrow.FixedWidthTypes.Float16
	case 4:
		return arrow.PrimitiveTypes.Float32
	case 5:
		return arrow.PrimitiveTypes.Float64
	case 6:
		return arrow.BinaryTypes.LargeString
	case 7:
		return arrow.BinaryTypes.Binary
	case 8:
		return &arrow.FixedSizeBinaryType{ByteWidth: rapid.IntRange(1, 9).Draw(t, "width")}
	case 9:
		return &arrow.Decimal128Type{Precision: 38, Scale: int32(rapid.IntRange(-4, 38).Draw(t, "scale"))}
	case 10:
		return &arrow.Decimal256Type{Precision: 76, Scale: int32(rapid.IntRange(-4, 76).Draw(t, "scale"))}
	case 11:
		return &arrow.Decimal32Type{Precision: 9, Scale: int32(rapid.IntRange(0, 9).Draw(t, "scale"))}
	case 12:
		return &arrow.Decimal64Type{Precision: 18, Scale: int32(rapid.IntRange(0, 18).Draw(t, "scale"))}
	case 13:
		return arrow.FixedWidthTypes.Date32
	case 14:
		return arrow.FixedWidthTypes.Date64
	case 15:
		return &arrow.Time32Type{Unit: arrow.TimeUnit(rapid.IntRange(0, 1).Draw(t, "unit"))}
	case 16:
		return &arrow.Time64Type{Unit: arrow.TimeUnit(rapid.IntRange(2, 3).Draw(t, "unit"))}
	case 17:
		return &arrow.DurationType{Unit: unit()}
	case 18, 19:
		zone := rapid.SampledFrom([]string{"", "UTC", "Europe/Berlin", "America/St_Johns", "+05:30", "Nowhere/AtAll"}).Draw(t, "zone")
		return &arrow.TimestampType{Unit: unit(), TimeZone: zone}
	case 20:
		return arrow.Null
	case 21, 22:
		return arrow.ListOfField(arrow.Field{Name: "item", Type: drawType(t, depth-1), Nullable: true})
	case 23:
		n, item := rapid.IntRange(1, 3).Draw(t, "n"), arrow.Field{Name: "item", Type: drawType(t, depth-1)}
		// Values of the null type are null.
		item.Nullable = item.Type.ID() == arrow.NULL || rapid.Bool().Draw(t, "nullable")
		return arrow.FixedSizeListOfField(int32(n), item)
	case 24:
		return arrow.MapOf(arrow.BinaryTypes.String, drawType(t, depth-1))
	default:
		var fields []arrow.Field
		for i := range rapid.IntRange(1, 3).Draw(t, "fields") {
			fields = append(fields, arrow.Field{Name: fmt.Sprintf("f%d \"x\"", i), Type: drawType(t, depth-1), Nullable: true})
		}
		return arrow.StructOf(fields...)
	}
}

// drawValue appends a value, often one from the ends of the range.
func drawValue(t *rapid.T, b array.Builder, nullable bool) {
	if nullable && rapid.IntRange(0, 5).Draw(t, "null") == 0 {
		b.AppendNull()
		return
	}
	i64 := func() int64 {
		return rapid.OneOf(rapid.Int64(), rapid.SampledFrom([]int64{math.MinInt64, math.MinInt64 + 1, -1, 0, 1, math.MaxInt64}), rapid.Int64Range(-1e6, 1e6)).Draw(t, "v")
	}
	f64 := func() float64 {
		return rapid.OneOf(rapid.Float64(), rapid.SampledFrom([]float64{math.NaN(), math.Inf(1), math.Inf(-1), math.Copysign(0, -1), math.SmallestNonzeroFloat64, 0.1})).Draw(t, "f")
	}
	big10 := func(precision int32) *big.Int {
		limit := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(precision)), nil)
		v := new(big.Int).SetBytes(rapid.SliceOfN(rapid.Byte(), 0, 33).Draw(t, "big"))
		if v.Mod(v, limit); rapid.Bool().Draw(t, "negative") {
			v.Neg(v)
		}
		return v
	}
	switch b := b.(type) {
	case *array.NullBuilder:
		b.AppendNull()
	case *array.BooleanBuilder:
		b.Append(rapid.Bool().Draw(t, "b"))
	case *array.Int8Builder:
		b.Append(int8(i64()))
	case *array.Int16Builder:
		b.Append(int16(i64()))
	case *array.Int32Builder:
		b.Append(int32(i64()))
	case *array.Int64Builder:
		b.Append(i64())
	case *array.Uint8Builder:
		b.Append(uint8(i64()))
	case *array.Uint16Builder:
		b.Append(uint16(i64()))
	case *array.Uint32Builder:
		b.Append(uint32(i64()))
	case *array.Uint64Builder:
		b.Append(uint64(i64()))
	case *array.Float16Builder:
		b.Append(float16.FromBits(uint16(i64())))
	case *array.Float32Builder:
		b.Append(math.Float32frombits(uint32(i64())))
	case *array.Float64Builder:
		b.Append(f64())
	case *array.StringBuilder:
		b.Append(rapid.String().Draw(t, "s"))
	case *array.LargeStringBuilder:
		b.Append(rapid.String().Draw(t, "s"))
	case *array.BinaryBuilder:
		b.Append(rapid.SliceOf(rapid.Byte()).Draw(t, "bytes"))
	case *array.FixedSizeBinaryBuilder:
		n := b.Type().(*arrow.FixedSizeBinaryType).ByteWidth
		b.Append(rapid.SliceOfN(rapid.Byte(), n, n).Draw(t, "bytes"))
	case *array.Decimal32Builder:
		b.Append(decimal.Decimal32(big10(9).Int64()))
	case *array.Decimal64Builder:
		b.Append(decimal.Decimal64(big10(18).Int64()))
	case *array.Decimal128Builder:
		b.Append(decimal128.FromBigInt(big10(38)))
	case *array.Decimal256Builder:
		b.Append(decimal256.FromBigInt(big10(76)))
	case *array.Date32Builder:
		b.Append(arrow.Date32(i64()))
	case *array.Date64Builder:
		b.Append(arrow.Date64(i64()))
	case *array.Time32Builder:
		b.Append(arrow.Time32(i64()))
	case *array.Time64Builder:
		b.Append(arrow.Time64(i64()))
	case *array.TimestampBuilder:
		b.Append(arrow.Timestamp(i64()))
	case *array.DurationBuilder:
		b.Append(arrow.Duration(i64()))
	case *array.StructBuilder:
		b.Append(true)
		for i := range b.NumField() {
			drawValue(t, b.FieldBuilder(i), true)
		}
	case *array.MapBuilder:
		b.Append(true)
		for range rapid.IntRange(0, 3).Draw(t, "entries") {
			drawValue(t, b.KeyBuilder(), false)
			drawValue(t, b.ItemBuilder(), true)
		}
	case *array.FixedSizeListBuilder:
		b.Append(true)
		fixed := b.Type().(*arrow.FixedSizeListType)
		for range fixed.Len() {
			drawValue(t, b.ValueBuilder(), fixed.ElemField().Nullable)
		}
	case *array.ListBuilder:
		b.Append(true)
		for range rapid.IntRange(0, 3).Draw(t, "items") {
			drawValue(t, b.ValueBuilder(), true)
		}
	default:
		t.Fatalf("no values of type %s", b.Type())
	}
}

// What was written is read back bit by bit, but for the bits inside a NaN.
func TestWhatIsWrittenIsReadBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var fields []arrow.Field
		for i := range rapid.IntRange(1, 3).Draw(t, "columns") {
			fields = append(fields, arrow.Field{Name: fmt.Sprintf("c%d", i), Type: drawType(t, 2), Nullable: true})
		}
		schema := arrow.NewSchema(fields, nil)
		b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
		defer b.Release()
		rows := rapid.IntRange(1, 4).Draw(t, "rows")
		for i := range fields {
			for range rows {
				drawValue(t, b.Field(i), true)
			}
		}
		rec := b.NewRecordBatch()
		defer rec.Release()
		text := lines(t, rowjson.Plain, rec)
		back, err := decode(schema, text)
		require.NoError(t, err, "%s", text)
		require.Len(t, back, 1)
		require.True(t, back[0].Schema().Equal(schema))
		require.Equal(t, lines(t, rowjson.Raw, rec), lines(t, rowjson.Raw, back[0]), "%s", text)
		require.Equal(t, text, lines(t, rowjson.Plain, back[0]))
	})
}

func TestHalfFloatsAreRoundedToTheNearest(t *testing.T) {
	schema := arrow.NewSchema([]arrow.Field{{Name: "h", Type: arrow.FixedWidthTypes.Float16, Nullable: true}}, nil)
	for text, want := range map[string]uint16{
		"1": 0x3c00, "-1": 0xbc00, "0.1": 0x2e66, "65504": 0x7bff, "65519.99": 0x7bff, "-0.0": 0x8000,
		"1.00048828125":        0x3c00, // half way: to even
		"1.00146484375":        0x3c02, // half way: to even
		"1.0004883":            0x3c01,
		"2047.5":               0x6800, // carries into the exponent
		"5.960464477539063e-8": 0x0001, "2.9e-8": 0, "2.99e-8": 0x0001,
		"0.00006103515625": 0x0400, "0.0000610": 0x03ff, "0.000061034": 0x0400,
		`"Infinity"`: 0x7c00, `"NaN"`: 0x7e00,
	} {
		got, err := decode(schema, `{"h":`+text+`}`)
		require.NoError(t, err, text)
		require.Equal(t, want, got[0].Column(0).(*array.Float16).Value(0).Uint16(), text)
	}
	_, err := decode(schema, `{"h":65520}`)
	require.ErrorContains(t, err, "65520 is outside the range of float16")
}

func TestRowsMayComeInOtherSpellings(t *testing.T) {
	schema := arrow.NewSchema([]arrow.Field{
		{Name: "id", Type: arrow.PrimitiveTypes.Int64},
		{Name: "name", Type: arrow.BinaryTypes.String, Nullable: true},
		{Name: "price", Type: &arrow.Decimal128Type{Precision: 10, Scale: 2}, Nullable: true},
		{Name: "at", Type: &arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "UTC"}, Nullable: true},
	}, nil)
	for text, want := range map[string]string{
		// Any order, any space, Windows line ends, a byte order mark, empty lines.
		"\ufeff\r\n { \"name\" : \"a\" , \"id\" : 1 }\r\n\n{\"id\":2,\"name\":null}": "{\"id\":1,\"name\":\"a\"}\n{\"id\":2,\"name\":null}\n",
		// 64-bit integers and decimals as others write them.
		`{"id":"9007199254740993","price":12.5}`: `{"id":9007199254740993,"price":"12.50"}` + "\n",
		`{"price":"1.200"}`:                      `{"price":"1.20"}` + "\n",
		// Fewer digits, another offset.
		`{"at":"2024-02-29T01:30:00+02:30"}`:    `{"at":"2024-02-28T23:00:00.000000Z"}` + "\n",
		`{"at":"2024-02-29T01:30:00.5000000Z"}`: `{"at":"2024-02-29T01:30:00.500000Z"}` + "\n",
		`{"name":"\u00e9\ud83d\ude00\/"}`:       `{"name":"é😀/"}` + "\n",
	} {
		got, err := decode(schema, text)
		require.NoError(t, err, text)
		require.Len(t, got, 1)
		require.Equal(t, want, lines(t, rowjson.Plain, got[0]), text)
	}
	got, err := decode(schema, "\n\n")
	require.NoError(t, err)
	require.Empty(t, got)
}

func TestLongInputComesInBatches(t *testing.T) {
	schema := arrow.NewSchema([]arrow.Field{{Name: "n", Type: arrow.PrimitiveTypes.Int64}}, nil)
	var text strings.Builder
	const rows = 20000
	for i := range rows {
		fmt.Fprintf(&text, "{\"n\":%d}\n", i)
	}
	got, err := decode(schema, text.String())
	require.NoError(t, err)
	require.Greater(t, len(got), 1)
	next := int64(0)
	for _, rec := range got {
		for _, v := range rec.Column(0).(*array.Int64).Int64Values() {
			require.Equal(t, next, v)
			next++
		}
	}
	require.EqualValues(t, rows, next)
	// The batches before the one with the error are good.
	got, err = decode(schema, text.String()+`{"n":"x"}`)
	require.ErrorContains(t, err, `line 20001: column "n": "x" is no whole number`)
	require.Len(t, got, rows/8192)
}

func TestErrorsNameLineAndColumn(t *testing.T) {
	item := arrow.Field{Name: "item", Type: arrow.PrimitiveTypes.Float32, Nullable: false}
	schema := arrow.NewSchema([]arrow.Field{
		{Name: "id", Type: arrow.PrimitiveTypes.Int8},
		{Name: "u", Type: arrow.PrimitiveTypes.Uint16, Nullable: true},
		{Name: "f", Type: arrow.PrimitiveTypes.Float32, Nullable: true},
		{Name: "s", Type: arrow.BinaryTypes.String, Nullable: true},
		{Name: "b", Type: arrow.BinaryTypes.Binary, Nullable: true},
		{Name: "b3", Type: &arrow.FixedSizeBinaryType{ByteWidth: 3}, Nullable: true},
		{Name: "d", Type: &arrow.Decimal128Type{Precision: 4, Scale: 2}, Nullable: true},
		{Name: "day", Type: arrow.FixedWidthTypes.Date32, Nullable: true},
		{Name: "t", Type: arrow.FixedWidthTypes.Time32s, Nullable: true},
		{Name: "ts", Type: &arrow.TimestampType{Unit: arrow.Nanosecond}, Nullable: true},
		{Name: "tz", Type: &arrow.TimestampType{Unit: arrow.Millisecond, TimeZone: "UTC"}, Nullable: true},
		{Name: "dur", Type: arrow.FixedWidthTypes.Duration_ms, Nullable: true},
		{Name: "yes", Type: arrow.FixedWidthTypes.Boolean, Nullable: true},
		{Name: "none", Type: arrow.Null, Nullable: true},
		{Name: "vec", Type: arrow.FixedSizeListOfField(2, item), Nullable: true},
		{Name: "list", Type: arrow.ListOf(arrow.StructOf(arrow.Field{Name: "x", Type: arrow.PrimitiveTypes.Int32, Nullable: true})), Nullable: true},
		{Name: "m", Type: arrow.MapOf(arrow.BinaryTypes.String, arrow.PrimitiveTypes.Int32), Nullable: true},
		{Name: "view", Type: arrow.ListViewOf(arrow.PrimitiveTypes.Int8), Nullable: true},
	}, nil)
	for text, want := range map[string]string{
		`{"id":1`:                            `line 1: the line ends where "," was expected`,
		`[1]`:                                `line 1: a list where "{" was expected`,
		`{"id":1} {"id":2}`:                  `line 1: an object after the end of the row`,
		`{}`:                                 `line 1: a row without columns`,
		`{"id":1,}`:                          `line 1: the name of a column: } where a string was expected`,
		`{"id" 1}`:                           `line 1: column "id": 1 where ":" was expected`,
		`{"idd":1}`:                          `line 1: column "idd" is none of the table, which has id, u, f`,
		`{"id":1,"id":2}`:                    `line 1: column "id" is there twice`,
		"{\"id\":1}\n{\"u\":1}":              `line 2: column "u" is not in line 1: every row must have the same columns`,
		"{\"id\":1,\"u\":2}\n\n{\"id\":1}":   `line 3: column "u" is missing, and line 1 has it: write null for no value`,
		"{\"id\":1}\n\xff":                   `line 2: it is not UTF-8`,
		`{"id":null}`:                        `column "id": null, and the column has none`,
		`{"id":128}`:                         `column "id": 128 is outside the range of int8`,
		`{"id":1.5}`:                         `column "id": "1.5" is no whole number (int8)`,
		`{"id":"+1"}`:                        `column "id": "+1" is no whole number (int8)`,
		`{"id":""}`:                          `column "id": "" is no whole number (int8)`,
		`{"id":true}`:                        `column "id": true where a number (int8) was expected`,
		`{"id":01}`:                          `column "id": 01 where a number`,
		`{"u":-1}`:                           `column "u": "-1" is no whole number (uint16)`,
		`{"f":1e39}`:                         `column "f": 1e39 is outside the range of float32`,
		`{"f":"nan"}`:                        `column "f": "nan" is no number (float32)`,
		`{"f":[1]}`:                          `column "f": a list where a number (float32) was expected`,
		`{"s":1}`:                            `column "s": 1 where a string was expected`,
		`{"s":"\ud800"}`:                     `column "s": the string "\ud800" has half a surrogate pair`,
		`{"s":"\udc00\ud800"}`:               `half a surrogate pair`,
		`{"s":"\x"}`:                         `column "s": the string "\x": invalid character`,
		"{\"s\":\"a\tb\"}":                   `column "s": the control character 0x09 in a string`,
		`{"s":"abc`:                          `column "s": a string that does not end`,
		`{"b":"AQD"}`:                        `column "b": "AQD" is no base64 with padding`,
		`{"b":"AQD/\n"}`:                     `column "b": base64 with line ends in it`,
		`{"b3":"AQ=="}`:                      `column "b3": 1 bytes, and the column's values have 3`,
		`{"d":"1.234"}`:                      `column "d": "1.234" as decimal(4, 2): it has digits that the type's scale has no place for`,
		`{"d":"100"}`:                        `column "d": "100" as decimal(4, 2): it has too many digits`,
		`{"d":1e2}`:                          `it is no decimal number like -12.34`,
		`{"d":""}`:                           `it is no decimal number like -12.34`,
		`{"day":"2023-02-29"}`:               `column "day": "2023-02-29" is not a date like 2024-02-29`,
		`{"day":"24-02-29"}`:                 `is not a date like`,
		`{"day":"2023-02-28T"}`:              `is not a date like`,
		`{"day":"+9999999-01-01"}`:           `column "day": "+9999999-01-01" as date32: it is outside the range`,
		`{"t":"1:00:00"}`:                    `column "t": "1:00:00" is not a time like 12:30:00`,
		`{"t":"01:00:00.5"}`:                 `it has more digits after the point than the column's unit`,
		`{"t":"01:60:00"}`:                   `is not a time`,
		`{"ts":"2024-01-01"}`:                `column "ts": "2024-01-01" is not a timestamp like 2024-02-29T12:30:00 without an offset, for the column has no time zone`,
		`{"ts":"2024-01-01T00:00:00Z"}`:      `without an offset`,
		`{"ts":"2300-01-01T00:00:00"}`:       `as timestamp[ns]: it is outside the range of the column's type`,
		`{"ts":"2024-01-01T24:00:00"}`:       `is not a timestamp`,
		`{"tz":"2024-01-01T00:00:00"}`:       `or with an offset like +01:00`,
		`{"tz":"2024-01-01T00:00:00.0001Z"}`: `it has more digits`,
		`{"dur":"1.5"}`:                      `column "dur": "1.5" is not a duration like PT1.5S`,
		`{"dur":"PT99999999999999999S"}`:     `it is outside the range`,
		`{"yes":"true"}`:                     `column "yes": "true" where true or false was expected`,
		`{"yes":truee}`:                      `column "yes": truee where true or false was expected`,
		`{"none":1}`:                         `column "none": 1 where null, the only value of the column's type, was expected`,
		`{"vec":[1]}`:                        `column "vec": a list of 1 items, and the column's have 2`,
		`{"vec":[1,2,3]}`:                    `column "vec": a list of more than 2 items, and the column's have 2`,
		`{"vec":[1,null]}`:                   `column "vec": item 1: null, and the column has none`,
		`{"list":[{"x":1},{"y":2}]}`:         `column "list": item 1: there is no field "y"`,
		`{"list":[{}]}`:                      `column "list": item 0: field "x" is missing: write null for no value`,
		`{"list":[{"x":1,"x":1}]}`:           `column "list": item 0: field "x" is there twice`,
		`{"list":[{"x":"a"}]}`:               `column "list": item 0: field "x": "a" is no whole number`,
		`{"m":[{"key":null,"value":1}]}`:     `column "m": entry 0: field "key": null, and the column has none`,
		`{"m":{"a":1}}`:                      `column "m": an object where a list of {"key","value"} was expected`,
		`{"view":[1]}`:                       `column "view": values of type list_view`,
	} {
		_, err := decode(schema, text)
		require.ErrorContains(t, err, want, "%s", text)
		require.ErrorContains(t, err, "rowjson: line ", "%s", text)
	}
	_, err := decode(schema, `{"view":[1]}`)
	require.ErrorIs(t, err, table.ErrUnsupported)
	_, err = decode(schema, `{"id":1}`)
	require.NoError(t, err, "a type that cannot be read matters only if it is there")
}

func TestErrorsOfTheReaderAreReported(t *testing.T) {
	schema := arrow.NewSchema([]arrow.Field{{Name: "n", Type: arrow.PrimitiveTypes.Int64}}, nil)
	broken := errors.New("connection lost")
	r := io.MultiReader(strings.NewReader("{\"n\":1}\n{\"n\":"), iotestErr{broken})
	d := rowjson.NewDecoder(r, schema)
	_, err := d.Read()
	require.ErrorIs(t, err, broken)
	_, again := d.Read()
	require.Equal(t, err, again)
}

type iotestErr struct{ err error }

func (r iotestErr) Read([]byte) (int, error) { return 0, r.err }

// Whatever the text is: no panic, and what is accepted is what is written again.
func FuzzDecode(f *testing.F) {
	schema := arrow.NewSchema([]arrow.Field{
		{Name: "i", Type: arrow.PrimitiveTypes.Int64, Nullable: true},
		{Name: "h", Type: arrow.FixedWidthTypes.Float16, Nullable: true},
		{Name: "s", Type: arrow.BinaryTypes.String, Nullable: true},
		{Name: "d", Type: &arrow.Decimal128Type{Precision: 20, Scale: -3}, Nullable: true},
		{Name: "t", Type: arrow.FixedWidthTypes.Time64ns, Nullable: true},
		{Name: "z", Type: &arrow.TimestampType{Unit: arrow.Nanosecond, TimeZone: "Europe/Berlin"}, Nullable: true},
		{Name: "p", Type: arrow.FixedWidthTypes.Duration_us, Nullable: true},
		{Name: "l", Type: arrow.ListOf(arrow.StructOf(arrow.Field{Name: "x", Type: arrow.BinaryTypes.Binary, Nullable: true})), Nullable: true},
		{Name: "m", Type: arrow.MapOf(arrow.BinaryTypes.String, arrow.FixedSizeListOf(2, arrow.FixedWidthTypes.Date64)), Nullable: true},
	}, nil)
	for _, seed := range []string{
		`{"i":-9223372036854775808,"h":"NaN","s":"\ud83d\ude00","d":"-12000","t":"-2562047:47:16.854775808","z":"2262-04-12T00:47:16.854775807+01:00"}`,
		`{"p":"PT-9223372036854.775808S","l":[{"x":"AQD/"},null,{"x":null}],"m":[{"key":"","value":["0000-01-01","-000001-12-31T23:59:59.999"]}]}`,
		`{"l":[[[[[[[[[[`, `{"s":"\u12"}`, `{"i":1}` + "\n" + `{"i":2}`, `{"d":"99999999999999999999"}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		d := rowjson.NewDecoder(bytes.NewReader(text), schema)
		for {
			rec, err := d.Read()
			if err != nil {
				return
			}
			plain := lines(t, rowjson.Plain, rec)
			back, err := decode(rec.Schema(), plain)
			require.NoError(t, err, "%s", plain)
			require.Equal(t, lines(t, rowjson.Raw, rec), lines(t, rowjson.Raw, back[0]), "%s", plain)
			rec.Release()
		}
	})
}

// The NaN that is read is the one that engines write, because stock engines compare
// keys by their bits.
func TestReport04NaNHasTheBitsOfEngines(t *testing.T) {
	schema := arrow.NewSchema([]arrow.Field{
		{Name: "h", Type: arrow.FixedWidthTypes.Float16}, {Name: "f", Type: arrow.PrimitiveTypes.Float32}, {Name: "d", Type: arrow.PrimitiveTypes.Float64},
	}, nil)
	rec, err := rowjson.NewDecoder(strings.NewReader(`{"h":"NaN","f":"NaN","d":"NaN"}`), schema).Read()
	require.NoError(t, err)
	require.Equal(t, uint16(0x7e00), rec.Column(0).(*array.Float16).Value(0).Uint16())
	require.Equal(t, uint32(0x7fc00000), math.Float32bits(rec.Column(1).(*array.Float32).Value(0)))
	require.Equal(t, uint64(0x7ff8<<48), math.Float64bits(rec.Column(2).(*array.Float64).Value(0)))
}
