package compaction

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/rehome-db/rehome/table"
	"github.com/rehome-db/rehome/table/memengine"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var ctx = context.Background()

// tester is a *testing.T or a *rapid.T.
type tester interface {
	require.TestingT
	Helper()
}

// newTable makes a table of one column of numbers, a fragment for each count.
func newTable(t tester, counts ...int) *memengine.Engine {
	t.Helper()
	e := memengine.New("t", table.Schema{Fields: []table.Field{{ID: 0, Name: "n", Type: arrow.PrimitiveTypes.Int64}}})
	for _, n := range counts {
		appendRows(t, e, n)
	}
	return e
}

// appendRows appends n rows, which go on counting where the table has got to.
func appendRows(t tester, e *memengine.Engine, n int) {
	t.Helper()
	s, err := e.Load(ctx, 0)
	require.NoError(t, err)
	first := int64(s.Version) << 32 // no two appends are of one version
	b := array.NewInt64Builder(memory.DefaultAllocator)
	for i := range n {
		b.Append(first + int64(i))
	}
	rec := array.NewRecordBatch(s.Schema.Arrow(), []arrow.Array{b.NewArray()}, int64(n))
	require.NoError(t, e.Append(ctx, rec))
}

// row is a row and where it is.
type row struct {
	value int64
	addr  table.RowAddr
}

// rowsAt reads a version, the latest if it is 0, in table order.
func rowsAt(t tester, e table.Engine, version uint64) (out []row) {
	t.Helper()
	s, err := e.Load(ctx, version)
	require.NoError(t, err)
	for b, err := range e.Rows(ctx, s, fragmentIDs(s.Fragments), table.ReadOptions{WithAddrs: true}) {
		require.NoError(t, err)
		column := b.Record.Column(0).(*array.Int64)
		for i, a := range b.Addrs {
			out = append(out, row{column.Value(i), a})
		}
	}
	return out
}

func valuesOf(rows []row) []int64 {
	out := make([]int64, len(rows))
	for i, r := range rows {
		out[i] = r.value
	}
	return out
}

// rowsOf are the addresses of rows from up to to of a fragment.
func rowsOf(id table.FragmentID, from, to uint32) (out []table.RowAddr) {
	for o := from; o < to; o++ {
		out = append(out, table.NewRowAddr(id, o))
	}
	return out
}

// orphans lists the objects that no version refers to.
func orphans(t tester, e *memengine.Engine) (out []string) {
	t.Helper()
	used := map[string]bool{}
	latest, err := e.Load(ctx, 0)
	require.NoError(t, err)
	for v := uint64(1); v <= latest.Version; v++ {
		s, err := e.Load(ctx, v)
		require.NoError(t, err)
		for _, f := range s.Fragments {
			for _, d := range f.Files {
				used[d.Path] = true
			}
			if f.Deletion != nil {
				used[f.Deletion.Path] = true
			}
		}
	}
	objects, err := e.Objects(ctx)
	require.NoError(t, err)
	for _, o := range objects {
		if !used[o.Path] {
			out = append(out, o.Path)
		}
	}
	return out
}

var errInjected = errors.New("injected")

// probe is an engine that tells of every call, before it is passed on, and can be
// told to fail it. It does not pass on that the engine is a table.Rewriter.
type probe struct {
	*memengine.Engine
	// before is called with what is about to happen; an error is returned to the
	// caller, and the engine is not asked.
	before func(op string) error
	// hold keeps a commit from the engine, which may get it later.
	hold func(table.Proposal) error
	// afterCommit may replace the answer to a commit.
	afterCommit func(s *table.Snapshot, err error) (*table.Snapshot, error)
}

func (p *probe) tell(format string, args ...any) error {
	if p.before == nil {
		return nil
	}
	return p.before(fmt.Sprintf(format, args...))
}

func (p *probe) Load(ctx context.Context, v uint64) (*table.Snapshot, error) {
	which := "the latest version"
	if v > 0 {
		which = fmt.Sprintf("version %d", v)
	}
	if err := p.tell("load %s", which); err != nil {
		return nil, err
	}
	return p.Engine.Load(ctx, v)
}

func (p *probe) TransactionsSince(ctx context.Context, after, upTo uint64) ([]table.Transaction, error) {
	if err := p.tell("transactions %d to %d", after+1, upTo); err != nil {
		return nil, err
	}
	return p.Engine.TransactionsSince(ctx, after, upTo)
}

func (p *probe) ReuseIndex(ctx context.Context, s *table.Snapshot) ([]byte, error) {
	if err := p.tell("reuse index of version %d", s.Version); err != nil {
		return nil, err
	}
	return p.Engine.ReuseIndex(ctx, s)
}

func (p *probe) Rows(ctx context.Context, s *table.Snapshot, ids []table.FragmentID, opts table.ReadOptions) iter.Seq2[table.Batch, error] {
	return func(yield func(table.Batch, error) bool) {
		for _, id := range ids {
			if err := p.tell("read fragment %d", id); err != nil {
				yield(table.Batch{}, err)
				return
			}
			for b, err := range p.Engine.Rows(ctx, s, []table.FragmentID{id}, opts) {
				if !yield(b, err) {
					return
				}
			}
		}
	}
}

