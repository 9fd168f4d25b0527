package compaction

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"github.com/rehome-db/rehome/table"
)

// Outcome is what [Publish] did. It is plain data.
type Outcome struct {
	Table string `json:"table"`
	// Version is the version that holds the compaction.
	Version uint64 `json:"version"`
	// ReadVersion is the oldest version that a published task read.
	ReadVersion uint64 `json:"read_version"`
	// RebasedOver are the versions that others committed in between.
	RebasedOver []uint64 `json:"rebased_over"`
	// Attempts is the number of commits tried, by this call.
	Attempts  int              `json:"attempts"`
	Published []PublishedGroup `json:"published"`
	Lost      []LostGroup      `json:"lost"`
	Decision  Decision         `json:"decision"`
	// Transitions is the number of changes of address recorded by the commit.
	Transitions int `json:"transitions"`
	// Leftover are objects of lost groups that could not be deleted.
	Leftover []table.Object `json:"leftover,omitempty"`
}

// PublishedGroup is a group that was committed.
type PublishedGroup struct {
	Sources      []table.FragmentID `json:"sources"`
	Destinations []table.FragmentID `json:"destinations"`
}

// LostGroup is a group that was not, because of what others committed.
type LostGroup struct {
	Sources []table.FragmentID `json:"sources"`
	Reason  string             `json:"reason"`
}

// ConflictError says that no group could be published. It is a
// [table.ErrConflict]: planning again from the current version can succeed.
type ConflictError struct {
	Table string
	// Version is the version that was found.
	Version uint64
	Lost    []LostGroup
	// Attempts is the number of commits tried; with Lost empty, all of them were
	// overtaken by other writers.
	Attempts int
}

func (e *ConflictError) Error() string {
	s := fmt.Sprintf("compaction: table %s version %d: nothing is left to publish", e.Table, e.Version)
	if len(e.Lost) == 0 {
		return fmt.Sprintf("compaction: table %s version %d: other writers were faster %d times; run again", e.Table, e.Version, e.Attempts)
	}
	const shown = 3
	for i, l := range e.Lost {
		if i == shown {
			s += fmt.Sprintf("; and %d more", len(e.Lost)-shown)
			break
		}
		s += fmt.Sprintf("; group of fragments %s: %s", idList(l.Sources), l.Reason)
	}
	return s
}

// Unwrap makes it a table.ErrConflict.
func (e *ConflictError) Unwrap() error { return table.ErrConflict }

// Publish commits the results of tasks, all in one commit, and is the only step
// of a compaction that changes the table. Of opts it uses MaxAttempts and Threads;
// what the commit contains was decided by the options that the tasks carry.
//
// Others may have committed since the tasks read the table. Every attempt starts
// from the newest version: groups whose fragments changed since are lost, which
// deletes what was written for them, and the others are numbered and published
// over it. If none is left the error is a [*ConflictError]. Whatever the error,
// the results' objects are deleted, with one exception: on
// [table.ErrAmbiguousCommit] the compaction may be committed or not, and nothing
// was deleted. Publishing the same results again then finds out.
//
// Publish also recognises results that it has published before and reports that.
// It takes possession of the results: they must not be used for anything else.
func Publish(ctx context.Context, e table.Engine, results []Result, opts Options, ev Events) (Outcome, error) {
	ev.EnsureDefaults()
	opts.EnsureDefaults()
	if err := opts.Validate(); err != nil {
		return Outcome{}, err
	}
	p, err := newPublisher(e, results, opts, ev)
	if err != nil {
		return Outcome{}, err
	}
	for attempt := 1; attempt <= opts.MaxAttempts; attempt++ {
		start := time.Now()
		out, err := p.attempt(ctx, attempt)
		switch {
		case err == nil:
			return out, nil
		case errors.Is(err, table.ErrAmbiguousCommit) || errors.Is(err, table.ErrVersionTaken):
			if errors.Is(err, table.ErrAmbiguousCommit) {
				p.unknown = true
			}
			if attempt == opts.MaxAttempts {
				continue
			}
			if err := p.pause(ctx, attempt, time.Since(start)); err != nil {
				return p.giveUp(ctx, err)
			}
		default:
			return p.giveUp(ctx, err)
		}
	}
	return p.giveUp(ctx, &ConflictError{Table: p.table, Version: p.seen, Attempts: opts.MaxAttempts})
}

