package fri_test

import (
	"slices"
	"sync"
	"testing"

	"github.com/RoaringBitmap/roaring/v2/roaring64"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/rehome-db/rehome/deletion"
	"github.com/rehome-db/rehome/fri"
	"github.com/rehome-db/rehome/fri/fritest"
	"github.com/rehome-db/rehome/table"
)

// drawModel is a table after some inserts, deletes and compactions in the form of
// index version 0.
func drawModel(t *rapid.T) *fritest.Model {
	m := fritest.New(table.FragmentID(rapid.SampledFrom([]uint32{0, 0, 1, 5000}).Draw(t, "first id")))
	for range rapid.IntRange(1, 6).Draw(t, "fragments") {
		m.Add(drawRows(t))
	}
	for range rapid.IntRange(0, 6).Draw(t, "commits") {
		if rapid.Bool().Draw(t, "insert") {
			m.Add(drawRows(t))
		}
		for i := range m.Live {
			m.Live[i].DrawDeletions(t)
		}
		// One commit rewrites one or two groups.
		var ts []*fri.Transition
		limit := m.Next // fragments of this commit are not rewritten by it
		for range rapid.IntRange(1, 2).Draw(t, "groups") {
			var at []int
			for i, f := range m.Live {
				if f.ID < limit && rapid.IntRange(0, 2).Draw(t, "take") > 0 {
					at = append(at, i)
				}
			}
			if len(at) > 0 {
				ts = append(ts, m.Compact(t, at, rapid.SliceOfN(rapid.Uint64Range(0, 9), 0, 3).Draw(t, "sizes"), rapid.Bool().Draw(t, "descending")))
			}
		}
		m.Commit(t, ts...)
	}
	return m
}

func drawRows(t *rapid.T) uint64 {
	if rapid.IntRange(0, 20).Draw(t, "large") == 0 {
		return rapid.SampledFrom([]uint64{4097, 65535, 65536, 65537, 70000}).Draw(t, "rows")
	}
	return rapid.Uint64Range(1, 20).Draw(t, "rows")
}

// TestAgainstModel: every address that ever was, and some that never were,
// translates as the model says, before and after storing.
func TestAgainstModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := drawModel(t)
		content := m.History.Encode()
		stored, err := fri.Decode(content, 0)
		require.NoError(t, err)
		require.Equal(t, content, stored.Encode())
		for _, h := range []*fri.History{m.History, stored} {
			for _, f := range m.All {
				step := 1 + f.Rows/2000 // a prime-free stride would miss edges
				for o := uint64(0); o < f.Rows; o += step {
					a := table.NewRowAddr(f.ID, uint32(o))
					if got, want := h.Translate(a), m.Translate(a); got != want {
						t.Fatalf("%v: got %v, want %v", a, got, want)
					}
				}
				for _, o := range []uint64{f.Rows - 1, f.Rows, f.Rows + 1, 65535, 65536, 1<<32 - 1} {
					a := table.NewRowAddr(f.ID, uint32(o))
					require.Equal(t, m.Translate(a), h.Translate(a), "%v", a)
				}
			}
			gone := table.NewRowAddr(m.Next+7, 0)
			require.Equal(t, fri.Translation{State: fri.Unaffected, Addr: gone}, h.Translate(gone))
		}
	})
}

// TestTreemapFormat: what is stored is the 64-bit Roaring format, as its own
// library reads it, and equal survivors give equal bytes.
func TestTreemapFormat(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows := drawRows(t)
		f := fritest.Fragment{ID: table.FragmentID(rapid.SampledFrom([]uint32{0, 1, 1<<32 - 2}).Draw(t, "id")), Rows: rows}
		f.DrawDeletions(t)
		build := func(dead table.OffsetSet) *fri.Transition {
			var b fri.Builder
			d := fri.Digest{ID: f.ID, PhysicalRows: rows, DeletedRows: f.Dead.Cardinality()}
			require.NoError(t, b.AddSource(d, dead))
			require.NoError(t, b.AddSource(fri.Digest{ID: 77, PhysicalRows: 2, DeletedRows: 2}, deletion.Of(0, 1)))
			tr, err := b.Build([]fri.Digest{{ID: 100, PhysicalRows: rows - f.Dead.Cardinality()}})
			require.NoError(t, err)
			return tr
		}
		tr := build(f.Dead)
		treemap := fri.Treemap(tr)
		bm := roaring64.New()
		n, err := bm.FromUnsafeBytes(slices.Clone(treemap))
		require.NoError(t, err)
		require.EqualValues(t, len(treemap), n)
		require.NoError(t, bm.Validate())
		var want []uint64
		for start, end := range f.Dead.Live(rows) {
			for o := start; o < end; o++ {
				want = append(want, uint64(table.NewRowAddr(f.ID, uint32(o))))
			}
		}
		require.Equal(t, len(want), int(bm.GetCardinality()))
		require.True(t, slices.Equal(want, bm.ToArray()))

		again := fri.Treemap(build(deletion.Collect(f.Dead.All())))
		require.Equal(t, treemap, again)

		// A transition travels as its own message.
		data, err := tr.MarshalBinary()
		require.NoError(t, err)
		parsed, err := fri.ParseTransition(data)
		require.NoError(t, err)
		require.Equal(t, tr.String(), parsed.String())
		require.Equal(t, treemap, fri.Treemap(parsed))
		require.Equal(t, tr.EncodedSize(), parsed.EncodedSize())
	})
}

// A history answers several goroutines at once from its first question on.
func TestTranslateConcurrently(t *testing.T) {
	h, addrs := benchHistory(t, true)
	want, _ := benchHistory(t, true)
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			for i := g; i < len(addrs); i += 997 {
				if got := h.Translate(addrs[i]); got.State == fri.Moved && got.Addr.Fragment() < 100 {
					t.Errorf("%v: %v", addrs[i], got)
				}
			}
		})
	}
	wg.Wait()
	for i := 0; i < len(addrs); i += 997 {
		require.Equal(t, want.Translate(addrs[i]), h.Translate(addrs[i]))
	}
}
