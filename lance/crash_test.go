package lance_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rehome-db/rehome/deletion"
	"github.com/rehome-db/rehome/lance"
	"github.com/rehome-db/rehome/lance/store"
	"github.com/rehome-db/rehome/lance/store/fault"
	"github.com/rehome-db/rehome/table"
)

// heavy makes a table and a commit on it that writes one of everything: new
// fragments, a deletion vector, a reuse index too large for the manifest.
func heavy(t *testing.T, s store.Store) table.Proposal {
	ctx := context.Background()
	e := newTable(t, s, 20, 20, 20)
	_, err := e.DeleteRows(ctx, table.NewRowAddr(0, 3), table.NewRowAddr(1, 4))
	require.NoError(t, err)
	base := load(t, e, 0)
	p := rewrite(t, e, base, 0, 1)
	ref, err := e.WriteDeletions(ctx, 2, base.Version, deletion.Of(7))
	require.NoError(t, err)
	p.Change.SetDeletion = map[table.FragmentID]*table.DeletionRef{2: &ref}
	p.Change.Reuse = &table.ReuseIndexUpdate{Content: make([]byte, 300<<10)}
	return p
}

// reload loads the proposal's base through another engine.
func reload(t *testing.T, e *lance.Engine, p table.Proposal) table.Proposal {
	p.Base = load(t, e, p.Base.Version)
	return p
}

// outcome checks that the table is as it was before the commit or as after it, and
// readable, and says which.
func outcome(t *testing.T, m *store.Mem, base uint64, before, after string) (committed bool) {
	e := openStore(t, m)
	s := load(t, e, 0)
	switch s.Version {
	case base:
		require.Equal(t, before, text(t, e, s))
		return false
	case base + 1:
		require.Equal(t, after, text(t, e, s))
		content, err := e.ReuseIndex(context.Background(), s)
		require.NoError(t, err)
		require.Len(t, content, 300<<10)
		since, err := e.TransactionsSince(context.Background(), base, 0)
		require.NoError(t, err)
		require.Equal(t, "rewrite-1", since[0].ID)
		return true
	}
	t.Fatalf("version %d", s.Version)
	return false
}

// The process may die at any operation of a commit, before it or after it took
// effect. The table must then be the old version or the new one, and whoever got
// an answer must have got the truth.
func TestCrashAtEveryStepOfACommit(t *testing.T) {
	ctx := context.Background()
	prepared := store.NewMem()
	p := heavy(t, prepared)
	e := openStore(t, prepared)
	before := text(t, e, load(t, e, 0))

	whole := prepared.Clone()
	recorder := fault.New(whole, nil)
	e = openStore(t, recorder)
	mine := reload(t, e, p)
	start := len(recorder.Log())
	s, err := e.Commit(ctx, mine)
	require.NoError(t, err)
	after := text(t, e, s)
	steps := len(recorder.Log()) - start
	require.Greater(t, steps, 6, "%v", recorder.Log()[start:])

	for step := 1; step <= steps; step++ {
		for _, action := range []fault.Action{fault.Before, fault.After, fault.Lost} {
			for _, mode := range []string{"the process dies", "one operation fails"} {
				t.Run(fmt.Sprintf("%v %s (%d)", recorder.Log()[start+step-1], mode, action), func(t *testing.T) {
					m := prepared.Clone()
					armed := false
					policy := fault.Once(step, action, func(fault.Op) bool { return armed })
					if mode == "the process dies" {
						policy = fault.Die(step, action, func(fault.Op) bool { return armed })
					}
					e := openStore(t, fault.New(m, policy))
					mine := reload(t, e, p)
					armed = true
					_, err := e.Commit(ctx, mine)
					committed := outcome(t, m, p.Base.Version, before, after)
					switch {
					case err == nil:
						require.True(t, committed, "reported done")
					case errors.Is(err, table.ErrAmbiguousCommit):
					default:
						require.False(t, committed, "reported failed: %v", err)
						if mode == "one operation fails" {
							require.Equal(t, prepared.Names(), m.Names(), "nothing is left behind")
						}
					}
					if err != nil {
						require.ErrorIs(t, err, fault.ErrInjected)
					}
					// Whatever happened, doing the same again succeeds.
					e = openStore(t, m)
					s, err := e.Commit(ctx, reload(t, e, p))
					require.NoError(t, err)
					require.Equal(t, p.Base.Version+1, s.Version)
					require.Equal(t, after, text(t, e, s))
				})
			}
		}
	}
}

func isPutIfAbsent(o fault.Op) bool { return o.Kind == fault.PutIfAbsent }

func TestALostAnswerIsLookedUp(t *testing.T) {
	ctx := context.Background()
	m := store.NewMem()
	p := heavy(t, m)
	e := openStore(t, fault.New(m, fault.Once(1, fault.After, isPutIfAbsent)))
	s, err := e.Commit(ctx, reload(t, e, p))
	require.NoError(t, err, "the version turned out to be ours")
	require.Equal(t, p.Base.Version+1, s.Version)
}

func TestALostRequestIsAmbiguousAndKeepsItsFiles(t *testing.T) {
	ctx := context.Background()
	m := store.NewMem()
	p := heavy(t, m)
	objects := len(m.Names())
	e := openStore(t, fault.New(m, fault.Once(1, fault.Lost, isPutIfAbsent)))
	_, err := e.Commit(ctx, reload(t, e, p))
	require.ErrorIs(t, err, table.ErrAmbiguousCommit, "it may still arrive")
	require.NotErrorIs(t, err, table.ErrVersionTaken)
	require.Len(t, m.Names(), objects+2, "transaction file and reuse index")
}

func TestAnotherWritersVersionAfterALostRequest(t *testing.T) {
	ctx := context.Background()
	m := store.NewMem()
	p := heavy(t, m)
	other := openStore(t, m)
	stolen := false
	policy := func(o fault.Op) fault.Action {
		if !isPutIfAbsent(o) || stolen {
			return fault.Pass
		}
		stolen = true
		_, err := other.ReserveFragments(ctx, 1)
		require.NoError(t, err)
		return fault.Lost
	}
	e := openStore(t, fault.New(m, policy))
	mine := reload(t, e, p)
	_, err := e.Commit(ctx, mine)
	require.ErrorIs(t, err, table.ErrVersionTaken)
	for _, name := range m.Names() {
		require.NotContains(t, name, "rewrite-1", "what the attempt wrote is deleted")
		require.NotContains(t, name, "details.binpb")
	}
}
