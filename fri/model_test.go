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
	"github.com/rehome-db/rehome/table"
)

// model is a table that forgets nothing: every address that ever was, and what
// each rewrite made of it, written down one by one.
type model struct {
	next    table.FragmentID
	live    []fragment // current fragments, ascending by id
	all     []fragment // every fragment that ever was
	moves   map[table.RowAddr]table.RowAddr
	dropped map[table.RowAddr]bool
	history *fri.History
	version uint64
}

type fragment struct {
	id   table.FragmentID
	rows uint64
	dead *deletion.Vector
}

func (m *model) add(rows uint64) {
	f := fragment{id: m.next, rows: rows}
	m.next++
	m.live = append(m.live, f)
	m.all = append(m.all, f)
}

func (m *model) translate(a table.RowAddr) fri.Translation {
	state := fri.Unaffected
	for {
		if m.dropped[a] {
			return fri.Translation{State: fri.Deleted}
		}
		to, ok := m.moves[a]
		if !ok {
			return fri.Translation{State: state, Addr: a}
		}
		a, state = to, fri.Moved
	}
}

// compact rewrites the fragments at the given positions into destinations of the
// given sizes (the last takes the rest), with ids that descend if asked.
func (m *model) compact(t require.TestingT, at []int, sizes []uint64, descending bool) *fri.Transition {
	var b fri.Builder
	var survivors []table.RowAddr
	for _, i := range at {
		f := m.live[i]
		require.NoError(t, b.AddSource(fri.Digest{ID: f.id, PhysicalRows: f.rows, DeletedRows: f.dead.Cardinality()}, f.dead))
		for o := range f.rows {
			a := table.NewRowAddr(f.id, uint32(o))
			if f.dead.Contains(uint32(o)) {
				m.dropped[a] = true
			} else {
				survivors = append(survivors, a)
			}
		}
	}
	var dests []fri.Digest
	left := uint64(len(survivors))
	for _, n := range sizes {
		n = min(n, left)
		dests = append(dests, fri.Digest{PhysicalRows: n})
		left -= n
	}
	dests = append(dests, fri.Digest{PhysicalRows: left})
	ids := make([]table.FragmentID, len(dests))
	for i := range ids {
		ids[i] = m.next
		m.next++
	}
	if descending {
		slices.Reverse(ids)
	}
	// Built with ids that are taken, as by a rewrite that does not know its own.
	for i := range dests {
		dests[i].ID = table.MaxFragmentID - table.FragmentID(i)
	}
	tr, err := b.Build(dests)
	require.NoError(t, err)
	tr, err = tr.WithDestinations(ids)
	require.NoError(t, err)

	var written []fragment
	for i, id := range ids {
		written = append(written, fragment{id: id, rows: dests[i].PhysicalRows})
		for o := range dests[i].PhysicalRows {
			m.moves[survivors[0]] = table.NewRowAddr(id, uint32(o))
			survivors = survivors[1:]
		}
	}
	var rest []fragment
	for i, f := range m.live {
		if !slices.Contains(at, i) {
			rest = append(rest, f)
		}
	}
	m.all = append(m.all, written...)
	for _, f := range written {
		if f.rows > 0 { // an empty fragment is no source of anything
			rest = append(rest, f)
		}
	}
	slices.SortFunc(rest, func(a, b fragment) int { return int(int64(a.id) - int64(b.id)) })
	m.live = rest
	return tr
}

func drawModel(t *rapid.T) *model {
	m := &model{moves: map[table.RowAddr]table.RowAddr{}, dropped: map[table.RowAddr]bool{}, history: &fri.History{}, version: 1}
	m.next = table.FragmentID(rapid.SampledFrom([]uint32{0, 0, 1, 5000}).Draw(t, "first id"))
	for range rapid.IntRange(1, 6).Draw(t, "fragments") {
		m.add(drawRows(t))
	}
	for range rapid.IntRange(0, 6).Draw(t, "commits") {
		if rapid.Bool().Draw(t, "insert") {
			m.add(drawRows(t))
		}
		for i := range m.live {
			m.live[i].dead = drawDead(t, m.live[i])
		}
		// One commit rewrites one or two groups.
		var ts []*fri.Transition
		limit := m.next // fragments of this commit are not rewritten by it
		for range rapid.IntRange(1, 2).Draw(t, "groups") {
			var at []int
			for i, f := range m.live {
				if f.id < limit && rapid.IntRange(0, 2).Draw(t, "take") > 0 {
					at = append(at, i)
				}
			}
			if len(at) > 0 {
				ts = append(ts, m.compact(t, at, rapid.SliceOfN(rapid.Uint64Range(0, 9), 0, 3).Draw(t, "sizes"), rapid.Bool().Draw(t, "descending")))
			}
		}
		m.version++
		h, err := m.history.Append(m.version, ts...)
		require.NoError(t, err)
		m.history = h
	}
	return m
}

