package shred_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/rehome-db/rehome/lance/datafile"
	"github.com/rehome-db/rehome/lance/datafile/assemble"
	"github.com/rehome-db/rehome/lance/datafile/level"
	"github.com/rehome-db/rehome/lance/datafile/shred"
	"github.com/rehome-db/rehome/lance/schema"
	"github.com/rehome-db/rehome/table"
)

func fieldOf(t require.TestingT, f arrow.Field) *schema.Schema {
	s, err := schema.FromArrow(arrow.NewSchema([]arrow.Field{f}, nil), 0)
	require.NoError(t, err)
	return s
}

// An array taken apart and put together again is the same array, as a whole and
// in two pieces.
func TestShreddedArraysAssemble(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := drawField(t, "c", 4, datafile.V2_2)
		s := fieldOf(t, f)
		a := drawArray(t, f, rapid.IntRange(0, 40).Draw(t, "rows"))
		cut := rapid.IntRange(0, a.Len()).Draw(t, "cut")
		var blocks [][]*level.Block
		for _, part := range []arrow.Array{array.NewSlice(a, 0, int64(cut)), array.NewSlice(a, int64(cut), int64(a.Len()))} {
			bs, err := shred.Column(s.Fields[0], part)
			require.NoError(t, err)
			require.Len(t, bs, len(s.Leaves()))
			for _, b := range bs {
				require.Equal(t, part.Len(), b.Rows)
				c, err := level.NewCursor(b)
				require.NoError(t, err)
				require.NoError(t, c.Skip(b.Rows))
			}
			blocks = append(blocks, bs)
		}
		var sources []assemble.Source
		for i := range s.Leaves() {
			sources = append(sources, func(yield func(*level.Block, error) bool) {
				for _, bs := range blocks {
					if bs[i].Rows > 0 && !yield(bs[i], nil) {
						return
					}
				}
			})
		}
		r, err := assemble.New(memory.DefaultAllocator, s, sources, uint64(a.Len()))
		require.NoError(t, err)
		defer r.Close()
		var got []arrow.Array
		for rows := 0; rows < a.Len(); rows += got[len(got)-1].Len() {
			batch, err := r.Next(a.Len())
			require.NoError(t, err)
			got = append(got, batch.Column(0))
		}
		for _, part := range got {
			require.True(t, arrow.TypeEqual(a.DataType(), part.DataType()))
		}
		require.Equal(t, rowsOf(t, a), rowsOf(t, got...))
	})
}

// The example of the package's documentation.
func TestWorkedExample(t *testing.T) {
	f := arrow.Field{Name: "c", Type: arrow.ListOf(arrow.PrimitiveTypes.Int32), Nullable: true}
	a, _, err := array.FromJSON(memory.DefaultAllocator, f.Type, strings.NewReader("[[1, null], null, [], [2]]"))
	require.NoError(t, err)
	bs, err := shred.Column(fieldOf(t, f).Fields[0], a)
	require.NoError(t, err)
	require.Len(t, bs, 1)
	b := bs[0]
	require.Equal(t, []level.Layer{level.NullableItem, level.NullAndEmptyList}, b.Layers)
	require.Equal(t, []uint16{1, 0, 1, 1, 1}, b.Rep)
	require.Equal(t, []uint16{0, 1, 2, 3, 0}, b.Def)
	require.Equal(t, 3, b.Values.N)
}

// Flat columns share the array's memory, whether or not it has nulls.
func TestFlatColumnsAreNotCopied(t *testing.T) {
	for name, c := range map[string]struct {
		typ  arrow.DataType
		json string
	}{
		"int64":  {arrow.PrimitiveTypes.Int64, "[1, 2, 3]"},
		"nulls":  {arrow.PrimitiveTypes.Int64, "[1, null, 3]"},
		"vector": {arrow.FixedSizeListOf(2, arrow.PrimitiveTypes.Float32), "[[1, 2], [3, 4], [5, 6]]"},
		"utf8":   {arrow.BinaryTypes.String, `["a", null, "b"]`},
	} {
		t.Run(name, func(t *testing.T) {
			a, _, err := array.FromJSON(memory.DefaultAllocator, c.typ, strings.NewReader(c.json))
			require.NoError(t, err)
			s := fieldOf(t, arrow.Field{Name: "c", Type: c.typ, Nullable: true})
			bs, err := shred.Column(s.Fields[0], a)
			require.NoError(t, err)
			data := a.Data()
			if len(data.Children()) > 0 {
				data = data.Children()[0]
			}
			buffers := data.Buffers()
			require.Same(t, &buffers[len(buffers)-1].Bytes()[0], &bs[0].Values.Data[0])
		})
	}
}

func TestWhatCannotBeShredded(t *testing.T) {
	ints, _, err := array.FromJSON(memory.DefaultAllocator, arrow.PrimitiveTypes.Int32, strings.NewReader("[1]"))
	require.NoError(t, err)
	for i, c := range []struct {
		typ arrow.DataType
		a   arrow.Array
	}{
		{arrow.PrimitiveTypes.Int64, ints},
		{arrow.ListOf(arrow.PrimitiveTypes.Int32), ints},
		{arrow.StructOf(arrow.Field{Name: "x", Type: arrow.PrimitiveTypes.Int32}), ints},
		{arrow.FixedSizeListOf(1, arrow.PrimitiveTypes.Int32), ints},
		{arrow.MapOf(arrow.BinaryTypes.String, arrow.PrimitiveTypes.Int32), ints},
		{&arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int32, ValueType: arrow.BinaryTypes.String}, ints},
	} {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			_, err := shred.Column(fieldOf(t, arrow.Field{Name: "c", Type: c.typ, Nullable: true}).Fields[0], c.a)
			require.ErrorIs(t, err, table.ErrUnsupported)
			require.ErrorContains(t, err, `"c"`)
		})
	}
}
