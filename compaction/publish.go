package compaction

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"github.com/rehome-db/rehome/commit"
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
	// RowsCarried is the number of rows that others deleted or updated in between
	// and whose deletion was carried to the new fragments.
	RowsCarried uint64   `json:"rows_carried"`
	Decision    Decision `json:"decision"`
	// Transitions is the number of changes of address recorded by the commit.
	Transitions int `json:"transitions"`
	// Leftover are objects of lost groups that could not be deleted.
	Leftover []table.Object `json:"leftover,omitempty"`
}

// PublishedGroup is a group that was committed.
type PublishedGroup struct {
	Sources      []table.FragmentID `json:"sources"`
	Destinations []table.FragmentID `json:"destinations"`
	// RowsCarried is the group's part of [Outcome.RowsCarried].
	RowsCarried uint64 `json:"rows_carried,omitempty"`
	// Emptied are the destinations that have no live row left.
	Emptied []table.FragmentID `json:"emptied,omitempty"`
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
// from the newest version. Rows that were deleted or updated since are carried
// along: the new fragments are published with deletion vectors for them. Groups
// over which others did something else (rewrote the fragments, replaced or added
// columns) are lost, which deletes what was written for them, and the others are
// numbered and published. If none is left the error is a [*ConflictError].
// Whatever the error, the results' objects are deleted, with one exception: on
// [table.ErrAmbiguousCommit] the compaction may be committed or not, and nothing
// was deleted. Publishing the same results again then finds out. A [*commit.LostError]
// comes with the outcome: the compaction was committed, and some of its objects were
// gone right after that.
//
// Publish also recognises results that it has published before and reports that.
// It takes possession of the results: they must not be used for anything else.
func Publish(ctx context.Context, e table.Engine, results []Result, opts Options, ev Events) (Outcome, error) {
	ev.EnsureDefaults()
	opts.EnsureDefaults()
	if err := opts.Validate(); err != nil {
		return Outcome{}, err
	}
	return publish(ctx, e, results, opts, ev, false)
}

// publish is Publish. If the results are fresh, nobody can have published them
// before, and what cannot be looked up any more need not be.
func publish(ctx context.Context, e table.Engine, results []Result, opts Options, ev Events, fresh bool) (Outcome, error) {
	p, err := newPublisher(e, results, opts, ev)
	if err != nil {
		return Outcome{}, err
	}
	p.Fresh = fresh
	done, err := p.Commit(ctx, func(ctx context.Context, look commit.Window) (*table.Proposal, error) {
		fragmentsThatDied(p.died, look.Transactions)
		view, err := viewIndexes(ctx, e, look.Base)
		if err != nil {
			return nil, err
		}
		w := window{base: look.Base, transactions: look.Transactions, footprints: footprintsOf(look.Transactions), died: p.died, view: view}
		if err := p.drop(ctx, w, func(r Result) verdict { return w.judge(r.Task) }); err != nil {
			return nil, err
		}
		proposal, err := p.propose(ctx, w)
		if err != nil {
			return nil, err
		}
		return &proposal, p.checkObjects(ctx)
	})
	switch {
	case err != nil:
		return Outcome{}, p.abandon(ctx, overtaken(err))
	}
	var out Outcome
	if done.Found != nil {
		out = p.published(ctx, *done.Found)
	} else {
		p.dropVectors(ctx, commit.Referred(done.Snapshot))
		out = p.outcome(done.Version)
	}
	p.remember(out.Published)
	if done.Lost != nil {
		return out, done.Lost
	}
	return out, nil
}

// publisher is one call of Publish.
type publisher struct {
	commit.Loop
	engine      table.Engine
	ev          Events
	threads     int
	readVersion uint64
	publishing  Publishing

	results []Result // not lost yet, in table order
	lost    []LostGroup
	left    []table.Object
	died    map[table.FragmentID]bool // see window
	// vectors are the deletion vectors that were written, for any attempt.
	vectors commit.Vectors
	// proposed is what the last attempt proposed.
	proposed Outcome
}

func newPublisher(e table.Engine, results []Result, opts Options, ev Events) (*publisher, error) {
	if len(results) == 0 {
		return nil, errors.New("compaction: no results to publish")
	}
	first := results[0].Task
	p := &publisher{
		Loop: newLoop(e, ev, opts.MaxAttempts, opts.sleep), engine: e, ev: ev,
		threads: opts.Threads, publishing: first.Publishing,
		results: slices.Clone(results), readVersion: first.ReadVersion,
		died: map[table.FragmentID]bool{},
	}
	p.Table = first.Table
	slices.SortFunc(p.results, func(a, b Result) int {
		return cmp.Or(slices.Compare(a.Task.SourceIDs(), b.Task.SourceIDs()), cmp.Compare(a.ID, b.ID))
	})
	taken := map[table.FragmentID]bool{}
	name := make([]byte, 0, len(results)*36)
	for _, r := range p.results {
		if err := r.Task.validate(); err != nil {
			return nil, err
		}
		if r.ID == "" || r.Task.Publishing != p.publishing || r.Task.Table != p.Table {
			return nil, fmt.Errorf("compaction: results to publish together must be of one table and one set of options, and have ids: %q of table %s does not fit", r.ID, r.Task.Table)
		}
		for _, f := range r.Task.Sources {
			if taken[f.ID] {
				return nil, fmt.Errorf("compaction: table %s: fragment %d is a source of two results", p.Table, f.ID)
			}
			taken[f.ID] = true
		}
		p.readVersion = min(p.readVersion, r.Task.ReadVersion)
		name = append(name, r.ID...)
	}
	// Named after the executions: whoever publishes the same results again, after
	// an answer was lost, recognises the transaction as its own.
	p.ID = uuid.NewSHA1(uuid.NameSpaceOID, name).String()
	p.Seen = p.readVersion
	return p, nil
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
		if p.Unknown() {
			// It passed before, over the same version, and may be committed.
			return fmt.Errorf("compaction: table %s: %w", p.Table, table.ErrAmbiguousCommit)
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
		return &ConflictError{Table: p.Table, Version: w.base.Version, Lost: p.lost, Attempts: p.Attempts()}
	}
	return nil
}

// checkObjects makes sure that every file to be referred to is still there, whole:
// a clean-up run by somebody else may take files that no version refers to yet.
func (p *publisher) checkObjects(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(p.threads)
	for _, r := range p.results {
		for _, o := range r.Objects {
			g.Go(func() error {
				size, err := p.engine.Stat(ctx, o)
				switch {
				case errors.Is(err, table.ErrNotFound):
					return table.Conflictf("compaction: table %s: %s object %s was removed before it could be published, perhaps by a clean-up of unreferenced files; run again", p.Table, o.Kind, o.Path)
				case err != nil:
					return fmt.Errorf("compaction: table %s: check of %s object %s: %w", p.Table, o.Kind, o.Path, err)
				case size != o.Bytes && o.Bytes != 0:
					return table.Corruptf("compaction: table %s: %s object %s has %d bytes, %d were written", p.Table, o.Kind, o.Path, size, o.Bytes)
				}
				return nil
			})
		}
	}
	return g.Wait()
}
