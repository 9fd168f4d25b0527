package datafile

import (
	"testing"

	"github.com/stretchr/testify/require"

	enc20pb "github.com/rehome-db/rehome/lance/internal/pb/enc20"
)

// numbered makes a column of pages of so many values each, and items if they are lists.
func numbered(values, items []uint64) *Column {
	c := &Column{}
	for i, n := range values {
		p := Page{FirstRow: c.rows, Rows: n, Array: &enc20pb.ArrayEncoding{}}
		if items != nil {
			p.Array.ArrayEncoding = &enc20pb.ArrayEncoding_List{List: &enc20pb.List{NumItems: items[i]}}
		}
		c.rows += n
		c.pages = append(c.pages, p)
	}
	return c
}

// What a page of the outermost lists stands for is a part if the pages of all columns
// inside begin and end with it.
func TestPartsOfLists(t *testing.T) {
	type counts = []uint64
	for name, c := range map[string]struct {
		lists, items   counts // of the outer lists
		inner, innerOf counts // of lists inside, if there are any
		leaf           counts
		ok             []bool
		pages          [][]pageRange
	}{
		"one page each": {lists: counts{3, 2}, items: counts{5, 4}, leaf: counts{5, 4}, ok: []bool{true, true},
			pages: [][]pageRange{{{0, 1}, {0, 1}}, {{1, 2}, {1, 2}}}},
		"several pages of items": {lists: counts{3, 2}, items: counts{5, 4}, leaf: counts{2, 3, 1, 1, 2}, ok: []bool{true, true},
			pages: [][]pageRange{{{0, 1}, {0, 2}}, {{1, 2}, {2, 5}}}},
		"a page of items of two": {lists: counts{3, 2, 1}, items: counts{5, 4, 2}, leaf: counts{4, 5, 2}, ok: []bool{false, false, true}},
		"one page of all items":  {lists: counts{3, 2}, items: counts{5, 4}, leaf: counts{9}, ok: []bool{false, false}},
		"no items": {lists: counts{3, 2, 4}, items: counts{0, 4, 0}, leaf: counts{4}, ok: []bool{true, true, true},
			pages: [][]pageRange{{{0, 1}, {0, 0}}, {{1, 2}, {0, 1}}, {{2, 3}, {1, 1}}}},
		"pages of nothing": {lists: counts{3, 2}, items: counts{0, 4}, leaf: counts{0, 4, 0}, ok: []bool{true, true},
			pages: [][]pageRange{{{0, 1}, {1, 1}}, {{1, 2}, {1, 3}}}},
		// A page without lists says nothing, whatever it says.
		"lists of nothing": {lists: counts{3, 0, 2}, items: counts{5, 9, 4}, leaf: counts{5, 4}, ok: []bool{true, true, true}},
		"lists in lists": {lists: counts{2, 2}, items: counts{3, 4}, inner: counts{3, 1, 3}, innerOf: counts{6, 0, 2}, leaf: counts{6, 2},
			ok: []bool{true, true}, pages: [][]pageRange{{{0, 1}, {0, 1}, {0, 1}}, {{1, 2}, {1, 3}, {1, 2}}}},
		"lists of two": {lists: counts{2, 2}, items: counts{3, 4}, inner: counts{4, 3}, innerOf: counts{6, 2}, leaf: counts{6, 2},
			ok: []bool{false, false}},
		"items of two in lists": {lists: counts{2, 2}, items: counts{3, 4}, inner: counts{3, 4}, innerOf: counts{6, 2}, leaf: counts{7, 1},
			ok: []bool{false, false}},
	} {
		t.Run(name, func(t *testing.T) {
			leaf := numbered(c.leaf, nil)
			leaf.lists = []*Column{numbered(c.lists, c.items)}
			if c.inner != nil {
				leaf.lists = append(leaf.lists, numbered(c.inner, c.innerOf))
			}
			require.Equal(t, len(c.ok), leaf.NumParts())
			for i, p := range leaf.partition() {
				require.Equal(t, c.ok[i], p.ok, "part %d", i)
				if c.pages != nil {
					require.Equal(t, c.pages[i], p.pages, "part %d", i)
				}
				first, rows := leaf.PartRows(i)
				require.Equal(t, leaf.lists[0].pages[i].FirstRow, first)
				require.Equal(t, c.lists[i], rows)
			}
		})
	}
}

// All leaves force the same cuts, in any order.
func TestCutsAreTheSameForAllLeaves(t *testing.T) {
	var c cuts
	force := func(cut int, row uint64) bool {
		due, err := c.force(cut, row)
		require.NoError(t, err)
		return due
	}
	require.False(t, force(0, 0), "where a file begins")
	require.True(t, force(0, 10))
	require.Equal(t, 5, c.reserve(0, 5, 100), "who is behind stops there")
	require.True(t, force(0, 10))
	require.False(t, force(1, 10), "once")
	require.Equal(t, 20, c.reserve(1, 10, 20))
	c.ask(1)
	require.True(t, force(1, 30))
	_, err := c.force(1, 20)
	require.ErrorContains(t, err, "cannot end at row 20")
}
