package dml

import (
	"math"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"

	"github.com/rehome-db/rehome/table"
)

// fromJSON makes an array of JSON values.
func fromJSON(t *testing.T, dt arrow.DataType, text string) arrow.Array {
	t.Helper()
	arr, _, err := array.FromJSON(memory.DefaultAllocator, dt, strings.NewReader(text))
	require.NoError(t, err, "%s of %s", text, dt)
	return arr
}

func TestCastKeepsTheValue(t *testing.T) {
	ts := func(u arrow.TimeUnit) arrow.DataType { return &arrow.TimestampType{Unit: u} }
	vector := func(n int32, item arrow.DataType) arrow.DataType { return arrow.FixedSizeListOf(n, item) }
	for _, c := range []struct {
		from   arrow.DataType
		values string
		to     arrow.DataType
		want   string
	}{
		{arrow.PrimitiveTypes.Int64, `[1, null, -2147483648, 2147483647]`, arrow.PrimitiveTypes.Int32, `[1, null, -2147483648, 2147483647]`},
		{arrow.PrimitiveTypes.Int64, `[-128, 127]`, arrow.PrimitiveTypes.Int8, `[-128, 127]`},
		{arrow.PrimitiveTypes.Int64, `[-9223372036854775808]`, arrow.BinaryTypes.String, `["-9223372036854775808"]`},
		{arrow.PrimitiveTypes.Int64, `[-9223372036854775808]`, &arrow.Decimal128Type{Precision: 20}, `["-9223372036854775808"]`},
		{arrow.PrimitiveTypes.Uint64, `[18446744073709551615]`, &arrow.Decimal256Type{Precision: 40, Scale: 1}, `["18446744073709551615.0"]`},
		{arrow.PrimitiveTypes.Int8, `[3]`, arrow.PrimitiveTypes.Uint64, `[3]`},
		{arrow.PrimitiveTypes.Float64, `[1.9, -1.9, -0.5]`, arrow.PrimitiveTypes.Int16, `[1, -1, 0]`},
		{arrow.PrimitiveTypes.Float64, `[-0.5]`, arrow.PrimitiveTypes.Uint8, `[0]`},
		{arrow.PrimitiveTypes.Float64, `[1.5]`, arrow.PrimitiveTypes.Float32, `[1.5]`},
		{arrow.PrimitiveTypes.Int64, `[3]`, arrow.FixedWidthTypes.Float16, `[3]`},
		{arrow.PrimitiveTypes.Float64, `[1.25]`, &arrow.Decimal128Type{Precision: 5, Scale: 2}, `["1.25"]`},
		{&arrow.Decimal128Type{Precision: 5, Scale: 2}, `["1.25", "7.00"]`, arrow.PrimitiveTypes.Int64, `[1, 7]`},
		{&arrow.Decimal128Type{Precision: 5, Scale: 2}, `["1.25"]`, arrow.PrimitiveTypes.Float64, `[1.25]`},
		{&arrow.Decimal128Type{Precision: 20}, `["9007199254740993"]`, arrow.PrimitiveTypes.Int64, `[9007199254740993]`},
		{arrow.FixedWidthTypes.Boolean, `[true, false, null]`, arrow.PrimitiveTypes.Int32, `[1, 0, null]`},
		{arrow.PrimitiveTypes.Int32, `[0, 5]`, arrow.FixedWidthTypes.Boolean, `[false, true]`},
		{arrow.BinaryTypes.String, `["7", null]`, arrow.PrimitiveTypes.Int32, `[7, null]`},
		{arrow.BinaryTypes.String, `["true"]`, arrow.FixedWidthTypes.Boolean, `[true]`},
		{arrow.BinaryTypes.String, `["2024-02-29"]`, arrow.FixedWidthTypes.Date32, `["2024-02-29"]`},
		{arrow.BinaryTypes.String, `["2024-02-29T01:02:03"]`, ts(arrow.Microsecond), `["2024-02-29 01:02:03"]`},
		{arrow.BinaryTypes.String, `["é"]`, arrow.BinaryTypes.LargeString, `["é"]`},
		{arrow.BinaryTypes.LargeString, `["(null)"]`, arrow.BinaryTypes.String, `["(null)"]`},
		{arrow.BinaryTypes.String, `["a"]`, arrow.BinaryTypes.Binary, `["YQ=="]`},
		{arrow.BinaryTypes.Binary, `["YQ=="]`, arrow.BinaryTypes.String, `["a"]`},
		{arrow.BinaryTypes.Binary, `["YWI="]`, &arrow.FixedSizeBinaryType{ByteWidth: 2}, `["YWI="]`},
		{arrow.BinaryTypes.String, `["a", null, "a"]`, &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int8, ValueType: arrow.BinaryTypes.String}, `["a", null, "a"]`},
		{ts(arrow.Second), `["1969-12-31 23:59:59"]`, ts(arrow.Nanosecond), `["1969-12-31 23:59:59"]`},
		{ts(arrow.Nanosecond), `["1969-12-31 23:59:59.999999999"]`, ts(arrow.Second), `["1969-12-31 23:59:59"]`},
		{ts(arrow.Second), `["1969-12-31 01:00:00", "1970-01-01 23:59:59"]`, arrow.FixedWidthTypes.Date32, `["1969-12-31", "1970-01-01"]`},
		{arrow.FixedWidthTypes.Date32, `["1970-01-02"]`, ts(arrow.Millisecond), `["1970-01-02"]`},
		{arrow.FixedWidthTypes.Date64, `["1970-01-02"]`, arrow.FixedWidthTypes.Date32, `["1970-01-02"]`},
		{arrow.FixedWidthTypes.Time32s, `["01:02:03"]`, arrow.FixedWidthTypes.Time64us, `["01:02:03"]`},
		{arrow.PrimitiveTypes.Int64, `[1]`, ts(arrow.Second), `["1970-01-01 00:00:01"]`},
		{ts(arrow.Second), `["1970-01-01 00:00:01"]`, arrow.PrimitiveTypes.Int64, `[1]`},
		{arrow.FixedWidthTypes.Duration_s, `["2s"]`, arrow.FixedWidthTypes.Duration_ms, `["2000ms"]`},
		{arrow.Null, `[null, null]`, vector(2, arrow.PrimitiveTypes.Float32), `[null, null]`},
		{arrow.ListOf(arrow.PrimitiveTypes.Float64), `[[1.5, 2], null]`, vector(2, arrow.PrimitiveTypes.Float32), `[[1.5, 2], null]`},
		{arrow.ListOf(arrow.PrimitiveTypes.Int64), `[[1, null], [], null]`, arrow.LargeListOf(arrow.BinaryTypes.String), `[["1", null], [], null]`},
		{vector(1, arrow.PrimitiveTypes.Int64), `[[1], null]`, arrow.ListOfNonNullable(arrow.PrimitiveTypes.Int64), `[[1], null]`},
	} {
		from := fromJSON(t, c.from, c.values)
		// Also out of the middle of a longer array.
		longer := array.NewSlice(fromJSON(t, c.from, strings.Replace(c.values, "[", "[null, ", 1)), 1, int64(from.Len()+1))
		for _, values := range []arrow.Array{from, longer} {
			got, err := castTo(values, c.to)
			require.NoError(t, err, "%s %s as %s", c.from, c.values, c.to)
			want := fromJSON(t, c.to, c.want)
			require.True(t, arrow.TypeEqual(c.to, got.DataType()))
			require.Equal(t, want.String(), got.String(), "%s %s as %s", c.from, c.values, c.to)
		}
	}
}

