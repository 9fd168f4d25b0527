package fri_test

import (
	"bytes"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rehome-db/rehome/fri"
	"github.com/rehome-db/rehome/table"
)

// allocated returns the bytes that a function allocates, all that it drops included:
// what it does is in proportion to that, whatever the machine.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// wide is a history of transitions on top of each other, each of n fragments of a row
// into n.
func wide(t *testing.T, transitions, n int) *fri.History {
	t.Helper()
	h := &fri.History{}
	for i := range transitions {
		var b fri.Builder
		var to []fri.Digest
		for j := range n {
			require.NoError(t, b.AddSource(fri.Digest{ID: table.FragmentID(i*n + j), PhysicalRows: 1}, nil))
			to = append(to, fri.Digest{ID: table.FragmentID((i+1)*n + j), PhysicalRows: 1})
		}
		tr, err := b.Build(to)
		require.NoError(t, err)
		h, err = h.Append(uint64(5+i), tr)
		require.NoError(t, err)
	}
	return h
}

func ascending(from, n int) []table.FragmentID {
	ids := make([]table.FragmentID, n)
	for i := range ids {
		ids[i] = table.FragmentID(from + i)
	}
	return ids
}

// Whatever is asked of a history takes work in proportion to its fragments, not to the
// sources of a transition times its destinations.
func TestReport10WideTransitionsTakeLinearWork(t *testing.T) {
	const perFragment = 2000 // bytes allocated, for everything below
	for _, n := range []int{1000, 20000} {
		h := wide(t, 3, n)
		content := h.Encode()
		trimming := fri.Trimming{Commits: make([]fri.Commit, h.Len())}
		for i := range trimming.Commits {
			trimming.Commits[i] = fri.Commit{Version: uint64(5 + i), Exact: true, BeforeKnown: true}
		}
		for i := range 3 {
			trimming.Indexes = append(trimming.Indexes, table.IndexMeta{
				Name: string(rune('a' + i)), DatasetVersion: 1, CoverageKnown: true, Coverage: ascending(i*n, n), Reuse: table.ReuseThrough,
			})
		}
		got := allocated(func() {
			h, err := fri.Recover(content, 0)
			require.NoError(t, err)
			h, err = h.SetAsideDamage()
			require.NoError(t, err)
			needs, err := h.Needs(trimming)
			require.NoError(t, err)
			require.Len(t, needs[0].Indexes, 3)
			kept, dropped, err := h.Trim(trimming)
			require.NoError(t, err)
			require.Empty(t, dropped)
			require.Len(t, h.NeededBy(2, 0, trimming.Indexes), 3)
			require.Len(t, h.Heirs(0), n)
			now, _ := h.Follow(ascending(0, n))
			require.Equal(t, ascending(3*n, n), now)
			require.Len(t, kept.Segments(1), n)
		})
		require.Less(t, got, uint64(perFragment*6*n), "%d fragments", n)
	}
}

// Versions in which nothing was recorded take no more than their bytes.
func TestReport10EmptyVersionsTakeTheirBytes(t *testing.T) {
	const n = 2_000_000
	content := bytes.Repeat([]byte{0x0a, 0}, n)
	got := allocated(func() {
		h, err := fri.Decode(content, 0)
		require.NoError(t, err)
		require.Zero(t, h.Len())
		require.Equal(t, content, h.Encode())
	})
	require.Less(t, got, uint64(4*len(content)))

	// They stand between others as well, and are carried.
	content = bytes.Join([][]byte{{0x0a, 0, 0x0a, 0}, storedVersion(5, goodGroup(t)), {0x0a, 0, 0x0a, 0, 0x12, 0}, {0x1a, 0, 0x1a, 0, 0x22, 0}}, nil)
	_, err := fri.Decode(content, 1)
	require.ErrorIs(t, err, table.ErrCorrupt, "a transition without a mapping")
	content = bytes.Join([][]byte{{0x0a, 0, 0x0a, 0}, storedVersion(5, goodGroup(t)), {0x0a, 0, 0x0a, 0}, {0x1a, 0, 0x1a, 0, 0x22, 0}}, nil)
	h, err := fri.Decode(content, 1)
	require.NoError(t, err)
	require.Equal(t, 1, h.Len())
	require.False(t, h.Complete())
	require.Equal(t, content, h.Encode())
}

// A chain of very many transitions, each of what the one before made, takes work in
// proportion to its length: an address is followed to the end, and what an index needs
// is found, without looking at any transition twice.
func TestReport10LongChainsTakeLinearWork(t *testing.T) {
	const perTransition = 8000 // bytes allocated, for everything below
	for _, n := range []int{500, 4000} {
		content := chain(t, n)
		trimming := fri.Trimming{Commits: make([]fri.Commit, n)}
		for i := range n {
			trimming.Commits[i] = fri.Commit{Version: uint64(5 + i), Exact: true, BeforeKnown: true}
		}
		trimming.Indexes = []table.IndexMeta{{Name: "a", DatasetVersion: 1, CoverageKnown: true, Coverage: ascending(0, 1), Reuse: table.ReuseThrough}}
		got := allocated(func() {
			h, err := fri.Recover(content, 0)
			require.NoError(t, err)
			require.Equal(t, n, h.Len())
			h, err = h.SetAsideDamage()
			require.NoError(t, err)
			needs, err := h.Needs(trimming)
			require.NoError(t, err)
			require.True(t, needs[n-1].Needed())
			_, dropped, err := h.Trim(trimming)
			require.NoError(t, err)
			require.Empty(t, dropped)
			require.Len(t, h.Descendants(0), n)
			now, _ := h.Follow(ascending(0, 1))
			require.Equal(t, ascending(n, 1), now)
			to := h.Translate(table.NewRowAddr(0, 0))
			require.Equal(t, table.NewRowAddr(table.FragmentID(n), 0), to.Addr)
			require.True(t, h.PartOf(h))
		})
		require.Less(t, got, uint64(perTransition*n), "%d transitions", n)
	}
}

// chain is a history of n transitions, of fragment i into i+1, each of one row.
func chain(t *testing.T, n int) []byte {
	t.Helper()
	var content []byte
	for i := range n {
		var b fri.Builder
		require.NoError(t, b.AddSource(fri.Digest{ID: table.FragmentID(i), PhysicalRows: 1}, nil))
		tr, err := b.Build([]fri.Digest{{ID: table.FragmentID(i + 1), PhysicalRows: 1}})
		require.NoError(t, err)
		h, err := (&fri.History{}).Append(uint64(5+i), tr)
		require.NoError(t, err)
		content = append(content, h.Encode()...)
	}
	return content
}
