package rebase_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"

	"github.com/rehome-db/rehome/deletion"
	"github.com/rehome-db/rehome/fri"
	"github.com/rehome-db/rehome/rebase"
	"github.com/rehome-db/rehome/table"
	"github.com/rehome-db/rehome/table/memengine"
)

// identifying is an engine whose rows have stable ids: the same word, with or without
// primes, is the same row.
type identifying struct{ *memengine.Engine }

func (e identifying) Load(ctx context.Context, v uint64) (*table.Snapshot, error) {
	s, err := e.Engine.Load(ctx, v)
	if err != nil {
		return nil, err
	}
	stable := *s
	stable.StableRowIDs = true
	return &stable, nil
}

func rowID(word string) table.RowID {
	var id table.RowID
	for _, c := range []byte(strings.TrimRight(word, "'")) {
		id = id<<8 | table.RowID(c)
	}
	return id
}

func (e identifying) RowIdentities(ctx context.Context, s *table.Snapshot, addrs []table.RowAddr) (out []table.RowIdentity, err error) {
	for b, err := range takingEngine(e).Take(ctx, s, addrs, nil) {
		if err != nil {
			return nil, err
		}
		out = append(out, table.RowIdentity{ID: rowID(b.Record.Column(0).(*array.String).Value(0))})
	}
	return out, nil
}

func (e identifying) FindRows(ctx context.Context, s *table.Snapshot, ids []table.RowID) (map[table.RowID]table.RowAddr, error) {
	out := map[table.RowID]table.RowAddr{}
	for _, f := range s.Fragments {
		for b, err := range e.Rows(ctx, s, []table.FragmentID{f.ID}, table.ReadOptions{WithAddrs: true}) {
			if err != nil {
				return nil, err
			}
			for i, a := range b.Addrs {
				if id := rowID(b.Record.Column(0).(*array.String).Value(i)); slices.Contains(ids, id) {
					out[id] = a
				}
			}
		}
	}
	return out, nil
}

// TestStableRowIDs: with them, a rewrite need not keep the order of rows, and a row
// that somebody updated is not taken for the one that was read.
func TestStableRowIDs(t *testing.T) {
	w := newWorld(t)
	w.e = identifying{w.mem}
	w.append("a", "b", "c", "d")
	w.append("e", "f")
	del := w.uncommitted(table.Delete{}, []string{"b", "e"}, nil)
	upd := w.uncommitted(table.Update{}, []string{"c"}, []string{"c'"})
	lost := w.uncommitted(table.Delete{}, []string{"d"}, nil)
	w.compact([]table.FragmentID{0, 1}, []int{4}, how{reversed: true})
	w.update("d")
	for _, u := range []rebase.Uncommitted{del, upd} {
		out, err := rebase.Commit(ctx, w.e, u, rebase.Options{})
		require.NoError(t, err)
		require.EqualValues(t, len(slices.Collect(u.Affected.Addrs())), out.RowsRelocated)
	}
	_, err := rebase.Commit(ctx, w.e, lost, rebase.Options{})
	require.ErrorContains(t, err, "it updated what this change deletes: row 2:2")
	require.Equal(t, []string{"a", "c'", "d'", "f"}, w.words())
}

// partitioned is an engine whose tables can have stable partitions.
type partitioned struct {
	*memengine.Engine
	files map[string]*fri.Partition
}

func (e partitioned) Partitions(*table.Snapshot) (fri.PartitionSource, error) {
	return func(_ context.Context, ref fri.PartitionRef) (fri.PartitionMap, error) {
		if p := e.files[ref.MapID]; p != nil {
			return p, nil
		}
		return nil, fmt.Errorf("no label file %s: %w", ref.MapID, table.ErrNotFound)
	}, nil
}

