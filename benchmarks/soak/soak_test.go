package main

import (
	"context"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/rehome-db/rehome/deletion"
	"github.com/rehome-db/rehome/dml"
	"github.com/rehome-db/rehome/table"
)

// short is a soak that tests have time for.
var short = options{
	duration: 1500 * time.Millisecond, commits: 1 << 40, seed: 7,
	writers: 2, compactors: 2, checkpoint: 300 * time.Millisecond, rows: 600, unique: true,
}

func TestSoak(t *testing.T) {
	for name, where := range map[string]placeOptions{
		"memory":           {engine: "memory"},
		"lance":            {engine: "lance", shared: "none"},
		"lance in session": {engine: "lance", shared: "one"},
		"stable row ids":   {engine: "lance", shared: "own", stable: true},
	} {
		t.Run(name, func(t *testing.T) {
			o := short
			where.path, where.unique = filepath.Join(t.TempDir(), "t.lance"), o.unique
			p, err := newPlace(t.Context(), where)
			require.NoError(t, err)
			defer func() { require.NoError(t, p.close()) }()
			st := newStats()
			require.NoError(t, run(t.Context(), p, o, st))
			t.Log("\n" + st.String())
			require.NotZero(t, st.compactions)
			require.NotEmpty(t, st.changes)
		})
	}
}

// faulty is a table in memory whose engine does something wrong.
type faulty struct {
	inMemory
	wrap func(table.Engine) table.Engine
}

func (f faulty) engine(ctx context.Context) (table.Engine, error) {
	e, err := f.inMemory.engine(ctx)
	return f.wrap(e), err
}

// resurrecting forgets, in compactions, the rows that were deleted meanwhile.
type resurrecting struct{ table.Engine }

func (r resurrecting) Commit(ctx context.Context, p table.Proposal) (*table.Snapshot, error) {
	if _, ok := p.Transaction.Operation.(table.Rewrite); ok {
		for i := range p.Change.Add {
			p.Change.Add[i].Deletion = nil
		}
	}
	return r.Engine.Commit(ctx, p)
}

// blind takes updates of others for deletes, which those of its own merge with.
type blind struct{ table.Engine }

func (b blind) TransactionsSince(ctx context.Context, after, upTo uint64) ([]table.Transaction, error) {
	txs, err := b.Engine.TransactionsSince(ctx, after, upTo)
	for i := range txs {
		if u, ok := txs[i].Operation.(table.Update); ok {
			txs[i].Operation = table.Delete{Updated: u.Updated, Removed: u.Removed}
		}
	}
	return txs, err
}

// losing stores one row less now and then.
type losing struct{ table.Engine }

func (l losing) WriteDeletions(ctx context.Context, id table.FragmentID, version uint64, deleted table.OffsetSet) (table.DeletionRef, error) {
	if version%5 == 0 && deleted.Cardinality() > 1 {
		offsets := slices.Collect(deleted.All())
		deleted = deletion.Of(offsets[1:]...)
	}
	return l.Engine.WriteDeletions(ctx, id, version, deleted)
}

// TestSoakFindsFaults: a soak that finds nothing is worth something only if there is
// something that it would find.
func TestSoakFindsFaults(t *testing.T) {
	for name, wrap := range map[string]func(table.Engine) table.Engine{
		"resurrected by compactions": func(e table.Engine) table.Engine { return resurrecting{e} },
		"overlooked updates":         func(e table.Engine) table.Engine { return blind{e} },
		"lost deletions":             func(e table.Engine) table.Engine { return losing{e} },
	} {
		t.Run(name, func(t *testing.T) {
			o := short
			o.duration = 10 * time.Second // it ends with the first fault
			err := run(t.Context(), faulty{newInMemory(true), wrap}, o, newStats())
			require.ErrorIs(t, err, errWrong)
			t.Log(err)
		})
	}
}

func TestHistory(t *testing.T) {
	start := func() *history {
		h := newHistory(1)
		require.NoError(t, h.replay(&change{kind: kindAppend, read: 1, version: 2, source: map[int64]int64{1: 10, 2: 20, 3: 30}, matched: dml.MatchedFail}))
		return h
	}
	key := func(k int64) func(int64, int64) bool { return func(key, _ int64) bool { return key == k } }
	add := func(_, value int64) int64 { return value + 1 }

	t.Run("changes are applied in the order of their versions", func(t *testing.T) {
		h := start()
		require.NoError(t, h.replay(&change{kind: kindUpdate, read: 2, version: 3, matches: key(1), set: add}))
		require.NoError(t, h.replay(&change{kind: kindDelete, read: 2, version: 5, matches: key(2)}))
		require.NoError(t, h.replay(&change{kind: kindUpsert, read: 5, version: 6, source: map[int64]int64{2: 21, 3: 31}, matched: dml.MatchedUpdate}))
		require.Equal(t, map[int64]int64{1: 11, 2: 20, 3: 30}, h.rows(4))
		require.Equal(t, map[int64]int64{1: 11, 3: 30}, h.rows(5))
		require.Equal(t, map[int64]int64{1: 11, 2: 21, 3: 31}, h.rows(6))
		h.forget(5)
		require.Equal(t, map[int64]int64{1: 11, 2: 21, 3: 31}, h.rows(6))
	})
	t.Run("deletions of the same row merge", func(t *testing.T) {
		h := start()
		require.NoError(t, h.replay(&change{kind: kindDelete, read: 2, version: 3, matches: key(1)}))
		require.NoError(t, h.replay(&change{kind: kindUpsert, read: 3, version: 4, source: map[int64]int64{1: 12}, matched: dml.MatchedUpdate}))
		require.NoError(t, h.replay(&change{kind: kindDelete, read: 2, version: 5, matches: key(1)}), "it is about the row before")
		require.Equal(t, map[int64]int64{1: 12, 2: 20, 3: 30}, h.rows(5))
	})
	for name, c := range map[string]*change{
		"an update":               {kind: kindUpdate, matches: key(1), set: add},
		"a delete":                {kind: kindDelete, matches: key(1)},
		"an upsert":               {kind: kindUpsert, source: map[int64]int64{1: 99}, matched: dml.MatchedUpdate},
		"an insert of a new key":  {kind: kindUpsert, source: map[int64]int64{9: 99}, matched: dml.MatchedKeep},
		"a deletion by the merge": {kind: kindUpsert, source: map[int64]int64{1: 99}, matched: dml.MatchedDelete},
	} {
		t.Run(name+" must not overlook others", func(t *testing.T) {
			h := start()
			require.NoError(t, h.replay(&change{kind: kindUpdate, read: 2, version: 3, matches: key(1), set: add}))
			require.NoError(t, h.replay(&change{kind: kindUpsert, read: 3, version: 4, source: map[int64]int64{9: 90}}))
			c.read, c.version = 2, 5
			require.Error(t, h.replay(c))
		})
	}
	t.Run("differences", func(t *testing.T) {
		h := start()
		require.Empty(t, h.differences(2, []row{{key: 1, value: 10, whole: true}, {key: 2, value: 20, whole: true}, {key: 3, value: 30, whole: true}}))
		require.Len(t, h.differences(2, []row{{key: 1, value: 10, whole: true}, {key: 1, value: 10, whole: true}, {key: 2, value: 21, whole: true}, {key: 3, value: 30, whole: false}, {key: 4, value: 0, whole: true}}), 4)
		require.Len(t, h.differences(2, nil), 3)
	})
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
