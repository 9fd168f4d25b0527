package dml_test

import (
	"sync"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/scalar"
	"github.com/stretchr/testify/require"

	"github.com/rehome-db/rehome/dml"
	"github.com/rehome-db/rehome/lance"
	"github.com/rehome-db/rehome/lance/store"
	"github.com/rehome-db/rehome/lance/store/fault"
	"github.com/rehome-db/rehome/table"
)

// changeOfRows is what the changes have in common.
// someChanges are one of each kind, of a table of numbered(n) rows.
func someChanges() map[string]dml.Change {
	even := where([]string{"n"}, func(r row) bool { return r.N%2 == 0 })
	merge := dml.MergeInsert{
		On: []string{"k"}, WhenMatched: dml.MatchedUpdate, WhenNotMatchedBySource: dml.BySourceDelete, DeleteIf: even,
		Source: in(3, []row{{K: ptr(int64(1)), N: 100}, {K: ptr(int64(3)), N: 300}, {K: ptr(int64(-1)), N: 1}}, "k", "n"),
	}
	find := merge
	find.WhenMatched, find.WhenNotMatchedBySource, find.DeleteIf = dml.MatchedKeep, dml.BySourceKeep, nil
	return map[string]dml.Change{
		"append":         dml.Append{Rows: in(2, numbered(5))},
		"delete":         dml.Delete{Where: even},
		"delete all":     dml.Delete{Where: dml.All()},
		"update":         dml.Update{Where: even, Set: map[string]dml.Expr{"n": dml.Constant(scalar.MakeScalar(int64(7)))}},
		"merge":          merge,
		"find or create": find,
	}
}

// TestReport13DryRunsWriteNothing: on a store that refuses every write, each change
// says what it would do, which is what it then does where it may write.
func TestReport13DryRunsWriteNothing(t *testing.T) {
	m := store.NewMem()

	e, err := lance.CreateStore(t.Context(), m, columns().Arrow(), lance.CreateOptions{}, lance.Options{})
	require.NoError(t, err)
	defer e.Close()
	_, err = dml.Execute(t.Context(), e, dml.Append{Rows: dml.Records(batch(numbered(20))), Write: table.WriteOptions{MaxRows: 7}}, dml.Options{})
	require.NoError(t, err)

	refused := 0
	dry, err := lance.OpenStore(t.Context(), fault.New(m, func(op fault.Op) fault.Action {
		if !fault.Writes(op) {
			return fault.Pass
		}
		refused++
		return fault.Before
	}), lance.Options{})
	require.NoError(t, err)
	defer dry.Close()
	for name, change := range someChanges() {
		t.Run(name, func(t *testing.T) {
			would, err := dml.DryRun(t.Context(), dry, snapshot(t, dry, 2), change, dml.Options{})
			require.NoError(t, err)
			require.Zero(t, refused)
			_, err = dml.Execute(t.Context(), dry, change, dml.Options{})
			require.Error(t, err)
			require.Positive(t, refused)
			refused = 0

			mem := newTable(t, 7, numbered(20)...)
			did, err := dml.Execute(t.Context(), mem, change, dml.Options{})
			require.NoError(t, err)
			require.Equal(t, did.Stats, would)
			require.Positive(t, would.Updated+would.Inserted+would.Deleted)
		})
	}
	// What cannot be stored is found without storing it.
	_, err = dml.DryRun(t.Context(), dry, snapshot(t, dry, 2), dml.Update{Set: map[string]dml.Expr{"n": dml.Constant(scalar.MakeNullScalar(arrow.Null))}}, dml.Options{})
	require.ErrorContains(t, err, "must not be null")
	require.Zero(t, refused)
}

// TestReport24ProgressOfRowChanges: every change tells how far it is, up to all of the
// rows, and of its attempts.
func TestReport24ProgressOfRowChanges(t *testing.T) {
	var mu sync.Mutex
	var last map[dml.Step]dml.ProgressInfo
	var begun, ended, commits int
	ev := dml.TeeEvents(dml.Events{
		ComputeBegin: func(i dml.ComputeInfo) {
			require.EqualValues(t, 20, i.Rows)
			require.EqualValues(t, 3, i.Fragments)
			begun++
		},
		ComputeEnd: func(i dml.ComputeInfo) { require.NoError(t, i.Err); ended++ },
		Progress: func(i dml.ProgressInfo) {
			mu.Lock()
			defer mu.Unlock()
			if i.Rows >= last[i.Step].Rows {
				last[i.Step] = i
			}
		},
		CommitEnd: func(i dml.CommitInfo) { require.NoError(t, i.Err); commits++ },
	}, dml.Events{})
	for name, change := range someChanges() {
		for _, dry := range []bool{true, false} {
			last, begun, ended, commits = map[dml.Step]dml.ProgressInfo{}, 0, 0, 0
			e := newTable(t, 7, numbered(20)...)
			var stats dml.Stats
			var err error
			if dry {
				stats, err = dml.DryRun(t.Context(), e, snapshot(t, e, 0), change, dml.Options{Events: ev})
			} else {
				var r dml.Result
				r, err = dml.Execute(t.Context(), e, change, dml.Options{Events: ev})
				stats = r.Stats
				require.Equal(t, 1, commits, name)
			}
			require.NoError(t, err, name)
			require.Equal(t, 1, begun, name)
			require.Equal(t, 1, ended, name)
			if name != "append" {
				require.Equal(t, dml.ProgressInfo{Step: dml.Matching, Rows: 20, Total: 20}, last[dml.Matching], name)
			}
			if written := stats.Updated + stats.Inserted; written > 0 {
				want := dml.ProgressInfo{Step: dml.Writing, Rows: written, Total: written}
				if name == "append" {
					want.Total = 0 // nobody knows before the end
				}
				require.Equal(t, want, last[dml.Writing], name)
			}
		}
	}
}

// TestReport24ProgressOfAnotherAttempt: a change that others make necessary to compute
// again says so and begins again.
func TestReport24ProgressOfAnotherAttempt(t *testing.T) {
	e := newTable(t, 7, numbered(20)...)
	var begun []uint64
	var again error
	update := dml.Update{
		Where: where([]string{"n"}, func(r row) bool { return r.N < 2 }),
		Set:   map[string]dml.Expr{"n": dml.Constant(scalar.MakeScalar(int64(7)))},
	}
	opts := dml.Options{
		Events: dml.Events{
			ComputeBegin: func(i dml.ComputeInfo) { begun = append(begun, i.ReadVersion) },
			ComputeEnd: func(dml.ComputeInfo) {
				if len(begun) == 1 { // somebody deletes one of the rows
					_, err := dml.Execute(t.Context(), e, dml.Delete{Where: where([]string{"n"}, func(r row) bool { return r.N == 1 })}, dml.Options{})
					require.NoError(t, err)
				}
			},
			Backoff: func(i dml.BackoffInfo) { again = i.Err },
		},
	}
	r, err := dml.Execute(t.Context(), e, update, opts)
	require.NoError(t, err)
	require.EqualValues(t, 1, r.Updated)
	require.Equal(t, []uint64{2, 3}, begun)
	require.ErrorIs(t, again, table.ErrConflict)
}
