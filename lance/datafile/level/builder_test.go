package level_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/rehome-db/rehome/lance/datafile/level"
	"github.com/rehome-db/rehome/lance/datafile/level/leveltest"
	"github.com/rehome-db/rehome/table"
)

// Rows taken from blocks of differing layers, some dropped, some null, are those
// that the model has, in the narrowest layers.
func TestBuilderAgainstModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		typ, shape := leveltest.DrawType(t), leveltest.DrawShape(t)
		var b *level.Builder
		var asked []level.Layer
		for round := range rapid.IntRange(1, 2).Draw(t, "rounds") {
			var want []leveltest.Row
			for range rapid.IntRange(0, 4).Draw(t, "blocks") {
				m := leveltest.Draw(t, typ, shape, 30, nil)
				if b == nil {
					var err error
					asked = m.Layers
					b, err = level.NewBuilder(typ, asked)
					require.NoError(t, err)
				}
				c, err := level.NewCursor(m.Block())
				require.NoError(t, err)
				rows := m.Rows
				for c.Remaining() > 0 {
					n := rapid.IntRange(1, c.Remaining()).Draw(t, "n")
					at := len(rows) - c.Remaining()
					if rapid.Bool().Draw(t, "take") {
						require.NoError(t, b.Take(c, n))
						want = append(want, rows[at:at+n]...)
					} else {
						require.NoError(t, c.Skip(n))
					}
				}
				if n := rapid.IntRange(0, 3).Draw(t, "nulls"); n > 0 && round == 0 {
					require.NoError(t, b.TakeNulls(n))
					for range n {
						want = append(want, leveltest.NullRow(m.Layers))
					}
				}
			}
			if b == nil {
				return
			}
			require.Equal(t, len(want), b.Rows())
			got := b.Block()
			require.Equal(t, want, leveltest.Rows(t, got))
			requireNarrowest(t, got, asked, want)
			// What comes out can go in again.
			_, err := level.NewCursor(got)
			require.NoError(t, err)
			b.Reset()
		}
	})
}

func requireNarrowest(t require.TestingT, b *level.Block, asked []level.Layer, rows []leveltest.Row) {
	null, empty := make([]bool, len(b.Layers)), make([]bool, len(b.Layers))
	for _, row := range rows {
		for _, e := range row {
			if e.Absent >= 0 && e.Empty {
				empty[e.Absent] = true
			} else if e.Absent >= 0 {
				null[e.Absent] = true
			}
		}
	}
	innermostList := slices.IndexFunc(b.Layers, level.Layer.IsList)
	nullable, inStruct := false, false
	for i := len(b.Layers) - 1; i >= 0; i-- {
		inStruct = inStruct && !b.Layers[i].IsList()
		switch l := b.Layers[i]; {
		case !l.IsList():
			declared := null[i] || inStruct && i > 0 || innermostList >= 0 && i > innermostList && asked[i] == level.NullableItem
			require.Equal(t, declared, l == level.NullableItem)
			nullable, inStruct = nullable || declared, inStruct || declared
		case null[i] && empty[i]:
			require.Equal(t, level.NullAndEmptyList, l)
		case null[i] || nullable && !empty[i]:
			require.Equal(t, level.NullableList, l, "a list inside a nullable struct must not be AllValidList")
		case empty[i], i == innermostList && level.MaxRep(b.Layers) > 1 && level.MaxDef(b.Layers) == 1 && !slices.Contains(empty, true) && !slices.Contains(null, true):
			require.Equal(t, level.EmptyableList, l)
		default:
			require.Equal(t, level.AllValidList, l)
		}
	}
	require.True(t, level.MaxRep(b.Layers) < 2 || level.MaxDef(b.Layers) > 0, "several lists")
	if b.Rows > 0 {
		require.Equal(t, level.MaxDef(b.Layers) > 0, b.Def != nil)
	}
}

