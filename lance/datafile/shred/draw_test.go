package shred_test

import (
	"fmt"
	"math"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/decimal256"
	"github.com/apache/arrow-go/v18/arrow/float16"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/rehome-db/rehome/internal/rowjson"
	"github.com/rehome-db/rehome/lance/datafile"
)

// rowsOf are the values of arrays, one after the other, as text: dictionaries that
// differ can stand for the same values.
func rowsOf(t require.TestingT, arrays ...arrow.Array) []string {
	out := []string{}
	for _, a := range arrays {
		s := arrow.NewSchema([]arrow.Field{{Name: "c", Type: a.DataType(), Nullable: true}}, nil)
		rec := array.NewRecordBatch(s, []arrow.Array{a}, int64(a.Len()))
		enc, err := rowjson.New(s, rowjson.Raw)
		require.NoError(t, err)
		for i := range a.Len() {
			row, err := enc.AppendRow(nil, rec, i, nil)
			require.NoError(t, err)
			out = append(out, string(row))
		}
	}
	return out
}

var scalars = []arrow.DataType{
	arrow.FixedWidthTypes.Boolean,
	arrow.PrimitiveTypes.Int8, arrow.PrimitiveTypes.Uint16, arrow.PrimitiveTypes.Int32, arrow.PrimitiveTypes.Uint64,
	arrow.FixedWidthTypes.Float16, arrow.PrimitiveTypes.Float32, arrow.PrimitiveTypes.Float64,
	arrow.BinaryTypes.String, arrow.BinaryTypes.LargeString, arrow.BinaryTypes.Binary, arrow.BinaryTypes.LargeBinary,
	&arrow.FixedSizeBinaryType{ByteWidth: 3}, &arrow.FixedSizeBinaryType{ByteWidth: 16},
	&arrow.Decimal128Type{Precision: 20, Scale: 2}, &arrow.Decimal256Type{Precision: 50, Scale: 2},
	arrow.FixedWidthTypes.Date32, arrow.FixedWidthTypes.Date64, arrow.FixedWidthTypes.Time32ms, arrow.FixedWidthTypes.Time64ns,
	arrow.FixedWidthTypes.Timestamp_us, arrow.FixedWidthTypes.Duration_ms,
	arrow.FixedSizeListOf(3, arrow.PrimitiveTypes.Float32), arrow.FixedSizeListOf(70, arrow.PrimitiveTypes.Float32),
	arrow.FixedSizeListOf(2, arrow.FixedSizeListOf(3, arrow.PrimitiveTypes.Int16)),
	arrow.FixedSizeListOf(3, arrow.FixedWidthTypes.Boolean), arrow.FixedSizeListOf(16, arrow.FixedWidthTypes.Boolean),
	arrow.FixedSizeListOf(2, arrow.FixedSizeListOf(1, arrow.FixedSizeListOf(3, arrow.FixedWidthTypes.Boolean))),
	&arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int8, ValueType: arrow.BinaryTypes.String},
	&arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Uint32, ValueType: arrow.BinaryTypes.String},
	&arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int64, ValueType: arrow.PrimitiveTypes.Uint16},
}

// packedTypes are structs that are stored row by row, the second in format 2.2 only.
var packedTypes = []arrow.DataType{
	arrow.StructOf(arrow.Field{Name: "a", Type: arrow.PrimitiveTypes.Int32}, arrow.Field{Name: "b", Type: &arrow.FixedSizeBinaryType{ByteWidth: 3}}),
	arrow.StructOf(arrow.Field{Name: "a", Type: arrow.BinaryTypes.String}, arrow.Field{Name: "b", Type: arrow.PrimitiveTypes.Float64},
		arrow.Field{Name: "c", Type: arrow.BinaryTypes.Binary}),
}

var packedMetadata = arrow.MetadataFrom(map[string]string{"lance-encoding:packed": "true"})

// drawType draws a type that the format can store, nested at most depth deep.
func drawType(t *rapid.T, depth int, format datafile.Version) arrow.DataType {
	kind := 0
	if depth > 0 {
		kind = rapid.IntRange(0, 5).Draw(t, "nesting")
	}
	switch {
	case kind == 1:
		return arrow.ListOfField(drawField(t, "item", depth-1, format))
	case kind == 2:
		return arrow.LargeListOfField(drawField(t, "item", depth-1, format))
	case kind == 3:
		var fields []arrow.Field
		for i := range rapid.IntRange(1, 3).Draw(t, "fields") {
			fields = append(fields, drawField(t, fmt.Sprint("f", i), depth-1, format))
		}
		return arrow.StructOf(fields...)
	case kind == 4 && format >= datafile.V2_2:
		return arrow.MapOfFields(arrow.Field{Name: "key", Type: arrow.BinaryTypes.String}, drawField(t, "value", depth-1, format))
	default:
		return rapid.SampledFrom(scalars).Draw(t, "type")
	}
}

// drawField draws a field of such a type.
func drawField(t *rapid.T, name string, depth int, format datafile.Version) arrow.Field {
	nullable := rapid.Bool().Draw(t, "nullable")
	if k := rapid.IntRange(0, 15).Draw(t, "packed"); k == 0 || k == 1 && format >= datafile.V2_2 {
		return arrow.Field{Name: name, Type: packedTypes[k], Nullable: nullable, Metadata: packedMetadata}
	}
	return arrow.Field{Name: name, Type: drawType(t, depth, format), Nullable: nullable}
}

