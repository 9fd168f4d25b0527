package fritest

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/stretchr/testify/require"

	"github.com/rehome-db/rehome/deletion"
	"github.com/rehome-db/rehome/fri"
	"github.com/rehome-db/rehome/table"
)

// Model is a table that forgets nothing.
type Model struct {
	// Next is the id of the next fragment.
	Next table.FragmentID
	// Live are the current fragments that have rows, ascending by id.
	Live []Fragment
	// All is every fragment that ever was, in the order in which they were written.
	All []Fragment
	// History is that of the transitions which were committed, Version the version
	// of the table that the last of them made.
	History *fri.History
	Version uint64
	// Labels are the label files of stable partitions, by map id.
	Labels map[string]*fri.Partition

	moves   map[table.RowAddr]table.RowAddr
	dropped map[table.RowAddr]bool
}

// Fragment is a fragment of Rows physical rows, of which Dead are deleted.
type Fragment struct {
	ID   table.FragmentID
	Rows uint64
	Dead *deletion.Vector
}

// New returns version 1 of a table without fragments, whose first will have the
// given id.
func New(first table.FragmentID) *Model {
	return &Model{
		Next: first, History: &fri.History{}, Version: 1, Labels: map[string]*fri.Partition{},
		moves: map[table.RowAddr]table.RowAddr{}, dropped: map[table.RowAddr]bool{},
	}
}

// Open is a [fri.PartitionSource] for the label files of the model. The history of
// a new model does not have it yet.
func (m *Model) Open(_ context.Context, ref fri.PartitionRef) (fri.PartitionMap, error) {
	if p, ok := m.Labels[ref.MapID]; ok {
		return p, nil
	}
	return nil, fmt.Errorf("fritest: label file %s: %w", ref.MapID, fs.ErrNotExist)
}

// Add adds a fragment of so many rows.
func (m *Model) Add(rows uint64) {
	f := Fragment{ID: m.Next, Rows: rows}
	m.Next++
	m.Live = append(m.Live, f)
	m.All = append(m.All, f)
}

// Translate is the naive map: where the row that ever had the address is now.
func (m *Model) Translate(a table.RowAddr) fri.Translation {
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

// Compact rewrites the live fragments at the given positions into destinations of
// the given sizes, as far as there are rows, and one more that takes the rest and
// may be empty. Their ids descend if asked.
func (m *Model) Compact(t require.TestingT, at []int, sizes []uint64, descending bool) *fri.Transition {
	var b fri.Builder
	var survivors []table.RowAddr
	for _, i := range at {
		f := m.Live[i]
		require.NoError(t, b.AddSource(f.digest(), f.Dead))
		survivors = append(survivors, m.survivors(f)...)
	}
	var dests []fri.Digest
	left := uint64(len(survivors))
	for _, n := range append(slices.Clone(sizes), left) {
		n = min(n, left)
		// Built with ids that it will not keep, as by a rewrite that does not know its own.
		dests = append(dests, fri.Digest{ID: table.MaxFragmentID - table.FragmentID(len(dests)), PhysicalRows: n})
		left -= n
	}
	ids := m.newIDs(len(dests), descending)
	tr, err := b.Build(dests)
	require.NoError(t, err)
	tr, err = tr.WithDestinations(ids)
	require.NoError(t, err)
	written := make([][]table.RowAddr, len(dests))
	for i, d := range dests {
		written[i], survivors = survivors[:d.PhysicalRows], survivors[d.PhysicalRows:]
	}
	m.replace(at, ids, written)
	return tr
}

// Partitioning says how a rewrite deals rows out to its destinations.
type Partitioning struct {
	// Destinations is how many there are; their ids descend if asked.
	Destinations int
	Descending   bool
	// Label is the destination of a row. It is asked once for each surviving row,
	// in the order in which they are read.
	Label func(table.RowAddr) uint16
	// Prepare gets the builder before its first source, if it is not nil.
	Prepare func(*fri.PartitionBuilder)
}

// Partition rewrites the live fragments at the given positions, in that order, into
// destinations by labels, and keeps the label file. It takes a history of index
// version 1, or makes one, when it is committed.
func (m *Model) Partition(t require.TestingT, at []int, how Partitioning) *fri.Transition {
	b, err := fri.NewPartitionBuilder(how.Destinations)
	require.NoError(t, err)
	if how.Prepare != nil {
		how.Prepare(b)
	}
	written := make([][]table.RowAddr, how.Destinations)
	for _, i := range at {
		f := m.Live[i]
		var labels []uint16
		for _, a := range m.survivors(f) {
			to := how.Label(a)
			labels = append(labels, to)
			written[to] = append(written[to], a)
		}
		var dead table.OffsetSet // an empty vector and none at all mean the same
		if f.Dead != nil {
			dead = f.Dead
		}
		require.NoError(t, b.AddSource(f.digest(), dead, labels))
	}
	ids := m.newIDs(how.Destinations, how.Descending)
	p := b.Build()
	ref := fri.PartitionRef{MapID: m.mapID(), Bytes: 1}
	m.Labels[ref.MapID] = p
	tr, err := p.Transition(ids, ref)
	require.NoError(t, err)
	m.replace(at, ids, written)
	return tr
}

// Commit makes the next version, with the transitions in its history.
func (m *Model) Commit(t require.TestingT, trs ...*fri.Transition) {
	m.Version++
	h, err := m.History.Append(m.Version, trs...)
	require.NoError(t, err)
	m.History = h
}

func (f Fragment) digest() fri.Digest {
	return fri.Digest{ID: f.ID, PhysicalRows: f.Rows, DeletedRows: f.Dead.Cardinality()}
}

// survivors are the rows of a fragment that are not deleted. Those that are, are
// dropped from now on.
func (m *Model) survivors(f Fragment) []table.RowAddr {
	var out []table.RowAddr
	for o := range f.Rows {
		a := table.NewRowAddr(f.ID, uint32(o))
		if f.Dead.Contains(uint32(o)) {
			m.dropped[a] = true
		} else {
			out = append(out, a)
		}
	}
	return out
}

func (m *Model) newIDs(n int, descending bool) []table.FragmentID {
	ids := make([]table.FragmentID, n)
	for i := range ids {
		ids[i] = m.Next
		m.Next++
	}
	if descending {
		slices.Reverse(ids)
	}
	return ids
}

// mapID is the id of the next label file, in one of the two forms of a UUID and the
// other in turn.
func (m *Model) mapID() string {
	id := fmt.Sprintf("%08x-0000-4000-8000-000000000000", len(m.Labels))
	if len(m.Labels)%2 == 1 {
		id = strings.ReplaceAll(id, "-", "")
	}
	return id
}

// replace puts fragments with the given ids in the place of those at the given
// positions. written is which rows each holds, at the addresses they had.
func (m *Model) replace(at []int, ids []table.FragmentID, written [][]table.RowAddr) {
	var live []Fragment
	for i, f := range m.Live {
		if !slices.Contains(at, i) {
			live = append(live, f)
		}
	}
	for i, id := range ids {
		f := Fragment{ID: id, Rows: uint64(len(written[i]))}
		m.All = append(m.All, f)
		if f.Rows > 0 { // an empty fragment is no source of anything
			live = append(live, f)
		}
		for o, from := range written[i] {
			m.moves[from] = table.NewRowAddr(id, uint32(o))
		}
	}
	slices.SortFunc(live, func(a, b Fragment) int { return cmp.Compare(a.ID, b.ID) })
	m.Live = live
}
