package interop_test

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/scalar"
	"github.com/stretchr/testify/require"

	"github.com/rehome-db/rehome/compaction"
	"github.com/rehome-db/rehome/dml"
	"github.com/rehome-db/rehome/interop"
	"github.com/rehome-db/rehome/lance"
	"github.com/rehome-db/rehome/rebase"
	"github.com/rehome-db/rehome/table"
)

// meeting is a table on which a change of rows and a compaction meet, and who does
// what.
type meeting struct {
	scenario
	// sessions says whether the two share what an engine remembers.
	sessions sessions
	// compactions run between the beginning of the change and its commit.
	compactions int
	// stockCompacts has the writer's engine do it, stockWrites has it make changes to
	// other rows, before and after.
	stockCompacts, stockWrites bool
}

// sessions is how the change and the compaction see the table.
type sessions int

const (
	oneSession  sessions = iota // two handles that share a session
	twoSessions                 // two handles, each with a session of its own
	noSession                   // handles that remember nothing, opened for each step
)

func (s sessions) String() string {
	return [...]string{"one session", "two sessions", "no session"}[s]
}

// handles returns what opens the table for a step. All is closed when the test ends.
func (s sessions) handles(ctx context.Context, t *testing.T, path string) (open func() *lance.Engine) {
	t.Helper()
	session := func() *lance.Session {
		made, err := lance.NewSession(lance.SessionOptions{})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, made.Close()) })
		return made
	}
	shared := session()
	return func() *lance.Engine {
		var o lance.Options
		switch s {
		case oneSession:
			o.Session = shared
		case twoSessions:
			o.Session = session()
		}
		e, err := lance.Open(ctx, path, o)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, e.Close()) })
		return e
	}
}

// meetings are the ways in which the scenarios below are gone through. Tables have
// eight fragments with earlier deletions, one that was deleted whole, and one that no
// index covers; see [scenario.build].
func meetings() map[string]meeting {
	plain := scenario{writer: lancedb39}
	out := map[string]meeting{}
	for _, s := range []sessions{oneSession, twoSessions, noSession} {
		out["plain, "+s.String()] = meeting{scenario: plain, sessions: s, compactions: 1}
		out["two compactions, "+s.String()] = meeting{scenario: plain, sessions: s, compactions: 2}
		out["stable row ids, "+s.String()] = meeting{scenario: scenario{writer: lancedb39, opts: interop.CreateOptions{StableRowIDs: true}}, sessions: s, compactions: 1}
	}
	for i, w := range engines {
		s := scenario{writer: w}
		out["stock compacts, "+w.Name] = meeting{scenario: s, sessions: sessions(i), compactions: 1, stockCompacts: true}
		out["stock writes, "+w.Name] = meeting{scenario: s, sessions: sessions(i), compactions: 1, stockWrites: true}
		out["stock does all else, "+w.Name] = meeting{scenario: s, sessions: sessions(i), compactions: 2, stockCompacts: true, stockWrites: true}
	}
	// One table has an index of each family.
	for i, list := range [][]interop.IndexKind{
		{interop.BTree, interop.Bitmap, interop.LabelList, interop.FTS, interop.IVFPQ},
		{interop.BTree, interop.Bitmap, interop.NGram, interop.IVFSQ},
		{interop.ZoneMap, interop.Bitmap, interop.FTS, interop.IVFFlat},
		{interop.BloomFilter, interop.LabelList, interop.IVFRQ},
		{interop.BTree, interop.HNSWPQ},
		{interop.FM, interop.HNSWSQ},
	} {
		w := pylance
		if slices.Contains(list, interop.FM) {
			w = lancedb39
		}
		out[fmt.Sprintf("indexes %v", list)] = meeting{scenario: scenario{writer: w, keyed: true, kinds: list}, sessions: sessions(i % 3), compactions: 1}
	}
	return out
}

