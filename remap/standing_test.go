package remap_test

import (
	"slices"
	"testing"

	"github.com/RoaringBitmap/roaring/v2/roaring64"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"

	"github.com/rehome-db/rehome/fri"
	"github.com/rehome-db/rehome/remap"
	"github.com/rehome-db/rehome/table"
)

// version is a version with these fragments; the next new one is next.
func version(next table.FragmentID, fragments ...table.Fragment) *table.Snapshot {
	return &table.Snapshot{Table: "t", Version: 9, NextFragmentID: next, Fragments: fragments}
}

// everyForm asks for one address in each form that a Remapper takes.
func everyForm(r *remap.Remapper, a table.RowAddr) map[string]error {
	out := map[string]error{}
	_, out["one"] = r.Addr(a)
	_, _, out["slice"] = remap.Slice(r, []table.RowAddr{a})
	_, _, out["long slice"] = remap.Slice(r, slices.Repeat([]table.RowAddr{a}, 70000))
	_, _, out["sorted"] = remap.Sorted(r, []uint64{uint64(a)})
	_, _, out["mask"] = remap.SliceMask(r, []table.RowAddr{a})
	_, _, out["bitmap"] = r.Bitmap(roaring64.BitmapOf(uint64(a)))
	_, _, out["tree map"] = r.RowAddrTreeMap(treeMap([]table.RowAddr{a}))
	b := array.NewUint64Builder(memory.DefaultAllocator)
	defer b.Release()
	b.Append(uint64(a))
	arr := b.NewUint64Array()
	defer arr.Release()
	got, _, err := r.Array(arr)
	if out["array"] = err; err == nil {
		got.Release()
	}
	return out
}

// exampleHistory moved fragments 10 (8 rows, 2 and 5 deleted) and 11 (4 rows) to 200.
func TestReport05OnlyWhatTheVersionBearsOut(t *testing.T) {
	now := version(201, table.Fragment{ID: 99, PhysicalRows: 8}, table.Fragment{ID: 200, PhysicalRows: 10})
	for _, c := range []struct {
		name    string
		current *table.Snapshot
		asked   table.RowAddr
		reason  string // of the refusal; empty if there is an answer
	}{
		{"moved", now, table.NewRowAddr(11, 2), ""},
		{"deleted", now, table.NewRowAddr(10, 5), ""},
		{"unaffected", now, table.NewRowAddr(99, 7), ""},
		{"beyond the rows of a fragment that stands", now, table.NewRowAddr(99, 8), "fragment 99 of version 9 has 8 rows"},
		{"beyond the rows of a fragment that moved", now, table.NewRowAddr(10, 8), "fragment 10 had 8 rows when it was rewritten"},
		{"of a fragment that is gone without a record", now, table.NewRowAddr(98, 0), "fragment 98 is gone from version 9"},
		{"of a fragment that never was", now, table.NewRowAddr(500, 0), "has had no fragment 500: the next new one is 201"},
		{"moved to a fragment that is gone", version(201), table.NewRowAddr(11, 2), "fragment 200 is gone from version 9"},
		{"moved beyond the rows of a fragment", version(201, table.Fragment{ID: 200, PhysicalRows: 3}), table.NewRowAddr(11, 2), "fragment 200 of version 9 has 3 rows"},
		{"not known of, and nothing to check with", nil, table.NewRowAddr(99, 7), "nobody can say that it stands"},
	} {
		t.Run(c.name, func(t *testing.T) {
			for form, err := range everyForm(remap.New(exampleHistory(), remap.Options{Current: c.current}), c.asked) {
				if c.reason == "" {
					require.NoError(t, err, form)
					continue
				}
				var refused *remap.UntranslatableError
				require.ErrorAs(t, err, &refused, form)
				require.ErrorIs(t, err, table.ErrNotFound, form)
				require.ErrorContains(t, err, c.reason, form)
			}
		})
	}
}

// Who knows that the history is of everything says so.
func TestReport05UncheckedTakesTheHistorysWord(t *testing.T) {
	r := remap.New(exampleHistory(), remap.Options{Unchecked: true})
	for form, err := range everyForm(r, table.NewRowAddr(99, 7)) {
		require.NoError(t, err, form)
	}
	got, err := r.Addr(table.NewRowAddr(99, 7))
	require.NoError(t, err)
	require.Equal(t, fri.Translation{State: fri.Unaffected, Addr: table.NewRowAddr(99, 7)}, got)
}

// A coverage does not claim what the version does not have.
func TestReport05CoverageOfFragmentsThatAreGone(t *testing.T) {
	r := remap.New(exampleHistory(), remap.Options{Current: version(201, table.Fragment{ID: 200, PhysicalRows: 10})})
	c, err := r.Coverage([]table.FragmentID{10, 11, 99})
	require.NoError(t, err)
	require.Equal(t, []table.FragmentID{200}, c.Fragments)
	require.Equal(t, []table.FragmentID{99}, c.Gone)
}
