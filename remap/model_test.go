package remap_test

import (
	"context"
	"fmt"
	"io/fs"
	"slices"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/rehome-db/rehome/deletion"
	"github.com/rehome-db/rehome/fri"
	"github.com/rehome-db/rehome/table"
)

// model is a table that forgets nothing: what each rewrite made of every address,
// written down one by one.
type model struct {
	next    table.FragmentID
	live    []fragment // current fragments
	all     []fragment // every fragment that ever was
	moves   map[table.RowAddr]table.RowAddr
	dropped map[table.RowAddr]bool
	history *fri.History
	version uint64
	// labels are the label files, by name.
	labels map[string]*fri.Partition
}

type fragment struct {
	id   table.FragmentID
	rows uint64
	dead *deletion.Vector
}

func newModel(first table.FragmentID) *model {
	m := &model{
		next: first, version: 1, labels: map[string]*fri.Partition{},
		moves: map[table.RowAddr]table.RowAddr{}, dropped: map[table.RowAddr]bool{},
	}
	m.history = (&fri.History{}).WithPartitions(context.Background(), func(_ context.Context, ref fri.PartitionRef) (fri.PartitionMap, error) {
		if p, ok := m.labels[ref.MapID]; ok {
			return p, nil
		}
		return nil, fs.ErrNotExist
	})
	return m
}

// tagged makes the history one of index version 1, in which sources may come in any
// order.
func (m *model) tagged(t require.TestingT) {
	h, err := m.history.Upgrade(1)
	require.NoError(t, err)
	m.history = h
}

func (m *model) add(rows uint64) {
	f := fragment{id: m.next, rows: rows}
	m.next++
	m.live = append(m.live, f)
	m.all = append(m.all, f)
}

// translate is the naive map.
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

// compact rewrites the live fragments at the given positions, in one commit, into
// destinations of the given sizes; one more takes the rest, and may be empty.
func (m *model) compact(t require.TestingT, at []int, sizes []uint64, descending bool) {
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
	for _, n := range append(slices.Clone(sizes), left) {
		n = min(n, left)
		dests = append(dests, fri.Digest{ID: m.next, PhysicalRows: n})
		m.next++
		left -= n
	}
	if descending {
		for i, j := 0, len(dests)-1; i < j; i, j = i+1, j-1 {
			dests[i].ID, dests[j].ID = dests[j].ID, dests[i].ID
		}
	}
	tr, err := b.Build(dests)
	require.NoError(t, err)
	for i, d := range dests {
		for o := range d.PhysicalRows {
			m.moves[survivors[0]] = table.NewRowAddr(dests[i].ID, uint32(o))
			survivors = survivors[1:]
		}
	}
	m.commit(t, at, tr)
}

// partition rewrites the live fragments at the given positions into n destinations;
// label says which one each surviving row goes to.
func (m *model) partition(t require.TestingT, at []int, n int, label func(i int) uint16) {
	b, err := fri.NewPartitionBuilder(n)
	require.NoError(t, err)
	rows := make([]uint32, n)
	survivors := 0
	for _, i := range at {
		f := m.live[i]
		var labels []uint16
		for o := range f.rows {
			a := table.NewRowAddr(f.id, uint32(o))
			if f.dead.Contains(uint32(o)) {
				m.dropped[a] = true
				continue
			}
			to := label(survivors)
			survivors++
			labels = append(labels, to)
			m.moves[a] = table.NewRowAddr(m.next+table.FragmentID(to), rows[to])
			rows[to]++
		}
		require.NoError(t, b.AddSource(fri.Digest{ID: f.id, PhysicalRows: f.rows, DeletedRows: f.dead.Cardinality()}, f.dead, labels))
	}
	p := b.Build()
	ref := fri.PartitionRef{MapID: fmt.Sprintf("%08x-0000-4000-8000-000000000000", len(m.labels)), Bytes: 1}
	m.labels[ref.MapID] = p
	ids := make([]table.FragmentID, n)
	for i := range ids {
		ids[i] = m.next
		m.next++
	}
	tr, err := p.Transition(ids, ref)
	require.NoError(t, err)
	m.commit(t, at, tr)
}

// commit appends the transition and replaces the fragments that it rewrote.
func (m *model) commit(t require.TestingT, at []int, tr *fri.Transition) {
	m.version++
	h, err := m.history.Append(m.version, tr)
	require.NoError(t, err)
	m.history = h
	var rest []fragment
	for i, f := range m.live {
		if !slices.Contains(at, i) {
			rest = append(rest, f)
		}
	}
	for _, d := range tr.Destinations() {
		m.all = append(m.all, fragment{id: d.ID, rows: d.PhysicalRows})
		if d.PhysicalRows > 0 { // an empty fragment is no source of anything
			rest = append(rest, fragment{id: d.ID, rows: d.PhysicalRows})
		}
	}
	slices.SortFunc(rest, func(a, b fragment) int { return int(int64(a.id) - int64(b.id)) })
	m.live = rest
}

