package level_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/rehome-db/rehome/lance/datafile/level"
	"github.com/rehome-db/rehome/lance/datafile/level/leveltest"
)

// absentRow is what a leaf that is nowhere there has for a row of another leaf:
// for each slot of the struct that they share, a null in the layer below it, or
// what the struct's absence is.
func absentRow(row leveltest.Row, theirs, ours []level.Layer, shared int) leveltest.Row {
	below, own := len(theirs)-shared, len(ours)-shared
	innerLists := func(layers []level.Layer) (n uint16) {
		for _, l := range layers {
			if l.IsList() {
				n++
			}
		}
		return n
	}
	theirLists, ourLists := innerLists(theirs[:below]), innerLists(ours[:own])
	var out leveltest.Row
	for _, e := range row {
		if e.Rep < theirLists {
			continue
		}
		a := leveltest.Entry{Rep: e.Rep - theirLists + ourLists, Absent: own - 1, Slot: true}
		if e.Absent >= below {
			a.Absent, a.Empty = e.Absent-below+own, e.Empty
		}
		for _, l := range ours[:a.Absent+1] {
			a.Slot = a.Slot && !l.IsList()
		}
		out = append(out, a)
	}
	return out
}

func TestTakeAbsentAgainstModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		shared := append([]bool{false}, rapid.SliceOfN(rapid.Bool(), 0, 2).Draw(t, "shared")...)
		theirs := append(leveltest.DrawShape(t), shared...)
		ours := append(leveltest.DrawShape(t), shared...)
		m := leveltest.Draw(t, leveltest.DrawType(t), theirs, 30, nil)
		layers := leveltest.DrawLayers(t, ours)
		b, err := level.NewBuilder(leveltest.DrawType(t), layers)
		require.NoError(t, err)
		c, err := level.NewCursor(m.Block())
		require.NoError(t, err)
		want := []leveltest.Row{}
		for c.Remaining() > 0 {
			at, n := len(m.Rows)-c.Remaining(), rapid.IntRange(1, c.Remaining()).Draw(t, "n")
			if rapid.Bool().Draw(t, "skip") {
				require.NoError(t, c.Skip(n))
				continue
			}
			require.NoError(t, b.TakeAbsent(c, n, len(shared)))
			for _, row := range m.Rows[at : at+n] {
				want = append(want, absentRow(row, m.Layers, layers, len(shared)))
			}
		}
		got := leveltest.Rows(t, b.Block())
		require.Equal(t, want, append([]leveltest.Row{}, got...))
		_, err = level.NewCursor(b.Block())
		require.NoError(t, err)
	})
}

// The example of the documentation.
func TestTakeAbsentExample(t *testing.T) {
	item, list := level.NullableItem, level.NullAndEmptyList
	a := &level.Block{
		Type: level.Type{Kind: level.Fixed, Bits: 8}, Rows: 2, Layers: []level.Layer{item, list, item},
		Rep: []uint16{1, 0, 1}, Def: []uint16{0, 0, 4}, Values: level.Values{N: 2, Data: []byte{1, 2}},
	}
	b, err := level.NewBuilder(level.Type{Kind: level.Fixed, Bits: 16}, []level.Layer{item, item})
	require.NoError(t, err)
	c, err := level.NewCursor(a)
	require.NoError(t, err)
	require.NoError(t, b.TakeAbsent(c, 2, 1))
	require.Equal(t, []uint16{1, 2}, b.Block().Def)
	require.Nil(t, b.Block().Rep)

	c, err = level.NewCursor(a)
	require.NoError(t, err)
	require.ErrorContains(t, b.TakeAbsent(c, 2, 3), "cannot share 3")
}

func TestParts(t *testing.T) {
	for _, parts := range [][]level.Part{nil, {{Bits: 8}}, {{Bits: 32, Variable: true}, {Bits: 96, Items: 3}, {Bits: 64}}} {
		require.Equal(t, parts, level.NewParts(parts).List())
	}
}