func eachMeeting(t *testing.T, test func(ctx context.Context, t *testing.T, m meeting, path string, rows *model)) {
	ctx := needEngines(t)
	all := meetings()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := all[name]
			path, rows := m.template(ctx, t)
			defer forget(ctx, path)
			m.look(ctx, t, before, path, rows) // which warms their caches
			test(ctx, t, m, path, rows)
			m.settle(ctx, t, path, rows)
		})
	}
}

// settle checks the table in every engine, has the writer's engine maintain it, and
// checks it again.
func (m meeting) settle(ctx context.Context, t *testing.T, path string, rows *model) {
	t.Helper()
	require.NoError(t, rehomeVerify(ctx, path))
	require.NoError(t, rehomeScanEquals(ctx, path, rows))
	m.look(ctx, t, "committed", path, rows)
	_, err := m.writer.Optimize(ctx, path)
	require.NoError(t, err)
	m.look(ctx, t, "optimized", path, rows)
}

// look asks every engine everything about the table.
func (m meeting) look(ctx context.Context, t *testing.T, stage, path string, rows *model) {
	t.Helper()
	for _, e := range engines {
		found, _ := m.check(ctx, stage, e, path, rows)
		for _, f := range found {
			t.Errorf("%s", f)
		}
	}
}

// TestStartUpsertWithoutCommittingThenCompactThenCommitUpsert: an upsert is computed
// and written, the table is compacted, and the upsert is committed. It must land on
// the rows where they are now: the new values are there, the old ones are not, and no
// row came twice.
func TestStartUpsertWithoutCommittingThenCompactThenCommitUpsert(t *testing.T) {
	eachMeeting(t, func(ctx context.Context, t *testing.T, m meeting, path string, rows *model) {
		open := m.sessions.handles(ctx, t, path)

		// Start an upsert: seven rows that are there, two that are not.
		base, change, upserted := startUpsert(ctx, t, open(), rows)
		require.NoError(t, rehomeScanEquals(ctx, path, rows), "nothing is committed")

		// Run compactions.
		touched := func(r row) bool {
			return slices.ContainsFunc(upserted, func(u row) bool { return u.id == r.id })
		}
		for i := range m.compactions {
			m.others(ctx, t, path, rows, int64(i), touched)
			m.compact(ctx, t, open(), path)
		}
		m.others(ctx, t, path, rows, 7, touched)

		// Commit the upsert, passing along the affected rows.
		done, err := rebase.Commit(ctx, open(), change, rebase.Options{})
		require.NoError(t, err)
		rows.put(upserted...)
		require.EqualValues(t, 7, done.RowsDeleted)
		require.EqualValues(t, 7, done.RowsRelocated)
		require.Equal(t, base.Version, done.ReadVersion)
		require.GreaterOrEqual(t, len(done.RebasedOver), m.compactions)
	})
}

// startUpsert computes an upsert of seven rows that are there and two that are not,
// writes the new rows, and commits nothing.
func startUpsert(ctx context.Context, t *testing.T, e *lance.Engine, rows *model) (base *table.Snapshot, change rebase.Uncommitted, upserted []row) {
	t.Helper()
	for _, id := range append(sample(rows.ids(func(r row) bool { return r.id < 1700 }), 7), 8000, 8001) {
		r := newRow(id)
		r.txt, r.cat = fmt.Sprintf("upserted alpha w%d", id), ptr("upd")
		upserted = append(upserted, r)
	}
	source := record(rows.schema, upserted)
	defer source.Release()
	base, err := e.Load(ctx, 0)
	require.NoError(t, err)
	change, stats, err := dml.Compute(ctx, e, base, dml.MergeInsert{
		On: []string{"id"}, Source: dml.Records(source), WhenMatched: dml.MatchedUpdate,
	}, dml.Options{})
	require.NoError(t, err)
	require.EqualValues(t, 7, stats.Updated)
	require.EqualValues(t, 2, stats.Inserted)
	require.EqualValues(t, 7, change.Affected.Rows())
	return base, change, upserted
}

