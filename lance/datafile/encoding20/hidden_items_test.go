package encoding20_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rehome-db/rehome/lance/datafile/encoding"
	"github.com/rehome-db/rehome/lance/datafile/encoding20"
	"github.com/rehome-db/rehome/lance/datafile/level"
)

// A null list can be stored with items, as Arrow arrays can have them. They are passed
// over, also where they are lists themselves, and whatever rows are asked for.
func TestItemsOfNullListsAreHidden(t *testing.T) {
	var f testFile
	const items, null = 6, 7
	// [0], null over [1, 2], [3, 4], null over [5], [].
	lists := f.page(0, 5, list(flat(64, 0), null, items), words(1, 3+null, 5, 6+null, 6))
	values := f.page(0, items, flat(32, 0), []byte{10, 0, 0, 0, 11, 0, 0, 0, 12, 0, 0, 0, 13, 0, 0, 0, 14, 0, 0, 0, 15, 0, 0, 0})
	leaf := encoding20.Leaf{Type: int32s, Layers: listOf}
	blocks, err := readAll(t, leaf, f.source(5, []encoding20.Page{values}, []encoding20.Page{lists}), encoding.Limits{})
	require.NoError(t, err)
	require.Len(t, blocks, 1)
	require.Equal(t, []uint16{1, 1, 1, 0, 1, 1}, blocks[0].Rep)
	require.Equal(t, []uint16{0, 2, 0, 0, 2, 3}, blocks[0].Def)
	require.Equal(t, []byte{10, 0, 0, 0, 13, 0, 0, 0, 14, 0, 0, 0}, blocks[0].Values.Data)

	// [[0]], null over [null over [1, 2], [3, 4]], [null over [5], []].
	var g testFile
	outer := g.page(0, 3, list(flat(64, 0), 9, 5), words(1, 3+9, 5))
	inner := g.page(0, 5, list(flat(64, 0), null, items), words(1, 3+null, 5, 6+null, 6))
	values = g.page(0, items, flat(32, 0), []byte{10, 0, 0, 0, 11, 0, 0, 0, 12, 0, 0, 0, 13, 0, 0, 0, 14, 0, 0, 0, 15, 0, 0, 0})
	leaf.Layers = []level.Layer{level.NullableItem, level.NullAndEmptyList, level.NullAndEmptyList}
	source := g.source(3, []encoding20.Page{values}, []encoding20.Page{outer}, []encoding20.Page{inner})
	blocks, err = readAll(t, leaf, source, encoding.Limits{})
	require.NoError(t, err)
	require.Len(t, blocks, 1)
	require.Equal(t, []uint16{2, 2, 2, 1}, blocks[0].Rep)
	require.Equal(t, []uint16{0, 4, 2, 3}, blocks[0].Def)
	require.Equal(t, []byte{10, 0, 0, 0}, blocks[0].Values.Data)
}
