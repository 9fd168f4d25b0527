package remap_test

import (
	"bytes"
	"io/fs"
	"slices"
	"testing"

	"github.com/RoaringBitmap/roaring/v2/roaring64"
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/rehome-db/rehome/deletion"
	"github.com/rehome-db/rehome/fri"
	"github.com/rehome-db/rehome/remap"
	"github.com/rehome-db/rehome/table"
)

// incomplete is a history in which 0 (10 rows, row 4 deleted) became 2 (5 rows) and
// 3 (4 rows), something unknown rewrote 3 into 9, and 1 (100 rows) became 4.
func incomplete(t require.TestingT) *fri.History {
	m := newModel(0)
	m.Add(10)
	m.Add(100)
	m.Live[0].Dead = deletion.Of(4)
	m.Commit(t, m.Compact(t, []int{0}, []uint64{5}, false))
	m.Commit(t, m.Compact(t, []int{0}, nil, false))
	digest := func(id, rows uint64) []byte {
		d := protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), id)
		return protowire.AppendVarint(protowire.AppendTag(d, 2, protowire.VarintType), rows)
	}
	field := func(dst []byte, num protowire.Number, v []byte) []byte {
		return protowire.AppendBytes(protowire.AppendTag(dst, num, protowire.BytesType), v)
	}
	unknown := field(field(field(nil, 1, digest(3, 4)), 2, digest(9, 4)), 99, []byte("a mapping of the future"))
	h, err := fri.Decode(field(m.History.Encode(), 2, unknown), 1)
	require.NoError(t, err)
	require.False(t, h.Complete())
	return h
}

// refusedBy is a check that an error is why rows of exactly these fragments cannot be
// translated, and says so.
func refusedBy(t *testing.T, why error, message string) func(err error, ids ...table.FragmentID) {
	return func(err error, ids ...table.FragmentID) {
		t.Helper()
		var bad *remap.UntranslatableError
		require.ErrorAs(t, err, &bad)
		require.Equal(t, ids, bad.Fragments)
		require.ErrorIs(t, err, why)
		require.ErrorContains(t, err, message)
	}
}

func TestWhatCannotBeTranslatedIsNamedAndNothingChanges(t *testing.T) {
	h := incomplete(t)
	r := remap.New(h, remap.Options{Unchecked: true})
	other, ends, gone := table.NewRowAddr(1, 7), table.NewRowAddr(0, 9), table.NewRowAddr(3, 0)
	require.EqualValues(t, 2, mustAddr(t, r, table.NewRowAddr(0, 0)).Addr.Fragment(), "rows of 0 that are in 2 have an answer")

	refused := refusedBy(t, table.ErrUnsupported, "remap: fragment")
	_, err := r.Addr(ends)
	refused(err, 0)
	_, err = r.Addr(gone)
	refused(err, 3)

	// Small and large, in order and not.
	for _, addrs := range [][]table.RowAddr{
		{other, ends, gone, other},
		{ends, other, gone},
		slices.Concat(slices.Repeat([]table.RowAddr{other}, 70000), []table.RowAddr{gone, ends}),
	} {
		was := slices.Clone(addrs)
		_, _, err = remap.Slice(r, addrs)
		refused(err, 0, 3)
		require.Equal(t, was, addrs, "unchanged")
		_, _, err = remap.SliceMask(r, addrs)
		refused(err, 0, 3)
		require.Equal(t, was, addrs, "unchanged")
	}
	_, c, err := remap.Slice(r, []table.RowAddr{table.NewRowAddr(0, 0), other, table.NewRowAddr(0, 4), 99 << 32})
	require.NoError(t, err, "rows beside those that cannot be translated")
	require.Equal(t, remap.Counts{Moved: 2, Deleted: 1, Unaffected: 1}, c)

	mem := memory.NewCheckedAllocator(memory.DefaultAllocator)
	defer mem.AssertSize(t, 0)
	ra := remap.New(h, remap.Options{Unchecked: true, Allocator: mem})
	b := array.NewUint64Builder(mem)
	defer b.Release()
	b.AppendValues([]uint64{uint64(other), uint64(gone), uint64(ends)}, []bool{true, false, true})
	arr := b.NewUint64Array()
	defer arr.Release()
	_, _, err = ra.Array(arr)
	refused(err, 0) // the null hides an address of 3
	rec := array.NewRecordBatch(arrow.NewSchema([]arrow.Field{{Name: "a", Type: arr.DataType()}}, nil), []arrow.Array{arr}, 3)
	defer rec.Release()
	_, _, err = ra.Record(rec, 0)
	refused(err, 0)

	_, _, err = r.Bitmap(roaring64.BitmapOf(uint64(other), uint64(gone), uint64(ends)))
	refused(err, 0, 3)
	_, c, err = r.Bitmap(roaring64.BitmapOf(0, 1, 4, uint64(other)))
	require.NoError(t, err)
	require.Equal(t, remap.Counts{Moved: 3, Deleted: 1}, c)
	_, _, err = r.RowAddrTreeMap(treeMap(nil, 0, 1))
	refused(err, 0)

	cov, err := r.Coverage([]table.FragmentID{0, 1, 3})
	require.NoError(t, err)
	require.Equal(t, []table.FragmentID{2, 4}, cov.Fragments)
	require.Len(t, cov.Straddles, 1)
	require.True(t, cov.Straddles[0].Unknown)
	require.Equal(t, []table.FragmentID{3}, cov.Straddles[0].Covered)
	require.Contains(t, cov.Straddles[0].String(), "not understood")
}