// compact compacts the table once, which must move rows.
func (m meeting) compact(ctx context.Context, t *testing.T, e *lance.Engine, path string) {
	t.Helper()
	if m.stockCompacts {
		done, err := m.writer.Optimize(ctx, path)
		require.NoError(t, err)
		require.NotZero(t, done.FragmentsRemoved)
		return
	}
	done, err := compaction.Compact(ctx, e, compaction.Options{AnyDeletion: true})
	require.NoError(t, err)
	require.True(t, done.Committed)
}

// others is what happens to rows that the change does not touch: something to compact
// always, and deletes and updates if the stock engine writes, too.
func (m meeting) others(ctx context.Context, t *testing.T, path string, rows *model, n int64, touched func(row) bool) {
	t.Helper()
	add := func(from, to int64) {
		batch := newRows(from, to)
		rec := record(rows.schema, batch)
		defer rec.Release()
		_, err := m.writer.Append(ctx, path, rec)
		require.NoError(t, err)
		rows.put(batch...)
	}
	add(3000+n*100, 3020+n*100)
	add(3050+n*100, 3070+n*100)
	if !m.stockWrites {
		return
	}
	r := raced{writer: m.writer, path: path, m: rows}
	ids := rows.ids(func(r row) bool { return r.id < 1700 && !touched(r) })
	for how := range int64(3) {
		r.change(ctx, t, ids[(n*97+how*211)%int64(len(ids))], how, fmt.Sprintf("written meanwhile %d", n))
	}
}

// TestPlanAndExecuteThenUpdateOneRowDeleteOneRowThenCommit: a compaction is planned
// and executed, one row is updated and one is deleted, and the compaction is
// committed. The row that was deleted is gone, and the one that was updated has its
// new value and not the old one.
func TestPlanAndExecuteThenUpdateOneRowDeleteOneRowThenCommit(t *testing.T) {
	eachMeeting(t, func(ctx context.Context, t *testing.T, m meeting, path string, rows *model) {
		open := m.sessions.handles(ctx, t, path)

		// Plan and execute, in as many groups as compactions are to be committed.
		e := open()
		base, err := e.Load(ctx, 0)
		require.NoError(t, err)
		opts := compaction.Options{AnyDeletion: true, MaxSourceFragments: 8 / m.compactions}
		var parts [][]compaction.Result
		for range m.compactions {
			plan, err := compaction.PlanSnapshot(ctx, e, base, opts)
			require.NoError(t, err)
			require.NotEmpty(t, plan.Tasks)
			var results []compaction.Result
			for _, task := range plan.Tasks {
				result, err := compaction.Execute(ctx, e, task, compaction.Options{})
				require.NoError(t, err)
				results = append(results, result)
				opts.ExcludeFragments = append(opts.ExcludeFragments, task.SourceIDs()...)
			}
			parts = append(parts, results)
		}
		publish := func(results []compaction.Result) (compaction.Publication, error) {
			return compaction.Publish(ctx, open(), results, opts)
		}
		for _, results := range parts[1:] {
			_, err := publish(results)
			require.NoError(t, err)
		}
		if m.stockCompacts {
			_, err := m.writer.Optimize(ctx, path)
			require.NoError(t, err)
		}

		// Update one row and delete one row, of those that the compaction moves.
		ids := rowsIn(ctx, t, e, base, parts[0][0].Task.SourceIDs())
		updated, deleted := ids[len(ids)/3], ids[len(ids)/2]
		const value = "updated meanwhile"
		if m.stockWrites {
			_, err = m.writer.Update(ctx, path, fmt.Sprintf("id = %d", updated), map[string]string{"txt": "'" + value + "'"})
			require.NoError(t, err)
			_, err = m.writer.Delete(ctx, path, fmt.Sprintf("id = %d", deleted))
			require.NoError(t, err)
		} else {
			_, err = dml.Execute(ctx, open(), dml.Update{Where: idIs(updated), Set: map[string]dml.Expr{"txt": dml.Constant(scalar.NewStringScalar(value))}}, dml.Options{})
			require.NoError(t, err)
			_, err = dml.Execute(ctx, open(), dml.Delete{Where: idIs(deleted)}, dml.Options{})
			require.NoError(t, err)
		}
		rows.update(func(r row) bool { return r.id == updated }, func(r *row) { r.txt = value })
		rows.delete(func(r row) bool { return r.id == deleted })

		// Commit the compaction.
		out, err := publish(parts[0])
		if m.stockCompacts {
			// The stock engine has compacted the same fragments: ours is too late, says
			// so, and leaves nothing behind.
			require.ErrorIs(t, err, table.ErrConflict)
			left, err := orphans(ctx, path)
			require.NoError(t, err)
			for _, o := range left {
				require.NotContains(t, written(parts[0]), o.path)
			}
			return
		}
		require.NoError(t, err)
		require.EqualValues(t, 2, out.RowsRelocated)
		require.Empty(t, out.Lost)
	})
}

