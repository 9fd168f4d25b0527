package rowjson_test

import (
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"strings"
	"testing"
	"time"
	_ "time/tzdata"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/decimal256"
	"github.com/apache/arrow-go/v18/arrow/float16"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/rehome-db/rehome/internal/rowjson"
	"github.com/rehome-db/rehome/table"
)

// encode returns the values of a column, one JSON text a row.
func encode(t require.TestingT, enc rowjson.Encoding, a arrow.Array) []string {
	schema := arrow.NewSchema([]arrow.Field{{Name: "v", Type: a.DataType(), Nullable: true}}, nil)
	e, err := rowjson.New(schema, enc)
	require.NoError(t, err)
	rec := array.NewRecordBatch(schema, []arrow.Array{a}, int64(a.Len()))
	defer rec.Release()
	var out []string
	for i := range a.Len() {
		row, err := e.AppendRow(nil, rec, i, nil)
		require.NoError(t, err)
		require.True(t, json.Valid(row), "%s", row)
		out = append(out, strings.TrimSuffix(strings.TrimPrefix(string(row), `{"v":`), "}"))
	}
	return out
}

func build[B array.Builder](t arrow.DataType, fill func(B)) arrow.Array {
	b := array.NewBuilder(memory.DefaultAllocator, t)
	defer b.Release()
	fill(b.(B))
	return b.NewArray()
}

