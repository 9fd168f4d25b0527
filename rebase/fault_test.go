package rebase_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/rehome-db/rehome/commit"
	"github.com/rehome-db/rehome/rebase"
	"github.com/rehome-db/rehome/table"
	"github.com/rehome-db/rehome/table/memengine"
)

var errInjected = errors.New("injected")

// probe is an engine that can be told to fail calls.
type probe struct {
	*memengine.Engine
	mu sync.Mutex
	// before is told of a call that is about to be made; an error is returned to the
	// caller, and the engine is not asked.
	before func(op string) error
	// commit, if set, stands in the way of commits.
	commit func(table.Proposal) (*table.Snapshot, error)
}

func (p *probe) tell(op string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.before == nil {
		return nil
	}
	return p.before(op)
}

func (p *probe) Load(ctx context.Context, v uint64) (*table.Snapshot, error) {
	if err := p.tell("load"); err != nil {
		return nil, err
	}
	return p.Engine.Load(ctx, v)
}

func (p *probe) TransactionsSince(ctx context.Context, after, upTo uint64) ([]table.Transaction, error) {
	if err := p.tell("transactions"); err != nil {
		return nil, err
	}
	return p.Engine.TransactionsSince(ctx, after, upTo)
}

func (p *probe) Rows(ctx context.Context, s *table.Snapshot, ids []table.FragmentID, opts table.ReadOptions) iter.Seq2[table.Batch, error] {
	if err := p.tell("rows"); err != nil {
		return func(yield func(table.Batch, error) bool) { yield(table.Batch{}, err) }
	}
	return p.Engine.Rows(ctx, s, ids, opts)
}

func (p *probe) ReadDeletions(ctx context.Context, s *table.Snapshot, f table.Fragment) (table.OffsetSet, error) {
	if err := p.tell("read deletions"); err != nil {
		return nil, err
	}
	return p.Engine.ReadDeletions(ctx, s, f)
}

func (p *probe) WriteDeletions(ctx context.Context, id table.FragmentID, v uint64, deleted table.OffsetSet) (table.DeletionRef, error) {
	if err := p.tell("write deletions"); err != nil {
		return table.DeletionRef{}, err
	}
	return p.Engine.WriteDeletions(ctx, id, v, deleted)
}

func (p *probe) Stat(ctx context.Context, o table.Object) (uint64, error) {
	if err := p.tell("stat"); err != nil {
		return 0, err
	}
	return p.Engine.Stat(ctx, o)
}

func (p *probe) Delete(ctx context.Context, o table.Object) error {
	if err := p.tell("delete"); err != nil {
		return err
	}
	return p.Engine.Delete(ctx, o)
}

func (p *probe) Commit(ctx context.Context, proposal table.Proposal) (*table.Snapshot, error) {
	if err := p.tell("commit"); err != nil {
		return nil, err
	}
	if p.commit != nil {
		return p.commit(proposal)
	}
	return p.Engine.Commit(ctx, proposal)
}

// faulty is a table, a change of it that waits, and a window with deletes and two
// compactions in it.
func faulty(t tester) (*world, *probe, rebase.Uncommitted) {
	w := newWorld(t)
	w.append("a", "b", "c", "d")
	w.append("e", "f", "g")
	w.append("h", "i")
	w.delete("a")
	u := w.uncommitted(table.Update{}, []string{"c", "f", "i"}, []string{"c'", "f'", "i'"})
	w.delete("d")
	w.compact([]table.FragmentID{0, 1}, []int{3}, how{})
	w.delete("b", "h")
	w.compact([]table.FragmentID{3, 4}, []int{9}, how{})
	p := &probe{Engine: w.mem}
	w.e = p
	return w, p, u
}

var faultyBefore, faultyAfter = []string{"c", "e", "f", "g", "i"}, []string{"c'", "e", "f'", "g", "i'"}

