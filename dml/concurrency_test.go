package dml_test

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rehome-db/rehome/compaction"
	"github.com/rehome-db/rehome/dml"
	"github.com/rehome-db/rehome/rebase"
	"github.com/rehome-db/rehome/table"
	"github.com/rehome-db/rehome/table/memengine"
)

// racing is an engine on which somebody else commits before the n-th change does.
type racing struct {
	*memengine.Engine
	others func(n int)
	n      int
}

func (r *racing) Commit(ctx context.Context, p table.Proposal) (*table.Snapshot, error) {
	// Only a change that is computed anew has another transaction.
	r.n++
	r.others(r.n)
	return r.Engine.Commit(ctx, p)
}

// keyIs matches the rows with one of the keys.
func keyIs(keys ...int64) dml.Predicate {
	return where([]string{"k"}, func(r row) bool {
		for _, k := range keys {
			if r.K != nil && *r.K == k {
				return true
			}
		}
		return false
	})
}

func increment(keys ...int64) dml.Update {
	return dml.Update{Where: keyIs(keys...), Set: map[string]dml.Expr{"n": plusOne()}}
}

// upsert is of rows whose s and n say who made them.
func upsert(by string, n int64, keys ...int64) dml.MergeInsert {
	var rows []row
	for _, k := range keys {
		rows = append(rows, row{K: ptr(k), S: ptr(by), N: n})
	}
	return dml.MergeInsert{On: []string{"k"}, Source: in(10, rows), WhenMatched: dml.MatchedUpdate}
}

// mustDo makes a change on an engine, with nobody in the way.
func mustDo(t *testing.T, e table.Engine, c change) dml.Result {
	t.Helper()
	out, err := dml.Execute(t.Context(), e, c, dml.Options{})
	require.NoError(t, err)
	return out
}

func mustCompact(t *testing.T, e table.Engine) {
	t.Helper()
	_, err := compaction.Compact(t.Context(), e, compaction.Options{})
	require.NoError(t, err)
}

// TestTwoWriters lists what becomes of a change when somebody else commits between
// its computation and its commit.
func TestTwoWriters(t *testing.T) {
	// Every case begins with the rows 0 to 9, n = k, in fragments of 4.
	for _, c := range []struct {
		name     string
		mine     change
		theirs   func(t *testing.T, e table.Engine)
		attempts int    // of Execute
		conflict string // of the two-step form; empty if it commits
		want     map[int64][]int64
	}{
		{
			"updates of different rows", increment(1),
			func(t *testing.T, e table.Engine) { mustDo(t, e, increment(2)) },
			1, "", map[int64][]int64{1: {2}, 2: {3}},
		}, {
			"updates of the same row", increment(1),
			func(t *testing.T, e table.Engine) { mustDo(t, e, increment(1, 2)) },
			2, "0:1", map[int64][]int64{1: {3}, 2: {3}},
		}, {
			"deletes of the same row", dml.Delete{Where: keyIs(1, 5)},
			func(t *testing.T, e table.Engine) { mustDo(t, e, dml.Delete{Where: keyIs(1, 2)}) },
			1, "", map[int64][]int64{1: nil, 2: nil, 5: nil},
		}, {
			"the same delete", dml.Delete{Where: keyIs(1)},
			func(t *testing.T, e table.Engine) { mustDo(t, e, dml.Delete{Where: keyIs(1)}) },
			1, "", map[int64][]int64{1: nil},
		}, {
			"a delete of a row that was updated", dml.Delete{Where: keyIs(1)},
			func(t *testing.T, e table.Engine) { mustDo(t, e, increment(1)) },
			2, "0:1", map[int64][]int64{1: nil},
		}, {
			"an update of a row that was deleted", increment(1),
			func(t *testing.T, e table.Engine) { mustDo(t, e, dml.Delete{Where: keyIs(1)}) },
			2, "0:1", map[int64][]int64{1: nil},
		}, {
			"an update of rows that were compacted", increment(1, 5),
			func(t *testing.T, e table.Engine) { mustCompact(t, e) },
			1, "", map[int64][]int64{1: {2}, 5: {6}, 6: {6}},
		}, {
			"an upsert of rows that were compacted, twice, with a delete between", upsert("me", 50, 1, 5, 77),
			func(t *testing.T, e table.Engine) {
				mustCompact(t, e)
				mustDo(t, e, dml.Delete{Where: keyIs(0)})
				mustDo(t, e, dml.Append{Rows: in(10, []row{{K: ptr(int64(80)), N: 80}})})
				mustCompact(t, e)
			},
			1, "", map[int64][]int64{0: nil, 1: {50}, 5: {50}, 77: {50}, 80: {80}, 6: {6}},
		}, {
			"a delete of everything beside an append", dml.Delete{Where: dml.All()},
			func(t *testing.T, e table.Engine) {
				mustDo(t, e, dml.Append{Rows: in(10, []row{{K: ptr(int64(80)), N: 80}})})
			},
			1, "", map[int64][]int64{0: nil, 9: nil, 80: {80}},
		}, {
			"upserts of the same new key, without a declared primary key", upsert("me", 50, 77),
			func(t *testing.T, e table.Engine) { mustDo(t, e, upsert("they", 60, 77)) },
			1, "", map[int64][]int64{77: {50, 60}},
		}, {
			"an append beside everything", dml.Append{Rows: in(10, []row{{K: ptr(int64(80)), N: 80}})},
			func(t *testing.T, e table.Engine) {
				mustDo(t, e, increment(1))
				mustCompact(t, e)
				mustDo(t, e, dml.Delete{Where: dml.All()})
			},
			1, "", map[int64][]int64{1: nil, 80: {80}},
		},
	} {
		t.Run(c.name, func(t *testing.T) { twoWriters(t, columns(), c.mine, c.theirs, c.attempts, c.conflict, c.want) })
	}
}

