package rebase_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/rehome-db/rehome/deletion"
	"github.com/rehome-db/rehome/fri"
	"github.com/rehome-db/rehome/rebase"
	"github.com/rehome-db/rehome/table"
)

// TestWorkedExample is the example of the package's documentation.
func TestWorkedExample(t *testing.T) {
	m := rebase.Move{
		Sources: []rebase.MoveSource{
			{Fragment: 10, PhysicalRows: 8, Deleted: deletion.Of(2, 5)},
			{Fragment: 11, PhysicalRows: 4},
		},
		Destinations: []uint64{7, 3},
	}
	got, err := m.Relocate([]rebase.SourceNow{{Deleted: deletion.Of(2, 3, 5)}, {Removed: true}})
	require.NoError(t, err)
	require.Equal(t, "2 deleted 2 6", got.Deleted[0].String())
	require.Equal(t, "3 deleted 0-2", got.Deleted[1].String())
	require.EqualValues(t, 5, got.Rows)
	require.Equal(t, []int{1}, got.Emptied)
}

func TestRelocateRefusesWhatDoesNotAddUp(t *testing.T) {
	m := rebase.Move{Sources: []rebase.MoveSource{{Fragment: 3, PhysicalRows: 10, Deleted: deletion.Of(1, 2)}}, Destinations: []uint64{8}}
	for _, c := range []struct {
		name  string
		spoil func(m *rebase.Move, now *[]rebase.SourceNow)
		want  error
	}{
		{"1 of them are alive again", func(_ *rebase.Move, now *[]rebase.SourceNow) { (*now)[0].Deleted = deletion.Of(2, 7) }, table.ErrConflict},
		{"2 of them are alive again", func(_ *rebase.Move, now *[]rebase.SourceNow) { (*now)[0].Deleted = nil }, table.ErrConflict},
		{"fragment 3 as it is", func(_ *rebase.Move, now *[]rebase.SourceNow) { (*now)[0].Deleted = deletion.Of(1, 2, 10) }, table.ErrCorrupt},
		{"fragment 3 as it was read", func(m *rebase.Move, _ *[]rebase.SourceNow) { m.Sources[0].Deleted = deletion.Of(1, 99) }, table.ErrCorrupt},
		{"the destinations have 9", func(m *rebase.Move, _ *[]rebase.SourceNow) { m.Destinations[0] = 9 }, table.ErrCorrupt},
		{"0 states of 1 sources", func(_ *rebase.Move, now *[]rebase.SourceNow) { *now = nil }, table.ErrCorrupt},
	} {
		m := rebase.Move{Sources: slices.Clone(m.Sources), Destinations: slices.Clone(m.Destinations)}
		now := []rebase.SourceNow{{Deleted: deletion.Of(1, 2)}}
		c.spoil(&m, &now)
		_, err := m.Relocate(now)
		require.ErrorIs(t, err, c.want, c.name)
		require.ErrorContains(t, err, c.name)
	}
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

// TestRelocateIsWhatCopyingWouldGive compares with a rewrite that is done row by
// row, and with what the fragment reuse index says of every single address.
func TestRelocateIsWhatCopyingWouldGive(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sources := drawSources(t)
		var m rebase.Move
		var now []rebase.SourceNow
		var copied []bool // dead now, for each row copied
		var b fri.Builder
		for i, f := range sources {
			id := table.FragmentID(i)
			m.Sources = append(m.Sources, rebase.MoveSource{Fragment: id, PhysicalRows: uint64(len(f.then)), Deleted: vectorOf(f.then)})
			now = append(now, rebase.SourceNow{Removed: f.removed, Deleted: vectorOf(f.now)})
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

		got, err := m.Relocate(now)
		require.NoError(t, err)
		var rows uint64
		var emptied []int
		for d, dead := range want {
			v := vectorOf(dead)
			require.Equal(t, v == nil, got.Deleted[d] == nil)
			require.True(t, v.Equal(got.Deleted[d]), "destination %d: %v, want %v", d, got.Deleted[d], v)
			rows += v.Cardinality()
			if v.Cardinality() == uint64(len(dead)) {
				emptied = append(emptied, d)
			}
		}
		require.Equal(t, rows, got.Rows)
		require.Equal(t, emptied, got.Emptied)

		transition, err := b.Build(digests)
		require.NoError(t, err)
		h, err := (&fri.History{}).Append(1, transition)
		require.NoError(t, err)
		for i, f := range sources {
			for o := range f.then {
				to := h.Translate(table.NewRowAddr(table.FragmentID(i), uint32(o)))
				require.Equal(t, f.then[o], to.State == fri.Deleted)
				if to.State == fri.Moved {
					v := got.Deleted[to.Addr.Fragment()-100]
					require.Equal(t, f.now[o] || f.removed, v.Contains(to.Addr.Offset()))
				}
			}
		}
	})
}

// TestRelocateInTwoStepsIsRelocateInOne: what was deleted since can be carried as
// it comes, or all at once.
func TestRelocateInTwoStepsIsRelocateInOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sources := drawSources(t)
		var m rebase.Move
		var all []rebase.SourceNow
		var live uint64
		for i, f := range sources {
			s := rebase.MoveSource{Fragment: table.FragmentID(i), PhysicalRows: uint64(len(f.then)), Deleted: vectorOf(f.then)}
			m.Sources = append(m.Sources, s)
			all = append(all, rebase.SourceNow{Removed: f.removed, Deleted: vectorOf(f.now)})
			live += s.PhysicalRows - s.Deleted.Cardinality()
		}
		if live == 0 {
			return
		}
		m.Destinations = []uint64{live}
		whole, err := m.Relocate(all)
		require.NoError(t, err)
		// Each source by itself, the others as they were.
		union := (*deletion.Vector)(nil)
		for i := range all {
			one := make([]rebase.SourceNow, len(all))
			for j, s := range m.Sources {
				one[j].Deleted = s.Deleted
			}
			one[i] = all[i]
			part, err := m.Relocate(one)
			require.NoError(t, err)
			require.False(t, union.Intersects(part.Deleted[0]))
			union = union.Union(part.Deleted[0])
		}
		require.True(t, union.Equal(whole.Deleted[0]))
	})
}

// BenchmarkRelocate carries 1,000 scattered deletions through rewrites of more and
// more rows, of which a tenth was dead before.
func BenchmarkRelocate(b *testing.B) {
	const perFragment = 1 << 20
	for _, rows := range []uint64{1_000_000, 10_000_000, 100_000_000} {
		b.Run(fmt.Sprintf("rows=%d", rows), func(b *testing.B) {
			var m rebase.Move
			var now []rebase.SourceNow
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
				m.Sources = append(m.Sources, rebase.MoveSource{Fragment: table.FragmentID(id), PhysicalRows: perFragment, Deleted: then})
				m.Destinations = append(m.Destinations, perFragment-then.Cardinality())
				now = append(now, rebase.SourceNow{Deleted: then.Union(deletion.Of(fresh...))})
			}
			for b.Loop() {
				got, err := m.Relocate(now)
				if err != nil || got.Rows < 900 {
					b.Fatal(err, got.Rows)
				}
			}
		})
	}
}
