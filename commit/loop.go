package commit

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rehome-db/rehome/table"
)

// Engine is what the loop needs of one.
type Engine interface {
	table.Loader
	table.Committer
}

// Window is what one attempt has to be made for.
type Window struct {
	// Base is the newest version, which the attempt is to replace.
	Base *table.Snapshot
	// Transactions are those of the versions up to Base that no earlier attempt was
	// shown, oldest first.
	Transactions []table.Transaction
}

// Info is one attempt that got as far as a commit.
type Info struct {
	// Attempt counts from 1, those that did not get that far included.
	Attempt  int
	Proposal *table.Proposal
	// Version and Err are the outcome; zero before it.
	Version uint64
	Err     error
}

// Hooks are told what happens. Each may be nil.
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
	// Fresh says that nobody can have used the ID before. Then what was committed
	// before the first attempt need not be known for a failure to be a failure.
	Fresh bool
	// Seen is the newest version whose transaction needs no looking at: the one
	// that the work was computed from. With 0, what came before the first attempt is
	// not looked at. The loop moves it on.
	Seen uint64
	// MaxAttempts bounds the attempts. The default is [DefaultMaxAttempts].
	MaxAttempts int
	// Sleep waits. The default is [Sleep].
	Sleep func(context.Context, time.Duration) error
	Hooks Hooks

	tried   int             // attempts that called Commit
	target  uint64          // the version that the last of them may have become
	unknown bool            // whether the engine said that it cannot know
	taken   bool            // whether the last attempt was told that it came too late
	last    *table.Proposal // that was tried
}

// DefaultMaxAttempts is the number of attempts if nobody says otherwise. A writer
// that commits all the time, every five to ten milliseconds, costs a few of them.
const DefaultMaxAttempts = 100

// SettleTime bounds what goes on after the caller has given up: finding out whether
// a transaction was committed, and cleaning up.
const SettleTime = time.Minute

// Done is how a transaction ended.
type Done struct {
	// Version holds the transaction or, if there was nothing to commit, is the one
	// that needs nothing.
	Version uint64
	Nothing bool
	// Snapshot is that version as the engine returned it; nil if it did not.
	Snapshot *table.Snapshot
	// Found is the transaction as it was found in the table, after its answer was
	// lost; nil if the engine answered.
	Found *table.Transaction
	// Lost says that objects of the version are gone already; nil if all are there.
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

// HistoryGoneError says that versions which others committed were removed before they
// were looked at, so that the transaction cannot be carried over them. It is a
// [table.ErrTerminal]: this transaction is of no use any more. Work that is done again
// from the newest version can succeed.
type HistoryGoneError struct {
	By, Table string
	// After and UpTo bound the versions, some of which are gone.
	After, UpTo uint64
	Err         error
}

func (e *HistoryGoneError) Error() string {
	return fmt.Sprintf("%s: table %s: what happened between versions %d and %d cannot be told any more: %v", e.By, e.Table, e.After, e.UpTo, e.Err)
}

// Unwrap makes it a table.ErrTerminal, and whatever the engine said.
func (e *HistoryGoneError) Unwrap() []error { return []error{table.ErrTerminal, e.Err} }

// Attempts is the number of attempts so far that got as far as a commit.
func (l *Loop) Attempts() int { return l.tried }

// Unknown says whether an attempt may have been committed, by all that is known: its
// answer was lost, and nobody else has its version.
func (l *Loop) Unknown() bool { return l.unknown }

func (l *Loop) ensureDefaults() {
	if l.By == "" {
		l.By = "commit"
	}
	if l.MaxAttempts == 0 {
		l.MaxAttempts = DefaultMaxAttempts
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

// Commit makes attempts until one is committed. propose makes what is to be
// committed over a window's version, nil if that version needs nothing; its
// transaction must have the loop's ID.
//
// An attempt that others overtook asks for another; any other error ends it, one of
// propose included. If the error is a [table.ErrAmbiguousCommit], nobody can tell
// whether the transaction was committed; after any other it was not, and never will
// be. When attempts run out, the error is an [*OvertakenError].
//
// Right after the commit it looks again whether everything that was committed is there;
// see [Done].
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

// attempt tries once to commit. ErrVersionTaken and ErrAmbiguousCommit ask for
// another attempt.
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

// look loads the newest version and the transactions that were not seen yet.
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

// own finds the transaction among those that were committed; nil if it is not there.
func (l *Loop) own(w Window) *table.Transaction {
	for i := range w.Transactions {
		if w.Transactions[i].ID == l.ID {
			return &w.Transactions[i]
		}
	}
	return nil
}

// end is how attempts end that failed with cause: if one turns out to have been
// committed after all, that is a success; and if nobody can tell, the error is a
// table.ErrAmbiguousCommit that says what led there. That is told and not wrapped:
// that it was a conflict, for example, must not make the caller start again.
func (l *Loop) end(ctx context.Context, cause error) (Done, error) {
	// Also if nothing was committed here: who uses an id again may have committed
	// under it before, and have been told that the outcome is unknown.
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

// settle finds out whether the transaction was committed: it returns it if so. It
// goes on looking for a while even if ctx is done, and settled says whether the
// answer is known.
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
			// What was committed in between was cleaned up, and stays unknown; but
			// if the engine was sure of every attempt, nothing of ours is in it.
			return nil, l.Fresh && l.taken && !l.unknown, err
		}
		if err != nil {
			continue
		}
		if tx := l.own(w); tx != nil {
			return tx, true, nil
		}
		// Somebody else has the version, or the engine was sure that it changed
		// nothing. Otherwise what was sent may still arrive.
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
