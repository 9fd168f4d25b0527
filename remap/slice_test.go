package remap_test

import (
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/rehome-db/rehome/deletion"
	"github.com/rehome-db/rehome/fri"
	"github.com/rehome-db/rehome/fri/fritest"
	"github.com/rehome-db/rehome/remap"
	"github.com/rehome-db/rehome/table"
)

// naive translates one address after the other through the model.
func naive(m *fritest.Model, addrs []table.RowAddr) (kept, inPlace []table.RowAddr, deleted []bool, c remap.Counts) {
	for _, a := range addrs {
		t := m.Translate(a)
		switch t.State {
		case fri.Deleted:
			c.Deleted++
			inPlace, deleted = append(inPlace, a), append(deleted, true)
			continue
		case fri.Moved:
			c.Moved++
		default:
			c.Unaffected++
		}
		kept, inPlace, deleted = append(kept, t.Addr), append(inPlace, t.Addr), append(deleted, false)
	}
	return kept, inPlace, deleted, c
}

func checkSlices(t require.TestingT, m *fritest.Model, r *remap.Remapper, addrs []table.RowAddr) {
	kept, inPlace, deleted, want := naive(m, addrs)

	got, counts, err := remap.Slice(r, slices.Clone(addrs))
	require.NoError(t, err)
	require.Equal(t, want, counts)
	require.True(t, slices.Equal(kept, got), "want %v, got %v", kept, got)

	in := slices.Clone(addrs)
	mask, counts, err := remap.SliceMask(r, in)
	require.NoError(t, err)
	require.Equal(t, want, counts)
	require.Equal(t, inPlace, in[:len(inPlace):len(inPlace)])
	require.EqualValues(t, want.Deleted, mask.Count())
	for i, d := range deleted {
		require.Equal(t, d, mask.Get(i), "entry %d", i)
	}

	raw := make([]uint64, len(addrs))
	for i, a := range addrs {
		raw[i] = uint64(a)
	}
	gotRaw, counts, err := remap.Slice(r, raw)
	require.NoError(t, err)
	require.Equal(t, want, counts)
	require.Len(t, gotRaw, len(kept))
	for i, a := range kept {
		require.EqualValues(t, a, gotRaw[i])
	}

	in = slices.Clone(addrs)
	got, counts, err = remap.Sorted(r, in)
	if slices.IsSorted(addrs) {
		require.NoError(t, err)
		require.Equal(t, want, counts)
		require.True(t, slices.Equal(kept, got))
	} else {
		var order *remap.OrderError
		require.ErrorAs(t, err, &order)
		require.Equal(t, addrs, in, "unchanged")
		require.Less(t, addrs[order.Index], addrs[order.Index-1])
	}
}

// TestSlicesAgainstModel: any batch of addresses becomes what looking each up in a
// map makes of it.
func TestSlicesAgainstModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := drawModel(t)
		r := remap.New(m.History, remap.Options{Unchecked: true})
		for range 3 {
			checkSlices(t, m, r, drawAddrs(t, m))
		}
		for _, a := range drawAddrs(t, m) {
			got, err := r.Addr(a)
			require.NoError(t, err)
			require.Equal(t, m.Translate(a), got, "%v", a)
		}
	})
}

// TestWholeFragments: every address that ever was, in one ascending batch.
func TestWholeFragments(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := drawModel(t)
		r := remap.New(m.History, remap.Options{Unchecked: true})
		checkSlices(t, m, r, everyAddr(m))
	})
}

func TestStackedTransitions(t *testing.T) {
	for _, n := range []int{1, 2, 10, 200} {
		m := stacked(t, n)
		r := remap.New(m.History, remap.Options{Unchecked: true})
		require.Equal(t, n, m.History.Len())
		all := everyAddr(m)
		checkSlices(t, m, r, all)
		slices.Reverse(all)
		checkSlices(t, m, r, all)
	}
}

