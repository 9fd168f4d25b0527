package remap_test

import (
	"encoding/binary"
	"slices"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/RoaringBitmap/roaring/v2/roaring64"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/rehome-db/rehome/fri"
	"github.com/rehome-db/rehome/fri/fritest"
	"github.com/rehome-db/rehome/remap"
	"github.com/rehome-db/rehome/table"
)

func wantSet(m *fritest.Model, addrs []table.RowAddr) ([]uint64, remap.Counts) {
	distinct := slices.Compact(slices.Sorted(slices.Values(addrs)))
	kept, _, _, c := naive(m, distinct)
	var out []uint64
	for _, a := range kept {
		out = append(out, uint64(a))
	}
	slices.Sort(out)
	return slices.Compact(out), c
}

func checkBitmap(t require.TestingT, m *fritest.Model, r *remap.Remapper, addrs []table.RowAddr) {
	bm := roaring64.New()
	for _, a := range addrs {
		bm.Add(uint64(a))
	}
	before := bm.ToArray()
	got, counts, err := r.Bitmap(bm)
	require.NoError(t, err)
	want, wantCounts := wantSet(m, addrs)
	require.True(t, slices.Equal(want, got.ToArray()), "want %v, got %v", want, got)
	require.Equal(t, wantCounts, counts)
	require.NoError(t, got.Validate())
	require.Equal(t, before, bm.ToArray(), "unchanged")
	got.Add(0) // it is the caller's
	got.Remove(0)
}

func TestBitmapAgainstModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := drawModel(t)
		r := remap.New(m.History, remap.Options{Unchecked: true})
		checkBitmap(t, m, r, drawAddrs(t, m))
		checkBitmap(t, m, r, drawAddrs(t, m))
	})
}

func TestBitmapOfEverything(t *testing.T) {
	for _, n := range []int{1, 10, 200} {
		m := stacked(t, n)
		checkBitmap(t, m, remap.New(m.History, remap.Options{Unchecked: true}), everyAddr(m))
	}
}

// Rows around the edges of Roaring containers, in a fragment and beyond its rows.
func TestBitmapAcrossContainers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := newModel(0)
		m.Add(65536 + 20)
		m.Add(30)
		m.Live[0].DrawDeletions(t)
		m.Commit(t, m.Compact(t, []int{0, 1}, []uint64{65530}, rapid.Bool().Draw(t, "descending")))
		var addrs []table.RowAddr
		for _, at := range []uint64{0, 65530, 65536 + 15, 1<<32 - 3} {
			for i := range rapid.Uint64Range(0, 10).Draw(t, "n") {
				if at+i < 1<<32 {
					addrs = append(addrs, table.NewRowAddr(0, uint32(at+i)))
				}
			}
		}
		checkBitmap(t, m, remap.New(m.History, remap.Options{Unchecked: true}), addrs)
	})
}

// Enough scattered ranges that they are folded on the way, from two fragments that
// arrive in the wrong order.
func TestBitmapFoldsManyRanges(t *testing.T) {
	m := newModel(0)
	m.Add(150000)
	m.Add(150000)
	m.Commit(t, m.Compact(t, []int{0}, nil, false))
	m.Commit(t, m.Compact(t, []int{0}, nil, false)) // fragment 1 lands in 3, 0 in 2
	m.Commit(t, m.Compact(t, []int{0, 1}, nil, false))
	var addrs []table.RowAddr
	for o := uint32(0); o < 150000; o += 2 {
		addrs = append(addrs, table.NewRowAddr(0, o), table.NewRowAddr(1, o))
	}
	checkBitmap(t, m, remap.New(m.History, remap.Options{Unchecked: true}), addrs)
}

// treeMap writes the form that bitmap indexes store.
func treeMap(addrs []table.RowAddr, whole ...table.FragmentID) []byte {
	of := map[table.FragmentID]*roaring.Bitmap{}
	for _, a := range addrs {
		if of[a.Fragment()] == nil {
			of[a.Fragment()] = roaring.New()
		}
		of[a.Fragment()].Add(a.Offset())
	}
	for _, id := range whole {
		of[id] = nil
	}
	out := binary.LittleEndian.AppendUint32(nil, uint32(len(of)))
	ids := make([]table.FragmentID, 0, len(of))
	for id := range of {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	for _, id := range ids {
		out = binary.LittleEndian.AppendUint32(out, uint32(id))
		if of[id] == nil {
			out = binary.LittleEndian.AppendUint32(out, 0)
			continue
		}
		bits, _ := of[id].ToBytes()
		out = binary.LittleEndian.AppendUint32(out, uint32(len(bits)))
		out = append(out, bits...)
	}
	return out
}

// readTreeMap is an independent reader of the same.
func readTreeMap(t require.TestingT, data []byte) (addrs []uint64, whole []table.FragmentID) {
	n := binary.LittleEndian.Uint32(data)
	data = data[4:]
	for range n {
		id, size := table.FragmentID(binary.LittleEndian.Uint32(data)), binary.LittleEndian.Uint32(data[4:])
		data = data[8:]
		if size == 0 {
			whole = append(whole, id)
			continue
		}
		bm := roaring.New()
		require.NoError(t, bm.UnmarshalBinary(data[:size]))
		for _, o := range bm.ToArray() {
			addrs = append(addrs, uint64(table.NewRowAddr(id, o)))
		}
		data = data[size:]
	}
	require.Empty(t, data)
	return addrs, whole
}

func TestTreeMapAgainstModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := drawModel(t)
		r := remap.New(m.History, remap.Options{Unchecked: true})
		addrs := drawAddrs(t, m)
		// Some fragments are there as a whole, instead of rows of theirs.
		var whole, stays []table.FragmentID
		var expanded []table.RowAddr
		for _, f := range m.All {
			if f.Rows > 0 && rapid.IntRange(0, 4).Draw(t, "whole") == 0 {
				whole = append(whole, f.ID)
				if _, rewritten := m.History.Consumer(f.ID); !rewritten {
					stays = append(stays, f.ID)
				} else {
					for o := range f.Rows {
						expanded = append(expanded, table.NewRowAddr(f.ID, uint32(o)))
					}
				}
			}
		}
		addrs = slices.DeleteFunc(addrs, func(a table.RowAddr) bool { return slices.Contains(whole, a.Fragment()) })
		want, wantCounts := wantSet(m, append(expanded, addrs...))
		want = slices.DeleteFunc(want, func(a uint64) bool { return slices.Contains(stays, table.RowAddr(a).Fragment()) })

		data := treeMap(addrs, whole...)
		out, counts, err := r.RowAddrTreeMap(data)
		require.NoError(t, err)
		got, gotWhole := readTreeMap(t, out)
		require.True(t, slices.Equal(want, got))
		slices.Sort(stays)
		require.True(t, slices.Equal(stays, gotWhole))
		require.Equal(t, wantCounts, counts)
	})
}