// Whether a struct around a list is declared nullable does not depend on the rows, so
// that all pages of a column agree on it.
func TestBuilderDeclaresStructsAroundLists(t *testing.T) {
	item, valid, list := level.NullableItem, level.AllValidItem, level.NullAndEmptyList
	typ := level.Type{Kind: level.Fixed, Bits: 8}
	page := func(asked []level.Layer) []level.Layer {
		b, err := level.NewBuilder(typ, asked)
		require.NoError(t, err)
		return b.Block().Layers
	}
	require.Equal(t, []level.Layer{valid, level.NullableList, item}, page([]level.Layer{item, list, item}))
	require.Equal(t, []level.Layer{valid, level.AllValidList, valid}, page([]level.Layer{item, list, valid}))
	require.Equal(t, []level.Layer{valid, valid, level.AllValidList}, page([]level.Layer{item, item, list}))
	require.Equal(t, []level.Layer{valid, level.EmptyableList, level.AllValidList}, page([]level.Layer{item, list, list}))
	b, err := level.NewBuilder(typ, []level.Layer{item, list, list})
	require.NoError(t, err)
	b.Alone()
	require.Equal(t, []level.Layer{valid, level.AllValidList, level.AllValidList}, b.Block().Layers)
	require.Equal(t, []level.Layer{valid, level.NullableList, item, level.NullableList, item}, page([]level.Layer{item, list, item, list, item}))
	require.Equal(t, []level.Layer{valid, valid, level.NullableList, item, item}, page([]level.Layer{item, item, list, valid, item}), "what is in a nullable struct")

	same := level.SameItems
	for _, c := range []struct {
		asked, page    []level.Layer
		mini, oneByOne bool
		levels         bool // needed in mini-blocks
	}{
		{[]level.Layer{item, list, item}, []level.Layer{valid, list, item}, true, false, true},
		{[]level.Layer{item, list, item}, []level.Layer{item, list, item}, true, true, true},
		{[]level.Layer{item, list, item}, []level.Layer{item, list, valid}, false, false, false},
		{[]level.Layer{item, list, valid}, []level.Layer{item, list, item}, false, false, false},
		{[]level.Layer{item, list}, []level.Layer{valid, list}, true, false, false},
		{[]level.Layer{valid, list}, []level.Layer{valid, level.AllValidList}, true, true, false},
		{[]level.Layer{item, item, list}, []level.Layer{valid, item, list}, true, false, false},
		{[]level.Layer{item, valid, item}, []level.Layer{valid, valid, valid}, true, true, false},
		{[]level.Layer{item}, []level.Layer{item, list, item}, false, false, false},
		{[]level.Layer{valid, list, list}, []level.Layer{valid, list, list}, true, true, true},
		{[]level.Layer{item, list, valid, item}, []level.Layer{item, list, item, item}, true, true, true},
		{[]level.Layer{item, list, valid, item}, []level.Layer{item, list, valid, item}, false, false, false},
	} {
		got, levels := same(c.asked, c.page, false)
		require.Equal(t, c.mini, got, "%v and %v", c.asked, c.page)
		require.Equal(t, c.levels, levels, "%v and %v", c.asked, c.page)
		got, _ = same(c.asked, c.page, true)
		require.Equal(t, c.oneByOne, got, "%v and %v, one by one", c.asked, c.page)
	}
}

func TestMappingRefusesWhatCannotBeSaid(t *testing.T) {
	for _, c := range []struct{ from, to []level.Layer }{
		{[]level.Layer{level.NullableItem}, []level.Layer{level.AllValidItem}},
		{[]level.Layer{level.AllValidItem, level.NullAndEmptyList}, []level.Layer{level.AllValidItem, level.EmptyableList}},
		{[]level.Layer{level.AllValidItem, level.NullAndEmptyList}, []level.Layer{level.AllValidItem, level.NullableList}},
		{[]level.Layer{level.AllValidItem, level.AllValidList}, []level.Layer{level.AllValidItem, level.NullableItem}},
		{[]level.Layer{level.AllValidItem}, []level.Layer{level.AllValidItem, level.NullableItem}},
		{[]level.Layer{level.AllValidList}, []level.Layer{level.AllValidList}},
		{nil, nil},
		{[]level.Layer{9}, []level.Layer{9}},
	} {
		_, err := level.Mapping(c.from, c.to)
		require.ErrorIs(t, err, table.ErrCorrupt, "%v to %v", c.from, c.to)
	}
	m, err := level.Mapping(
		[]level.Layer{level.AllValidItem, level.EmptyableList, level.NullableItem},
		[]level.Layer{level.NullableItem, level.NullAndEmptyList, level.NullableItem})
	require.NoError(t, err)
	require.Equal(t, []uint16{0, 3, 4}, m)
}