func (p *probe) WriteFragments(ctx context.Context, schema table.Schema, rows iter.Seq2[table.Batch, error], opts table.WriteOptions) (table.Written, error) {
	if err := p.tell("write fragments of %d rows", opts.MaxRows); err != nil {
		return table.Written{}, err
	}
	w, err := p.Engine.WriteFragments(ctx, schema, rows, opts)
	if err == nil {
		// The last step of writing may fail, too, when everything is there.
		err = p.tell("wrote %s", plural(uint64(len(w.Fragments)), "fragment"))
	}
	return w, err
}

func (p *probe) ReadDeletions(ctx context.Context, s *table.Snapshot, f table.Fragment) (table.OffsetSet, error) {
	if err := p.tell("read deletions of fragment %d", f.ID); err != nil {
		return nil, err
	}
	return p.Engine.ReadDeletions(ctx, s, f)
}

func (p *probe) WriteDeletions(ctx context.Context, id table.FragmentID, readVersion uint64, deleted table.OffsetSet) (table.DeletionRef, error) {
	if err := p.tell("write deletions of fragment %d at version %d", id, readVersion); err != nil {
		return table.DeletionRef{}, err
	}
	return p.Engine.WriteDeletions(ctx, id, readVersion, deleted)
}

func (p *probe) Commit(ctx context.Context, proposal table.Proposal) (*table.Snapshot, error) {
	if err := p.tell("commit version %d", proposal.Base.Version+1); err != nil {
		return nil, err
	}
	if p.hold != nil {
		return nil, p.hold(proposal)
	}
	s, err := p.Engine.Commit(ctx, proposal)
	if p.afterCommit != nil {
		return p.afterCommit(s, err)
	}
	return s, err
}

func (p *probe) Stat(ctx context.Context, o table.Object) (uint64, error) {
	if err := p.tell("stat %s", o.Path); err != nil {
		return 0, err
	}
	return p.Engine.Stat(ctx, o)
}

func (p *probe) Delete(ctx context.Context, o table.Object) error {
	if err := p.tell("delete %s", o.Path); err != nil {
		return err
	}
	return p.Engine.Delete(ctx, o)
}

// rewriter is a probe that lets the engine rewrite groups by itself.
type rewriter struct {
	*probe
	rewriting memengine.Rewriting
}

func newRewriter(p *probe) rewriter { return rewriter{p, memengine.Rewriting{Engine: p.Engine}} }

func (r rewriter) CanRewrite(ctx context.Context, s *table.Snapshot, ids []table.FragmentID) error {
	if err := r.tell("can rewrite fragments %s", table.FragmentList(ids)); err != nil {
		return err
	}
	return r.rewriting.CanRewrite(ctx, s, ids)
}

func (r rewriter) RewriteGroup(ctx context.Context, req table.RewriteRequest) (table.Written, error) {
	if err := r.tell("rewrite fragments %s", table.FragmentList(req.Sources)); err != nil {
		return table.Written{}, err
	}
	w, err := r.rewriting.RewriteGroup(ctx, req)
	if err == nil {
		err = r.tell("wrote %s", plural(uint64(len(w.Fragments)), "fragment"))
	}
	return w, err
}

// executed plans the latest version and executes all tasks.
func executed(t tester, e table.Engine, opts Options) []Result {
	t.Helper()
	plan, err := PlanLatest(ctx, e, opts)
	require.NoError(t, err)
	var out []Result
	for _, task := range plan.Tasks {
		r, err := Execute(ctx, e, task, Options{})
		require.NoError(t, err)
		out = append(out, r)
	}
	return out
}

func sortedValues(rows []row) []int64 {
	v := valuesOf(rows)
	slices.Sort(v)
	return v
}

func TestCompactMergesAndKeepsEveryRow(t *testing.T) {
	for name, wrap := range map[string]func(*memengine.Engine) table.Engine{
		"rows": func(e *memengine.Engine) table.Engine { return e },
		"rewriter": func(e *memengine.Engine) table.Engine {
			return memengine.Rewriting{Engine: e}
		},
	} {
		t.Run(name, func(t *testing.T) {
			e := newTable(t, 10, 10, 10, 10, 10)
			require.NoError(t, e.DeleteRows(ctx, table.NewRowAddr(1, 0), table.NewRowAddr(1, 9), table.NewRowAddr(3, 5)))
			before := rowsAt(t, e, 0)

			report, err := Compact(ctx, wrap(e), Options{TargetRows: 20})
			require.NoError(t, err)
			require.True(t, report.Committed)
			require.EqualValues(t, 8, report.Version)
			require.EqualValues(t, 7, report.ReadVersion)
			require.Equal(t, 5, report.FragmentsRemoved)
			require.Equal(t, 3, report.FragmentsAdded)
			require.EqualValues(t, 47, report.RowsWritten)
			require.EqualValues(t, 47*8, report.BytesWritten)
			require.EqualValues(t, 50*8, report.BytesRead)
			require.Equal(t, FRIReport{Published: true, TransitionsAdded: 1}, report.FRI)

			require.Equal(t, valuesOf(before), valuesOf(rowsAt(t, e, 0)))
			require.Empty(t, orphans(t, e))
		})
	}
}
