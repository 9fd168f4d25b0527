package compaction

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/rehome-db/rehome/rebase"
	"github.com/rehome-db/rehome/table"
)

// TestAmbiguousCommit: the answer to a commit is lost, or wrong.
func TestAmbiguousCommit(t *testing.T) {
	unknown := func(*table.Snapshot, error) (*table.Snapshot, error) { return nil, table.ErrAmbiguousCommit }
	setUp := func(t *testing.T) (*probe, []Result) {
		p := &probe{Engine: newTable(t, 10, 10)}
		return p, executed(t, p, Options{})
	}
	requireOnce := func(t *testing.T, p *probe, out Publication, err error) {
		t.Helper()
		require.NoError(t, err)
		require.EqualValues(t, 4, out.Version)
		require.Equal(t, []rebase.PublishedGroup{{Sources: ids(t, "0-1"), Destinations: ids(t, "2")}}, out.Published)
		s, err := p.Engine.Load(ctx, 0)
		require.NoError(t, err)
		require.EqualValues(t, 4, s.Version)
		require.Len(t, rowsAt(t, p.Engine, 0), 20)
		require.Empty(t, orphans(t, p.Engine))
	}
	for name, answer := range map[string]func(*table.Snapshot, error) (*table.Snapshot, error){
		"published and unknown":       unknown,
		"published and called taken":  func(*table.Snapshot, error) (*table.Snapshot, error) { return nil, table.ErrVersionTaken },
		"published and called failed": func(*table.Snapshot, error) (*table.Snapshot, error) { return nil, errInjected },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p, results := setUp(t)
				p.afterCommit = answer
				out, err := Publish(ctx, p, results, Options{})
				requireOnce(t, p, out, err)
			})
		})
	}
	t.Run("not published and unknown", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			p, results := setUp(t)
			first := true
			p.before = func(op string) error {
				if op == "commit version 4" && first {
					first = false
					return table.ErrAmbiguousCommit
				}
				return nil
			}
			out, err := Publish(ctx, p, results, Options{})
			requireOnce(t, p, out, err)
			require.False(t, first)
		})
	})
	t.Run("published and unknown and cancelled", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			p, results := setUp(t)
			ctx, cancel := context.WithCancel(ctx)
			p.afterCommit = func(*table.Snapshot, error) (*table.Snapshot, error) {
				cancel()
				return nil, table.ErrAmbiguousCommit
			}
			out, err := Publish(ctx, p, results, Options{})
			requireOnce(t, p, out, err)
		})
	})
	t.Run("unknown for good, then published again", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			for _, published := range []bool{true, false} {
				p, results := setUp(t)
				ctx, cancel := context.WithCancel(ctx)
				down := false
				p.before = func(op string) error {
					switch {
					case down:
						return errInjected
					case op == "commit version 4" && !published:
						cancel()
						down = true
						return table.ErrAmbiguousCommit
					}
					return nil
				}
				p.afterCommit = func(*table.Snapshot, error) (*table.Snapshot, error) {
					cancel()
					down = true
					return nil, table.ErrAmbiguousCommit
				}
				_, err := Publish(ctx, p, results, Options{})
				require.ErrorIs(t, err, table.ErrAmbiguousCommit)
				require.Equal(t, table.OutcomeFailed, table.Classify(err))
				for _, o := range results[0].Objects {
					_, err := p.Engine.Stat(context.Background(), o)
					require.NoError(t, err, "nothing may be deleted")
				}
				p.before, p.afterCommit = nil, nil
				out, err := Publish(context.Background(), p, results, Options{})
				requireOnce(t, p, out, err)
			}
		})
	})
	t.Run("unknown, and somebody else has the version", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			p, results := setUp(t)
			first := true
			p.before = func(op string) error {
				if op == "commit version 4" && first {
					first = false
					require.NoError(t, p.DeleteRows(ctx, table.NewRowAddr(0, 0)))
					return table.ErrAmbiguousCommit
				}
				return nil
			}
			out, err := Publish(ctx, p, results, Options{})
			require.NoError(t, err)
			require.EqualValues(t, 5, out.Version)
			require.EqualValues(t, 1, out.RowsRelocated)
			require.Len(t, rowsAt(t, p.Engine, 0), 19)
			require.Empty(t, orphans(t, p.Engine))
		})
	})
}