// distribute rewrites a fragment as a stable partition: word i goes to destination
// labels[i].
func (w *world) distribute(e partitioned, id table.FragmentID, labels []uint16, destinations int) {
	s := w.head()
	f, _ := s.Fragment(id)
	dead, err := w.mem.ReadDeletions(ctx, s, f)
	require.NoError(w.t, err)
	b, err := fri.NewPartitionBuilder(destinations)
	require.NoError(w.t, err)
	require.NoError(w.t, b.AddSource(fri.DigestOf(f), dead, labels))
	p := b.Build()
	words := make([][]string, destinations)
	for i, r := range w.rowsOf(s, []table.FragmentID{id}) {
		words[labels[i]] = append(words[labels[i]], r.word)
	}
	var all []string
	var sizes []int
	for _, x := range words {
		all, sizes = append(all, x...), append(sizes, len(x))
	}
	g := table.RewriteGroup{Old: []table.Fragment{f}, New: w.numbered(all, sizes...)}
	var ids []table.FragmentID
	for _, f := range g.New {
		ids = append(ids, f.ID)
	}
	ref := fri.PartitionRef{MapID: fmt.Sprintf("%032x", len(e.files)+1), Bytes: 1}
	e.files[ref.MapID] = p
	step, err := p.Transition(ids, ref)
	require.NoError(w.t, err)
	h, err := fri.Load(ctx, e, s)
	require.NoError(w.t, err)
	h, err = h.Append(s.Version+1, step)
	require.NoError(w.t, err)
	w.commit(table.Rewrite{Groups: []table.RewriteGroup{g}}, table.Change{Remove: []table.FragmentID{id}, Add: g.New,
		Reuse: &table.ReuseIndexUpdate{Content: h.Encode(), IndexVersion: h.IndexVersion()}})
}

// TestStablePartition: a rewrite that does not keep the order is followed by its
// labels, also if what it wrote was rewritten again.
func TestStablePartition(t *testing.T) {
	w := newWorld(t)
	e := partitioned{w.mem, map[string]*fri.Partition{}}
	w.append("a", "b", "c", "d", "e", "f")
	w.delete("b")
	u := w.uncommitted(table.Update{}, []string{"c", "d", "f"}, []string{"c'", "d'", "f'"})
	v := w.uncommitted(table.Delete{}, []string{"a", "e"}, nil)
	w.delete("a")
	w.distribute(e, 0, []uint16{1, 0, 2, 1}, 3) // of c d e f
	out, err := rebase.Commit(ctx, e, u, rebase.Options{})
	require.NoError(t, err)
	require.EqualValues(t, 3, out.RowsRelocated)
	require.Equal(t, "3: e\n4: c' d' f'\n", w.String())
	w.append("g")
	w.distribute(e, 3, []uint16{0}, 1)
	out, err = rebase.Commit(ctx, e, v, rebase.Options{})
	require.NoError(t, err)
	require.EqualValues(t, 1, out.RowsRelocated)
	require.EqualValues(t, 1, out.RowsMerged)
	require.Equal(t, []string{"c'", "d'", "f'", "g"}, w.words())

	// The label file is gone, and by rank the values would not be equal.
	w.append("h", "i", "j", "k")
	last := w.head().Fragments[len(w.head().Fragments)-1].ID
	x := w.uncommitted(table.Delete{}, []string{"i"}, nil)
	w.distribute(e, last, []uint16{1, 0, 1, 0}, 2)
	clear(e.files)
	_, err = rebase.Commit(ctx, e, x, rebase.Options{})
	require.ErrorIs(t, err, table.ErrConflict)
	require.ErrorContains(t, err, "fragment reuse index: ")
	require.ErrorContains(t, err, "no label file")
	require.ErrorContains(t, err, "derived: the rewrite did not keep the order of rows")
}