func TestCastRefusesWhatDoesNotFit(t *testing.T) {
	for _, c := range []struct {
		from   arrow.DataType
		values string
		to     arrow.DataType
		want   string
	}{
		{arrow.PrimitiveTypes.Int64, `[128]`, arrow.PrimitiveTypes.Int8, `int64 "128" as int8: it is out of range`},
		{arrow.PrimitiveTypes.Int64, `[-129]`, arrow.PrimitiveTypes.Int8, "out of range"},
		{arrow.PrimitiveTypes.Int64, `[-1]`, arrow.PrimitiveTypes.Uint64, "out of range"},
		{arrow.PrimitiveTypes.Uint64, `[18446744073709551615]`, arrow.PrimitiveTypes.Int64, "out of range"},
		{arrow.PrimitiveTypes.Uint64, `[9223372036854775808]`, arrow.PrimitiveTypes.Int64, "out of range"},
		{arrow.PrimitiveTypes.Float64, `[1e30]`, arrow.PrimitiveTypes.Int64, "out of range"},
		{arrow.PrimitiveTypes.Float64, `[18446744073709551616]`, arrow.PrimitiveTypes.Uint64, "out of range"},
		{arrow.PrimitiveTypes.Int64, `[1000]`, &arrow.Decimal128Type{Precision: 3}, "1000"},
		{arrow.BinaryTypes.String, `["x"]`, arrow.PrimitiveTypes.Int32, `utf8 "x" as int32`},
		{arrow.BinaryTypes.String, `["300"]`, arrow.PrimitiveTypes.Uint8, "out of range"},
		{arrow.BinaryTypes.String, `["(null)"]`, arrow.PrimitiveTypes.Int32, "invalid syntax"},
		{arrow.BinaryTypes.Binary, `["/w=="]`, arrow.BinaryTypes.String, "not UTF-8"},
		{arrow.BinaryTypes.Binary, `["YQ=="]`, &arrow.FixedSizeBinaryType{ByteWidth: 2}, "it has 1 bytes, not 2"},
		{&arrow.TimestampType{Unit: arrow.Second}, `["9999-12-31"]`, &arrow.TimestampType{Unit: arrow.Nanosecond}, "out of range"},
		{arrow.PrimitiveTypes.Int64, `[9223372036854775807]`, arrow.FixedWidthTypes.Date32, "out of range"},
		{arrow.ListOf(arrow.PrimitiveTypes.Float64), `[[1.5]]`, arrow.FixedSizeListOf(2, arrow.PrimitiveTypes.Float32), "it has 1 items"},
		{arrow.ListOf(arrow.BinaryTypes.String), `[["x"]]`, arrow.ListOf(arrow.PrimitiveTypes.Int8), "items: "},
	} {
		_, err := castTo(fromJSON(t, c.from, c.values), c.to)
		require.ErrorContains(t, err, c.want, "%s %s as %s", c.from, c.values, c.to)
	}
	nan := array.NewFloat64Builder(memory.DefaultAllocator)
	nan.Append(math.NaN())
	_, err := castTo(nan.NewArray(), arrow.PrimitiveTypes.Int64)
	require.ErrorContains(t, err, "out of range")
}