// TestUpsertIsRefusedWhereARowOfItWasChangedBeforeOrAfterACompaction: to follow rows
// must not mean to overwrite what others did to them. The conflict names what was in
// the way, the table is as the others left it, and nothing of the upsert is left.
func TestUpsertIsRefusedWhereARowOfItWasChangedBeforeOrAfterACompaction(t *testing.T) {
	ctx := needEngines(t)
	for i, w := range engines {
		for how, name := range []string{"deleted", "updated", "upserted"} {
			for _, late := range []bool{false, true} {
				when := map[bool]string{false: "before", true: "after"}[late]
				t.Run(fmt.Sprintf("%s by %s %s the compaction", name, w.Name, when), func(t *testing.T) {
					t.Parallel()
					m := meeting{scenario: scenario{writer: w}, sessions: sessions(i), stockCompacts: how == 1}
					path, rows := m.template(ctx, t)
					defer forget(ctx, path)
					open := m.sessions.handles(ctx, t, path)
					_, change, upserted := startUpsert(ctx, t, open(), rows)
					r := raced{writer: w, path: path, m: rows}
					if !late {
						r.change(ctx, t, upserted[3].id, int64(how), "changed by somebody else")
					}
					m.compact(ctx, t, open(), path)
					if late {
						r.change(ctx, t, upserted[3].id, int64(how), "changed by somebody else")
					}
					_, err := rebase.Commit(ctx, open(), change, rebase.Options{})
					require.ErrorIs(t, err, table.ErrConflict)
					var conflict *rebase.ConflictError
					require.ErrorAs(t, err, &conflict)
					require.EqualValues(t, 1, conflict.Rows.Rows())
					require.True(t, conflict.Retryable())
					require.NotEmpty(t, change.Objects)
					for _, o := range change.Objects {
						require.NoFileExists(t, filepath.Join(path, o.Path))
					}
					m.settle(ctx, t, path, rows)
				})
			}
		}
	}
}

func written(results []compaction.Result) (paths []string) {
	for _, r := range results {
		for _, o := range r.Objects {
			paths = append(paths, o.Path)
		}
	}
	return paths
}

// rowsIn are the ids of the live rows of some fragments.
func rowsIn(ctx context.Context, t *testing.T, e *lance.Engine, s *table.Snapshot, fragments []table.FragmentID) (ids []int64) {
	t.Helper()
	for b, err := range e.Rows(ctx, s, fragments, table.ReadOptions{Columns: []string{"id"}}) {
		require.NoError(t, err)
		ids = append(ids, b.Record.Column(0).(*array.Int64).Int64Values()...)
	}
	return ids
}

func idIs(id int64) dml.Predicate {
	return dml.RowFunc([]string{"id"}, func(rec arrow.RecordBatch, i int) bool {
		return rec.Column(rec.Schema().FieldIndices("id")[0]).(*array.Int64).Value(i) == id
	})
}
