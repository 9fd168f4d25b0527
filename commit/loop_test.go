package commit_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/stretchr/testify/require"

	"github.com/rehome-db/rehome/commit"
	"github.com/rehome-db/rehome/deletion"
	"github.com/rehome-db/rehome/table"
	"github.com/rehome-db/rehome/table/memengine"
)

var (
	ctx         = context.Background()
	errInjected = errors.New("injected")
)

// engine is a table whose answers can be replaced.
type engine struct {
	*memengine.Engine
	commit       func(table.Proposal) (*table.Snapshot, error)
	transactions func() error
	load         func() error
	remove       func(table.Object) error
}

func newEngine() *engine {
	return &engine{Engine: memengine.New("t", table.Schema{Fields: []table.Field{{Name: "x", Type: arrow.Null}}})}
}

func (e *engine) Load(ctx context.Context, v uint64) (*table.Snapshot, error) {
	if e.load != nil {
		if err := e.load(); err != nil {
			return nil, err
		}
	}
	return e.Engine.Load(ctx, v)
}

func (e *engine) TransactionsSince(ctx context.Context, after, upTo uint64) ([]table.Transaction, error) {
	if e.transactions != nil {
		if err := e.transactions(); err != nil {
			return nil, err
		}
	}
	return e.Engine.TransactionsSince(ctx, after, upTo)
}

func (e *engine) Commit(ctx context.Context, p table.Proposal) (*table.Snapshot, error) {
	if e.commit != nil {
		return e.commit(p)
	}
	return e.Engine.Commit(ctx, p)
}

func (e *engine) Delete(ctx context.Context, o table.Object) error {
	if e.remove != nil {
		if err := e.remove(o); err != nil {
			return err
		}
	}
	return e.Engine.Delete(ctx, o)
}

// reserve proposes something that leaves a trace.
func reserve(id string) func(context.Context, commit.Window) (*table.Proposal, error) {
	return func(_ context.Context, w commit.Window) (*table.Proposal, error) {
		return &table.Proposal{Base: w.Base, Change: table.Change{Reserve: 1},
			Transaction: table.Transaction{ID: id, Operation: table.ReserveFragments{Count: 1}}}, nil
	}
}

// others commits something.
func (e *engine) others(t *testing.T) {
	_, err := e.ReserveFragments(ctx, 10)
	require.NoError(t, err)
}

func (e *engine) reserved(t *testing.T) int {
	s, err := e.Engine.Load(ctx, 0)
	require.NoError(t, err)
	return int(s.NextFragmentID % 10)
}

// TestWindow: each attempt is made for the newest version, and is shown what no
// earlier one was.
func TestWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEngine()
		e.others(t)
		tries := 0
		e.commit = func(p table.Proposal) (*table.Snapshot, error) {
			if tries++; tries < 3 {
				e.others(t)
				e.others(t)
			}
			return e.Engine.Commit(ctx, p)
		}
		var events []string
		l := commit.Loop{Engine: e, ID: "x", Seen: 1, Hooks: commit.Hooks{
			Begin: func(i commit.Info) {
				events = append(events, fmt.Sprint("begin ", i.Attempt, " over ", i.Proposal.Base.Version))
			},
			End: func(i commit.Info) {
				events = append(events, fmt.Sprint("end ", i.Version, errors.Is(i.Err, table.ErrVersionTaken)))
			},
			Pause: func(n int, d time.Duration) {
				require.LessOrEqual(t, d, time.Millisecond)
				events = append(events, fmt.Sprint("pause ", n))
			},
		}}
		var seen [][]uint64
		done, err := l.Commit(ctx, func(ctx context.Context, w commit.Window) (*table.Proposal, error) {
			versions := []uint64{}
			for _, tx := range w.Transactions {
				versions = append(versions, tx.Version)
			}
			seen = append(seen, versions)
			return reserve("x")(ctx, w)
		})
		require.NoError(t, err)
		require.Equal(t, commit.Done{Version: 7, Snapshot: done.Snapshot}, done)
		require.Equal(t, 3, l.Attempts())
		require.Equal(t, [][]uint64{{2}, {3, 4}, {5, 6}}, seen)
		require.Equal(t, []string{"begin 1 over 2", "end 0 true", "pause 1", "begin 2 over 4", "end 0 true", "pause 2", "begin 3 over 6", "end 7 false"}, events)
	})
}