func TestCastRefusesTypesThatAreNoKin(t *testing.T) {
	structs := arrow.StructOf(arrow.Field{Name: "a", Type: arrow.PrimitiveTypes.Int8})
	for _, c := range []struct {
		from   arrow.DataType
		values string
		to     arrow.DataType
	}{
		{arrow.PrimitiveTypes.Int64, `[1]`, structs},
		{structs, `[{"a":1}]`, arrow.PrimitiveTypes.Int64},
		{structs, `[{"a":1}]`, arrow.BinaryTypes.String},
		{arrow.PrimitiveTypes.Int64, `[1]`, arrow.ListOf(arrow.PrimitiveTypes.Int64)},
		{arrow.ListOf(arrow.PrimitiveTypes.Int64), `[[1]]`, arrow.PrimitiveTypes.Int64},
		{arrow.FixedWidthTypes.Time32s, `["01:02:03"]`, arrow.FixedWidthTypes.Date32},
		{arrow.FixedWidthTypes.Boolean, `[true]`, arrow.FixedWidthTypes.Date32},
		{arrow.PrimitiveTypes.Int64, `[1]`, arrow.BinaryTypes.Binary},
	} {
		_, err := castTo(fromJSON(t, c.from, c.values), c.to)
		require.ErrorIs(t, err, table.ErrUnsupported, "%s as %s", c.from, c.to)
	}
}
