package gather_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/rehome-db/rehome/internal/gather"
	"github.com/rehome-db/rehome/table"
)

func TestDictionary(t *testing.T) {
	values := []arrow.DataType{
		arrow.BinaryTypes.String, arrow.BinaryTypes.LargeString, arrow.BinaryTypes.Binary, arrow.BinaryTypes.LargeBinary, arrow.PrimitiveTypes.Int64,
		arrow.PrimitiveTypes.Float32, arrow.FixedWidthTypes.Boolean, &arrow.FixedSizeBinaryType{ByteWidth: 3}, &arrow.Decimal128Type{Precision: 9, Scale: 2},
		arrow.FixedWidthTypes.Date32, arrow.FixedWidthTypes.Timestamp_us,
	}
	indices := []arrow.DataType{arrow.PrimitiveTypes.Int8, arrow.PrimitiveTypes.Uint8, arrow.PrimitiveTypes.Int16, arrow.PrimitiveTypes.Uint32, arrow.PrimitiveTypes.Int64}
	rapid.Check(t, func(t *rapid.T) {
		mem := memory.NewCheckedAllocator(memory.DefaultAllocator)
		defer mem.AssertSize(t, 0)
		dt := rapid.SampledFrom(values).Draw(t, "values")
		to := &arrow.DictionaryType{IndexType: rapid.SampledFrom(indices).Draw(t, "indices"), ValueType: dt}
		a := drawArray(t, mem, dt)
		defer a.Release()
		got, err := gather.Dictionary(mem, a, to)
		require.NoError(t, err)
		defer got.Release()
		require.NoError(t, array.ValidateFull(got))
		require.True(t, arrow.TypeEqual(to, got.DataType()))
		require.Equal(t, a.Len(), got.Len())
		d := got.(*array.Dictionary)
		for i := range a.Len() {
			require.Equal(t, a.IsNull(i), d.IsNull(i))
			if !a.IsNull(i) {
				require.Equal(t, a.ValueStr(i), d.Dictionary().ValueStr(d.GetValueIndex(i)))
			}
		}
		distinct := map[string]bool{}
		for i := range d.Dictionary().Len() {
			require.False(t, d.Dictionary().IsNull(i))
			distinct[d.Dictionary().ValueStr(i)] = true
		}
		if dt.ID() != arrow.FLOAT32 { // two NaN can look the same
			require.Len(t, distinct, d.Dictionary().Len(), "each value once")
		}
	})
}

func TestDictionaryWithTooManyValues(t *testing.T) {
	ints := func(n int) arrow.Array {
		text := make([]string, n)
		for i := range text {
			text[i] = fmt.Sprint(i)
		}
		a, _, err := array.FromJSON(memory.DefaultAllocator, arrow.PrimitiveTypes.Int32, strings.NewReader("["+strings.Join(text, ",")+"]"))
		require.NoError(t, err)
		return a
	}
	for index, most := range map[arrow.DataType]int{arrow.PrimitiveTypes.Int8: 128, arrow.PrimitiveTypes.Uint8: 256} {
		to := &arrow.DictionaryType{IndexType: index, ValueType: arrow.PrimitiveTypes.Int32}
		got, err := gather.Dictionary(memory.DefaultAllocator, ints(most), to)
		require.NoError(t, err)
		require.Equal(t, most-1, got.(*array.Dictionary).GetValueIndex(most-1))
		_, err = gather.Dictionary(memory.DefaultAllocator, ints(most+1), to)
		require.ErrorContains(t, err, "distinct values")
	}
	_, err := gather.Dictionary(memory.DefaultAllocator, gather.Nulls(memory.DefaultAllocator, arrow.ListOf(arrow.Null), 1),
		&arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int8, ValueType: arrow.ListOf(arrow.Null)})
	require.ErrorIs(t, err, table.ErrUnsupported)
}