func TestNothingToDo(t *testing.T) {
	e := newEngine()
	l := commit.Loop{Engine: e, ID: "x"}
	done, err := l.Commit(ctx, func(context.Context, commit.Window) (*table.Proposal, error) { return nil, nil })
	require.NoError(t, err)
	require.True(t, done.Nothing)
	require.EqualValues(t, 1, done.Version)
	require.Zero(t, l.Attempts())
}

// TestEnds are all the ways in which a lost answer can end: what the engine says, what
// really happened, and what can be found out.
func TestEnds(t *testing.T) {
	for _, c := range []struct {
		name      string
		happens   bool  // the first commit does
		answer    error // to it
		attempts  int
		blind     error // of the transactions from then on
		fresh     bool
		want      error // nil for success
		committed int   // how often, in the end
	}{
		{name: "done", happens: true, attempts: 9, committed: 1},
		{name: "done, answer lost", happens: true, answer: table.ErrAmbiguousCommit, attempts: 9, committed: 1},
		{name: "done, answer lost, no attempts left", happens: true, answer: table.ErrAmbiguousCommit, attempts: 1, committed: 1},
		{name: "not done, answer lost", answer: table.ErrAmbiguousCommit, attempts: 9, committed: 1},
		{name: "not done, answer lost, no attempts left", answer: table.ErrAmbiguousCommit, attempts: 1, want: table.ErrAmbiguousCommit},
		{name: "done, and an error that the engine was sure about", happens: true, answer: errInjected, attempts: 9, committed: 1},
		{name: "not done, an error that the engine was sure about", answer: errInjected, attempts: 9, want: errInjected},
		{name: "done, answer lost, versions cleaned up", happens: true, answer: table.ErrAmbiguousCommit, attempts: 9, blind: table.ErrNotFound, want: table.ErrAmbiguousCommit, committed: 1},
		{name: "taken, versions cleaned up", answer: table.ErrVersionTaken, attempts: 9, blind: table.ErrNotFound, fresh: true, want: table.ErrTerminal},
		{name: "taken, versions cleaned up, the id may be known", answer: table.ErrVersionTaken, attempts: 9, blind: table.ErrNotFound, want: table.ErrAmbiguousCommit},
		{name: "taken, no attempts left", answer: table.ErrVersionTaken, attempts: 1, want: table.ErrConflict},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := newEngine()
				e.commit = func(p table.Proposal) (*table.Snapshot, error) {
					e.commit = nil
					e.transactions = func() error { return c.blind }
					if c.happens {
						s, err := e.Engine.Commit(ctx, p)
						require.NoError(t, err)
						if c.answer == nil {
							return s, nil
						}
					} else if errors.Is(c.answer, table.ErrVersionTaken) {
						e.others(t)
					}
					return nil, c.answer
				}
				l := commit.Loop{Engine: e, ID: "x", Seen: 1, MaxAttempts: c.attempts, Fresh: c.fresh}
				done, err := l.Commit(ctx, reserve("x"))
				require.Equal(t, c.committed, e.reserved(t))
				if c.want != nil {
					require.ErrorIs(t, err, c.want)
					require.Equal(t, errors.Is(c.want, table.ErrAmbiguousCommit), errors.Is(err, table.ErrAmbiguousCommit))
					return
				}
				require.NoError(t, err)
				require.EqualValues(t, 2, done.Version)
				require.Equal(t, c.answer != nil && c.happens, done.Found != nil)
			})
		})
	}
}

