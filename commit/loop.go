package commit

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rehome-db/rehome/table"
)

// Engine is the part of a [table.Engine] that the loop needs.
type Engine interface {
	table.Loader
	table.Committer
}

// Window is what one attempt starts from.
type Window struct {
	// Base is the newest version; the attempt replaces it.
	Base *table.Snapshot
	// Transactions are those of the versions up to Base that no earlier attempt saw,
	// oldest first.
	Transactions []table.Transaction
}

// Info is one attempt that reached the engine's Commit.
type Info struct {
	// Attempt counts from 1; it also counts the attempts that did not reach Commit.
	Attempt  int
	Proposal *table.Proposal
	// Version and Err are the result; zero in Hooks.Begin.
	Version uint64
	Err     error
}

// Hooks are called as attempts proceed. Each may be nil.
type Hooks struct {
	Begin func(Info)
	End   func(Info)
	// Pause comes before each wait between attempts.
	Pause func(attempt int, d time.Duration)
}

// Loop is one transaction on its way into a table. Set the exported fields, then
// call [Loop.Commit], once. It is not safe for concurrent use.
type Loop struct {
	Engine Engine
	// By names the committer: errors begin with it. The default is "commit".
	By string
	// Table is for messages.
	Table string
	// ID is the transaction's.
	ID string
	// Fresh says that nobody can have used the ID before. An error before the first
	// attempt then needs no search for the ID.
	Fresh bool
	// Seen is the version that the work was computed from: the loop reads the
	// transactions after it. With 0, it reads none from before the first attempt. The
	// loop advances it.
	Seen uint64
	// MaxAttempts bounds the attempts. The default is [DefaultMaxAttempts].
	MaxAttempts int
	// Threads bounds the calls to the engine at a time, where there are many to make.
	// The default is 8.
	Threads int
	// Sleep waits. The default is [Sleep].
	Sleep func(context.Context, time.Duration) error
	Hooks Hooks

	tried   int             // attempts that called Commit
	target  uint64          // the version that the last of them tried to make
	unknown bool            // whether the outcome of an attempt is unknown
	taken   bool            // whether the last attempt got ErrVersionTaken
	last    *table.Proposal // of the last of them
}

// DefaultMaxAttempts is the default of Loop.MaxAttempts. A writer that commits every
// five to ten milliseconds costs a few attempts.
const DefaultMaxAttempts = 100

// SettleTime bounds the work after ctx is done: finding out whether the transaction
// was committed, and deleting objects.
const SettleTime = time.Minute

// Done is how a transaction ended.
type Done struct {
	// Version is the version that holds the transaction or, if Nothing, the version
	// that already has all that the transaction would do.
	Version uint64
	Nothing bool
	// Snapshot is that version as the engine returned it; nil if it did not.
	Snapshot *table.Snapshot
	// Found is the transaction as the loop found it in the table, after an answer was
	// lost; nil if the engine answered.
	Found *table.Transaction
	// Lost names objects of the version that are gone already; nil if all exist.
	Lost *LostError
}

// OvertakenError says that all attempts came too late. It is a [table.ErrConflict]:
// nothing is wrong with the transaction.
type OvertakenError struct {
	By, Table string
	// Version is the newest version that was seen.
	Version  uint64
	Attempts int
}

func (e *OvertakenError) Error() string {
	return fmt.Sprintf("%s: table %s version %d: other writers were faster %d times; run again", e.By, e.Table, e.Version, e.Attempts)
}

// Unwrap makes it a table.ErrConflict.
func (e *OvertakenError) Unwrap() error { return table.ErrConflict }

// HistoryGoneError says that a clean-up removed versions before the loop read their
// transactions, so that the work cannot be rebased over them. It is a
// [table.ErrTerminal]: this transaction cannot succeed. The same work, done again from
// the newest version, can.
type HistoryGoneError struct {
	By, Table string
	// Some of the versions above After and up to UpTo are gone.
	After, UpTo uint64
	Err         error
}