// TestRecordOfAnotherRewrite: what is on record for the fragments is not what was
// committed, as after a restore. It is not used.
func TestRecordOfAnotherRewrite(t *testing.T) {
	for _, c := range []struct {
		name string
		to   fri.Digest
		rows uint64
	}{
		{"another destination", fri.Digest{ID: 9, PhysicalRows: 3}, 3},
		{"another size", fri.Digest{ID: 1, PhysicalRows: 2}, 2},
	} {
		w := newWorld(t)
		w.append("a", "b", "c")
		u := w.uncommitted(table.Delete{}, []string{"b"}, nil)
		w.compact([]table.FragmentID{0}, []int{3}, how{})
		var b fri.Builder
		var dead *deletion.Vector
		if c.rows < 3 {
			dead = deletion.Of(0)
		}
		require.NoError(t, b.AddSource(fri.Digest{ID: 0, PhysicalRows: 3, DeletedRows: 3 - c.rows}, dead))
		step, err := b.Build([]fri.Digest{c.to})
		require.NoError(t, err, c.name)
		h, err := (&fri.History{}).Append(1, step)
		require.NoError(t, err)
		w.commit(table.CreateIndex{}, table.Change{Reuse: &table.ReuseIndexUpdate{Content: h.Encode()}})
		_, err = rebase.Commit(ctx, w.e, u, rebase.Options{})
		require.NoError(t, err)
		require.Equal(t, []string{"a", "c"}, w.words())
	}
}

// TestTrimmedRecord: the transition that is needed was dropped from the history since,
// and the version that had it is asked. To make sure that it is, the order was not
// kept, so that it cannot be derived.
func TestTrimmedRecord(t *testing.T) {
	w := newWorld(t)
	e := partitioned{w.mem, map[string]*fri.Partition{}}
	w.append("a", "b", "c")
	u := w.uncommitted(table.Delete{}, []string{"b", "c"}, nil)
	w.distribute(e, 0, []uint16{1, 1, 0}, 2)
	w.commit(table.CreateIndex{}, table.Change{DropReuse: true})
	_, err := rebase.Commit(ctx, e, u, rebase.Options{})
	require.NoError(t, err)
	require.Equal(t, []string{"a"}, w.words())
}

// cleaned is an engine of which versions were cleaned up.
type cleaned struct {
	*memengine.Engine
	gone []uint64
}

func (e cleaned) Load(ctx context.Context, v uint64) (*table.Snapshot, error) {
	if slices.Contains(e.gone, v) {
		return nil, fmt.Errorf("version %d: %w", v, table.ErrNotFound)
	}
	return e.Engine.Load(ctx, v)
}

// TestRemovedVersions: to derive a change of address takes the version of the rewrite
// and one before it.
func TestRemovedVersions(t *testing.T) {
	for _, c := range []struct {
		gone []uint64
		want string
	}{
		{[]uint64{3}, ""}, // the read version is there
		{[]uint64{2, 3}, "derived: version 2: the version was removed"},
		{[]uint64{4}, "derived: version 4: the version was removed"},
	} {
		w := newWorld(t)
		w.append("a", "b", "c")
		u := w.uncommitted(table.Delete{}, []string{"b"}, nil)
		w.append("d")
		w.compact([]table.FragmentID{0, 1}, []int{9}, how{})
		w.append("e")
		_, err := rebase.Commit(ctx, cleaned{w.mem, c.gone}, u, rebase.Options{})
		if c.want == "" {
			require.NoError(t, err)
			require.Equal(t, []string{"a", "c", "d", "e"}, w.words())
			continue
		}
		require.ErrorIs(t, err, table.ErrConflict)
		require.ErrorContains(t, err, c.want)
	}
}

// unreadable is an engine whose rows must not be read.
type unreadable struct{ *memengine.Engine }

func (e unreadable) Rows(context.Context, *table.Snapshot, []table.FragmentID, table.ReadOptions) iter.Seq2[table.Batch, error] {
	return func(yield func(table.Batch, error) bool) { yield(table.Batch{}, errors.New("rows were read")) }
}