// TestEndsOfCancelled: a caller that gives up is told what is known by then, and it is
// looked for after that.
func TestEndsOfCancelled(t *testing.T) {
	for _, happens := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			e := newEngine()
			ctx, cancel := context.WithCancel(ctx)
			e.commit = func(p table.Proposal) (*table.Snapshot, error) {
				if happens {
					_, err := e.Engine.Commit(ctx, p)
					require.NoError(t, err)
				}
				cancel()
				return nil, table.ErrAmbiguousCommit
			}
			l := commit.Loop{Engine: e, ID: "x", Seen: 1}
			done, err := l.Commit(ctx, reserve("x"))
			if happens {
				require.NoError(t, err)
				require.NotNil(t, done.Found)
				return
			}
			require.ErrorIs(t, err, table.ErrAmbiguousCommit)
			require.ErrorContains(t, err, "context canceled")
			require.True(t, l.Unknown())
		})
	}
}

func TestOvertaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEngine()
		e.commit = func(p table.Proposal) (*table.Snapshot, error) {
			e.others(t)
			return e.Engine.Commit(ctx, p)
		}
		l := commit.Loop{Engine: e, ID: "x", Table: "t", By: "somebody", MaxAttempts: 3}
		_, err := l.Commit(ctx, reserve("x"))
		require.EqualError(t, err, "somebody: table t version 3: other writers were faster 3 times; run again")
		require.Equal(t, table.OutcomeRetryable, table.Classify(err))
	})
}

// TestLoadFails, before anything and after a commit.
func TestLoadFails(t *testing.T) {
	e := newEngine()
	e.load = func() error { return errInjected }
	l := commit.Loop{Engine: e, ID: "x", Table: "t", Fresh: true}
	_, err := l.Commit(ctx, reserve("x"))
	require.EqualError(t, err, "commit: table t: load the latest version: injected")
}

// TestVectors: the same rows of the same fragment are stored once, and those that a
// version does not refer to are known.
func TestVectors(t *testing.T) {
	e := newEngine()
	var v commit.Vectors
	require.Empty(t, v.Unreferred(nil))
	store := func(id table.FragmentID, offsets ...uint32) string {
		ref, err := v.Write(ctx, e, id, 1, deletion.Of(offsets...))
		require.NoError(t, err)
		require.EqualValues(t, len(offsets), ref.Rows)
		return ref.Path
	}
	a, b, c := store(1, 3), store(1, 3, 4), store(2, 3)
	require.Equal(t, a, store(1, 3))
	require.NotEqual(t, a, c)
	s := &table.Snapshot{Fragments: []table.Fragment{{ID: 1, Deletion: &table.DeletionRef{Path: b}}, {ID: 7}}}
	require.Equal(t, []table.Object{{Kind: table.ObjectDeletion, Path: a}, {Kind: table.ObjectDeletion, Path: c}}, v.Unreferred(commit.Referred(s)))
	v.Forget()
	require.Empty(t, v.Unreferred(nil))
	require.Empty(t, v.Unreferred(nil))
}

// TestDiscard deletes what it can, also for a caller that gave up, and names the rest.
func TestDiscard(t *testing.T) {
	e := newEngine()
	e.remove = func(o table.Object) error {
		if o.Path > "p0" {
			return errInjected
		}
		return nil
	}
	cancelled, cancel := context.WithCancel(ctx)
	cancel()
	var objects []table.Object
	for i := range 5 {
		objects = append(objects, table.Object{Kind: table.ObjectData, Path: fmt.Sprint("p", i)})
	}
	deleted, err := commit.Discard(cancelled, e, "somebody", objects)
	require.Equal(t, objects[:1], deleted)
	require.ErrorContains(t, err, "somebody: 4 objects left behind: p1 p2 p3 ...: injected")
	require.NotErrorIs(t, err, errInjected) // it must not decide what the caller does
	require.Equal(t, objects[1:], commit.Leftovers(fmt.Errorf("so: %w", errors.Join(errInjected, err))))
	require.EqualError(t, &commit.LeftoverError{Objects: objects[:1], Err: errInjected}, "commit: 1 object left behind: p0: injected")
	deleted, err = commit.Discard(ctx, e, "somebody", nil)
	require.NoError(t, err)
	require.Empty(t, deleted)
}