// TestLateCommit: the caller gives up while the outcome is unknown, and what was
// sent arrives after that, or somebody else's commit does.
func TestLateCommit(t *testing.T) {
	for _, whose := range []string{"ours", "somebody else's"} {
		t.Run(whose, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := &probe{Engine: newTable(t, 10, 10)}
				results := executed(t, p, Options{})
				ctx, cancel := context.WithCancel(ctx)
				var sent table.Proposal
				looks := 0
				p.hold = func(proposal table.Proposal) error {
					sent = proposal
					cancel()
					return table.ErrAmbiguousCommit
				}
				p.before = func(op string) error {
					if op != "load the latest version" || sent.Base == nil {
						return nil
					}
					if looks++; looks == 3 {
						if whose == "ours" {
							_, err := p.Engine.Commit(context.Background(), sent)
							require.NoError(t, err)
						} else {
							appendRows(t, p.Engine, 1)
						}
					}
					return nil
				}
				out, err := Publish(ctx, p, results, Options{})
				require.Equal(t, 3, looks)
				require.Empty(t, orphans(t, p.Engine))
				if whose == "ours" {
					require.NoError(t, err)
					require.EqualValues(t, 4, out.Version)
				} else {
					require.ErrorIs(t, err, context.Canceled)
					require.NotErrorIs(t, err, table.ErrAmbiguousCommit)
				}
			})
		})
	}
}

// TestOthersCleanUp: the versions between the one that was read and the newest are
// removed while a compaction is under way, so what happened in them is unknown.
func TestOthersCleanUp(t *testing.T) {
	gone := fmt.Errorf("version 4 is gone: %w", table.ErrTerminal)
	for name, c := range map[string]struct {
		at     string // the call at which others commit, and clean up after that
		answer error  // to that call
	}{
		"before the first attempt":        {"load the latest version", nil},
		"when an attempt came too late":   {"commit version 4", table.ErrVersionTaken},
		"when an attempt is not answered": {"commit version 4", table.ErrAmbiguousCommit},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := &probe{Engine: newTable(t, 10, 10)}
				executedAll, cleaned := false, false
				p.before = func(op string) error {
					switch {
					case cleaned && strings.HasPrefix(op, "transactions"):
						return gone
					case executedAll && !cleaned && op == c.at:
						appendRows(t, p.Engine, 1)
						cleaned = true
						return c.answer
					}
					return nil
				}
				_, err := Compact(ctx, p, Options{Events: Events{TaskEnd: func(TaskInfo) { executedAll = true }}})
				require.True(t, cleaned)
				if errors.Is(c.answer, table.ErrAmbiguousCommit) {
					require.ErrorIs(t, err, table.ErrAmbiguousCommit)
					require.NotEmpty(t, orphans(t, p.Engine), "it may be committed")
					return
				}
				require.ErrorIs(t, err, table.ErrConflict)
				require.NotErrorIs(t, err, table.ErrAmbiguousCommit)
				require.NotErrorIs(t, err, table.ErrTerminal)
				require.ErrorContains(t, err, "run again")
				require.Empty(t, orphans(t, p.Engine))
			})
		})
	}
}

// An object that is missing is damage, unless it went with the version that was
// read.
func TestATaskThatFindsAnObjectMissing(t *testing.T) {
	for _, cleaned := range []bool{true, false} {
		p := &probe{Engine: newTable(t, 10, 10)}
		p.before = func(op string) error {
			if !strings.HasPrefix(op, "read fragment") {
				return nil
			}
			if cleaned {
				require.NoError(t, p.DeleteRows(ctx, table.NewRowAddr(0, 0)))
			}
			return table.Corruptf("data file x: %w", table.ErrNotFound)
		}
		_, err := Compact(ctx, p, Options{})
		if cleaned {
			require.Equal(t, table.OutcomeRetryable, table.Classify(err), "%v", err)
		} else {
			require.Equal(t, table.OutcomeDamaged, table.Classify(err), "%v", err)
		}
		require.Empty(t, orphans(t, p.Engine))
	}
}

func TestPublishTwiceIsPublishedOnce(t *testing.T) {
	e := newTable(t, 10, 10)
	results := executed(t, e, Options{})
	first, err := Publish(ctx, e, results, Options{})
	require.NoError(t, err)
	appendRows(t, e, 3)
	second, err := Publish(ctx, e, results, Options{})
	require.NoError(t, err)
	require.Equal(t, first.Version, second.Version)
	require.Equal(t, first.Published, second.Published)
	require.Len(t, rowsAt(t, e, 0), 23)
}