func drawRows(t *rapid.T) uint64 {
	if rapid.IntRange(0, 20).Draw(t, "large") == 0 {
		return rapid.SampledFrom([]uint64{4097, 65535, 65536, 65537, 70000}).Draw(t, "rows")
	}
	return rapid.Uint64Range(1, 20).Draw(t, "rows")
}

func drawDead(t *rapid.T, f fragment) *deletion.Vector {
	dead := f.dead
	switch rapid.IntRange(0, 5).Draw(t, "delete") {
	case 0:
		dead = dead.Union(deletion.Range(0, f.rows))
	case 1, 2:
		for _, o := range rapid.SliceOfN(rapid.Uint64Range(0, f.rows-1), 0, 5).Draw(t, "scattered") {
			dead = dead.Union(deletion.Of(uint32(o)))
		}
	case 3:
		if f.rows > 4096 { // every second row: too many runs for ranges
			var odd []uint32
			for o := uint32(1); uint64(o) < f.rows; o += 2 {
				odd = append(odd, o)
			}
			dead = dead.Union(deletion.Of(odd...))
		}
	case 4:
		a := rapid.Uint64Range(0, f.rows).Draw(t, "from")
		dead = dead.Union(deletion.Range(a, rapid.Uint64Range(a, f.rows).Draw(t, "to")))
	}
	return dead
}

// TestAgainstModel: every address that ever was, and some that never were,
// translates as the model says, before and after storing.
func TestAgainstModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := drawModel(t)
		content := m.history.Encode()
		stored, err := fri.Decode(content, 0)
		require.NoError(t, err)
		require.Equal(t, content, stored.Encode())
		for _, h := range []*fri.History{m.history, stored} {
			for _, f := range m.all {
				step := 1 + f.rows/2000 // a prime-free stride would miss edges
				for o := uint64(0); o < f.rows; o += step {
					a := table.NewRowAddr(f.id, uint32(o))
					if got, want := h.Translate(a), m.translate(a); got != want {
						t.Fatalf("%v: got %v, want %v", a, got, want)
					}
				}
				for _, o := range []uint64{f.rows - 1, f.rows, f.rows + 1, 65535, 65536, 1<<32 - 1} {
					a := table.NewRowAddr(f.id, uint32(o))
					require.Equal(t, m.translate(a), h.Translate(a), "%v", a)
				}
			}
			gone := table.NewRowAddr(m.next+7, 0)
			require.Equal(t, fri.Translation{State: fri.Unaffected, Addr: gone}, h.Translate(gone))
		}
	})
}

// TestTreemapFormat: what is stored is the 64-bit Roaring format, as its own
// library reads it, and equal survivors give equal bytes.
func TestTreemapFormat(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows := drawRows(t)
		f := fragment{id: table.FragmentID(rapid.SampledFrom([]uint32{0, 1, 1<<32 - 2}).Draw(t, "id")), rows: rows}
		f.dead = drawDead(t, f)
		build := func(dead table.OffsetSet) *fri.Transition {
			var b fri.Builder
			d := fri.Digest{ID: f.id, PhysicalRows: rows, DeletedRows: f.dead.Cardinality()}
			require.NoError(t, b.AddSource(d, dead))
			require.NoError(t, b.AddSource(fri.Digest{ID: 77, PhysicalRows: 2, DeletedRows: 2}, deletion.Of(0, 1)))
			tr, err := b.Build([]fri.Digest{{ID: 100, PhysicalRows: rows - f.dead.Cardinality()}})
			require.NoError(t, err)
			return tr
		}
		tr := build(f.dead)
		treemap := fri.Treemap(tr)
		bm := roaring64.New()
		n, err := bm.FromUnsafeBytes(slices.Clone(treemap))
		require.NoError(t, err)
		require.EqualValues(t, len(treemap), n)
		require.NoError(t, bm.Validate())
		var want []uint64
		for start, end := range f.dead.Live(rows) {
			for o := start; o < end; o++ {
				want = append(want, uint64(table.NewRowAddr(f.id, uint32(o))))
			}
		}
		require.Equal(t, len(want), int(bm.GetCardinality()))
		require.True(t, slices.Equal(want, bm.ToArray()))

		again := fri.Treemap(build(deletion.Collect(f.dead.All())))
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
