package enginetest

import (
	"context"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"

	"github.com/rehome-db/rehome/deletion"
	"github.com/rehome-db/rehome/table"
)

// fixture is one table under test. Its methods fail the test on any error that
// the test does not ask for.
type fixture struct {
	*require.Assertions
	t      *testing.T
	cfg    Config
	ctx    context.Context
	engine table.Engine
	ops    Ops
	nextID int64 // of the next row that add makes up
}

// newFixture makes a table with one fragment for each count of rows. Rows are
// numbered from 0 through the whole table, in its first column.
func newFixture(t *testing.T, cfg Config, rowCounts ...int) *fixture {
	f := &fixture{Assertions: require.New(t), t: t, cfg: cfg, ctx: t.Context()}
	f.engine, f.ops = cfg.New(t, cfg.Schema)
	for _, n := range rowCounts {
		f.add(n)
	}
	return f
}

// add appends a fragment of n new rows and returns it.
func (f *fixture) add(n int) table.Fragment {
	before := f.latest()
	rec := makeRecord(f.t, f.cfg.Schema, memory.DefaultAllocator, numbers(f.nextID, n))
	defer rec.Release()
	f.NoError(f.ops.Append(f.ctx, rec))
	f.nextID += int64(n)
	after := f.latest()
	f.Len(after.Fragments, len(before.Fragments)+1, "Ops.Append must add one fragment")
	return after.Fragments[len(after.Fragments)-1]
}

func (f *fixture) delete(addrs ...table.RowAddr) {
	f.NoError(f.ops.DeleteRows(f.ctx, addrs...))
}

func (f *fixture) latest() *table.Snapshot {
	s, err := f.engine.Load(f.ctx, 0)
	f.NoError(err)
	return s
}

// write writes new fragments with the rows numbered by ids, in batches of at
// most batchRows rows.
func (f *fixture) write(ids []int64, batchRows int, opts table.WriteOptions) table.Written {
	out, err := f.engine.WriteFragments(f.ctx, f.latest().Schema, f.batches(ids, batchRows), opts)
	f.NoError(err)
	return out
}

// place gives written fragments their ids.
func place(s *table.Snapshot, written []table.NewFragment) []table.Fragment {
	var out []table.Fragment
	for i, w := range written {
		out = append(out, table.Fragment{ID: s.NextFragmentID + table.FragmentID(i), PhysicalRows: w.PhysicalRows, Files: w.Files})
	}
	return out
}

// commit commits a change to the latest version as an operation that fits it.
func (f *fixture) commit(change table.Change) *table.Snapshot {
	base := f.latest()
	next, err := f.engine.Commit(f.ctx, proposal(base, base.Version, change))
	f.NoError(err)
	f.Equal(base.Version+1, next.Version)
	return next
}

// proposal proposes the change to base as the transaction of a compaction, or of
// a delete where nothing is added and nothing but rows goes away.
func proposal(base *table.Snapshot, readVersion uint64, change table.Change) table.Proposal {
	var op table.Operation
	switch {
	case len(change.Remove) > 0 && len(change.Add) > 0:
		group := table.RewriteGroup{New: change.Add}
		for _, id := range change.Remove {
			old, _ := base.Fragment(id)
			group.Old = append(group.Old, old)
		}
		op = table.Rewrite{Groups: []table.RewriteGroup{group}}
	case len(change.Add) > 0:
		op = table.Append{Fragments: change.Add}
	case len(change.Remove)+len(change.SetDeletion) > 0:
		del := table.Delete{Removed: change.Remove}
		for id, ref := range change.SetDeletion {
			updated, _ := base.Fragment(id)
			updated.Deletion = ref
			del.Updated = append(del.Updated, updated)
		}
		op = del
	default:
		op = table.Rewrite{}
	}
	return table.Proposal{
		Base:        base,
		Transaction: table.Transaction{ID: newID(), ReadVersion: readVersion, Operation: op},
		Change:      change,
	}
}

// newID makes the id of a transaction, in the form of a UUID, which formats may
// ask for.
func newID() string {
	var u table.UUID
	for i := range u {
		u[i] = byte(rand.Uint32())
	}
	return u.String()
}

// read returns the live rows of the given fragments, as text, column by column.
func (f *fixture) read(s *table.Snapshot, ids []table.FragmentID, opts table.ReadOptions) (rows []string, addrs []table.RowAddr) {
	for batch, err := range f.engine.Rows(f.ctx, s, ids, opts) {
		f.NoError(err)
		rows = append(rows, rowTexts(batch.Record)...)
		addrs = append(addrs, batch.Addrs...)
	}
	return rows, addrs
}

// hasRows checks that the snapshot holds exactly the rows with these numbers, in
// this order, in all columns.
func (f *fixture) hasRows(s *table.Snapshot, want []int64) {
	f.t.Helper()
	got, _ := f.read(s, fragmentIDs(s), table.ReadOptions{})
	f.Equal(f.texts(want), got)
	f.Equal(uint64(len(want)), s.LiveRows())
}

