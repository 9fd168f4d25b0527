package lance_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/rehome-db/rehome/compaction"
	"github.com/rehome-db/rehome/deletion"
	"github.com/rehome-db/rehome/lance"
	"github.com/rehome-db/rehome/lance/store"
	"github.com/rehome-db/rehome/lance/store/fault"
	"github.com/rehome-db/rehome/table"
)

// execute plans a compaction and executes it, and commits nothing.
func execute(t testing.TB, e *lance.Engine, opts compaction.Options) []compaction.Result {
	t.Helper()
	plan, err := compaction.PlanLatest(context.Background(), e, opts)
	require.NoError(t, err)
	var out []compaction.Result
	for _, task := range plan.Tasks {
		r, err := compaction.Execute(context.Background(), e, task, compaction.Options{})
		require.NoError(t, err)
		out = append(out, r)
	}
	return out
}

// updateRow commits an update of one row, to the row that rows(id, 1) makes.
func updateRow(t testing.TB, e *lance.Engine, at table.RowAddr, id int64) {
	t.Helper()
	ctx := context.Background()
	base := load(t, e, 0)
	w, err := e.WriteFragments(ctx, base.Schema, rows(id, 1), table.WriteOptions{})
	require.NoError(t, err)
	f, ok := base.Fragment(at.Fragment())
	require.True(t, ok)
	was, err := e.ReadDeletions(ctx, base, f)
	require.NoError(t, err)
	ref, err := e.WriteDeletions(ctx, f.ID, base.Version, was.(*deletion.Vector).Union(deletion.Of(at.Offset())))
	require.NoError(t, err)
	f.Deletion = &ref
	added := table.Fragment{ID: base.NextFragmentID, PhysicalRows: 1, Files: w.Fragments[0].Files}
	_, err = e.Commit(ctx, table.Proposal{
		Base: base,
		Transaction: table.Transaction{ID: fmt.Sprintf("update-%d", id), ReadVersion: base.Version, Operation: table.Update{
			Updated: []table.Fragment{f}, New: []table.Fragment{added},
		}},
		Change: table.Change{SetDeletion: map[table.FragmentID]*table.DeletionRef{f.ID: &ref}, Add: []table.Fragment{added}},
	})
	require.NoError(t, err)
}

// raced is a table whose compaction was planned and executed, and of which a row
// was updated and one deleted since.
func raced(t testing.TB, s store.Store) (results []compaction.Result, want []string) {
	t.Helper()
	e := newTable(t, s, 20, 20, 20)
	_, err := e.DeleteRows(context.Background(), table.NewRowAddr(0, 3), table.NewRowAddr(1, 4))
	require.NoError(t, err)
	results = execute(t, e, compaction.Options{})
	require.Len(t, results, 1)
	updateRow(t, e, table.NewRowAddr(0, 7), 1000) // the row with id 7
	_, err = e.DeleteRows(context.Background(), table.NewRowAddr(2, 10))
	require.NoError(t, err)
	return results, sorted(t, e)
}

// sorted are the rows of the newest version, in the order of their text.
func sorted(t testing.TB, e *lance.Engine) []string {
	t.Helper()
	list, err := scan(t, e, load(t, e, 0))
	require.NoError(t, err)
	var out []string
	for _, row := range list {
		out = append(out, string(row))
	}
	slices.Sort(out)
	return out
}