// TestReport14LossIsReportedAtOnce: a clean-up that takes files of writers that have not
// committed takes one between the last look and the commit. It is committed, which is
// said, with what is gone and what to do.
func TestReport14LossIsReportedAtOnce(t *testing.T) {
	for _, lost := range []bool{false, true} {
		e := newEngine()
		ref, err := e.WriteDeletions(ctx, 0, 1, deletion.Of(0))
		require.NoError(t, err)
		e.commit = func(p table.Proposal) (*table.Snapshot, error) {
			s, err := e.Engine.Commit(ctx, table.Proposal{Base: p.Base, Transaction: p.Transaction, Change: table.Change{Reserve: 1}})
			if lost {
				require.NoError(t, e.Delete(ctx, table.Object{Kind: table.ObjectDeletion, Path: ref.Path}))
			}
			return s, err
		}
		l := commit.Loop{Engine: e, ID: "x", Table: "t", By: "somebody"}
		done, err := l.Commit(ctx, func(_ context.Context, w commit.Window) (*table.Proposal, error) {
			return &table.Proposal{Base: w.Base, Transaction: table.Transaction{ID: "x", Operation: table.Delete{}},
				Change: table.Change{SetDeletion: map[table.FragmentID]*table.DeletionRef{0: &ref}}}, nil
		})
		require.NoError(t, err)
		require.EqualValues(t, 2, done.Version)
		if !lost {
			require.Nil(t, done.Lost)
			continue
		}
		require.Equal(t, []table.Object{{Kind: table.ObjectDeletion, Path: ref.Path}}, done.Lost.Objects)
		require.ErrorIs(t, done.Lost, table.ErrCorrupt)
		require.EqualError(t, done.Lost, "somebody: table t: version 2 was committed, and 1 of its objects were removed just before that: "+ref.Path+
			"; a clean-up took files that were not committed yet, and version 2 cannot be read whole: restore version 1, then run again, and let no clean-up delete unverified files while others write")
	}
}

// Pauses grow with the attempts lost and with what one costs, within bounds.
func TestBackoff(t *testing.T) {
	for _, c := range []struct {
		backoff commit.Backoff
		lost    int
		cost    time.Duration
		atMost  time.Duration
	}{
		{commit.Backoff{Every: 8, Most: 64}, 1, 10 * time.Millisecond, 10 * time.Millisecond},
		{commit.Backoff{Every: 8, Most: 64}, 8, 10 * time.Millisecond, 10 * time.Millisecond},
		{commit.Backoff{Every: 8, Most: 64}, 9, 10 * time.Millisecond, 20 * time.Millisecond},
		{commit.Backoff{Every: 1, Most: 16}, 3, 10 * time.Millisecond, 40 * time.Millisecond},
		{commit.Backoff{Every: 1, Most: 16}, 1000, 10 * time.Millisecond, 160 * time.Millisecond},
		{commit.Backoff{Every: 1, Most: 16}, 1, 0, time.Millisecond},
		{commit.Backoff{Every: 1, Most: 16}, 1000, time.Hour, 10 * time.Second},
	} {
		var longest time.Duration
		for range 1000 {
			p := c.backoff.Pause(c.lost, c.cost)
			require.Positive(t, p)
			longest = max(longest, p)
		}
		require.LessOrEqual(t, longest, c.atMost)
		require.Greater(t, longest, c.atMost/2, "%+v", c)
	}
}
