package gather_test

import (
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"

	"github.com/rehome-db/rehome/internal/gather"
)

func TestNulls(t *testing.T) {
	field := func(t arrow.DataType) arrow.Field { return arrow.Field{Name: "f", Type: t, Nullable: true} }
	whole := func(t arrow.DataType) arrow.Field { return arrow.Field{Name: "g", Type: t} }
	dictionary := &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Uint8, ValueType: arrow.BinaryTypes.LargeString}
	nothing := arrow.StructOf(field(arrow.Null), whole(dictionary))
	for _, dt := range []arrow.DataType{
		arrow.Null, arrow.FixedWidthTypes.Boolean, arrow.PrimitiveTypes.Int64, arrow.BinaryTypes.LargeString, &arrow.FixedSizeBinaryType{ByteWidth: 7},
		&arrow.Decimal256Type{Precision: 60, Scale: 3}, &arrow.TimestampType{Unit: arrow.Nanosecond, TimeZone: "UTC"}, dictionary,
		arrow.ListOf(arrow.Null), arrow.LargeListOfField(whole(nothing)), nothing, arrow.StructOf(field(nothing)), arrow.StructOf(),
		arrow.FixedSizeListOf(3, arrow.FixedSizeListOf(2, arrow.FixedWidthTypes.Boolean)), arrow.FixedSizeListOf(3, nothing),
		arrow.MapOf(arrow.BinaryTypes.String, arrow.Null), arrow.StructOf(field(arrow.MapOf(arrow.BinaryTypes.String, nothing))),
	} {
		for _, n := range []int{0, 1, 9} {
			mem := memory.NewCheckedAllocator(memory.DefaultAllocator)
			a := gather.Nulls(mem, dt, n)
			require.Equal(t, n, a.Len(), dt)
			require.True(t, arrow.TypeEqual(dt, a.DataType(), arrow.CheckMetadata()), "%s, %s", dt, a.DataType())
			require.Equal(t, n, a.NullN(), dt)
			for i := range n {
				require.True(t, a.IsNull(i) || dt.ID() == arrow.NULL, dt) // of which it says false
			}
			if s, ok := a.(*array.Struct); ok {
				for i := range s.NumField() {
					require.Equal(t, n, s.Field(i).Len(), dt)
				}
			}
			require.NoError(t, array.ValidateFull(a), dt)
			a.Release()
			mem.AssertSize(t, 0)
		}
	}
}
