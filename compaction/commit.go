package compaction

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/rehome-db/rehome/table"
)

// committer gets one transaction into a table that others commit to at the same
// time. Every attempt is made anew over the newest version, so that nothing others
// did is undone, and at most one of them comes true: the transaction is looked for
// in what was committed before anything is concluded from an error.
type committer struct {
	engine      table.Engine
	ev          Events
	maxAttempts int
	sleep       func(context.Context, time.Duration) error

	table string
	id    string // of the transaction, over all attempts
	seen  uint64 // the newest version whose transaction was looked at; 0 for none
	fresh bool   // the id is of this call: nobody can have used it before

	tried   int    // attempts that called Commit
	target  uint64 // the version that the last of them may have become
	unknown bool   // whether the engine said that it cannot know
	taken   bool   // whether the last attempt was told that it came too late
}

// committed is how a transaction ended.
type committed struct {
	// version holds the transaction or, if there was nothing to commit, is the one
	// that needs nothing.
	version uint64
	nothing bool
	// snapshot is that version as the engine returned it; nil if it did not.
	snapshot *table.Snapshot
	// found is the transaction as it was found in the table, after its answer was
	// lost; nil if the engine answered.
	found *table.Transaction
}

// commit makes attempts until one is committed. propose makes what is to be
// committed over a version, nil if that version needs nothing.
//
// The error of an attempt that others overtook asks for another; all others end it.
// If the error is a table.ErrAmbiguousCommit, nobody can tell whether the
// transaction was committed; after any other it was not, and never will be.
func (c *committer) commit(ctx context.Context, propose func(context.Context, window) (*table.Proposal, error)) (committed, error) {
	for n := 1; n <= c.maxAttempts; n++ {
		start := time.Now()
		done, err := c.attempt(ctx, n, propose)
		switch {
		case err == nil:
			return done, nil
		case errors.Is(err, table.ErrAmbiguousCommit) || errors.Is(err, table.ErrVersionTaken):
			if errors.Is(err, table.ErrAmbiguousCommit) {
				c.unknown = true
			}
			if n == c.maxAttempts {
				continue
			}
			if err := c.pause(ctx, n, time.Since(start)); err != nil {
				return c.end(ctx, err)
			}
		default:
			return c.end(ctx, err)
		}
	}
	return c.end(ctx, &ConflictError{Table: c.table, Version: c.seen, Attempts: c.maxAttempts})
}

// attempt tries once to commit. ErrVersionTaken and ErrAmbiguousCommit ask for
// another attempt.
func (c *committer) attempt(ctx context.Context, n int, propose func(context.Context, window) (*table.Proposal, error)) (committed, error) {
	w, err := c.look(ctx)
	if err != nil {
		return committed{}, err
	}
	if tx := c.own(w); tx != nil {
		return committed{version: tx.Version, found: tx}, nil
	}
	if w.base.Version >= c.target {
		c.unknown = false // somebody else has the version
	}
	proposal, err := propose(ctx, w)
	if err != nil {
		return committed{}, err
	}
	if proposal == nil {
		return committed{version: w.base.Version, nothing: true}, nil
	}
	info := CommitInfo{Attempt: n, Base: w.base.Version, PublishFRI: proposal.Change.Reuse != nil}
	switch op := proposal.Transaction.Operation.(type) {
	case table.CreateIndex:
		info.Trim = true
	case table.Rewrite:
		info.Groups = len(op.Groups)
		for _, g := range op.Groups {
			for _, f := range g.New {
				info.RowsCarried += f.DeletedRows()
			}
		}
	}
	c.ev.CommitBegin(info)
	c.tried, c.target = c.tried+1, w.base.Version+1
	s, err := c.engine.Commit(ctx, *proposal)
	c.taken = errors.Is(err, table.ErrVersionTaken)
	if info.Err = err; err == nil {
		info.Version = s.Version
	}
	c.ev.CommitEnd(info)
	if err != nil {
		return committed{}, fmt.Errorf("compaction: table %s: commit of version %d: %w", c.table, c.target, err)
	}
	return committed{version: s.Version, snapshot: s}, nil
}