func TestValuesInBothEncodings(t *testing.T) {
	dec := &arrow.Decimal128Type{Precision: 20, Scale: 4}
	num := func(s string) decimal128.Num {
		v, ok := new(big.Int).SetString(s, 10)
		require.True(t, ok)
		return decimal128.FromBigInt(v)
	}
	const us = 1700000000000000
	for _, c := range []struct {
		name       string
		array      arrow.Array
		plain, raw []string
	}{
		{
			"bool", build(arrow.FixedWidthTypes.Boolean, func(b *array.BooleanBuilder) { b.Append(true); b.Append(false); b.AppendNull() }),
			[]string{"true", "false", "null"},
			[]string{"true", "false", "null"},
		},
		{
			"int8", build(arrow.PrimitiveTypes.Int8, func(b *array.Int8Builder) { b.AppendValues([]int8{-128, 127}, nil) }),
			[]string{"-128", "127"},
			[]string{"-128", "127"},
		},
		{
			"uint32", build(arrow.PrimitiveTypes.Uint32, func(b *array.Uint32Builder) { b.Append(math.MaxUint32) }),
			[]string{"4294967295"},
			[]string{"4294967295"},
		},
		{
			"int64", build(arrow.PrimitiveTypes.Int64, func(b *array.Int64Builder) { b.AppendValues([]int64{math.MinInt64, math.MaxInt64}, nil) }),
			[]string{"-9223372036854775808", "9223372036854775807"},
			[]string{`"-9223372036854775808"`, `"9223372036854775807"`},
		},
		{
			"uint64", build(arrow.PrimitiveTypes.Uint64, func(b *array.Uint64Builder) { b.Append(math.MaxUint64) }),
			[]string{"18446744073709551615"},
			[]string{`"18446744073709551615"`},
		},
		{
			"float64", build(arrow.PrimitiveTypes.Float64, func(b *array.Float64Builder) {
				b.AppendValues([]float64{1, 0.1, 1e21, 1e-7, math.MaxFloat64, math.NaN(), math.Inf(1), math.Inf(-1), math.Copysign(0, -1)}, nil)
			}),
			[]string{"1", "0.1", "1e+21", "1e-7", "1.7976931348623157e+308", `"NaN"`, `"Infinity"`, `"-Infinity"`, "-0.0"},
			[]string{"1", "0.1", "1e+21", "1e-7", "1.7976931348623157e+308", `"NaN"`, `"Infinity"`, `"-Infinity"`, `"-0"`},
		},
		{
			"float32 is widened", build(arrow.PrimitiveTypes.Float32, func(b *array.Float32Builder) { b.AppendValues([]float32{0.1, 1.0 / 3}, nil) }),
			[]string{"0.10000000149011612", "0.3333333432674408"},
			[]string{"0.10000000149011612", "0.3333333432674408"},
		},
		{
			"float16, subnormals too", build(arrow.FixedWidthTypes.Float16, func(b *array.Float16Builder) {
				for _, bits := range []uint16{0x3c00, 0x2e66, 0x0001, 0x83ff, 0x7bff, 0x7c00, 0xfc00, 0x7e00, 0x8000} {
					b.Append(float16.FromBits(bits))
				}
			}),
			[]string{"1", "0.0999755859375", "5.960464477539063e-8", "-0.00006097555160522461", "65504", `"Infinity"`, `"-Infinity"`, `"NaN"`, "-0.0"},
			[]string{"1", "0.0999755859375", "5.960464477539063e-8", "-0.00006097555160522461", "65504", `"Infinity"`, `"-Infinity"`, `"NaN"`, `"-0"`},
		},
		{
			"string", build(arrow.BinaryTypes.String, func(b *array.StringBuilder) {
				b.AppendValues([]string{"", `a"b\c`, "\x00\x1b\n\x7f", "é<&>\u2028😀", "\xff\xfe"}, nil)
			}),
			[]string{`""`, `"a\"b\\c"`, `"\u0000\u001b\n\u007f"`, "\"é<&>\u2028😀\"", "\"\ufffd\ufffd\""},
			[]string{`""`, `"a\"b\\c"`, `"\u0000\u001b\n\u007f"`, "\"é<&>\u2028😀\"", "\"\ufffd\ufffd\""},
		},
		{
			"binary", build(arrow.BinaryTypes.LargeBinary, func(b *array.BinaryBuilder) { b.Append([]byte{1, 0, 255}); b.Append(nil); b.AppendNull() }),
			[]string{`"AQD/"`, `""`, "null"},
			[]string{`{"b64":"AQD/"}`, `{"b64":""}`, "null"},
		},
		{
			"fixed-size binary", build(&arrow.FixedSizeBinaryType{ByteWidth: 4}, func(b *array.FixedSizeBinaryBuilder) { b.Append([]byte{0xfc, 0x21, 0x46, 0x6b}) }),
			[]string{`"/CFGaw=="`},
			[]string{`{"b64":"/CFGaw=="}`},
		},
		{
			"decimal128", build(dec, func(b *array.Decimal128Builder) {
				for _, s := range []string{"-300000", "0", "7", "-7", "123456", "99999999999999999999"} {
					b.Append(num(s))
				}
			}),
			[]string{`"-30.0000"`, `"0.0000"`, `"0.0007"`, `"-0.0007"`, `"12.3456"`, `"9999999999999999.9999"`},
			[]string{
				`{"dec":"206cfbffffffffffffffffffffffffff"}`, `{"dec":"00000000000000000000000000000000"}`,
				`{"dec":"07000000000000000000000000000000"}`, `{"dec":"f9ffffffffffffffffffffffffffffff"}`,
				`{"dec":"40e20100000000000000000000000000"}`, `{"dec":"ffff0f632d5ec76b0500000000000000"}`,
			},
		},
		{
			"decimal256 with a negative scale", build(&arrow.Decimal256Type{Precision: 40, Scale: -2}, func(b *array.Decimal256Builder) {
				b.Append(decimal256.FromI64(-3))
				b.Append(decimal256.FromI64(0))
			}),
			[]string{`"-300"`, `"0"`},
			[]string{`{"dec":"fd` + strings.Repeat("ff", 31) + `"}`, `{"dec":"` + strings.Repeat("00", 32) + `"}`},
		},
		{
			"date32", build(arrow.FixedWidthTypes.Date32, func(b *array.Date32Builder) {
				b.AppendValues([]arrow.Date32{0, 18500, -1, -719528, -719529, 2932896, 2932897, math.MaxInt32, math.MinInt32}, nil)
			}),
			[]string{
				`"1970-01-01"`, `"2020-08-26"`, `"1969-12-31"`, `"0000-01-01"`, `"-000001-12-31"`,
				`"9999-12-31"`, `"+010000-01-01"`, `"+5881580-07-11"`, `"-5877641-06-23"`,
			},
			[]string{"0", "18500", "-1", "-719528", "-719529", "2932896", "2932897", "2147483647", "-2147483648"},
		},
		{
			"date64", build(arrow.FixedWidthTypes.Date64, func(b *array.Date64Builder) { b.AppendValues([]arrow.Date64{86400000, 86400001, -1}, nil) }),
			[]string{`"1970-01-02"`, `"1970-01-02T00:00:00.001"`, `"1969-12-31T23:59:59.999"`},
			[]string{`"86400000"`, `"86400001"`, `"-1"`},
		},
		{
			"time32 s", build(arrow.FixedWidthTypes.Time32s, func(b *array.Time32Builder) { b.AppendValues([]arrow.Time32{0, 86399}, nil) }),
			[]string{`"00:00:00"`, `"23:59:59"`},
			[]string{"0", "86399"},
		},
		{
			"time64 us, out of range too", build(arrow.FixedWidthTypes.Time64us, func(b *array.Time64Builder) {
				b.AppendValues([]arrow.Time64{1000000007, 86400000000, -1}, nil)
			}),
			[]string{`"00:16:40.000007"`, `"24:00:00.000000"`, `"-00:00:00.000001"`},
			[]string{`"1000000007"`, `"86400000000"`, `"-1"`},
		},
		{
			"timestamp without a zone", build(&arrow.TimestampType{Unit: arrow.Microsecond}, func(b *array.TimestampBuilder) {
				b.AppendValues([]arrow.Timestamp{us, -1}, nil)
			}),
			[]string{`"2023-11-14T22:13:20.000000"`, `"1969-12-31T23:59:59.999999"`},
			[]string{`"1700000000000000"`, `"-1"`},
		},
		{
			"timestamp ns UTC", build(&arrow.TimestampType{Unit: arrow.Nanosecond, TimeZone: "UTC"}, func(b *array.TimestampBuilder) {
				b.AppendValues([]arrow.Timestamp{1700000000123456789, math.MaxInt64, math.MinInt64}, nil)
			}),
			[]string{`"2023-11-14T22:13:20.123456789Z"`, `"2262-04-11T23:47:16.854775807Z"`, `"1677-09-21T00:12:43.145224192Z"`},
			[]string{`"1700000000123456789"`, `"9223372036854775807"`, `"-9223372036854775808"`},
		},
		{
			"timestamp in a zone", build(&arrow.TimestampType{Unit: arrow.Millisecond, TimeZone: "Europe/Berlin"}, func(b *array.TimestampBuilder) {
				b.AppendValues([]arrow.Timestamp{1700000000001, 1690000000000}, nil)
			}),
			[]string{`"2023-11-14T23:13:20.001+01:00"`, `"2023-07-22T06:26:40.000+02:00"`},
			[]string{`"1700000000001"`, `"1690000000000"`},
		},
		{
			"timestamp at a fixed offset", build(&arrow.TimestampType{Unit: arrow.Second, TimeZone: "-09:30"}, func(b *array.TimestampBuilder) { b.Append(0) }),
			[]string{`"1969-12-31T14:30:00-09:30"`},
			[]string{`"0"`},
		},
		{
			"timestamp in a zone nobody knows", build(&arrow.TimestampType{Unit: arrow.Second, TimeZone: "Mars/Olympus"}, func(b *array.TimestampBuilder) { b.Append(0) }),
			[]string{`"1970-01-01T00:00:00Z"`},
			[]string{`"0"`},
		},
		{
			"timestamp at the ends", build(&arrow.TimestampType{Unit: arrow.Second, TimeZone: "UTC"}, func(b *array.TimestampBuilder) {
				b.AppendValues([]arrow.Timestamp{math.MaxInt64, math.MinInt64}, nil)
			}),
			[]string{`"+292277026596-12-04T15:30:07Z"`, `"-292277022657-01-27T08:29:52Z"`},
			[]string{`"9223372036854775807"`, `"-9223372036854775808"`},
		},
		{
			"duration", build(arrow.FixedWidthTypes.Duration_ms, func(b *array.DurationBuilder) {
				b.AppendValues([]arrow.Duration{1500, -1, math.MinInt64}, nil)
			}),
			[]string{`"PT1.500S"`, `"PT-0.001S"`, `"PT-9223372036854775.808S"`},
			[]string{`"1500"`, `"-1"`, `"-9223372036854775808"`},
		},
		{
			"null type", build(arrow.Null, func(b *array.NullBuilder) { b.AppendNulls(2) }),
			[]string{"null", "null"},
			[]string{"null", "null"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			defer c.array.Release()
			require.Equal(t, c.plain, encode(t, rowjson.Plain, c.array))
			require.Equal(t, c.raw, encode(t, rowjson.Raw, c.array))
			if c.array.Len() > 1 { // a slice must not read from its parent's start
				s := array.NewSlice(c.array, 1, int64(c.array.Len()))
				defer s.Release()
				require.Equal(t, c.plain[1:], encode(t, rowjson.Plain, s))
				require.Equal(t, c.raw[1:], encode(t, rowjson.Raw, s))
			}
		})
	}
}