// TestTwoWritersOfOneKey: where a primary key is declared, of two who insert the same
// key the later one looks again, and updates it.
func TestTwoWritersOfOneKey(t *testing.T) {
	keyed := columns()
	keyed.Fields[0].Metadata = map[string]string{"lance-schema:unenforced-primary-key": "true"}
	for _, c := range []struct {
		name     string
		mine     change
		theirs   func(t *testing.T, e table.Engine)
		attempts int
		conflict string
		want     map[int64][]int64
	}{
		{
			"the same new key", upsert("me", 50, 77),
			func(t *testing.T, e table.Engine) { mustDo(t, e, upsert("they", 60, 77)) },
			2, "insert", map[int64][]int64{77: {50}},
		}, {
			"the same new key, appended", upsert("me", 50, 77),
			func(t *testing.T, e table.Engine) {
				mustDo(t, e, dml.Append{Rows: in(10, []row{{K: ptr(int64(77)), N: 60}})})
			},
			2, "insert", map[int64][]int64{77: {50}},
		}, {
			// In two steps the keys are not at hand any more, so that is a conflict.
			"different new keys", upsert("me", 50, 77, 1),
			func(t *testing.T, e table.Engine) { mustDo(t, e, upsert("they", 60, 78)) },
			1, "insert", map[int64][]int64{77: {50}, 78: {60}, 1: {50}},
		}, {
			"the same key, which is not new", upsert("me", 50, 1),
			func(t *testing.T, e table.Engine) { mustDo(t, e, upsert("they", 60, 2)) },
			1, "", map[int64][]int64{1: {50}, 2: {60}},
		}, {
			"a new key beside a compaction and a delete", upsert("me", 50, 77, 1),
			func(t *testing.T, e table.Engine) {
				mustCompact(t, e)
				mustDo(t, e, dml.Delete{Where: keyIs(2)})
			},
			1, "", map[int64][]int64{77: {50}, 1: {50}, 2: nil},
		},
	} {
		t.Run(c.name, func(t *testing.T) { twoWriters(t, keyed, c.mine, c.theirs, c.attempts, c.conflict, c.want) })
	}
}

func twoWriters(t *testing.T, schema table.Schema, mine change, theirs func(*testing.T, table.Engine), attempts int, conflict string, want map[int64][]int64) {
	begin := func() *memengine.Engine {
		e := memengine.New("t", schema)
		mustDo(t, e, dml.Append{Rows: in(100, numbered(10)), Write: table.WriteOptions{MaxRows: 4}})
		return e
	}
	check := func(e *memengine.Engine) {
		found := map[int64][]int64{}
		for _, r := range contents(t, e, 0) {
			if _, ok := want[*r.K]; ok {
				found[*r.K] = append(found[*r.K], r.N)
			}
		}
		for k, n := range want {
			require.ElementsMatch(t, n, found[k], "row %d", k)
		}
		noOrphans(t, e)
	}
	t.Run("in one step", func(t *testing.T) {
		e := begin()
		read := snapshot(t, e, 0).Version
		r := &racing{Engine: e, others: func(n int) {
			if n == 1 {
				theirs(t, e)
			}
		}}
		out, err := dml.Execute(t.Context(), r, mine, dml.Options{})
		require.NoError(t, err)
		require.Equal(t, attempts, out.Attempts)
		if attempts == 1 {
			require.Equal(t, read, out.ReadVersion)
			require.Equal(t, read+1, out.RebasedOver[0])
		}
		check(e)
	})
	t.Run("in two steps", func(t *testing.T) {
		e := begin()
		u, _, err := dml.Compute(t.Context(), e, snapshot(t, e, 0), mine, dml.Options{})
		require.NoError(t, err)
		// The change is data, and can be committed elsewhere.
		data, err := json.Marshal(u)
		require.NoError(t, err)
		theirs(t, e)
		before := values(contents(t, e, 0))
		var there rebase.Uncommitted
		require.NoError(t, json.Unmarshal(data, &there))
		_, err = rebase.Commit(t.Context(), e, there, rebase.Options{})
		if conflict == "" {
			require.NoError(t, err)
			check(e)
			return
		}
		var conflicted *rebase.ConflictError
		require.ErrorAs(t, err, &conflicted)
		require.ErrorIs(t, err, table.ErrConflict)
		require.ErrorContains(t, err, conflict)
		require.Equal(t, before, values(contents(t, e, 0)))
		noOrphans(t, e)
	})
}