func mustAddr(t *testing.T, r *remap.Remapper, a table.RowAddr) fri.Translation {
	tr, err := r.Addr(a)
	require.NoError(t, err)
	return tr
}

// A bitmap that opening does not read turns out to be damaged when its rows are
// asked for: in the middle of a large input, after parts of it were translated.
func TestDamageLeavesEverythingAsItWas(t *testing.T) {
	m := newModel(0)
	m.Add(20000)
	m.Add(20000)
	for i := range m.Live {
		var odd []uint32
		for o := uint32(1); o < 20000; o += 2 {
			odd = append(odd, o)
		}
		m.Live[i].Dead = deletion.Of(odd...)
	}
	m.Commit(t, m.Compact(t, []int{0, 1}, nil, false))
	content := m.History.Encode()
	// The last rows of fragment 1's bitmap, a dense one: two bits too many.
	at := bytes.LastIndex(content, []byte{0x55, 0x55, 0x55, 0x55})
	require.Positive(t, at)
	content[at] ^= 0x0a
	h, err := fri.Decode(content, 0)
	require.NoError(t, err, "opening reads no bitmap")
	require.Error(t, h.Validate())

	r := remap.New(h, remap.Options{Unchecked: true})
	var addrs []table.RowAddr
	for range 3 { // more than a copy is made of
		addrs = append(addrs, everyAddr(m)...)
	}
	was := slices.Clone(addrs)
	var bad *remap.UntranslatableError
	_, _, err = remap.Slice(r, addrs)
	require.ErrorAs(t, err, &bad)
	require.ErrorIs(t, err, table.ErrCorrupt)
	require.Equal(t, []table.FragmentID{1}, bad.Fragments)
	require.True(t, slices.Equal(was, addrs), "unchanged")
	_, _, err = remap.SliceMask(r, addrs[:10])
	require.NoError(t, err, "fragment 0 is whole")

	set := roaring64.New()
	set.AddRange(0, 10)
	_, _, err = r.Bitmap(set)
	require.NoError(t, err)
	set.AddRange(1<<32, 1<<32+20000)
	_, _, err = r.Bitmap(set)
	require.ErrorAs(t, err, &bad)
	require.Equal(t, []table.FragmentID{1}, bad.Fragments)
}

// Where rows went in a stable partition is read from a file when they are asked
// for. If it cannot be read now it may be later, so nothing of the failure sticks.
func TestLabelsThatCannotBeReadLeaveEverythingAsItWas(t *testing.T) {
	m := newModel(0)
	tag(t, m)
	m.Add(10)
	m.Add(90000)
	m.Commit(t, m.Compact(t, []int{0}, nil, false))
	m.Commit(t, partition(t, m, []int{0}, 3, func(i int) uint16 { return uint16(i % 3) }))
	labels := m.Labels
	m.Labels = nil
	r := remap.New(m.History, remap.Options{Unchecked: true})
	addrs := everyAddr(m)
	was := slices.Clone(addrs)
	var bad *remap.UntranslatableError
	_, _, err := remap.Slice(r, addrs)
	require.ErrorAs(t, err, &bad)
	require.Equal(t, []table.FragmentID{1}, bad.Fragments)
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.True(t, slices.Equal(was, addrs), "unchanged")
	set := roaring64.New()
	set.AddRange(1<<32, 1<<32+90000)
	_, _, err = r.Bitmap(set)
	require.ErrorAs(t, err, &bad)

	m.Labels = labels
	checkSlices(t, m, r, addrs)
	checkBitmap(t, m, r, addrs)
}

// A history that was trimmed does not mention what it once translated. Only the
// table's own list of fragments tells such an address from one that stands.
func TestAnswersOutsideTheTableAreRefused(t *testing.T) {
	m := newModel(5)
	m.Add(10)
	m.Add(10)
	m.Live[0].Dead = deletion.Of(4)
	m.Commit(t, m.Compact(t, []int{0}, nil, false)) // 5 -> 7; 4 was rewritten once, and trimmed
	r := remap.New(m.History, remap.Options{Current: version(8, table.Fragment{ID: 6, PhysicalRows: 10}, table.Fragment{ID: 7, PhysicalRows: 9})})
	lost, dead, fine := table.NewRowAddr(4, 0), table.NewRowAddr(5, 4), table.NewRowAddr(5, 5)

	refused := refusedBy(t, table.ErrNotFound, "is gone")
	tr, err := r.Addr(lost)
	refused(err, 4)
	require.Equal(t, fri.Untranslatable, tr.State)
	_, err = r.Addr(dead)
	require.NoError(t, err)

	addrs := []table.RowAddr{fine, dead, lost, table.NewRowAddr(6, 1), table.NewRowAddr(3, 0)}
	was := slices.Clone(addrs)
	_, _, err = remap.Slice(r, addrs)
	refused(err, 3, 4)
	require.Equal(t, was, addrs, "unchanged")
	_, _, err = remap.Slice(r, slices.Repeat(addrs, 20000))
	refused(err, 3, 4)
	_, _, err = r.Bitmap(roaring64.BitmapOf(uint64(fine), uint64(lost)))
	refused(err, 4)
	_, c, err := remap.Slice(r, []table.RowAddr{fine, dead, table.NewRowAddr(6, 1)})
	require.NoError(t, err)
	require.Equal(t, remap.Counts{Moved: 1, Deleted: 1, Unaffected: 1}, c)

	// A fragment that the rewrite made may be gone, too.
	r = remap.New(m.History, remap.Options{Current: version(8)})
	_, _, err = r.Bitmap(roaring64.BitmapOf(uint64(fine), uint64(dead)))
	refused(err, 7)
	_, err = r.Addr(fine)
	refused(err, 7)
}