// TestGivenChangeOfAddress: one that the caller brings is used if it is the right one,
// and then no row is read.
func TestGivenChangeOfAddress(t *testing.T) {
	w := newWorld(t)
	w.append("a", "b", "c")
	w.append("d", "e")
	w.delete("a")
	u := w.uncommitted(table.Delete{}, []string{"b", "d"}, nil)
	w.compact([]table.FragmentID{0, 1}, []int{3}, how{})
	sources := []source{{Fragment: 0, PhysicalRows: 3, Deleted: deletion.Of(0)}, {Fragment: 1, PhysicalRows: 2}}
	right, err := rebase.NewChangeOfAddress(groupsOf(move{Sources: sources, Destinations: []uint64{3, 1}}), [][]table.FragmentID{{2, 3}})
	require.NoError(t, err)
	other, err := rebase.NewChangeOfAddress(groupsOf(move{Sources: sources, Destinations: []uint64{1, 3}}), [][]table.FragmentID{{2, 3}})
	require.NoError(t, err)

	e := unreadable{w.mem}
	_, err = rebase.Commit(ctx, e, u, rebase.Options{Addresses: []*rebase.ChangeOfAddress{other}})
	require.ErrorContains(t, err, "rows were read")
	out, err := rebase.Commit(ctx, e, u, rebase.Options{Addresses: []*rebase.ChangeOfAddress{other, right}})
	require.NoError(t, err)
	require.EqualValues(t, 2, out.RowsRelocated)
	require.Equal(t, "2: . c .\n3: e\n", w.String())
}

// TestProofComparesFloatsByWhatTheyAre: a value that is no number was copied like any
// other; and a row with another one is another row.
func TestProofComparesFloatsByWhatTheyAre(t *testing.T) {
	for _, equal := range []bool{true, false} {
		field := arrow.Field{Name: "item", Type: arrow.PrimitiveTypes.Float64, Nullable: true}
		e := memengine.New("t", table.Schema{Fields: []table.Field{{ID: 0, Name: "x", Type: arrow.ListOfField(field), Nullable: true}}})
		record := func(values ...float64) arrow.RecordBatch {
			b := array.NewListBuilderWithField(memory.DefaultAllocator, field)
			for _, v := range values {
				b.Append(true)
				b.ValueBuilder().(*array.Float64Builder).Append(v)
			}
			b.AppendNull()
			s, err := e.Load(ctx, 0)
			require.NoError(t, err)
			return array.NewRecordBatch(s.Schema.Arrow(), []arrow.Array{b.NewArray()}, int64(len(values)+1))
		}
		values := []float64{math.NaN(), math.Inf(1), 1}
		require.NoError(t, e.Append(ctx, record(values...)))
		s, err := e.Load(ctx, 0)
		require.NoError(t, err)
		u := rebase.Uncommitted{Table: "t", Affected: rebase.RowSet{0: deletion.Range(0, 4)},
			Transaction: table.Transaction{ID: "x", ReadVersion: s.Version, Operation: table.Delete{}}}
		if !equal {
			values[2] = math.Nextafter(1, 2)
		}
		rows := func(yield func(table.Batch, error) bool) { yield(table.Batch{Record: record(values...)}, nil) }
		written, err := e.WriteFragments(ctx, s.Schema, rows, table.WriteOptions{})
		require.NoError(t, err)
		g := table.RewriteGroup{Old: s.Fragments, New: []table.Fragment{{ID: 1, PhysicalRows: 4, Files: written.Fragments[0].Files}}}
		_, err = e.Commit(ctx, table.Proposal{Base: s, Transaction: table.Transaction{ID: "r", Operation: table.Rewrite{Groups: []table.RewriteGroup{g}}},
			Change: table.Change{Remove: []table.FragmentID{0}, Add: g.New}})
		require.NoError(t, err)
		_, err = rebase.Commit(ctx, e, u, rebase.Options{})
		if equal {
			require.NoError(t, err)
		} else {
			require.ErrorContains(t, err, "did not keep the order")
		}
	}
}