// TestEveryCallFailsOnce: whatever call fails, the table is as it was, and what was
// written is deleted or, if that fails, named.
func TestEveryCallFailsOnce(t *testing.T) {
	for _, deleteFails := range []bool{false, true} {
		ops := map[string]int{}
		for n, more := 1, true; more; n++ {
			synctest.Test(t, func(t *testing.T) {
				w, p, u := faulty(t)
				seen, at, committed := 0, "", false
				p.before = func(op string) error {
					if at != "" && op == "delete" && deleteFails {
						return errInjected
					}
					if committed {
						return nil // see TestReport14
					}
					if seen++; seen == n {
						at = op
						ops[op]++
						return errInjected
					}
					committed = op == "commit"
					return nil
				}
				out, err := rebase.Commit(ctx, p, u, rebase.Options{Threads: 1})
				p.before = nil
				if more = at != ""; !more {
					require.NoError(t, err)
					require.Equal(t, faultyAfter, w.words())
					require.EqualValues(t, 2, out.RowsRelocated) // of the third the fragment stayed
					return
				}
				require.ErrorIs(t, err, errInjected, at)
				require.Equal(t, faultyBefore, w.words(), at)
				var left []string
				for _, o := range commit.Leftovers(err) {
					left = append(left, o.Path)
				}
				require.ElementsMatch(t, left, w.orphans(), at)
				require.Equal(t, deleteFails, len(left) > 0, at)
			})
		}
		for _, op := range []string{"load", "transactions", "rows", "read deletions", "write deletions", "stat", "commit"} {
			require.Positive(t, ops[op], op)
		}
	}
}

// TestCrash stops the process at every call: nothing is called after it. The table is
// as it was, and whoever finds the change commits it. (For a crash right after the
// commit, see TestUnknownOutcome.)
func TestCrash(t *testing.T) {
	for n, more := 1, true; more; n++ {
		synctest.Test(t, func(t *testing.T) {
			w, p, u := faulty(t)
			seen, committed := 0, false
			p.before = func(op string) error {
				if committed {
					return nil
				}
				if seen++; seen < n {
					committed = op == "commit"
					return nil
				}
				return errInjected
			}
			_, err := rebase.Commit(ctx, p, u, rebase.Options{})
			if more = seen >= n; !more {
				require.NoError(t, err)
				require.Greater(t, n, 15)
				return
			}
			require.Error(t, err)
			require.Equal(t, faultyBefore, w.words())

			p.before = nil
			out, err := rebase.Commit(ctx, p, u, rebase.Options{})
			require.NoError(t, err)
			require.Equal(t, out.Version, w.head().Version)
			require.Equal(t, faultyAfter, w.words())
		})
	}
}

// TestAmbiguousCommit loses the answer to the first commit, whether it happened, did
// not, or happens later.
func TestAmbiguousCommit(t *testing.T) {
	for _, happens := range []string{"at once", "never", "late"} {
		t.Run(happens, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, p, u := faulty(t)
				before := w.head().Version
				var held *table.Proposal
				p.commit = func(proposal table.Proposal) (*table.Snapshot, error) {
					switch {
					case held == nil:
						held = &proposal
						if happens == "at once" {
							_, err := p.Engine.Commit(ctx, proposal)
							require.NoError(t, err)
						}
						return nil, fmt.Errorf("the line went dead: %w", table.ErrAmbiguousCommit)
					case happens == "late":
						_, err := p.Engine.Commit(ctx, *held)
						require.NoError(t, err)
					}
					p.commit = nil
					return p.Engine.Commit(ctx, proposal)
				}
				out, err := rebase.Commit(ctx, p, u, rebase.Options{})
				require.NoError(t, err)
				require.Equal(t, before+1, out.Version)
				require.Equal(t, before+1, w.head().Version)
				require.Equal(t, out.Version, out.Snapshot.Version)
				require.Len(t, out.Added, 1)
				require.Equal(t, faultyAfter, w.words())
				require.Empty(t, w.orphans())
			})
		})
	}
}