func (e *HistoryGoneError) Error() string {
	return fmt.Sprintf("%s: table %s: what happened between versions %d and %d cannot be told any more: %v", e.By, e.Table, e.After, e.UpTo, e.Err)
}

// Unwrap makes it a table.ErrTerminal beside the engine's error.
func (e *HistoryGoneError) Unwrap() []error { return []error{table.ErrTerminal, e.Err} }

// Attempts is the number of attempts so far that reached the engine's Commit.
func (l *Loop) Attempts() int { return l.tried }

// Unknown says whether an attempt may have been committed: its answer was lost, and
// the loop has not seen its version.
func (l *Loop) Unknown() bool { return l.unknown }

func (l *Loop) ensureDefaults() {
	if l.By == "" {
		l.By = "commit"
	}
	if l.MaxAttempts == 0 {
		l.MaxAttempts = DefaultMaxAttempts
	}
	if l.Threads == 0 {
		l.Threads = 8
	}
	if l.Sleep == nil {
		l.Sleep = Sleep
	}
	if l.Hooks.Begin == nil {
		l.Hooks.Begin = func(Info) {}
	}
	if l.Hooks.End == nil {
		l.Hooks.End = func(Info) {}
	}
	if l.Hooks.Pause == nil {
		l.Hooks.Pause = func(int, time.Duration) {}
	}
}

// Commit makes attempts until one is committed. propose returns the proposal over a
// window's base, or nil if the base needs no change; the proposal's transaction must
// have the loop's ID.
//
// After ErrVersionTaken or a lost answer Commit tries again; any other error ends it,
// errors of propose included. If Commit returns a [table.ErrAmbiguousCommit], nobody
// knows whether the transaction was committed; after any other error it was not, and
// never will be. When attempts run out, the error is an [*OvertakenError].
//
// Right after the commit it checks that the objects which the version brought in still
// exist; see [Done].
func (l *Loop) Commit(ctx context.Context, propose func(context.Context, Window) (*table.Proposal, error)) (Done, error) {
	l.ensureDefaults()
	done, err := l.commit(ctx, propose)
	if err == nil && !done.Nothing && l.last != nil && done.Version == l.last.Base.Version+1 {
		done.Lost = l.lookAgain(ctx, l.last, done.Snapshot)
	}
	return done, err
}

func (l *Loop) commit(ctx context.Context, propose func(context.Context, Window) (*table.Proposal, error)) (Done, error) {
	for n := 1; n <= l.MaxAttempts; n++ {
		start := time.Now()
		done, err := l.attempt(ctx, n, propose)
		switch {
		case err == nil:
			return done, nil
		case errors.Is(err, table.ErrAmbiguousCommit) || errors.Is(err, table.ErrVersionTaken):
			if errors.Is(err, table.ErrAmbiguousCommit) {
				l.unknown = true
			}
			if n == l.MaxAttempts {
				continue
			}
			if err := l.pause(ctx, n, time.Since(start)); err != nil {
				return l.end(ctx, err)
			}
		default:
			return l.end(ctx, err)
		}
	}
	return l.end(ctx, &OvertakenError{By: l.By, Table: l.Table, Version: l.Seen, Attempts: l.MaxAttempts})
}

// attempt tries once to commit. After ErrVersionTaken and ErrAmbiguousCommit the
// caller tries again.
func (l *Loop) attempt(ctx context.Context, n int, propose func(context.Context, Window) (*table.Proposal, error)) (Done, error) {
	w, err := l.look(ctx)
	if err != nil {
		return Done{}, err
	}
	if tx := l.own(w); tx != nil {
		return Done{Version: tx.Version, Found: tx}, nil
	}
	if w.Base.Version >= l.target {
		l.unknown = false // somebody else has the version
	}
	proposal, err := propose(ctx, w)
	if err != nil {
		return Done{}, err
	}
	if proposal == nil {
		return Done{Version: w.Base.Version, Nothing: true, Snapshot: w.Base}, nil
	}
	info := Info{Attempt: n, Proposal: proposal}
	l.Hooks.Begin(info)
	l.tried, l.target, l.last = l.tried+1, w.Base.Version+1, proposal
	s, err := l.Engine.Commit(ctx, *proposal)
	l.taken = errors.Is(err, table.ErrVersionTaken)
	if info.Err = err; err == nil {
		info.Version = s.Version
	}
	l.Hooks.End(info)
	if err != nil {
		return Done{}, fmt.Errorf("%s: table %s: commit of version %d: %w", l.By, l.Table, l.target, err)
	}
	return Done{Version: s.Version, Snapshot: s}, nil
}

