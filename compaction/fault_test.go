package compaction

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/rehome-db/rehome/commit"
	"github.com/rehome-db/rehome/table"
)

// faultyTable is a table with two groups to compact, deletions and a history.
func faultyTable(t *testing.T) *probe {
	t.Helper()
	e := newTable(t, 10, 10)
	_, err := Compact(ctx, e, Options{})
	require.NoError(t, err)
	for range 5 {
		appendRows(t, e, 10)
	}
	_, err = e.AddIndex(ctx, table.IndexMeta{Name: "i", Coverage: ids(t, "2-4"), CoverageKnown: true, Reuse: table.ReuseThrough})
	require.NoError(t, err)
	require.NoError(t, e.DeleteRows(ctx, table.NewRowAddr(3, 3), table.NewRowAddr(5, 5)))
	return &probe{Engine: e}
}

// TestEveryCallFailsOnce: whatever engine call fails, the table is as it was, and
// what was written is deleted, or named by the error if that fails too. Each
// failure is tried before the call is made; see TestAmbiguousCommit for a commit
// that fails after it.
func TestEveryCallFailsOnce(t *testing.T) {
	for _, c := range []struct {
		name                             string
		rewriter, cancel, keepsOnFailing bool
	}{
		{name: "rows"},
		{name: "rewriter", rewriter: true},
		{name: "cancelled", cancel: true},
		{name: "deletions fail too", keepsOnFailing: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			calls := 0
			for n, more := 1, true; more; n++ {
				synctest.Test(t, func(t *testing.T) {
					p := faultyTable(t)
					var e table.Engine = p
					if c.rewriter {
						e = newRewriter(p)
					}
					before := rowsAt(t, p.Engine, 0)
					was, err := p.Engine.Load(ctx, 0)
					require.NoError(t, err)

					ctx, cancel := context.WithCancel(ctx)
					defer cancel()
					seen, at, committed := 0, "", false
					p.before = func(op string) error {
						if committed {
							return nil // a look that fails right after the commit fails nothing
						}
						if committed = seen+1 < n && strings.HasPrefix(op, "commit "); committed {
							return nil
						}
						if seen++; seen < n || seen > n && !(c.keepsOnFailing && strings.HasPrefix(op, "delete ")) {
							return nil
						}
						if at == "" {
							at = op
						}
						if c.cancel {
							cancel()
							return nil
						}
						return errInjected
					}
					_, err = Compact(ctx, e, Options{Threads: 1})
					p.before = nil
					if more = at != ""; !more {
						require.NoError(t, err)
						return
					}
					calls++
					require.Error(t, err, at)
					if c.cancel {
						require.ErrorIs(t, err, context.Canceled, at)
					} else {
						require.ErrorIs(t, err, errInjected, at)
					}
					now, err2 := p.Engine.Load(context.Background(), 0)
					require.NoError(t, err2)
					require.Equal(t, was.Version, now.Version, at)
					require.Equal(t, before, rowsAt(t, p.Engine, 0), at)

					var named []string
					for _, o := range commit.Leftovers(err) {
						named = append(named, o.Path)
					}
					require.ElementsMatch(t, named, orphans(t, p.Engine), at)
				})
			}
			require.Greater(t, calls, 15)
		})
	}
}

// TestFailedDeletionIsNamed: clean-up fails for one object after the other.
func TestFailedDeletionIsNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := faultyTable(t)
		results := executed(t, p, Options{})
		require.Len(t, results, 2)
		_, err := Compact(ctx, p.Engine, Options{})
		require.NoError(t, err)
		path := results[0].Objects[0].Path
		p.before = func(op string) error {
			if op == "delete "+path {
				return errInjected
			}
			return nil
		}
		_, err = Publish(ctx, p, results, Options{})
		var left *commit.LeftoverError
		require.ErrorAs(t, err, &left)
		require.Equal(t, results[0].Objects, left.Objects)
		require.ErrorIs(t, err, table.ErrConflict)
		require.Equal(t, table.OutcomeRetryable, table.Classify(err), "what was left does not change what to do")
		require.Equal(t, []string{path}, orphans(t, p.Engine))
		p.before = nil
		require.NoError(t, Discard(ctx, p, results[0], Options{}))
		require.Empty(t, orphans(t, p.Engine))

		// A group is lost and the others are published: no error, but a report.
		p = faultyTable(t)
		results = executed(t, p, Options{})
		require.Len(t, results, 2)
		_, err = Compact(ctx, p.Engine, Options{ExcludeFragments: ids(t, "5-7")})
		require.NoError(t, err)
		path = results[0].Objects[0].Path
		p.before = func(op string) error {
			if op == "delete "+path {
				return errInjected
			}
			return nil
		}
		out, err := Publish(ctx, p, results, Options{})
		require.NoError(t, err)
		require.Len(t, out.Lost, 1)
		require.Equal(t, results[0].Objects, out.Leftover)
	})
}

func TestLeftoverErrorNamesAFewObjects(t *testing.T) {
	e := &commit.LeftoverError{By: "compaction", Err: errInjected}
	for i := range 5 {
		e.Objects = append(e.Objects, table.Object{Path: fmt.Sprint("p", i)})
	}
	require.EqualError(t, e, "compaction: 5 objects left behind: p0 p1 p2 ...: injected")
}