// look loads the newest version and the transactions that were not seen yet.
func (c *committer) look(ctx context.Context) (window, error) {
	s, err := c.engine.Load(ctx, 0)
	if err != nil {
		return window{}, fmt.Errorf("compaction: table %s: load the latest version: %w", c.table, err)
	}
	w := window{base: s}
	if s.Version == c.seen {
		return w, nil
	}
	if c.seen > 0 {
		w.transactions, err = c.engine.TransactionsSince(ctx, c.seen, s.Version)
	}
	if errors.Is(err, table.ErrNotFound) {
		return w, fmt.Errorf("compaction: table %s: what happened between versions %d and %d cannot be told any more: %w: %w", c.table, c.seen, s.Version, table.ErrTerminal, err)
	}
	if err != nil {
		return w, fmt.Errorf("compaction: table %s: transactions from version %d to %d: %w", c.table, c.seen+1, s.Version, err)
	}
	c.seen = s.Version
	return w, nil
}

// own finds the transaction among those that were committed; nil if it is not there.
func (c *committer) own(w window) *table.Transaction {
	for i := range w.transactions {
		if w.transactions[i].ID == c.id {
			return &w.transactions[i]
		}
	}
	return nil
}

// end is how attempts end that failed with cause: if one turns out to have been
// committed after all, that is a success; and if nobody can tell, the error is a
// table.ErrAmbiguousCommit that says what led there. That is told and not wrapped:
// that it was a conflict, for example, must not make the caller start again.
func (c *committer) end(ctx context.Context, cause error) (committed, error) {
	// Also if nothing was committed here: who uses an id again may have committed
	// under it before, and have been told that the outcome is unknown.
	if c.fresh && c.tried == 0 {
		return committed{}, cause
	}
	found, settled, err := c.settle(ctx)
	switch {
	case found != nil:
		return committed{version: found.Version, found: found}, nil
	case settled:
		return committed{}, cause
	}
	return committed{}, fmt.Errorf("%w: %v", table.ErrAmbiguousCommit, errors.Join(cause, err))
}

// settle finds out whether the transaction was committed: it returns it if so. It
// goes on looking for a while even if ctx is done, and settled says whether the
// answer is known.
func (c *committer) settle(ctx context.Context) (found *table.Transaction, settled bool, err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTime)
	defer cancel()
	const looks = 5
	for i := range looks {
		if i > 0 {
			if err = c.sleep(ctx, 100*time.Millisecond<<i); err != nil {
				break
			}
		}
		var w window
		if w, err = c.look(ctx); errors.Is(err, table.ErrTerminal) {
			// What was committed in between was cleaned up, and stays unknown; but
			// if the engine was sure of every attempt, nothing of ours is in it.
			return nil, c.fresh && c.taken && !c.unknown, err
		}
		if err != nil {
			continue
		}
		if tx := c.own(w); tx != nil {
			return tx, true, nil
		}
		// Somebody else has the version, or the engine was sure that it changed
		// nothing. Otherwise what was sent may still arrive.
		if c.seen >= c.target || !c.unknown {
			return nil, true, nil
		}
	}
	return nil, false, err
}

// pause waits before the next attempt, the longer the more an attempt costs and
// the more of them were lost, so that many writers do not keep each other from
// finishing. It is short at first: against one writer that commits all the time,
// what counts is to begin right after one of its commits, and to wait only gives
// it time for more of them.
func (c *committer) pause(ctx context.Context, attempt int, cost time.Duration) error {
	const shortest, longest = time.Millisecond, 10 * time.Second
	slots := time.Duration(1) << min(attempt/8, 6)
	d := min(time.Duration(1+rand.Int64N(int64(slots*max(cost, shortest)))), longest)
	c.ev.Backoff(BackoffInfo{Attempt: attempt, Pause: d})
	return c.sleep(ctx, d)
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