// texts are the rows with these numbers as read returns them.
func (f *fixture) texts(ids []int64) []string {
	if len(ids) == 0 {
		return nil
	}
	rec := makeRecord(f.t, f.cfg.Schema, memory.DefaultAllocator, ids)
	defer rec.Release()
	return rowTexts(rec)
}

// refuses checks that the proposal is refused and that the table and its objects
// are as they were.
func (f *fixture) refuses(p table.Proposal) error {
	f.t.Helper()
	before, objects := f.latest(), f.objects()
	next, err := f.engine.Commit(f.ctx, p)
	f.Error(err)
	f.Nil(next)
	f.NotErrorIs(err, table.ErrAmbiguousCommit)
	f.unchangedSince(before)
	f.Equal(objects, f.objects(), "objects after a commit that was refused")
	return err
}

// unchangedSince checks that no version was published after before.
func (f *fixture) unchangedSince(before *table.Snapshot) {
	f.t.Helper()
	f.Equal(before.Version, f.latest().Version)
	_, err := f.engine.Load(f.ctx, before.Version+1)
	f.ErrorIs(err, table.ErrNotFound)
}

// objects lists the paths of all objects, or nothing if the engine cannot.
func (f *fixture) objects() []string {
	lister, ok := f.ops.(ObjectLister)
	if !ok {
		return nil
	}
	list, err := lister.Objects(f.ctx)
	f.NoError(err)
	paths := []string{}
	for _, o := range list {
		paths = append(paths, o.Path)
	}
	slices.Sort(paths)
	return paths
}

// batches yields the rows with these numbers and releases each batch before it
// makes the next, in memory that is overwritten when it is freed: an engine that
// keeps a batch it did not retain writes rubbish.
func (f *fixture) batches(ids []int64, batchRows int) iter.Seq2[table.Batch, error] {
	return func(yield func(table.Batch, error) bool) {
		for chunk := range slices.Chunk(ids, batchRows) {
			rec := makeRecord(f.t, f.cfg.Schema, scribbler{memory.DefaultAllocator}, chunk)
			more := yield(table.Batch{Record: rec}, nil)
			rec.Release()
			if !more {
				return
			}
		}
	}
}

// scribbler overwrites memory that is freed.
type scribbler struct{ memory.Allocator }

func (s scribbler) Free(b []byte) {
	for i := range b {
		b[i] = 0xdb
	}
	s.Allocator.Free(b)
}

func (s scribbler) Reallocate(size int, b []byte) []byte {
	out := s.Allocate(size)
	copy(out, b)
	s.Free(b)
	return out
}

// numbers are n row numbers from first.
func numbers(first int64, n int) []int64 {
	out := make([]int64, n)
	for i := range out {
		out[i] = first + int64(i)
	}
	return out
}

// without returns ids less those in gone.
func without(ids []int64, gone ...int64) []int64 {
	return slices.DeleteFunc(slices.Clone(ids), func(id int64) bool { return slices.Contains(gone, id) })
}

func fragmentIDs(s *table.Snapshot) []table.FragmentID {
	out := make([]table.FragmentID, len(s.Fragments))
	for i, f := range s.Fragments {
		out[i] = f.ID
	}
	return out
}

// rowTexts prints each row of a record, columns separated by bars.
func rowTexts(rec arrow.RecordBatch) []string {
	out := make([]string, rec.NumRows())
	for i := range out {
		columns := make([]string, rec.NumCols())
		for j, c := range rec.Columns() {
			columns[j] = c.ValueStr(i)
		}
		out[i] = strings.Join(columns, "|")
	}
	return out
}

// offsets makes a set of row offsets.
func offsets(in ...uint32) *deletion.Vector { return deletion.Of(in...) }

// describe prints everything of a snapshot that rehome looks at, to compare it
// with itself later.
func describe(s *table.Snapshot) string {
	var b strings.Builder
	fmt.Fprintf(&b, "version %d next %d stable %v format %s schema %v\n", s.Version, s.NextFragmentID, s.StableRowIDs, s.DataFormat, s.Schema.Fields)
	for _, f := range s.Fragments {
		fmt.Fprintf(&b, "fragment %d rows %d files %+v deletion %+v\n", f.ID, f.PhysicalRows, f.Files, f.Deletion)
	}
	for _, m := range s.Indexes {
		fmt.Fprintf(&b, "index %s %s fields %v coverage %v %v\n", m.UUID, m.Name, m.Fields, m.CoverageKnown, m.Coverage)
	}
	if s.Reuse != nil {
		fmt.Fprintf(&b, "reuse %s %d %d\n", s.Reuse.UUID, s.Reuse.IndexVersion, s.Reuse.Bytes)
	}
	return b.String()
}