// TestFailedTaskDeletesWhatTheOthersWrote: of several tasks one fails.
func TestFailedTaskDeletesWhatTheOthersWrote(t *testing.T) {
	p := faultyTable(t)
	p.before = func(op string) error {
		if op == "read fragment 6" {
			return errInjected
		}
		return nil
	}
	_, err := Compact(ctx, p, Options{Threads: 4})
	require.ErrorIs(t, err, errInjected)
	require.ErrorContains(t, err, "rewrite of fragments 5-7")
	require.Empty(t, orphans(t, p.Engine))
}

// TestUnsupportedColumnIsRefusedBeforeAnythingIsWritten: all groups are asked for
// before the first is written.
func TestUnsupportedColumnIsRefusedBeforeAnythingIsWritten(t *testing.T) {
	p := faultyTable(t)
	r := newRewriter(p)
	r.rewriting.Unsupported = []string{"n"}
	var ops []string
	p.before = func(op string) error { ops = append(ops, op); return nil }
	_, err := Compact(ctx, r, Options{})
	require.ErrorIs(t, err, table.ErrUnsupported)
	require.ErrorContains(t, err, `column "n"`)
	require.NotContains(t, strings.Join(ops, "\n"), "\nrewrite fragments")
	require.Empty(t, orphans(t, p.Engine))
}

// badWriter writes something else than it was asked to.
type badWriter struct {
	*probe
	spoil func(w *table.Written)
}

func (b badWriter) CanRewrite(context.Context, *table.Snapshot, []table.FragmentID) error { return nil }

func (b badWriter) RewriteGroup(ctx context.Context, req table.RewriteRequest) (table.Written, error) {
	w, err := newRewriter(b.probe).RewriteGroup(ctx, req)
	b.spoil(&w)
	return w, err
}

func TestExecuteDistrustsTheEngine(t *testing.T) {
	for name, spoil := range map[string]func(w *table.Written){
		"1 rows were written, 20 were live": func(w *table.Written) { w.Fragments[0].PhysicalRows = 1 },
		"0 rows were written":               func(w *table.Written) { w.Fragments = nil },
		"has 20 rows in 0 files":            func(w *table.Written) { w.Fragments[0].Files = nil },
		"not among the objects written":     func(w *table.Written) { w.Fragments[0].Files[0].Path = "elsewhere" },
		"has 0 rows in 1 files":             func(w *table.Written) { w.Fragments[0].PhysicalRows = 0 },
	} {
		t.Run(name, func(t *testing.T) {
			e := newTable(t, 10, 10)
			_, err := Compact(ctx, badWriter{&probe{Engine: e}, spoil}, Options{})
			require.ErrorContains(t, err, name)
			require.Empty(t, orphans(t, e))
			require.Len(t, rowsAt(t, e, 0), 20)
		})
	}
}

func TestExecuteOfATaskThatDoesNotFit(t *testing.T) {
	e := newTable(t, 10, 10)
	plan, err := PlanLatest(ctx, e, Options{})
	require.NoError(t, err)
	task := plan.Tasks[0]

	gone := task
	gone.ReadVersion = 99
	_, err = Execute(ctx, e, gone, Options{})
	require.ErrorIs(t, err, table.ErrTerminal)
	require.ErrorIs(t, err, table.ErrNotFound)

	older := task
	older.ReadVersion = 2
	_, err = Execute(ctx, e, older, Options{})
	require.ErrorIs(t, err, table.ErrTerminal)
	require.ErrorContains(t, err, "fragment 1 is not as the task describes it")

	for name, spoil := range map[string]func(*Task){
		"no sources":      func(t *Task) { t.Sources, t.Rows = nil, 0 },
		"must ascend":     func(t *Task) { t.Sources = []table.Fragment{t.Sources[1], t.Sources[0]} },
		"in the task":     func(t *Task) { t.Rows++ },
		"no read version": func(t *Task) { t.ReadVersion = 0 },
		"no bound":        func(t *Task) { t.Writing.MaxRows = 0 },
		"is none of":      func(t *Task) { t.Writing.Mode = "fast" },
		"of them deleted": func(t *Task) { t.Sources[0].Deletion = &table.DeletionRef{Rows: 11} },
		"none of auto":    func(t *Task) { t.Publishing.FRI = "" },
	} {
		bad := task
		bad.Sources = append([]table.Fragment(nil), task.Sources...)
		spoil(&bad)
		_, err := Execute(ctx, e, bad, Options{})
		require.ErrorContains(t, err, name)
	}
	require.Empty(t, orphans(t, e))
}

// TestDamagedResult: what travelled as part of a result is checked.
func TestDamagedResult(t *testing.T) {
	for name, spoil := range map[string]func(r *Result){
		"0 deleted rows of fragment 0": func(r *Result) { r.Deleted = nil },
		"deleted rows of fragment 0":   func(r *Result) { r.Deleted[0] = r.Deleted[0][:5] },
		"1 deleted rows of fragment 1": func(r *Result) { r.Deleted[1] = r.Deleted[0] },
	} {
		t.Run(name, func(t *testing.T) {
			e := newTable(t, 10, 10)
			require.NoError(t, e.DeleteRows(ctx, table.NewRowAddr(0, 3)))
			before := rowsAt(t, e, 0)
			results := executed(t, e, Options{})
			spoil(&results[0])
			_, err := Publish(ctx, e, results, Options{})
			require.ErrorIs(t, err, table.ErrCorrupt)
			require.ErrorContains(t, err, name)
			require.Equal(t, before, rowsAt(t, e, 0))
			require.Empty(t, orphans(t, e))
			require.False(t, errors.Is(err, table.ErrConflict))
		})
	}
}