func TestNestedValuesKeepNullsApart(t *testing.T) {
	for _, c := range []struct {
		typ         arrow.DataType
		json        string
		plain, want []string
	}{
		{
			arrow.ListOf(arrow.PrimitiveTypes.Int64), `[[1,null],[],null,[3]]`,
			[]string{"[1,null]", "[]", "null", "[3]"},
			[]string{`["1",null]`, "[]", "null", `["3"]`},
		},
		{
			arrow.LargeListOf(arrow.BinaryTypes.String), `[["a",null],[],null]`,
			[]string{`["a",null]`, "[]", "null"},
			[]string{`["a",null]`, "[]", "null"},
		},
		{
			arrow.FixedSizeListOf(2, arrow.PrimitiveTypes.Float32), `[[0.5,null],null,[1,2]]`,
			[]string{"[0.5,null]", "null", "[1,2]"},
			[]string{"[0.5,null]", "null", "[1,2]"},
		},
		{
			arrow.StructOf(arrow.Field{Name: "a", Type: arrow.PrimitiveTypes.Uint64, Nullable: true}, arrow.Field{Name: "b", Type: arrow.ListOf(arrow.BinaryTypes.String), Nullable: true}),
			`[{"a":1,"b":["x"]},null,{"a":null,"b":null}]`,
			[]string{`{"a":1,"b":["x"]}`, "null", `{"a":null,"b":null}`},
			[]string{`{"a":"1","b":["x"]}`, "null", `{"a":null,"b":null}`},
		},
		{
			arrow.MapOf(arrow.BinaryTypes.String, arrow.PrimitiveTypes.Int64),
			`[[{"key":"k","value":1},{"key":"l","value":null}],null,[]]`,
			[]string{`[{"key":"k","value":1},{"key":"l","value":null}]`, "null", "[]"},
			[]string{`[{"key":"k","value":"1"},{"key":"l","value":null}]`, "null", "[]"},
		},
		{
			&arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int32, ValueType: arrow.BinaryTypes.String}, `["red",null,"blue","red"]`,
			[]string{`"red"`, "null", `"blue"`, `"red"`},
			[]string{`"red"`, "null", `"blue"`, `"red"`},
		},
	} {
		t.Run(c.typ.String(), func(t *testing.T) {
			a, _, err := array.FromJSON(memory.DefaultAllocator, c.typ, strings.NewReader(c.json))
			require.NoError(t, err)
			defer a.Release()
			require.Equal(t, c.plain, encode(t, rowjson.Plain, a))
			require.Equal(t, c.want, encode(t, rowjson.Raw, a))
			s := array.NewSlice(a, 2, int64(a.Len()))
			defer s.Release()
			require.Equal(t, c.plain[2:], encode(t, rowjson.Plain, s))
			require.Equal(t, c.want[2:], encode(t, rowjson.Raw, s))
		})
	}
}

