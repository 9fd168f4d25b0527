package assemble_test

import (
	"errors"
	"io"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/rehome-db/rehome/lance/datafile/assemble"
	"github.com/rehome-db/rehome/lance/datafile/level"
	"github.com/rehome-db/rehome/lance/schema"
	"github.com/rehome-db/rehome/table"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func newSchema(t testing.TB, fields ...arrow.Field) *schema.Schema {
	s, err := schema.FromArrow(arrow.NewSchema(fields, nil), 0)
	require.NoError(t, err)
	return s
}

func blocks(bs ...*level.Block) assemble.Source {
	return func(yield func(*level.Block, error) bool) {
		for _, b := range bs {
			if !yield(b, nil) {
				return
			}
		}
	}
}

func int32s(vs ...byte) level.Values {
	var data []byte
	for _, v := range vs {
		data = append(data, v, 0, 0, 0)
	}
	return level.Values{N: len(vs), Data: data}
}

var (
	int32Type  = level.Type{Kind: level.Fixed, Bits: 32}
	stringType = level.Type{Kind: level.Variable, Bits: 32}
)

// next reads one batch and prints its columns.
func next(t testing.TB, r *assemble.Reader, n int) []string {
	b, err := r.Next(n)
	require.NoError(t, err)
	defer b.Release()
	var out []string
	for _, c := range b.Columns() {
		out = append(out, c.String())
	}
	return out
}

func TestWorkedExample(t *testing.T) {
	s := newSchema(t, arrow.Field{Name: "l", Type: arrow.ListOf(arrow.PrimitiveTypes.Int32), Nullable: true})
	r, err := assemble.New(memory.DefaultAllocator, s, []assemble.Source{blocks(&level.Block{
		Type: int32Type, Rows: 4, Layers: []level.Layer{level.NullableItem, level.NullAndEmptyList},
		Rep: []uint16{1, 0, 1, 1, 1}, Def: []uint16{0, 1, 2, 3, 0}, Values: int32s(1, 99, 2),
	})}, 4)
	require.NoError(t, err)
	defer r.Close()
	require.Equal(t, []string{"[[1 (null)] (null)]"}, next(t, r, 2))
	require.Equal(t, []string{"[[] [2]]"}, next(t, r, 2))
	_, err = r.Next(2)
	require.ErrorIs(t, err, io.EOF)
}

// Pages of one column may declare different layers.
func TestLayersChangeBetweenBlocks(t *testing.T) {
	s := newSchema(t, arrow.Field{Name: "s", Nullable: true,
		Type: arrow.StructOf(arrow.Field{Name: "a", Type: arrow.PrimitiveTypes.Int32, Nullable: true})})
	item, all := level.NullableItem, level.AllValidItem
	r, err := assemble.New(memory.DefaultAllocator, s, []assemble.Source{blocks(
		&level.Block{Type: int32Type, Rows: 2, Layers: []level.Layer{all, all}, Values: int32s(1, 2)},
		&level.Block{Type: int32Type, Rows: 2, Layers: []level.Layer{all, item}, Def: []uint16{1, 0}, Values: int32s(9, 3)},
		&level.Block{Type: int32Type, Rows: 2, Layers: []level.Layer{item, item}, Def: []uint16{1, 2}, Values: int32s(9, 9)},
	)}, 6)
	require.NoError(t, err)
	defer r.Close()
	b, err := r.Next(100)
	require.NoError(t, err)
	defer b.Release()
	raw, err := b.MarshalJSON()
	require.NoError(t, err)
	require.JSONEq(t, `[{"s":{"a":1}},{"s":{"a":2}},{"s":null},{"s":{"a":3}},{"s":{"a":null}},{"s":null}]`, string(raw))
}

// Columns that no file has read as null, whatever their type.
func TestMissingColumns(t *testing.T) {
	f32 := arrow.PrimitiveTypes.Float32
	types := []arrow.DataType{
		arrow.PrimitiveTypes.Int64, arrow.FixedWidthTypes.Boolean, arrow.BinaryTypes.String, arrow.BinaryTypes.LargeBinary,
		arrow.FixedWidthTypes.Float16, &arrow.Decimal128Type{Precision: 9}, &arrow.Decimal256Type{Precision: 50},
		&arrow.TimestampType{Unit: arrow.Second, TimeZone: "UTC"}, &arrow.DurationType{Unit: arrow.Second}, arrow.FixedWidthTypes.Date32,
		&arrow.FixedSizeBinaryType{ByteWidth: 3}, arrow.FixedSizeListOf(3, f32), arrow.FixedSizeListOf(3, arrow.FixedSizeListOf(2, f32)),
		arrow.Null, arrow.ListOf(arrow.BinaryTypes.String), arrow.LargeListOf(f32),
		arrow.StructOf(arrow.Field{Name: "a", Type: f32}, arrow.Field{Name: "b", Type: arrow.ListOf(f32), Nullable: true}),
	}
	var fields []arrow.Field
	for i, dt := range types {
		fields = append(fields, arrow.Field{Name: string(rune('a' + i)), Type: dt, Nullable: true})
	}
	s := newSchema(t, fields...)
	mem := memory.NewCheckedAllocator(memory.DefaultAllocator)
	defer mem.AssertSize(t, 0)
	r, err := assemble.New(mem, s, make([]assemble.Source, len(s.Leaves())), 3)
	require.NoError(t, err)
	defer r.Close()
	b, err := r.Next(100)
	require.NoError(t, err)
	defer b.Release()
	require.EqualValues(t, 3, b.NumRows())
	for i, c := range b.Columns() {
		require.Equal(t, 3, c.Len())
		for k := range 3 {
			require.True(t, c.IsNull(k) || types[i].ID() == arrow.NULL, "%s", types[i])
		}
	}
}

func TestMissingChildOfAStruct(t *testing.T) {
	i32 := arrow.PrimitiveTypes.Int32
	block := func() assemble.Source {
		return blocks(&level.Block{Type: int32Type, Rows: 3, Layers: []level.Layer{level.AllValidItem, level.NullableItem},
			Def: []uint16{0, 1, 0}, Values: int32s(1, 99, 2)})
	}
	for name, c := range map[string]struct {
		sources []assemble.Source
		want    string
	}{
		"first":  {[]assemble.Source{nil, block()}, `[{"s":{"a":null,"b":1}},{"s":null},{"s":{"a":null,"b":2}}]`},
		"second": {[]assemble.Source{block(), nil}, `[{"s":{"a":1,"b":null}},{"s":null},{"s":{"a":2,"b":null}}]`},
	} {
		s := newSchema(t, arrow.Field{Name: "s", Nullable: true, Type: arrow.StructOf(
			arrow.Field{Name: "a", Type: i32, Nullable: true}, arrow.Field{Name: "b", Type: i32, Nullable: true})})
		r, err := assemble.New(memory.DefaultAllocator, s, c.sources, 3)
		require.NoError(t, err, name)
		b, err := r.Next(100)
		require.NoError(t, err, name)
		raw, err := b.MarshalJSON()
		require.NoError(t, err)
		require.JSONEq(t, c.want, string(raw), name)
		b.Release()
		r.Close()
	}
}

func TestMissingColumnThatCannotBeNull(t *testing.T) {
	i32 := arrow.PrimitiveTypes.Int32
	some := blocks()
	for name, c := range map[string]struct {
		field   arrow.Field
		sources []assemble.Source
		column  string
	}{
		"column": {arrow.Field{Name: "a", Type: i32}, []assemble.Source{nil}, `"a"`},
		"struct": {arrow.Field{Name: "s", Type: arrow.StructOf(arrow.Field{Name: "a", Type: i32, Nullable: true})}, []assemble.Source{nil}, `"s"`},
		"child": {arrow.Field{Name: "s", Nullable: true, Type: arrow.StructOf(arrow.Field{Name: "a", Type: i32}, arrow.Field{Name: "b", Type: i32})},
			[]assemble.Source{some, nil}, `"s.b"`},
	} {
		_, err := assemble.New(memory.DefaultAllocator, newSchema(t, c.field), c.sources, 1)
		require.ErrorIs(t, err, table.ErrCorrupt, name)
		require.ErrorContains(t, err, c.column, name)
	}
}

func TestFaultySources(t *testing.T) {
	i32 := arrow.PrimitiveTypes.Int32
	pair := newSchema(t, arrow.Field{Name: "s", Nullable: true, Type: arrow.StructOf(
		arrow.Field{Name: "a", Type: i32, Nullable: true}, arrow.Field{Name: "b", Type: i32, Nullable: true})})
	one := newSchema(t, arrow.Field{Name: "a", Type: i32, Nullable: true})
	layers := []level.Layer{level.NullableItem}
	struct1 := func(def ...uint16) assemble.Source {
		return blocks(&level.Block{Type: int32Type, Rows: 2, Layers: []level.Layer{level.NullableItem, level.NullableItem}, Def: def, Values: int32s(1, 2)})
	}
	boom := errors.New("boom")
	for name, c := range map[string]struct {
		s       *schema.Schema
		sources []assemble.Source
		want    error
	}{
		"siblings disagree": {pair, []assemble.Source{struct1(0, 2), struct1(0, 1)}, table.ErrCorrupt},
		"ends early":        {one, []assemble.Source{blocks(&level.Block{Type: int32Type, Rows: 1, Layers: layers, Values: int32s(1)})}, table.ErrCorrupt},
		"other type":        {one, []assemble.Source{blocks(&level.Block{Type: stringType, Rows: 2, Layers: layers})}, table.ErrCorrupt},
		"other layers":      {one, []assemble.Source{struct1(0, 0)}, table.ErrCorrupt},
		"level too large":   {one, []assemble.Source{blocks(&level.Block{Type: int32Type, Rows: 2, Layers: layers, Def: []uint16{0, 7}, Values: int32s(1, 2)})}, table.ErrCorrupt},
		"too few values":    {one, []assemble.Source{blocks(&level.Block{Type: int32Type, Rows: 2, Layers: layers, Values: int32s(1)})}, table.ErrCorrupt},
		"error":             {one, []assemble.Source{func(yield func(*level.Block, error) bool) { yield(nil, boom) }}, boom},
	} {
		mem := memory.NewCheckedAllocator(memory.DefaultAllocator)
		r, err := assemble.New(mem, c.s, c.sources, 2)
		require.NoError(t, err, name)
		_, err = r.Next(10)
		require.ErrorIs(t, err, c.want, name)
		r.Close()
		mem.AssertSize(t, 0)
	}
	_, err := assemble.New(memory.DefaultAllocator, one, nil, 2)
	require.Error(t, err)
}

// A batch never spans blocks of strings: a block is what bounds their bytes.
func TestBatchesAreBounded(t *testing.T) {
	s := newSchema(t, arrow.Field{Name: "s", Type: arrow.BinaryTypes.String})
	block := func(n int) *level.Block {
		v := level.Values{N: n, Data: make([]byte, n), Offsets: []uint32{0}}
		for i := range n {
			v.Offsets = append(v.Offsets, uint32(i+1))
		}
		return &level.Block{Type: stringType, Rows: n, Layers: []level.Layer{level.AllValidItem}, Values: v}
	}
	r, err := assemble.New(memory.DefaultAllocator, s, []assemble.Source{blocks(block(5), block(3))}, 8)
	require.NoError(t, err)
	defer r.Close() // with a source that was not drained
	var sizes []int64
	for range 3 {
		b, err := r.Next(4)
		require.NoError(t, err)
		sizes = append(sizes, b.NumRows())
		b.Release()
	}
	require.Equal(t, []int64{4, 1, 3}, sizes)
}