// drawModel is a table after some inserts, deletes and compactions.
func drawModel(t *rapid.T) *model {
	m := newModel(table.FragmentID(rapid.SampledFrom([]uint32{0, 0, 1, 5000, 1<<32 - 100}).Draw(t, "first id")))
	tagged := rapid.Bool().Draw(t, "tagged")
	if tagged {
		m.tagged(t)
	}
	for range rapid.IntRange(1, 5).Draw(t, "fragments") {
		m.add(drawRows(t))
	}
	for range rapid.IntRange(0, 5).Draw(t, "commits") {
		if rapid.Bool().Draw(t, "insert") {
			m.add(drawRows(t))
		}
		var at []int
		for i := range m.live {
			m.live[i].dead = drawDead(t, m.live[i])
			if rapid.IntRange(0, 2).Draw(t, "take") > 0 {
				at = append(at, i)
			}
		}
		switch {
		case len(at) == 0:
		case tagged && rapid.IntRange(0, 2).Draw(t, "partition") == 0:
			n := rapid.IntRange(1, 4).Draw(t, "destinations")
			step := rapid.IntRange(1, 5).Draw(t, "label step")
			m.partition(t, at, n, func(i int) uint16 { return uint16(i / step * 7 % n) })
		default:
			if tagged {
				at = rapid.Permutation(at).Draw(t, "source order")
			}
			sizes := rapid.SliceOfN(rapid.Uint64Range(0, 30), 0, 3).Draw(t, "sizes")
			m.compact(t, at, sizes, rapid.Bool().Draw(t, "descending"))
		}
	}
	return m
}

func drawRows(t *rapid.T) uint64 {
	if rapid.IntRange(0, 30).Draw(t, "large") == 0 {
		return rapid.SampledFrom([]uint64{65535, 65536, 65537}).Draw(t, "rows")
	}
	return rapid.Uint64Range(1, 80).Draw(t, "rows")
}

func drawDead(t *rapid.T, f fragment) *deletion.Vector {
	dead := f.dead
	switch rapid.IntRange(0, 6).Draw(t, "delete") {
	case 0:
		dead = dead.Union(deletion.Range(0, f.rows))
	case 1, 2:
		for _, o := range rapid.SliceOfN(rapid.Uint64Range(0, f.rows-1), 0, 5).Draw(t, "scattered") {
			dead = dead.Union(deletion.Of(uint32(o)))
		}
	case 3:
		var odd []uint32
		for o := uint32(1); uint64(o) < f.rows; o += 2 {
			odd = append(odd, o)
		}
		dead = dead.Union(deletion.Of(odd...))
	case 4:
		a := rapid.Uint64Range(0, f.rows).Draw(t, "from")
		dead = dead.Union(deletion.Range(a, rapid.Uint64Range(a, f.rows).Draw(t, "to")))
	}
	return dead
}

// drawAddrs is a batch of addresses, new and old, of fragments that were rewritten
// or not, and some that never were: stretches of neighbours, strides, and single
// ones, in order or not.
func (m *model) drawAddrs(t *rapid.T) []table.RowAddr {
	var out []table.RowAddr
	for range rapid.IntRange(0, 8).Draw(t, "pieces") {
		f := rapid.SampledFrom(m.all).Draw(t, "fragment")
		from := rapid.SampledFrom([]uint64{0, 0, 1, f.rows / 2, max(f.rows, 1) - 1, 65535, 65536, 1<<32 - 1}).Draw(t, "at")
		step := rapid.Uint64Range(0, 3).Draw(t, "step") // 0 repeats the address
		for i := range rapid.SampledFrom([]uint64{1, 2, 15, 16, 17, 100, 300}).Draw(t, "length") {
			if o := from + i*step; o < 1<<32 {
				out = append(out, table.NewRowAddr(f.id, uint32(o)))
			}
		}
	}
	for range rapid.IntRange(0, 3).Draw(t, "strangers") {
		out = append(out, table.NewRowAddr(m.next+table.FragmentID(rapid.IntRange(0, 3).Draw(t, "id")), 0))
	}
	switch rapid.IntRange(0, 2).Draw(t, "order") {
	case 0:
		slices.Sort(out)
	case 1:
		out = rapid.Permutation(out).Draw(t, "shuffled")
	}
	return out
}

// stacked is a table after many compactions, each of which drops a row or two and
// takes a new fragment in.
func stacked(t require.TestingT, transitions int) *model {
	m := newModel(0)
	m.add(400)
	for i := range transitions {
		if i%3 == 0 {
			m.add(7)
		}
		at := make([]int, len(m.live))
		for j := range m.live {
			at[j] = j
			m.live[j].dead = deletion.Of(uint32(i % int(m.live[j].rows)))
		}
		m.compact(t, at, []uint64{uint64(i % 50)}, i%2 == 1)
	}
	return m
}

// everyAddr is every address that ever was, ascending; of large fragments, those
// around the ends and the edges of containers.
func (m *model) everyAddr() []table.RowAddr {
	var out []table.RowAddr
	for _, f := range m.all {
		for o := uint64(0); o < f.rows; o++ {
			if o == 2000 && f.rows > 60000 {
				o = 64000
			}
			out = append(out, table.NewRowAddr(f.id, uint32(o)))
		}
	}
	slices.Sort(out)
	return out
}
