package dml_test

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"runtime"
	"sync"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"

	"github.com/rehome-db/rehome/deletion"
	"github.com/rehome-db/rehome/dml"
	"github.com/rehome-db/rehome/dml/sqlexpr"
	"github.com/rehome-db/rehome/rebase"
	"github.com/rehome-db/rehome/table"
)

// huge is an engine whose fragments have any number of rows, all of which are x = 1. It
// holds nothing for a row; how many were read it counts.
type huge struct {
	mu       sync.Mutex
	versions []*table.Snapshot
	txs      []table.Transaction
	vectors  map[string]*deletion.Vector
	rowsRead uint64
	ones     arrow.RecordBatch
}

func newHuge(t testing.TB, rows ...uint64) *huge {
	b := array.NewInt8Builder(memory.DefaultAllocator)
	defer b.Release()
	for range 8192 {
		b.Append(1)
	}
	x := b.NewArray()
	defer x.Release()
	schema := table.Schema{Fields: []table.Field{{Name: "x", Type: arrow.PrimitiveTypes.Int8}}}
	s := &table.Snapshot{Table: "huge", Version: 1, Schema: schema, NextFragmentID: table.FragmentID(len(rows))}
	for i, n := range rows {
		s.Fragments = append(s.Fragments, hugeFragment(i, n))
	}
	e := &huge{
		versions: []*table.Snapshot{s}, txs: []table.Transaction{{ID: "made", Version: 1, Operation: table.Overwrite{}}},
		vectors: map[string]*deletion.Vector{}, ones: array.NewRecordBatch(schema.Arrow(), []arrow.Array{x}, 8192),
	}
	t.Cleanup(e.ones.Release)
	return e
}

func hugeFragment(id int, rows uint64) table.Fragment {
	return table.Fragment{ID: table.FragmentID(id), PhysicalRows: rows, Files: []table.DataFile{{Path: fmt.Sprint("data", id)}}}
}

func (e *huge) Load(_ context.Context, version uint64) (*table.Snapshot, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if version == 0 {
		version = uint64(len(e.versions))
	}
	if version > uint64(len(e.versions)) {
		return nil, table.ErrNotFound
	}
	return e.versions[version-1], nil
}

func (e *huge) TransactionsSince(_ context.Context, after, upTo uint64) ([]table.Transaction, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if upTo == 0 {
		upTo = uint64(len(e.txs))
	}
	return e.txs[after:upTo], nil
}

func (e *huge) ReuseIndex(context.Context, *table.Snapshot) ([]byte, error) { return nil, nil }

func (e *huge) Rows(_ context.Context, s *table.Snapshot, ids []table.FragmentID, _ table.ReadOptions) iter.Seq2[table.Batch, error] {
	return func(yield func(table.Batch, error) bool) {
		addrs := make([]table.RowAddr, 8192)
		for _, id := range ids {
			f, _ := s.Fragment(id)
			for at := uint64(0); at < f.PhysicalRows; at += 8192 {
				n := min(8192, f.PhysicalRows-at)
				for i := range n {
					addrs[i] = table.NewRowAddr(id, uint32(at+i))
				}
				e.rowsRead += n
				rec := e.ones.NewSlice(0, int64(n))
				more := yield(table.Batch{Record: rec, Addrs: addrs[:n]}, nil)
				rec.Release()
				if !more {
					return
				}
			}
		}
	}
}

func (e *huge) WriteFragments(_ context.Context, _ table.Schema, rows iter.Seq2[table.Batch, error], _ table.WriteOptions) (table.Written, error) {
	var n uint64
	for b, err := range rows {
		if err != nil {
			return table.Written{}, err
		}
		n += uint64(b.Record.NumRows())
	}
	return table.Written{Fragments: []table.NewFragment{{PhysicalRows: n, Files: []table.DataFile{{Path: "new"}}}}}, nil
}

func (e *huge) ReadDeletions(_ context.Context, _ *table.Snapshot, f table.Fragment) (table.OffsetSet, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if f.Deletion == nil {
		return deletion.Of(), nil
	}
	return e.vectors[f.Deletion.Path], nil
}