// drawSchema draws one to three fields.
func drawSchema(t *rapid.T, depth int, format datafile.Version) *arrow.Schema {
	var fields []arrow.Field
	for i := range rapid.IntRange(1, 3).Draw(t, "columns") {
		fields = append(fields, drawField(t, fmt.Sprint("c", i), depth, format))
	}
	return arrow.NewSchema(fields, nil)
}

// drawArray draws n rows of a field, cut out of a longer array so that offsets
// are not zero.
func drawArray(t *rapid.T, f arrow.Field, n int) arrow.Array {
	b := array.NewBuilder(memory.DefaultAllocator, f.Type)
	defer b.Release()
	// Tenths of values that are absent; some columns have few distinct values.
	d := drawer{absence: rapid.SampledFrom([]int{0, 1, 5, 10}).Draw(t, "absence"), few: rapid.Bool().Draw(t, "few")}
	before, after := rapid.IntRange(0, 9).Draw(t, "before"), rapid.IntRange(0, 3).Draw(t, "after")
	for range before + n + after {
		d.append(t, b, f.Nullable)
	}
	a := b.NewArray()
	defer a.Release()
	return array.NewSlice(a, int64(before), int64(before+n))
}

type drawer struct {
	absence int
	few     bool
}

func (d drawer) absent(t *rapid.T) bool {
	return d.absence > 0 && rapid.IntRange(1, 10).Draw(t, "absent") <= d.absence
}

func (d drawer) append(t *rapid.T, b array.Builder, nullable bool) {
	if nullable && d.absent(t) {
		b.AppendNull()
		return
	}
	switch b := b.(type) {
	case *array.StructBuilder:
		b.Append(true)
		fields := b.Type().(*arrow.StructType).Fields()
		for i := range b.NumField() {
			d.append(t, b.FieldBuilder(i), fields[i].Nullable)
		}
	case *array.ListBuilder:
		b.Append(true)
		d.items(t, b.ValueBuilder(), b.Type().(*arrow.ListType).ElemField().Nullable)
	case *array.LargeListBuilder:
		b.Append(true)
		d.items(t, b.ValueBuilder(), b.Type().(*arrow.LargeListType).ElemField().Nullable)
	case *array.MapBuilder:
		b.Append(true)
		if d.absent(t) {
			return // empty
		}
		for k := range rapid.IntRange(0, 3).Draw(t, "entries") {
			b.KeyBuilder().(*array.StringBuilder).Append(fmt.Sprint(k))
			d.append(t, b.ItemBuilder(), b.Type().(*arrow.MapType).ItemField().Nullable)
		}
	case *array.FixedSizeListBuilder:
		list := b.Type().(*arrow.FixedSizeListType)
		b.Append(true)
		nulls := d
		if rapid.Bool().Draw(t, "whole") {
			nulls.absence = 0
		}
		for range list.Len() {
			nulls.append(t, b.ValueBuilder(), true)
		}
	default:
		d.scalar(t, b)
	}
}

func (d drawer) items(t *rapid.T, b array.Builder, nullable bool) {
	if d.absent(t) {
		return // empty
	}
	for range rapid.IntRange(0, 4).Draw(t, "items") {
		d.append(t, b, nullable)
	}
}

func (d drawer) scalar(t *rapid.T, b array.Builder) {
	limit := uint64(math.MaxUint64)
	if d.few {
		limit = 3
	}
	n := rapid.Uint64Range(0, limit).Draw(t, "value")
	text := func() []byte {
		if d.few {
			return fmt.Appendf(nil, "value %d", n)
		}
		if n%16 == 0 {
			return make([]byte, n>>4%700)
		}
		return []byte(rapid.StringN(0, 12, -1).Draw(t, "text"))
	}
	switch b := b.(type) {
	case *array.BinaryDictionaryBuilder:
		require.NoError(t, b.AppendString(fmt.Sprint("entry ", n%100)))
	case *array.Uint16DictionaryBuilder:
		require.NoError(t, b.Append(uint16(n%100)))
	case *array.BooleanBuilder:
		b.Append(n&1 == 1)
	case *array.Int8Builder:
		b.Append(int8(n))
	case *array.Uint16Builder:
		b.Append(uint16(n))
	case *array.Int32Builder:
		b.Append(int32(n))
	case *array.Int16Builder:
		b.Append(int16(n))
	case *array.Uint64Builder:
		b.Append(n)
	case *array.Float16Builder:
		b.Append(float16.New(float32(n % 1000)))
	case *array.Float32Builder:
		b.Append(float32(n) / 3)
	case *array.Float64Builder:
		b.Append(float64(n) / 3)
	case *array.StringBuilder:
		b.Append(string(text()))
	case *array.LargeStringBuilder:
		b.Append(string(text()))
	case *array.BinaryBuilder:
		b.Append(text())
	case *array.FixedSizeBinaryBuilder:
		v := make([]byte, b.Type().(*arrow.FixedSizeBinaryType).ByteWidth)
		copy(v, fmt.Sprint(n))
		b.Append(v)
	case *array.Decimal128Builder:
		b.Append(decimal128.FromU64(n))
	case *array.Decimal256Builder:
		b.Append(decimal256.FromU64(n))
	case *array.Date32Builder:
		b.Append(arrow.Date32(n))
	case *array.Date64Builder:
		b.Append(arrow.Date64(n))
	case *array.Time32Builder:
		b.Append(arrow.Time32(n % 86_400_000))
	case *array.Time64Builder:
		b.Append(arrow.Time64(n % 86_400_000_000_000))
	case *array.TimestampBuilder:
		b.Append(arrow.Timestamp(n))
	case *array.DurationBuilder:
		b.Append(arrow.Duration(n))
	default:
		require.Fail(t, "no values for this type", "%s", b.Type())
	}
}