// look loads the newest version and the transactions after l.Seen.
func (l *Loop) look(ctx context.Context) (Window, error) {
	s, err := l.Engine.Load(ctx, 0)
	if err != nil {
		return Window{}, fmt.Errorf("%s: table %s: load the latest version: %w", l.By, l.Table, err)
	}
	w := Window{Base: s}
	if s.Version == l.Seen {
		return w, nil
	}
	if l.Seen > 0 {
		w.Transactions, err = l.Engine.TransactionsSince(ctx, l.Seen, s.Version)
	}
	if errors.Is(err, table.ErrNotFound) || errors.Is(err, table.ErrTerminal) {
		return w, &HistoryGoneError{By: l.By, Table: l.Table, After: l.Seen, UpTo: s.Version, Err: err}
	}
	if err != nil {
		return w, fmt.Errorf("%s: table %s: transactions from version %d to %d: %w", l.By, l.Table, l.Seen+1, s.Version, err)
	}
	l.Seen = s.Version
	return w, nil
}

// own finds the loop's transaction in the window; nil if it is not there.
func (l *Loop) own(w Window) *table.Transaction {
	for i := range w.Transactions {
		if w.Transactions[i].ID == l.ID {
			return &w.Transactions[i]
		}
	}
	return nil
}

// end ends the loop after an error. If an attempt was committed after all, end returns
// success; if nobody can tell, a table.ErrAmbiguousCommit. That error quotes the cause
// and does not wrap it: a wrapped conflict would make the caller start again.
func (l *Loop) end(ctx context.Context, cause error) (Done, error) {
	// Look even if this loop sent nothing: an earlier loop may have used the id, and
	// have ended with the outcome unknown.
	if l.Fresh && l.tried == 0 {
		return Done{}, cause
	}
	found, settled, err := l.settle(ctx)
	switch {
	case found != nil:
		return Done{Version: found.Version, Found: found}, nil
	case settled:
		return Done{}, cause
	}
	return Done{}, fmt.Errorf("%w: %v", table.ErrAmbiguousCommit, errors.Join(cause, err))
}

// settle finds out whether the transaction was committed, and returns it if so. It
// looks for a while even if ctx is done; settled says whether the answer is known.
func (l *Loop) settle(ctx context.Context) (found *table.Transaction, settled bool, err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), SettleTime)
	defer cancel()
	const looks = 5
	for i := range looks {
		if i > 0 {
			if err = l.Sleep(ctx, 100*time.Millisecond<<i); err != nil {
				break
			}
		}
		var w Window
		if w, err = l.look(ctx); errors.Is(err, table.ErrTerminal) {
			// A clean-up removed versions, and their transactions stay unknown. But
			// if the engine was sure of every attempt, none of them is ours.
			return nil, l.Fresh && l.taken && !l.unknown, err
		}
		if err != nil {
			continue
		}
		if tx := l.own(w); tx != nil {
			return tx, true, nil
		}
		// Another writer has the version, or the engine was sure that it changed
		// nothing. Otherwise the write that was sent may still arrive.
		if l.Seen >= l.target || !l.unknown {
			return nil, true, nil
		}
	}
	return nil, false, err
}

// pause waits before the next attempt.
func (l *Loop) pause(ctx context.Context, attempt int, cost time.Duration) error {
	d := backoff.Pause(attempt, cost)
	l.Hooks.Pause(attempt, d)
	return l.Sleep(ctx, d)
}