// noOrphans: every object is referred to by some version.
func noOrphans(t *testing.T, e *memengine.Engine) {
	t.Helper()
	referred := map[string]bool{}
	for v := snapshot(t, e, 0).Version; v > 0; v-- {
		for _, f := range snapshot(t, e, v).Fragments {
			referred[f.Files[0].Path] = true
			if f.Deletion != nil {
				referred[f.Deletion.Path] = true
			}
		}
	}
	for _, o := range mustObjects(t, e) {
		require.True(t, referred[o.Path], "%s is an orphan", o.Path)
	}
}

// TestAttemptsEnd: against a writer who always changes the same row first, a change
// gives up after as many attempts as it may make, and leaves nothing.
func TestAttemptsEnd(t *testing.T) {
	e := newTable(t, 4, numbered(10)...)
	r := &racing{Engine: e, others: func(int) { mustDo(t, e, increment(1)) }}
	_, err := dml.Execute(t.Context(), r, increment(1, 3), dml.Options{MaxAttempts: 3})
	require.ErrorIs(t, err, table.ErrConflict)
	require.Equal(t, 3, r.n)
	for _, row := range contents(t, e, 0) {
		switch *row.K {
		case 1:
			require.EqualValues(t, 4, row.N)
		case 3:
			require.EqualValues(t, 3, row.N)
		}
	}
	noOrphans(t, e)
}

// TestOptionsAreChecked, and properties reach the transaction.
func TestOptionsAreChecked(t *testing.T) {
	e := newTable(t, 4, numbered(10)...)
	_, err := dml.Execute(t.Context(), e, increment(1), dml.Options{MaxAttempts: -1})
	require.ErrorContains(t, err, "MaxAttempts")
	out, err := dml.Execute(t.Context(), e, increment(1), dml.Options{Properties: map[string]string{"by": "me"}})
	require.NoError(t, err)
	txs, err := e.TransactionsSince(t.Context(), out.Version-1, out.Version)
	require.NoError(t, err)
	require.Equal(t, map[string]string{"by": "me"}, txs[0].Properties)
}

// TestWritersAtTheSameTime: increments of the same few rows by several writers, and
// compactions beside them: none is lost.
func TestWritersAtTheSameTime(t *testing.T) {
	const writers, rounds, rows = 4, 12, 3
	e := newTable(t, 2, numbered(rows)...)
	var wg sync.WaitGroup
	errs := make(chan error, writers+1)
	for w := range writers {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for i := range rounds {
				if _, err := dml.Execute(t.Context(), e, increment(int64((w+i)%rows)), dml.Options{MaxAttempts: 1000}); err != nil {
					errs <- fmt.Errorf("writer %d: %w", w, err)
					return
				}
			}
		}()
	}
	done := make(chan struct{})
	compacted := make(chan struct{})
	go func() {
		defer close(compacted)
		for {
			select {
			case <-done:
				return
			default:
			}
			if _, err := compaction.Compact(t.Context(), e, compaction.Options{}); err != nil && table.Classify(err) != table.OutcomeRetryable {
				errs <- err
				return
			}
		}
	}()
	wg.Wait()
	close(done)
	<-compacted
	close(errs)
	for err := range errs {
		require.NoError(t, err)
	}
	var sum int64
	got := contents(t, e, 0)
	require.Len(t, got, rows)
	for _, r := range got {
		sum += r.N - *r.K
	}
	require.EqualValues(t, writers*rounds, sum)
}