// publisher is one call of Publish.
type publisher struct {
	engine      table.Engine
	opts        Options
	ev          Events
	table       string
	id          string // of the transaction, over all attempts
	readVersion uint64
	publishing  Publishing

	results []Result // not lost yet, in table order
	lost    []LostGroup
	left    []table.Object
	seen    uint64 // the newest version whose transaction was looked at

	tried   int    // attempts that called Commit
	target  uint64 // the version that the last of them may have become
	unknown bool   // whether the engine said that it cannot know
	// proposed is what the last attempt proposed.
	proposed Outcome
}

func newPublisher(e table.Engine, results []Result, opts Options, ev Events) (*publisher, error) {
	if len(results) == 0 {
		return nil, errors.New("compaction: no results to publish")
	}
	first := results[0].Task
	p := &publisher{
		engine: e, opts: opts, ev: ev, table: first.Table, publishing: first.Publishing,
		results: slices.Clone(results), readVersion: first.ReadVersion,
	}
	slices.SortFunc(p.results, func(a, b Result) int {
		return cmp.Or(slices.Compare(a.Task.SourceIDs(), b.Task.SourceIDs()), cmp.Compare(a.ID, b.ID))
	})
	taken := map[table.FragmentID]bool{}
	name := make([]byte, 0, len(results)*36)
	for _, r := range p.results {
		if err := r.Task.validate(); err != nil {
			return nil, err
		}
		if r.ID == "" || r.Task.Publishing != p.publishing || r.Task.Table != p.table {
			return nil, fmt.Errorf("compaction: results to publish together must be of one table and one set of options, and have ids: %q of table %s does not fit", r.ID, r.Task.Table)
		}
		for _, f := range r.Task.Sources {
			if taken[f.ID] {
				return nil, fmt.Errorf("compaction: table %s: fragment %d is a source of two results", p.table, f.ID)
			}
			taken[f.ID] = true
		}
		p.readVersion = min(p.readVersion, r.Task.ReadVersion)
		name = append(name, r.ID...)
	}
	// Named after the executions: whoever publishes the same results again, after
	// an answer was lost, recognises the transaction as its own.
	p.id = uuid.NewSHA1(uuid.NameSpaceOID, name).String()
	p.seen = p.readVersion
	return p, nil
}

// attempt tries once to commit. ErrVersionTaken and ErrAmbiguousCommit ask for
// another attempt.
func (p *publisher) attempt(ctx context.Context, n int) (Outcome, error) {
	w, err := p.look(ctx)
	if err != nil {
		return Outcome{}, err
	}
	if tx, ok := p.own(w); ok {
		return p.published(tx), nil
	}
	if w.base.Version >= p.target {
		p.unknown = false // somebody else has the version
	}
	if w.view, err = viewIndexes(ctx, p.engine, w.base); err != nil {
		return Outcome{}, err
	}
	if err := p.drop(ctx, w, func(r Result) verdict { return w.judge(r.Task) }); err != nil {
		return Outcome{}, err
	}
	proposal, err := p.propose(ctx, w)
	if err != nil {
		return Outcome{}, err
	}
	if err := p.checkObjects(ctx); err != nil {
		return Outcome{}, err
	}
	info := CommitInfo{Attempt: n, Base: w.base.Version, Groups: len(p.results), PublishFRI: proposal.Change.Reuse != nil}
	p.ev.CommitBegin(info)
	p.tried, p.target = p.tried+1, w.base.Version+1
	s, err := p.engine.Commit(ctx, proposal)
	if info.Err = err; err == nil {
		info.Version = s.Version
	}
	p.ev.CommitEnd(info)
	if err != nil {
		return Outcome{}, fmt.Errorf("compaction: table %s: commit of version %d: %w", p.table, p.target, err)
	}
	return p.outcome(s.Version), nil
}