// WriteDeletions stores the vector as a Lance table would: as bytes.
func (e *huge) WriteDeletions(_ context.Context, id table.FragmentID, _ uint64, deleted table.OffsetSet) (table.DeletionRef, error) {
	form, data, err := deletion.Encode(deleted.(*deletion.Vector))
	if err != nil {
		return table.DeletionRef{}, err
	}
	v, err := deletion.Decode(form, data, 1<<32)
	if err != nil {
		return table.DeletionRef{}, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	path := fmt.Sprint("deletions", id, "-", len(e.vectors))
	e.vectors[path] = v
	return table.DeletionRef{Path: path, Rows: v.Cardinality()}, nil
}

func (e *huge) Commit(_ context.Context, p table.Proposal) (*table.Snapshot, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if p.Base.Version != uint64(len(e.versions)) {
		return nil, table.ErrVersionTaken
	}
	s := *p.Base
	s.Version++
	s.Fragments = nil
	gone := map[table.FragmentID]bool{}
	for _, id := range p.Change.Remove {
		gone[id] = true
	}
	for _, f := range p.Base.Fragments {
		if d, ok := p.Change.SetDeletion[f.ID]; ok {
			f.Deletion = d
		}
		if !gone[f.ID] {
			s.Fragments = append(s.Fragments, f)
		}
	}
	for _, f := range p.Change.Add {
		s.Fragments = append(s.Fragments, f)
		s.NextFragmentID = max(s.NextFragmentID, f.ID+1)
	}
	tx := p.Transaction
	tx.Version = s.Version
	e.versions, e.txs = append(e.versions, &s), append(e.txs, tx)
	return &s, nil
}

func (e *huge) ReserveFragments(context.Context, uint32) (*table.Snapshot, error) {
	return nil, table.ErrUnsupported
}

func (e *huge) Stat(context.Context, table.Object) (uint64, error) { return 0, nil }
func (e *huge) Delete(context.Context, table.Object) error         { return nil }

// allocated is how many bytes do allocates, freed again or not: its memory never takes
// more.
func allocated(do func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	do()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

const mebibyte = 1 << 20

// TestReport09DeleteOfFourBillionRows: a delete of everything costs by fragments,
// whatever is in them, and reads no row; in Go and in SQL.
func TestReport09DeleteOfFourBillionRows(t *testing.T) {
	everything, err := sqlexpr.ParsePredicate("true")
	require.NoError(t, err)
	for _, where := range []dml.Predicate{dml.All(), everything} {
		e := newHuge(t, 1<<31, 1<<31-5, 100_000)
		e.vectors["dead"] = deletion.Range(7, 1000)
		e.versions[0].Fragments[1].Deletion = &table.DeletionRef{Path: "dead", Rows: 993}
		var r dml.Result
		require.Less(t, allocated(func() {
			r, err = dml.Execute(t.Context(), e, dml.Delete{Where: where}, dml.Options{})
		}), uint64(100*mebibyte))
		require.NoError(t, err)
		require.EqualValues(t, 1<<32-5-993+100_000, r.Deleted)
		require.Empty(t, r.Snapshot.Fragments)
		require.Zero(t, e.rowsRead)
	}
	nothing, err := sqlexpr.ParsePredicate("false")
	require.NoError(t, err)
	e := newHuge(t, 1<<32)
	r, err := dml.Execute(t.Context(), e, dml.Delete{Where: nothing}, dml.Options{})
	require.NoError(t, err)
	require.False(t, r.Committed)
	require.Zero(t, e.rowsRead)
}

// TestReport09MatchesAreRuns: rows that are looked at and match are runs from the
// start: what 50 million of them take does not show beside the batches.
func TestReport09MatchesAreRuns(t *testing.T) {
	const rows = 50_000_000
	e := newHuge(t, rows)
	mostly, err := sqlexpr.ParsePredicate("x = 1")
	require.NoError(t, err)
	matching := dml.PredicateFunc([]string{"x"}, alwaysTrue(t))
	for _, c := range []struct {
		where dml.Predicate
		bound uint64
	}{{matching, 8 * mebibyte}, {mostly, 0}} {
		var u rebase.Uncommitted
		took := allocated(func() {
			u, _, err = dml.Compute(t.Context(), e, e.versions[0], dml.Delete{Where: c.where}, dml.Options{})
		})
		require.NoError(t, err)
		require.EqualValues(t, rows, u.Affected.Rows())
		if c.bound > 0 {
			require.Less(t, took, c.bound)
		}
		data, err := json.Marshal(u)
		require.NoError(t, err)
		require.Less(t, len(data), 64<<10)
	}
}

// alwaysTrue answers with the same array for every whole batch, so that nothing but the
// set of rows is allocated.
func alwaysTrue(t *testing.T) func(context.Context, arrow.RecordBatch) (*array.Boolean, error) {
	b := array.NewBooleanBuilder(memory.DefaultAllocator)
	defer b.Release()
	for range 8192 {
		b.Append(true)
	}
	yes := b.NewBooleanArray()
	t.Cleanup(yes.Release)
	return func(_ context.Context, rec arrow.RecordBatch) (*array.Boolean, error) {
		if rec.NumRows() == 8192 {
			yes.Retain()
			return yes, nil
		}
		return array.NewSlice(yes, 0, rec.NumRows()).(*array.Boolean), nil
	}
}

// TestReport09FourBillionRowsCarriedOverACompaction: the change is sent as JSON, then
// committed over a compaction of the fragments that it is about, and deletes all but a
// few rows of each, so that vectors are written.
func TestReport09FourBillionRowsCarriedOverACompaction(t *testing.T) {
	const half = 1 << 31
	e := newHuge(t, half, half-5)
	u, _, err := dml.Compute(t.Context(), e, e.versions[0], dml.Delete{Where: dml.All()}, dml.Options{})
	require.NoError(t, err)
	u.Affect(e.versions[0], rebase.RowSet{0: deletion.Range(1, half), 1: deletion.Range(0, half-5).Difference(deletion.Of(1, 1000, 1_000_000))})

	// The compaction makes other fragments of the two.
	old := e.versions[0].Fragments
	to := []table.Fragment{hugeFragment(2, half-100), hugeFragment(3, half+95)}
	moved := rebase.Group{Old: old, New: []table.NewFragment{{PhysicalRows: half - 100}, {PhysicalRows: half + 95}}}
	address, err := rebase.NewChangeOfAddress([]rebase.Group{moved}, [][]table.FragmentID{{2, 3}})
	require.NoError(t, err)
	_, err = e.Commit(t.Context(), table.Proposal{
		Base:        e.versions[0],
		Transaction: table.Transaction{ID: "compaction", ReadVersion: 1, Operation: table.Rewrite{Groups: []table.RewriteGroup{{Old: old, New: to}}}},
		Change:      table.Change{Remove: []table.FragmentID{0, 1}, Add: to},
	})
	require.NoError(t, err)

	var done rebase.Committed
	require.Less(t, allocated(func() {
		var data []byte
		data, err = json.Marshal(u)
		require.NoError(t, err)
		require.Less(t, len(data), 4*mebibyte)
		var got rebase.Uncommitted
		require.NoError(t, json.Unmarshal(data, &got))
		require.True(t, got.Affected.Equal(u.Affected))
		done, err = rebase.Commit(t.Context(), e, got, rebase.Options{Addresses: []*rebase.ChangeOfAddress{address}})
	}), uint64(200*mebibyte))
	require.NoError(t, err)
	require.EqualValues(t, 1<<32-5-4, done.RowsDeleted)
	require.EqualValues(t, done.RowsDeleted, done.RowsRelocated)
	require.Len(t, done.Snapshot.Fragments, 2)
	var left uint64
	for _, f := range done.Snapshot.Fragments {
		left += f.LiveRows()
	}
	require.EqualValues(t, 4, left)
	require.Zero(t, e.rowsRead)
}

// TestReport09ManyRowsOfOneKey: one source row may be for any number of rows of the
// table, and takes no memory for each.
func TestReport09ManyRowsOfOneKey(t *testing.T) {
	const rows = 5_000_000
	e := newHuge(t, rows)
	source := e.ones.NewSlice(0, 1)
	t.Cleanup(source.Release)
	var most uint64
	r, err := dml.Execute(t.Context(), e, dml.MergeInsert{
		On: []string{"x"}, Source: dml.Records(source), WhenMatched: dml.MatchedUpdate,
	}, dml.Options{Events: dml.Events{Progress: func(i dml.ProgressInfo) {
		if i.Step == dml.Writing && most == 0 {
			runtime.GC()
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			most = m.HeapAlloc
		}
	}}})
	require.NoError(t, err)
	require.EqualValues(t, rows, r.Updated)
	require.Less(t, most, uint64(24*mebibyte))
}