func TestRowsKeepColumnOrderAndCarryTheAddress(t *testing.T) {
	schema := arrow.NewSchema([]arrow.Field{
		{Name: `z"`, Type: arrow.PrimitiveTypes.Int32}, {Name: "a", Type: arrow.BinaryTypes.String},
	}, nil)
	rec, _, err := array.RecordFromJSON(memory.DefaultAllocator, schema, strings.NewReader(`[{"z\"":1,"a":"x"}]`))
	require.NoError(t, err)
	defer rec.Release()
	addr := table.NewRowAddr(2, 5)
	for enc, want := range map[rowjson.Encoding]string{
		rowjson.Plain: `{"z\"":1,"a":"x","_rowaddr":8589934597}`,
		rowjson.Raw:   `{"z\"":1,"a":"x","_rowaddr":"8589934597"}`,
	} {
		e, err := rowjson.New(schema, enc)
		require.NoError(t, err)
		row, err := e.AppendRow([]byte("#"), rec, 0, &addr)
		require.NoError(t, err)
		require.Equal(t, "#"+want, string(row))
		_, err = e.AppendRow(nil, rec, 1, nil)
		require.ErrorContains(t, err, "row 1 of a batch of 1 rows")
	}
	none, err := rowjson.New(arrow.NewSchema(nil, nil), rowjson.Plain)
	require.NoError(t, err)
	empty := array.NewRecordBatch(arrow.NewSchema(nil, nil), nil, 1)
	defer empty.Release()
	row, err := none.AppendRow(nil, empty, 0, &addr)
	require.NoError(t, err)
	require.Equal(t, `{"_rowaddr":8589934597}`, string(row), "no columns asked for, only addresses")
}