// A large batch in no order, through more rewrites than it pays to follow one by
// one; its blocks are not all full.
func TestLargeShuffledBatch(t *testing.T) {
	m := stacked(t, 12)
	r := remap.New(m.History, remap.Options{Unchecked: true})
	all := everyAddr(m)
	batch := slices.Repeat(all, 300000/len(all)+1)
	rand.New(rand.NewPCG(1, 2)).Shuffle(len(batch), func(i, j int) { batch[i], batch[j] = batch[j], batch[i] })
	checkSlices(t, m, r, batch)
}

// Address 0 is a row, and a fragment of which nothing survives has no other answer
// than deleted.
func TestAddressZero(t *testing.T) {
	for _, dead := range []*deletion.Vector{nil, deletion.Of(0), deletion.Range(0, 20)} {
		m := newModel(0)
		m.Add(20)
		m.Live[0].Dead = dead
		m.Commit(t, m.Compact(t, []int{0}, []uint64{0, 3}, false))
		r := remap.New(m.History, remap.Options{Unchecked: true})
		checkSlices(t, m, r, []table.RowAddr{0})
		checkSlices(t, m, r, slices.Repeat([]table.RowAddr{0, 1}, 20))
		checkSlices(t, m, r, everyAddr(m))
	}
}

func TestEmptyHistoryAndEmptyInput(t *testing.T) {
	m := newModel(0)
	r := remap.New(m.History, remap.Options{Unchecked: true})
	checkSlices(t, m, r, nil)
	checkSlices(t, m, r, []table.RowAddr{0, 1, 1 << 63})
	require.Same(t, m.History, r.History())
}

func TestStrictNamesTheFirstStranger(t *testing.T) {
	m := newModel(0)
	m.Add(20)
	m.Commit(t, m.Compact(t, []int{0}, nil, false))
	r := remap.New(m.History, remap.Options{Strict: true})
	for _, stranger := range []table.RowAddr{table.NewRowAddr(0, 20), table.NewRowAddr(1, 0), table.NewRowAddr(9, 0)} {
		var outside *remap.OutsideError
		_, err := r.Addr(stranger)
		require.ErrorAs(t, err, &outside)
		addrs := []table.RowAddr{3, 4, stranger, table.NewRowAddr(10, 1)}
		want := slices.Clone(addrs)
		_, _, err = remap.Slice(r, addrs)
		require.ErrorAs(t, err, &outside)
		require.ErrorIs(t, err, table.ErrNotFound)
		require.Equal(t, stranger, outside.Addr)
		require.Equal(t, want, addrs, "unchanged")
		_, _, err = remap.SliceMask(r, addrs)
		require.ErrorAs(t, err, &outside)
		require.Equal(t, want, addrs, "unchanged")
	}
	_, _, err := remap.Slice(r, []table.RowAddr{0, 19, 5})
	require.NoError(t, err)
}

func TestMask(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := newModel(0)
		rows := rapid.Uint64Range(1, 400).Draw(t, "rows")
		m.Add(rows)
		m.Live[0].Dead = deletion.Collect(slices.Values(rapid.SliceOf(rapid.Uint32Range(0, uint32(rows-1))).Draw(t, "dead")))
		m.Commit(t, m.Compact(t, []int{0}, nil, false))
		checkSlices(t, m, remap.New(m.History, remap.Options{Unchecked: true}), everyAddr(m))
	})
}

// A Remapper answers several goroutines at once from its first question on.
func TestConcurrentUse(t *testing.T) {
	m := stacked(t, 20)
	all := everyAddr(m)
	kept, _, _, _ := naive(m, all)
	r := remap.New(m.History, remap.Options{Unchecked: true})
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			got, _, err := remap.Slice(r, slices.Clone(all))
			if err != nil || !slices.Equal(got, kept) {
				t.Errorf("differs: %v", err)
			}
		})
	}
	wg.Wait()
}