// look loads the newest version and the transactions that were not seen yet.
func (p *publisher) look(ctx context.Context) (window, error) {
	s, err := p.engine.Load(ctx, 0)
	if err != nil {
		return window{}, fmt.Errorf("compaction: table %s: load the latest version: %w", p.table, err)
	}
	w := window{base: s}
	if s.Version == p.seen {
		return w, nil
	}
	w.transactions, err = p.engine.TransactionsSince(ctx, p.seen, s.Version)
	if errors.Is(err, table.ErrNotFound) {
		return w, fmt.Errorf("compaction: table %s: what happened between versions %d and %d cannot be told any more: %w: %w", p.table, p.seen, s.Version, table.ErrTerminal, err)
	}
	if err != nil {
		return w, fmt.Errorf("compaction: table %s: transactions from version %d to %d: %w", p.table, p.seen+1, s.Version, err)
	}
	p.seen = s.Version
	return w, nil
}

// own finds this publisher's transaction among those that were committed.
func (p *publisher) own(w window) (table.Transaction, bool) {
	for _, tx := range w.transactions {
		if tx.ID == p.id {
			return tx, true
		}
	}
	return table.Transaction{}, false
}

// drop loses the groups that do not pass, which deletes what was written for them.
// The error is a *ConflictError if none is left.
func (p *publisher) drop(ctx context.Context, w window, judge func(Result) verdict) error {
	var kept []Result
	for _, r := range p.results {
		v := judge(r)
		if v.keep {
			kept = append(kept, r)
			continue
		}
		if p.unknown {
			// It passed before, over the same version, and may be committed.
			return fmt.Errorf("compaction: table %s: %w", p.table, table.ErrAmbiguousCommit)
		}
		lost := LostGroup{Sources: r.Task.SourceIDs(), Reason: v.reason}
		p.lost = append(p.lost, lost)
		p.ev.GroupLost(GroupLostInfo(lost))
		var left *LeftoverError
		if errors.As(discard(ctx, p.engine, r.Objects, p.ev), &left) {
			p.left = append(p.left, left.Objects...)
		}
	}
	if p.results = kept; len(kept) == 0 {
		return &ConflictError{Table: p.table, Version: w.base.Version, Lost: p.lost, Attempts: p.tried}
	}
	return nil
}

// checkObjects makes sure that every file to be referred to is still there, whole:
// a clean-up run by somebody else may take files that no version refers to yet.
func (p *publisher) checkObjects(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(p.opts.Threads)
	for _, r := range p.results {
		for _, o := range r.Objects {
			g.Go(func() error {
				size, err := p.engine.Stat(ctx, o)
				switch {
				case errors.Is(err, table.ErrNotFound):
					return table.Conflictf("compaction: table %s: %s object %s was removed before it could be published, perhaps by a clean-up of unreferenced files; run again", p.table, o.Kind, o.Path)
				case err != nil:
					return fmt.Errorf("compaction: table %s: check of %s object %s: %w", p.table, o.Kind, o.Path, err)
				case size != o.Bytes && o.Bytes != 0:
					return table.Corruptf("compaction: table %s: %s object %s has %d bytes, %d were written", p.table, o.Kind, o.Path, size, o.Bytes)
				}
				return nil
			})
		}
	}
	return g.Wait()
}

// pause waits before the next attempt, the longer the more an attempt costs and
// the more of them were lost, so that many writers do not keep each other from
// finishing.
func (p *publisher) pause(ctx context.Context, attempt int, cost time.Duration) error {
	const shortest, longest = 10 * time.Millisecond, 10 * time.Second
	slots := int64(1) << min(attempt, 6)
	d := max(cost, shortest) * time.Duration(rand.Int64N(slots)+1)
	d = min(d, longest)
	p.ev.Backoff(BackoffInfo{Attempt: attempt, Pause: d})
	return p.opts.sleep(ctx, d)
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