func TestTreeMapRefusesWhatIsBroken(t *testing.T) {
	r := remap.New(&fri.History{}, remap.Options{Unchecked: true})
	good := treeMap([]table.RowAddr{1, table.NewRowAddr(2, 5)}, 7)
	out, _, err := r.RowAddrTreeMap(good)
	require.NoError(t, err)
	require.Equal(t, good, out, "nothing moved, so the bytes stay")
	out, _, err = r.RowAddrTreeMap([]byte{0, 0, 0, 0})
	require.NoError(t, err)
	require.Equal(t, []byte{0, 0, 0, 0}, out)

	for n := range good {
		_, _, err := r.RowAddrTreeMap(good[:n])
		require.ErrorIs(t, err, table.ErrCorrupt, "cut at %d", n)
	}
	bad := map[string][]byte{
		"left over":     append(slices.Clone(good), 0),
		"count":         binary.LittleEndian.AppendUint32(nil, 1<<31),
		"order":         slices.Concat([]byte{2, 0, 0, 0}, []byte{5, 0, 0, 0, 0, 0, 0, 0}, []byte{5, 0, 0, 0, 0, 0, 0, 0}),
		"reserved":      {1, 0, 0, 0, 255, 255, 255, 255, 0, 0, 0, 0},
		"no bitmap":     {1, 0, 0, 0, 1, 0, 0, 0, 4, 0, 0, 0, 1, 2, 3, 4},
		"bitmap padded": slices.Concat([]byte{1, 0, 0, 0, 1, 0, 0, 0, 9, 0, 0, 0}, []byte{0x3a, 0x30, 0, 0, 0, 0, 0, 0}, []byte{0}),
	}
	for name, data := range bad {
		_, _, err := r.RowAddrTreeMap(data)
		require.ErrorIs(t, err, table.ErrCorrupt, name)
		require.ErrorContains(t, err, "remap: row address map", name)
	}
}

func FuzzRowAddrTreeMap(f *testing.F) {
	f.Add(treeMap([]table.RowAddr{1, 2, 3, table.NewRowAddr(2, 5)}, 7))
	f.Add([]byte{0, 0, 0, 0})
	f.Add([]byte{1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0})
	m := newModel(0)
	m.Add(50)
	m.Commit(f, m.Compact(f, []int{0}, []uint64{20}, false))
	r := remap.New(m.History, remap.Options{Unchecked: true})
	f.Fuzz(func(t *testing.T, data []byte) {
		out, counts, err := r.RowAddrTreeMap(data)
		if err != nil {
			require.ErrorIs(t, err, table.ErrCorrupt)
			return
		}
		// What comes out is well-formed, and stays where it is: nothing moves twice.
		again, moved, err := r.RowAddrTreeMap(out)
		require.NoError(t, err)
		if counts.Moved == 0 && counts.Deleted == 0 {
			require.Zero(t, moved.Moved)
		}
		_ = again
	})
}

func TestStrictBitmaps(t *testing.T) {
	m := newModel(0)
	m.Add(20)
	m.Commit(t, m.Compact(t, []int{0}, nil, false))
	r := remap.New(m.History, remap.Options{Strict: true})
	for _, stranger := range []table.RowAddr{table.NewRowAddr(0, 20), table.NewRowAddr(1, 3), table.NewRowAddr(9, 0)} {
		var outside *remap.OutsideError
		_, _, err := r.Bitmap(roaring64.BitmapOf(3, 4, uint64(stranger)))
		require.ErrorAs(t, err, &outside)
		require.Equal(t, stranger, outside.Addr)
		_, _, err = r.RowAddrTreeMap(treeMap([]table.RowAddr{3, stranger}))
		require.ErrorAs(t, err, &outside)
	}
	_, _, err := r.Bitmap(roaring64.BitmapOf(0, 19))
	require.NoError(t, err)
	_, _, err = r.RowAddrTreeMap(treeMap(nil, 5))
	require.ErrorIs(t, err, table.ErrNotFound)
}