// Blocks whose streams do not fit together are refused, wherever that shows.
func TestCursorRefusesInconsistentBlocks(t *testing.T) {
	flat := []level.Layer{level.NullableItem}
	list := []level.Layer{level.AllValidItem, level.EmptyableList}
	i32 := level.Type{Kind: level.Fixed, Bits: 32}
	str := level.Type{Kind: level.Variable, Bits: 32}
	four := func(n int) level.Values { return level.Values{N: n, Data: make([]byte, 4*n)} }
	for name, b := range map[string]level.Block{
		"no layers":              {Type: i32},
		"negative rows":          {Type: i32, Layers: flat, Rows: -1},
		"missing repetition":     {Type: i32, Layers: list, Rows: 1, Def: []uint16{0}, Values: four(1)},
		"repetition, no list":    {Type: i32, Layers: flat, Rows: 1, Rep: []uint16{0}, Values: four(1)},
		"lengths differ":         {Type: i32, Layers: list, Rows: 1, Rep: []uint16{1, 0}, Def: []uint16{0}, Values: four(1)},
		"too few levels":         {Type: i32, Layers: flat, Rows: 2, Def: []uint16{0}, Values: four(1)},
		"too few slots":          {Type: i32, Layers: flat, Rows: 2, Def: []uint16{0, 0}, Values: four(1)},
		"too few bytes":          {Type: i32, Layers: flat, Rows: 2, Def: []uint16{0, 0}, Values: level.Values{N: 2, Data: make([]byte, 7)}},
		"too few visible":        {Type: i32, Layers: list, Rows: 2, Rep: []uint16{1, 1}, Def: []uint16{0, 1}, Values: four(2)},
		"too many visible":       {Type: i32, Layers: list, Rows: 2, Rep: []uint16{1, 1}, Def: []uint16{0, 0}, Values: four(1)},
		"does not begin a row":   {Type: i32, Layers: list, Rows: 1, Rep: []uint16{0}, Def: []uint16{0}, Values: four(1)},
		"fewer rows than stated": {Type: i32, Layers: list, Rows: 2, Rep: []uint16{1, 0}, Def: []uint16{0, 0}, Values: four(2)},
		"more rows than stated":  {Type: i32, Layers: list, Rows: 1, Rep: []uint16{1, 1}, Def: []uint16{0, 0}, Values: four(2)},
		"repetition too large":   {Type: i32, Layers: list, Rows: 2, Rep: []uint16{1, 2}, Def: []uint16{0, 0}, Values: four(2)},
		"definition too large":   {Type: i32, Layers: flat, Rows: 1, Def: []uint16{2}, Values: four(1)},
		"too few offsets":        {Type: str, Layers: flat, Rows: 2, Values: level.Values{N: 2, Offsets: []uint32{0, 0}}},
		"offset past the end":    {Type: str, Layers: flat, Rows: 1, Values: level.Values{N: 1, Offsets: []uint32{0, 5}, Data: make([]byte, 4)}},
		"offsets decrease":       {Type: str, Layers: flat, Rows: 2, Values: level.Values{N: 2, Offsets: []uint32{0, 3, 1}, Data: make([]byte, 4)}},
		"item validity short":    {Type: level.Type{Kind: level.FixedList, Bits: 8, Dim: 9}, Layers: flat, Rows: 1, Values: level.Values{N: 1, Data: make([]byte, 9), ItemValid: make([]byte, 1)}},
		"other type":             {Type: level.Type{Kind: level.Fixed, Bits: 16}, Layers: flat, Rows: 1, Values: four(1)},
		"unknown kind":           {Type: level.Type{Kind: 9}, Layers: flat, Rows: 1, Values: four(1)},
	} {
		t.Run(name, func(t *testing.T) {
			typ := i32
			if b.Type.Kind == level.Variable || b.Type.Kind == level.FixedList {
				typ = b.Type
			}
			layers := b.Layers
			if layers == nil {
				layers = flat
			}
			builder, err := level.NewBuilder(typ, layers)
			require.NoError(t, err)
			c, err := level.NewCursor(&b)
			if err == nil {
				err = builder.Take(c, b.Rows)
			}
			require.ErrorIs(t, err, table.ErrCorrupt)
		})
	}
}

func BenchmarkTakeVectors(bench *testing.B) {
	typ := level.Type{Kind: level.FixedList, Bits: 32, Dim: 128}
	const rows = 10_000
	src := &level.Block{Type: typ, Rows: rows, Layers: []level.Layer{level.AllValidItem},
		Values: level.Values{N: rows, Data: make([]byte, rows*512)}}
	b, err := level.NewBuilder(typ, src.Layers)
	require.NoError(bench, err)
	bench.SetBytes(int64(len(src.Values.Data)))
	for bench.Loop() {
		c, err := level.NewCursor(src)
		require.NoError(bench, err)
		for c.Remaining() > 0 {
			require.NoError(bench, b.Take(c, 99))
			require.NoError(bench, c.Skip(1))
		}
		b.Reset()
	}
}