func TestATypeWithoutAnEncodingIsRefusedByName(t *testing.T) {
	u := arrow.DenseUnionOf([]arrow.Field{{Name: "i", Type: arrow.PrimitiveTypes.Int8}}, []arrow.UnionTypeCode{0})
	_, err := rowjson.New(arrow.NewSchema([]arrow.Field{{Name: "ok", Type: arrow.PrimitiveTypes.Int8}, {Name: "u", Type: arrow.ListOf(u)}}, nil), rowjson.Plain)
	require.ErrorIs(t, err, table.ErrUnsupported)
	require.ErrorContains(t, err, `column "u"`)
}

// Against the standard library, over the range that it can represent.
func TestTimestampsAgreeWithTheTimePackage(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		unit := rapid.SampledFrom([]arrow.TimeUnit{arrow.Second, arrow.Millisecond, arrow.Microsecond, arrow.Nanosecond}).Draw(t, "unit")
		per := map[arrow.TimeUnit]int64{arrow.Second: 1, arrow.Millisecond: 1e3, arrow.Microsecond: 1e6, arrow.Nanosecond: 1e9}[unit]
		low, high := time.Date(0, 1, 1, 0, 0, 0, 0, time.UTC).Unix(), time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC).Unix()-1
		if unit == arrow.Nanosecond {
			low, high = math.MinInt64/per+1, math.MaxInt64/per-1
		}
		seconds := rapid.Int64Range(low, high).Draw(t, "seconds")
		fraction := rapid.Int64Range(0, per-1).Draw(t, "fraction")
		a := build(&arrow.TimestampType{Unit: unit, TimeZone: "UTC"}, func(b *array.TimestampBuilder) { b.Append(arrow.Timestamp(seconds*per + fraction)) })
		defer a.Release()
		layout := "2006-01-02T15:04:05Z"
		if unit != arrow.Second {
			layout = fmt.Sprintf("2006-01-02T15:04:05.%sZ", strings.Repeat("0", len(fmt.Sprint(per))-1))
		}
		want := time.Unix(seconds, fraction*(1e9/per)).UTC().Format(layout)
		require.Equal(t, []string{`"` + want + `"`}, encode(t, rowjson.Plain, a))
	})
}

// Against encoding/json, which follows the same rules for numbers and strings.
func TestNumbersAndStringsReadBackTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := rapid.Float64().Filter(func(f float64) bool { return !math.IsNaN(f) && !math.IsInf(f, 0) }).Draw(t, "f")
		s := rapid.String().Draw(t, "s")
		fa := build(arrow.PrimitiveTypes.Float64, func(b *array.Float64Builder) { b.Append(f) })
		defer fa.Release()
		var back float64
		require.NoError(t, json.Unmarshal([]byte(encode(t, rowjson.Plain, fa)[0]), &back))
		require.Equal(t, math.Float64bits(f), math.Float64bits(back))
		sa := build(arrow.BinaryTypes.String, func(b *array.StringBuilder) { b.Append(s) })
		defer sa.Release()
		var text string
		require.NoError(t, json.Unmarshal([]byte(encode(t, rowjson.Plain, sa)[0]), &text))
		require.Equal(t, strings.ToValidUTF8(s, "\ufffd"), text)
	})
}
