package rebase_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/rehome-db/rehome/deletion"
	"github.com/rehome-db/rehome/fri"
	"github.com/rehome-db/rehome/table"
)

// TestWorkedExample is the example of the package's documentation.
func TestWorkedExample(t *testing.T) {
	m := move{
		Sources: []source{
			{Fragment: 10, PhysicalRows: 8, Deleted: deletion.Of(2, 5)},
			{Fragment: 11, PhysicalRows: 4},
		},
		Destinations: []uint64{7, 3},
	}
	got, err := m.carry([]sourceNow{{Deleted: deletion.Of(2, 3, 5)}, {Removed: true}})
	require.NoError(t, err)
	require.Equal(t, "2 deleted 2 6", got[0].String())
	require.Equal(t, "3 deleted 0-2", got[1].String())
}

// modelFragment is a source fragment row by row.
type modelFragment struct {
	then, now []bool // dead
	removed   bool
}

func drawSources(t *rapid.T) []modelFragment {
	sources := make([]modelFragment, rapid.IntRange(1, 5).Draw(t, "sources"))
	for i := range sources {
		rows := rapid.IntRange(1, 40).Draw(t, "rows")
		f := &sources[i]
		f.then = rapid.SliceOfN(rapid.Bool(), rows, rows).Draw(t, "then")
		if rapid.Bool().Draw(t, "none dead") {
			f.then = make([]bool, rows)
		}
		f.now = slices.Clone(f.then)
		// Several deletes, one after the other: of single rows, of ranges.
		for range rapid.IntRange(0, 4).Draw(t, "deletes") {
			from := rapid.IntRange(0, rows-1).Draw(t, "from")
			to := rapid.IntRange(from, min(rows-1, from+rapid.SampledFrom([]int{0, 3, 40}).Draw(t, "length"))).Draw(t, "to")
			for o := from; o <= to; o++ {
				f.now[o] = true
			}
		}
		f.removed = rapid.IntRange(0, 5).Draw(t, "fate") == 0
	}
	return sources
}

func vectorOf(dead []bool) *deletion.Vector {
	var offsets []uint32
	for o, d := range dead {
		if d {
			offsets = append(offsets, uint32(o))
		}
	}
	if offsets == nil {
		return nil
	}
	return deletion.Of(offsets...)
}

// TestCarryIsWhatCopyingWouldGive compares with a rewrite that is done row by
// row, and with what the fragment reuse index says of every single address.
func TestCarryIsWhatCopyingWouldGive(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sources := drawSources(t)
		var m move
		var now []sourceNow
		var copied []bool // dead now, for each row copied
		var b fri.Builder
		for i, f := range sources {
			id := table.FragmentID(i)
			m.Sources = append(m.Sources, source{Fragment: id, PhysicalRows: uint64(len(f.then)), Deleted: vectorOf(f.then)})
			now = append(now, sourceNow{Removed: f.removed, Deleted: vectorOf(f.now)})
			for o := range f.then {
				if !f.then[o] {
					copied = append(copied, f.now[o] || f.removed)
				}
			}
			v := vectorOf(f.then)
			require.NoError(t, b.AddSource(fri.Digest{ID: id, PhysicalRows: uint64(len(f.then)), DeletedRows: v.Cardinality()}, v))
		}
		var digests []fri.Digest
		var want [][]bool
		for rest := copied; len(rest) > 0; {
			n := rapid.IntRange(1, len(rest)).Draw(t, "destination rows")
			m.Destinations = append(m.Destinations, uint64(n))
			digests = append(digests, fri.Digest{ID: table.FragmentID(100 + len(want)), PhysicalRows: uint64(n)})
			want = append(want, rest[:n])
			rest = rest[n:]
		}

		got, err := m.carry(now)
		require.NoError(t, err)
		for d, dead := range want {
			v := vectorOf(dead)
			require.Equal(t, v == nil, got[d] == nil)
			require.True(t, v.Equal(got[d]), "destination %d: %v, want %v", d, got[d], v)
		}

		transition, err := b.Build(digests)
		require.NoError(t, err)
		h, err := (&fri.History{}).Append(1, transition)
		require.NoError(t, err)
		for i, f := range sources {
			for o := range f.then {
				to := h.Translate(table.NewRowAddr(table.FragmentID(i), uint32(o)))
				require.Equal(t, f.then[o], to.State == fri.Deleted)
				if to.State == fri.Moved {
					v := got[to.Addr.Fragment()-100]
					require.Equal(t, f.now[o] || f.removed, v.Contains(to.Addr.Offset()))
				}
			}
		}
	})
}

// TestCarryInTwoStepsIsCarryInOne: what was deleted since can be carried as
// it comes, or all at once.
func TestCarryInTwoStepsIsCarryInOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sources := drawSources(t)
		var m move
		var all []sourceNow
		var live uint64
		for i, f := range sources {
			s := source{Fragment: table.FragmentID(i), PhysicalRows: uint64(len(f.then)), Deleted: vectorOf(f.then)}
			m.Sources = append(m.Sources, s)
			all = append(all, sourceNow{Removed: f.removed, Deleted: vectorOf(f.now)})
			live += s.PhysicalRows - s.Deleted.Cardinality()
		}
		if live == 0 {
			return
		}
		m.Destinations = []uint64{live}
		whole, err := m.carry(all)
		require.NoError(t, err)
		// Each source by itself, the others as they were.
		union := (*deletion.Vector)(nil)
		for i := range all {
			one := make([]sourceNow, len(all))
			for j, s := range m.Sources {
				one[j].Deleted = s.Deleted
			}
			one[i] = all[i]
			part, err := m.carry(one)
			require.NoError(t, err)
			require.False(t, union.Intersects(part[0]))
			union = union.Union(part[0])
		}
		require.True(t, union.Equal(whole[0]))
	})
}

// BenchmarkCarry carries 1,000 scattered deletions through rewrites of more and
// more rows, of which a tenth was dead before.
func BenchmarkCarry(b *testing.B) {
	const perFragment = 1 << 20
	for _, rows := range []uint64{1_000_000, 10_000_000, 100_000_000} {
		b.Run(fmt.Sprintf("rows=%d", rows), func(b *testing.B) {
			var m move
			var now []sourceNow
			fragments := (rows + perFragment - 1) / perFragment
			each := 1000 / fragments
			for id := range fragments {
				var dead []uint32
				for o := uint32(0); o < perFragment; o += 10 {
					dead = append(dead, o)
				}
				then := deletion.Of(dead...)
				var fresh []uint32
				for i := range each {
					fresh = append(fresh, uint32(i*(perFragment/each)/10*10+1))
				}
				m.Sources = append(m.Sources, source{Fragment: table.FragmentID(id), PhysicalRows: perFragment, Deleted: then})
				m.Destinations = append(m.Destinations, perFragment-then.Cardinality())
				now = append(now, sourceNow{Deleted: then.Union(deletion.Of(fresh...))})
			}
			for b.Loop() {
				got, err := m.carry(now)
				if err != nil || len(got) != len(m.Destinations) {
					b.Fatal(err)
				}
			}
		})
	}
}