// TestUnknownOutcome: as long as nobody can tell, nothing is deleted, and to commit
// the same change again finds out.
func TestUnknownOutcome(t *testing.T) {
	for _, happened := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			w, p, u := faulty(t)
			p.commit = func(proposal table.Proposal) (*table.Snapshot, error) {
				if happened {
					_, err := p.Engine.Commit(ctx, proposal)
					require.NoError(t, err)
				}
				p.before = func(op string) error {
					require.NotEqual(t, "delete", op)
					return errInjected
				}
				return nil, table.ErrAmbiguousCommit
			}
			_, err := rebase.Commit(ctx, p, u, rebase.Options{})
			require.ErrorIs(t, err, table.ErrAmbiguousCommit)
			require.NotErrorIs(t, err, table.ErrConflict)
			require.ErrorContains(t, err, u.Transaction.ID)
			p.before, p.commit = nil, nil

			out, err := rebase.Commit(ctx, p, u, rebase.Options{})
			require.NoError(t, err)
			require.Equal(t, happened, out.Attempts == 0)
			require.Equal(t, faultyAfter, w.words())
		})
	}
}

// TestLostAttempts: others are faster, again and again, and change the very fragments
// that the change is about. Every vector of a lost attempt is deleted.
func TestLostAttempts(t *testing.T) {
	for _, others := range []func(w *world){
		func(w *world) { w.append("z") },
		func(w *world) { w.delete("e") },
		func(w *world) {
			w.compact([]table.FragmentID{w.head().Fragments[len(w.head().Fragments)-1].ID}, []int{2}, how{})
		},
		func(w *world) { w.update("g") },
	} {
		synctest.Test(t, func(t *testing.T) {
			w, p, u := faulty(t)
			lost := 0
			p.commit = func(proposal table.Proposal) (*table.Snapshot, error) {
				if lost < 3 {
					if lost++; lost == 1 {
						others(w)
					} else {
						w.append(fmt.Sprint("y", lost))
					}
				}
				return p.Engine.Commit(ctx, proposal)
			}
			out, err := rebase.Commit(ctx, p, u, rebase.Options{})
			require.NoError(t, err)
			require.Equal(t, 4, out.Attempts)
			require.Subset(t, w.words(), []string{"c'", "f'", "i'"})
			require.NotContains(t, w.words(), "c")
			require.Empty(t, w.orphans())
		})
	}
}

// TestAttemptsRunOut: that is a conflict, too, and leaves nothing behind.
func TestAttemptsRunOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, p, u := faulty(t)
		p.commit = func(proposal table.Proposal) (*table.Snapshot, error) {
			w.append("z")
			return p.Engine.Commit(ctx, proposal)
		}
		pauses := 0
		opts := rebase.Options{MaxAttempts: 5, Hooks: commit.Hooks{End: func(i commit.Info) {
			pauses++
			require.Equal(t, pauses, i.Attempt)
			require.ErrorIs(t, i.Err, table.ErrVersionTaken)
		}}}
		_, err := rebase.Commit(ctx, p, u, opts)
		require.ErrorIs(t, err, table.ErrConflict)
		require.Equal(t, table.OutcomeRetryable, table.Classify(err))
		require.EqualError(t, err, "rebase: table t version 13: other writers were faster 5 times; run again")
		require.Equal(t, 5, pauses)
		require.Empty(t, w.orphans())
	})
}

// TestMissingFile: somebody cleaned up what waited to be committed.
func TestMissingFile(t *testing.T) {
	w, p, u := faulty(t)
	require.NoError(t, w.mem.Delete(ctx, u.Objects[0]))
	_, err := rebase.Commit(ctx, p, u, rebase.Options{})
	require.ErrorIs(t, err, table.ErrConflict)
	require.ErrorContains(t, err, "was removed before it could be committed")
	require.Empty(t, w.orphans())
}

// TestCleanedUpWindow: what happened since the change was computed cannot be known any
// more. Whether the change was committed before can, if its id is new.
func TestCleanedUpWindow(t *testing.T) {
	for _, fresh := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			w, p, u := faulty(t)
			p.before = func(op string) error {
				if op == "transactions" {
					return table.ErrNotFound
				}
				return nil
			}
			_, err := rebase.Commit(ctx, p, u, rebase.Options{Fresh: fresh})
			if fresh {
				var conflict *rebase.ConflictError
				require.ErrorAs(t, err, &conflict)
				require.True(t, conflict.Retryable())
				require.Equal(t, table.OutcomeRetryable, table.Classify(err))
				require.Empty(t, w.orphans())
				return
			}
			require.ErrorIs(t, err, table.ErrAmbiguousCommit)
			require.Len(t, w.orphans(), len(u.Objects))
		})
	}
}