// TestPlanAndExecuteThenUpdateOneRowDeleteOneRowThenCommit is the scenario by which
// a compaction over row changes is judged, on a stored table.
func TestPlanAndExecuteThenUpdateOneRowDeleteOneRowThenCommit(t *testing.T) {
	for name, other := range map[string]bool{"the same engine": false, "another engine": true} {
		t.Run(name, func(t *testing.T) {
			ctx := context.Background()
			m := store.NewMem()
			results, want := raced(t, m)
			e := openStore(t, m)
			if !other {
				sorted(t, e) // with its caches warm
			}
			out, err := compaction.Publish(ctx, e, results, compaction.Options{})
			require.NoError(t, err)
			require.EqualValues(t, 2, out.RowsRelocated)
			require.Equal(t, []uint64{6, 7}, out.RebasedOver)

			fresh := openStore(t, m)
			require.Equal(t, want, sorted(t, e))
			require.Equal(t, want, sorted(t, fresh))
			list := text(t, fresh, load(t, fresh, 0))
			require.NotContains(t, list, `{"id":"7",`, "the old value of the row that was updated")
			require.Contains(t, list, `{"id":"1000",`, "its new value")
			require.NotContains(t, list, `{"id":"50",`, "the row that was deleted")

			// What stock engines rely on.
			s := load(t, fresh, 0)
			require.Len(t, s.Fragments, 2)
			f := s.Fragments[1]
			require.Equal(t, out.Published[0].Destinations, []table.FragmentID{f.ID})
			require.EqualValues(t, 58, f.PhysicalRows)
			require.EqualValues(t, 2, f.Deletion.Rows)
			require.Regexp(t, fmt.Sprintf(`^_deletions/%d-7-\d+\.(arrow|bin)$`, f.ID), f.Deletion.Path)
			txs, err := fresh.TransactionsSince(ctx, 7, 0)
			require.NoError(t, err)
			require.EqualValues(t, 5, txs[0].ReadVersion)
			g := txs[0].Operation.(table.Rewrite).Groups[0]
			require.True(t, slices.EqualFunc(results[0].Task.Sources, g.Old, table.Fragment.Same), "as they were read")
			require.True(t, slices.EqualFunc([]table.Fragment{f}, g.New, table.Fragment.Same), "as published")
			_, err = fresh.Check(ctx, s, func(f table.Finding) { t.Errorf("%+v", f) })
			require.NoError(t, err)
		})
	}
}

// TestCrashAtEveryStepOfACarriedCompaction: whatever operation of publishing fails
// or is the last one, the table is as before or as after; and if the publisher
// lives, it leaves no file behind that nothing refers to.
func TestCrashAtEveryStepOfACarriedCompaction(t *testing.T) {
	ctx := context.Background()
	prepared := store.NewMem()
	results, want := raced(t, prepared)
	base := load(t, openStore(t, prepared), 0)
	withoutResults := slices.DeleteFunc(prepared.Names(), func(name string) bool {
		return slices.ContainsFunc(results[0].Objects, func(o table.Object) bool { return o.Path == name })
	})
	publish := func(t *testing.T, s store.Store, armed *bool) error {
		e := openStore(t, s)
		*armed = true
		_, err := compaction.Publish(ctx, e, results, compaction.Options{Threads: 1})
		return err
	}
	recorder := fault.New(prepared.Clone(), nil)
	var armed bool
	require.NoError(t, publish(t, recorder, &armed))
	log := recorder.Log()
	failed := 0
	for step := 1; step <= len(log); step++ {
		for _, action := range []fault.Action{fault.Before, fault.After} {
			for _, dies := range []bool{true, false} {
				// In a bubble, so that waiting for an answer takes no time.
				synctest.Test(t, func(t *testing.T) {
					m, armed := prepared.Clone(), false
					which := func(fault.Op) bool { return armed }
					policy := fault.Once(step, action, which)
					if dies {
						policy = fault.Die(step, action, which)
					}
					s := fault.New(m, policy)
					err := publish(t, s, &armed)
					what := fmt.Sprintf("step %d, action %d, dies %v: %v", step, action, dies, err)
					e := openStore(t, m)
					version := load(t, e, 0).Version
					require.Equal(t, want, sorted(t, e), what)
					if err == nil {
						require.Equal(t, base.Version+1, version, what)
						return
					}
					failed++
					if !dies && !errors.Is(err, table.ErrAmbiguousCommit) {
						require.Equal(t, base.Version, version, what)
						require.Subset(t, withoutResults, m.Names(), what)
					}
				})
			}
		}
	}
	require.Greater(t, failed, 20)
}
