package gather_test

import (
	"math"
	"reflect"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/rehome-db/rehome/internal/gather"
	"github.com/rehome-db/rehome/table"
)

var types = []arrow.DataType{
	arrow.Null,
	arrow.FixedWidthTypes.Boolean,
	arrow.PrimitiveTypes.Int8,
	arrow.PrimitiveTypes.Uint16,
	arrow.PrimitiveTypes.Float32,
	arrow.PrimitiveTypes.Int64,
	arrow.FixedWidthTypes.Timestamp_us,
	arrow.FixedWidthTypes.MonthDayNanoInterval,
	&arrow.Decimal128Type{Precision: 30, Scale: 2},
	&arrow.FixedSizeBinaryType{ByteWidth: 3},
	arrow.BinaryTypes.String,
	arrow.BinaryTypes.LargeBinary,
	arrow.BinaryTypes.StringView,
	arrow.BinaryTypes.BinaryView,
	arrow.ListOf(arrow.PrimitiveTypes.Int16),
	arrow.ListOf(arrow.ListOf(arrow.BinaryTypes.String)),
	arrow.LargeListOf(arrow.FixedWidthTypes.Boolean),
	arrow.ListViewOf(arrow.PrimitiveTypes.Int32),
	arrow.LargeListViewOf(arrow.PrimitiveTypes.Int32),
	arrow.FixedSizeListOf(3, arrow.PrimitiveTypes.Float64),
	arrow.FixedSizeListOf(2, arrow.BinaryTypes.String),
	arrow.MapOf(arrow.BinaryTypes.String, arrow.PrimitiveTypes.Int32),
	arrow.StructOf(arrow.Field{Name: "a", Type: arrow.PrimitiveTypes.Int32, Nullable: true}, arrow.Field{Name: "b", Type: arrow.ListOf(arrow.BinaryTypes.String), Nullable: true}),
	arrow.SparseUnionOf([]arrow.Field{{Name: "i", Type: arrow.PrimitiveTypes.Int32, Nullable: true}, {Name: "s", Type: arrow.BinaryTypes.String, Nullable: true}}, []arrow.UnionTypeCode{0, 1}),
	arrow.DenseUnionOf([]arrow.Field{{Name: "i", Type: arrow.PrimitiveTypes.Int32, Nullable: true}, {Name: "s", Type: arrow.BinaryTypes.String, Nullable: true}}, []arrow.UnionTypeCode{0, 1}),
	&arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int8, ValueType: arrow.BinaryTypes.String},
	newTagged(),
}

// tagged is an extension type of lists.
type tagged struct{ arrow.ExtensionBase }

type taggedArray struct{ array.ExtensionArrayBase }

func newTagged() *tagged {
	return &tagged{arrow.ExtensionBase{Storage: arrow.ListOf(arrow.PrimitiveTypes.Int8)}}
}

func (*tagged) ArrayType() reflect.Type                    { return reflect.TypeFor[taggedArray]() }
func (*tagged) ExtensionName() string                      { return "tagged" }
func (*tagged) ExtensionEquals(o arrow.ExtensionType) bool { return o.ExtensionName() == "tagged" }
func (*tagged) Serialize() string                          { return "" }
func (*tagged) String() string                             { return "tagged" }
func (t *tagged) Deserialize(arrow.DataType, string) (arrow.ExtensionType, error) {
	return t, nil
}
func (a *taggedArray) ValueStr(i int) string { return a.Storage().ValueStr(i) }

// appendValue appends one drawn value, or a null.
func appendValue(t *rapid.T, b array.Builder) {
	if rapid.IntRange(0, 4).Draw(t, "null") == 0 {
		b.AppendNull()
		return
	}
	n := rapid.IntRange(0, 100).Draw(t, "value")
	text := []string{"", "a", "bb", "a text too long to lie inside a view"}[n%4]
	items := func(value array.Builder) {
		for range n % 4 {
			appendValue(t, value)
		}
	}
	switch b := b.(type) {
	case *array.NullBuilder:
		b.AppendNull()
	case *array.BooleanBuilder:
		b.Append(n%2 == 0)
	case *array.Int8Builder:
		b.Append(int8(n))
	case *array.Uint16Builder:
		b.Append(uint16(n))
	case *array.Int16Builder:
		b.Append(int16(n))
	case *array.Int32Builder:
		b.Append(int32(n))
	case *array.Int64Builder:
		b.Append(int64(n))
	case *array.Float32Builder:
		b.Append(float32(n))
	case *array.Float64Builder:
		b.Append(float64(n))
	case *array.Date32Builder:
		b.Append(arrow.Date32(n))
	case *array.TimestampBuilder:
		b.Append(arrow.Timestamp(n))
	case *array.MonthDayNanoIntervalBuilder:
		b.Append(arrow.MonthDayNanoInterval{Months: int32(n), Days: 1})
	case *array.Decimal128Builder:
		b.Append(decimal128.FromI64(int64(n)))
	case *array.FixedSizeBinaryBuilder:
		b.Append(make([]byte, b.Type().(*arrow.FixedSizeBinaryType).ByteWidth))
	case *array.StringBuilder:
		b.Append(text)
	case *array.LargeStringBuilder:
		b.Append(text)
	case *array.BinaryBuilder:
		b.AppendString(text)
	case *array.StringViewBuilder:
		b.Append(text)
	case *array.BinaryViewBuilder:
		b.AppendString(text)
	case *array.ListBuilder:
		b.Append(true)
		items(b.ValueBuilder())
	case *array.LargeListBuilder:
		b.Append(true)
		items(b.ValueBuilder())
	case *array.ListViewBuilder:
		b.AppendWithSize(true, n%4)
		items(b.ValueBuilder())
	case *array.LargeListViewBuilder:
		b.AppendWithSize(true, n%4)
		items(b.ValueBuilder())
	case *array.FixedSizeListBuilder:
		b.Append(true)
		for range b.Type().(*arrow.FixedSizeListType).Len() {
			appendValue(t, b.ValueBuilder())
		}
	case *array.MapBuilder:
		b.Append(true)
		for range n % 3 {
			b.KeyBuilder().(*array.StringBuilder).Append(text)
			appendValue(t, b.ItemBuilder())
		}
	case *array.StructBuilder:
		b.Append(true)
		for i := range b.NumField() {
			appendValue(t, b.FieldBuilder(i))
		}
	case *array.SparseUnionBuilder:
		code := n % 2
		b.Append(arrow.UnionTypeCode(code))
		appendValue(t, b.Child(code))
		b.Child(1 - code).AppendNull()
	case *array.DenseUnionBuilder:
		code := n % 2
		b.Append(arrow.UnionTypeCode(code))
		appendValue(t, b.Child(code))
	case *array.BinaryDictionaryBuilder:
		require.NoError(t, b.AppendString(text))
	case *array.ExtensionBuilder:
		appendValue(t, b.StorageBuilder())
	default:
		t.Fatalf("no values for %T", b)
	}
}

// drawArray is an array cut out of a longer one.
func drawArray(t *rapid.T, mem memory.Allocator, dt arrow.DataType) arrow.Array {
	b := array.NewBuilder(mem, dt)
	defer b.Release()
	n := rapid.IntRange(0, 80).Draw(t, "rows")
	for range n {
		appendValue(t, b)
	}
	whole := b.NewArray()
	defer whole.Release()
	from := rapid.IntRange(0, n).Draw(t, "from")
	return array.NewSlice(whole, int64(from), int64(rapid.IntRange(from, n).Draw(t, "to")))
}

func drawRanges(t *rapid.T, n int) []gather.Range {
	var out []gather.Range
	for at := 0; at < n; {
		start := at + rapid.IntRange(0, 5).Draw(t, "gap")
		end := start + rapid.SampledFrom([]int{1, 1, 2, 7, 40}).Draw(t, "length")
		if start >= n {
			break
		}
		out = append(out, gather.Range{Start: start, End: min(end, n)})
		at = min(end, n)
	}
	return out
}

// TestRowsAreThoseOfTheRanges: for every type, nulls and slices included, the rows
// are those of the ranges one after the other, as values and as text, and nothing
// leaks.
func TestRowsAreThoseOfTheRanges(t *testing.T) {
	for _, dt := range types {
		t.Run(dt.String(), func(t *testing.T) {
			require.NoError(t, gather.Check(dt))
			rapid.Check(t, func(t *rapid.T) {
				mem := memory.NewCheckedAllocator(memory.DefaultAllocator)
				defer mem.AssertSize(t, 0)
				arr := drawArray(t, mem, dt)
				defer arr.Release()
				ranges := drawRanges(t, arr.Len())
				got, err := gather.Array(mem, arr, ranges)
				require.NoError(t, err)
				defer got.Release()
				require.Equal(t, gather.Len(ranges), got.Len())
				require.True(t, arrow.TypeEqual(dt, got.DataType()))
				at, nulls := 0, 0
				for _, r := range ranges {
					want, have := array.NewSlice(arr, int64(r.Start), int64(r.End)), array.NewSlice(got, int64(at), int64(at+r.End-r.Start))
					require.True(t, array.Equal(want, have), "want %v, got %v", want, have)
					for i := r.Start; i < r.End; i++ {
						require.Equal(t, arr.IsNull(i), got.IsNull(at))
						require.Equal(t, arr.ValueStr(i), got.ValueStr(at))
						if got.IsNull(at) {
							nulls++
						}
						at++
					}
					want.Release()
					have.Release()
				}
				if dt.ID() == arrow.NULL {
					nulls = at // which its IsNull does not say
				}
				require.Equal(t, nulls, got.NullN())
			})
		})
	}
}

// What was gathered can be gathered again, nested offsets included.
func TestGatherTwice(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		mem := memory.NewCheckedAllocator(memory.DefaultAllocator)
		defer mem.AssertSize(t, 0)
		arr := drawArray(t, mem, rapid.SampledFrom(types).Draw(t, "type"))
		defer arr.Release()
		one, err := gather.Array(mem, arr, drawRanges(t, arr.Len()))
		require.NoError(t, err)
		defer one.Release()
		two, err := gather.Array(mem, one, []gather.Range{{Start: one.Len() / 3, End: one.Len()}})
		require.NoError(t, err)
		defer two.Release()
		want := array.NewSlice(one, int64(one.Len()/3), int64(one.Len()))
		defer want.Release()
		require.True(t, array.Equal(want, two))
	})
}

// Rows can be taken in any order and more than once.
func TestTakeRowsInAnyOrder(t *testing.T) {
	for _, dt := range types {
		t.Run(dt.String(), func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				mem := memory.NewCheckedAllocator(memory.DefaultAllocator)
				defer mem.AssertSize(t, 0)
				arr := drawArray(t, mem, dt)
				defer arr.Release()
				var rows []int
				if arr.Len() > 0 {
					rows = rapid.SliceOfN(rapid.IntRange(0, arr.Len()-1), 0, 2*arr.Len()).Draw(t, "rows")
				}
				got, err := gather.Take(mem, arr, rows)
				require.NoError(t, err)
				defer got.Release()
				require.Equal(t, len(rows), got.Len())
				for i, r := range rows {
					want, have := array.NewSlice(arr, int64(r), int64(r+1)), array.NewSlice(got, int64(i), int64(i+1))
					require.True(t, array.Equal(want, have), "row %d: want %v, got %v", i, want, have)
					want.Release()
					have.Release()
				}
			})
		})
	}
}

func TestTakeTheSameRowsInAnotherOrder(t *testing.T) {
	b := array.NewStringBuilder(memory.DefaultAllocator)
	b.AppendValues([]string{"a", "bb", "ccc"}, nil)
	got, err := gather.Take(memory.DefaultAllocator, b.NewArray(), []int{2, 0, 1})
	require.NoError(t, err)
	require.Equal(t, `["ccc" "a" "bb"]`, got.String())
}

func TestWhatIsNotSupportedIsRefused(t *testing.T) {
	ree := arrow.RunEndEncodedOf(arrow.PrimitiveTypes.Int32, arrow.BinaryTypes.String)
	for _, dt := range []arrow.DataType{ree, arrow.ListOf(ree), arrow.StructOf(arrow.Field{Name: "x", Type: ree})} {
		require.ErrorIs(t, gather.Check(dt), table.ErrUnsupported)
	}
	mem := memory.NewCheckedAllocator(memory.DefaultAllocator)
	defer mem.AssertSize(t, 0)
	b := array.NewRunEndEncodedBuilder(mem, arrow.PrimitiveTypes.Int32, arrow.BinaryTypes.String)
	defer b.Release()
	arr := b.NewArray()
	defer arr.Release()
	_, err := gather.Array(mem, arr, nil)
	require.ErrorIs(t, err, table.ErrUnsupported)
	rec := array.NewRecordBatch(arrow.NewSchema([]arrow.Field{{Name: "r", Type: ree}}, nil), []arrow.Array{arr}, 0)
	defer rec.Release()
	_, err = gather.Record(mem, rec, nil)
	require.ErrorContains(t, err, `column "r"`)
}

func TestRecordTakesTheSameRowsOfAllColumns(t *testing.T) {
	mem := memory.NewCheckedAllocator(memory.DefaultAllocator)
	defer mem.AssertSize(t, 0)
	ints, floats := array.NewInt32Builder(mem), array.NewFloat64Builder(mem)
	defer ints.Release()
	defer floats.Release()
	for i := range 10 {
		ints.Append(int32(i))
		floats.Append(math.Sqrt(float64(i)))
	}
	a, b := ints.NewArray(), floats.NewArray()
	defer a.Release()
	defer b.Release()
	rec := array.NewRecordBatch(arrow.NewSchema([]arrow.Field{{Name: "a", Type: a.DataType()}, {Name: "b", Type: b.DataType()}}, nil), []arrow.Array{a, b}, 10)
	defer rec.Release()
	got, err := gather.Record(mem, rec, []gather.Range{{Start: 1, End: 3}, {Start: 9, End: 10}})
	require.NoError(t, err)
	defer got.Release()
	require.EqualValues(t, 3, got.NumRows())
	require.Equal(t, "[1 2 9]", got.Column(0).String())
	require.Equal(t, 3.0, got.Column(1).(*array.Float64).Value(2))
}
