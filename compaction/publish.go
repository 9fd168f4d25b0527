package compaction

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/rehome-db/rehome/commit"
	"github.com/rehome-db/rehome/rebase"
	"github.com/rehome-db/rehome/table"
)

// Publication is what [Publish] did. It is plain data.
type Publication struct {
	rebase.Committed
	Decision Decision `json:"decision"`
	// Transitions is the number of changes of address recorded by the commit.
	Transitions int `json:"transitions"`
}

// Publish commits the results of tasks, all in one commit, and is the only step
// of a compaction that changes the table. Of opts it uses MaxAttempts, Threads and Events;
// what the commit contains was decided by the options that the tasks carry.
//
// It calls [rebase.Commit] with the tasks' groups. Deletions and updates since the read
// are carried to the new fragments. A group whose fragments others rewrote, or whose
// columns they replaced or added to, is lost and its objects are deleted; the other
// groups are published. If none is left the error is a [*rebase.ConflictError]. On every
// error Publish deletes the results' objects, with two exceptions. After
// [table.ErrAmbiguousCommit] the compaction may be committed, and nothing was deleted:
// publish the same results again to find out. With a [*commit.LostError] the compaction
// is committed, as the publication says, and some of its objects were gone right after.
//
// Publish recognises results that it has published before, and reports that. It owns
// the results: the caller must not use them for anything else.
func Publish(ctx context.Context, e table.Engine, results []Result, opts Options) (Publication, error) {
	opts.EnsureDefaults()
	if err := opts.Validate(); err != nil {
		return Publication{}, err
	}
	return publish(ctx, e, results, opts, false)
}

// publish is Publish. If the results are fresh, nobody can have published them before,
// and publish need not look for their transaction in removed versions.
func publish(ctx context.Context, e table.Engine, results []Result, opts Options, fresh bool) (Publication, error) {
	u, damaged, err := uncommitted(results)
	if err != nil {
		return Publication{}, err
	}
	p := publisher{engine: e, publishing: results[0].Task.Publishing}
	done, err := rebase.Commit(ctx, e, u, rebase.Options{
		By: "compaction", Fresh: fresh, MaxAttempts: opts.MaxAttempts, Threads: opts.Threads, Sleep: opts.sleep, Hooks: hooks(opts.Events),
		Discarded: opts.Events.discarded,
		Rewriting: rebase.Rewriting{Admit: p.admit, Complete: p.complete, Lost: func(l rebase.LostGroup) { opts.Events.GroupLost(GroupLostInfo(l)) }},
	})
	var gone *commit.LostError
	if err != nil && !errors.As(err, &gone) {
		return Publication{}, errors.Join(err, damaged)
	}
	if done.Lost == nil {
		done.Lost = []rebase.LostGroup{}
	}
	return Publication{Committed: done, Decision: p.decision, Transitions: p.transitions}, err
}

// uncommitted is what the tasks rewrote, as one change. It is named after the
// executions: whoever publishes the same results again, after an answer was lost,
// recognises the transaction as its own, so that damage in a result is an error only
// if it was not published before.
func uncommitted(results []Result) (u rebase.Uncommitted, damaged, err error) {
	if len(results) == 0 {
		return u, nil, errors.New("compaction: no results to publish")
	}
	results = slices.Clone(results)
	slices.SortFunc(results, func(a, b Result) int {
		return cmp.Or(slices.Compare(a.Task.SourceIDs(), b.Task.SourceIDs()), cmp.Compare(a.ID, b.ID))
	})
	first := results[0].Task
	u = rebase.Uncommitted{Table: first.Table, Transaction: table.Transaction{ReadVersion: first.ReadVersion, Operation: table.Rewrite{}}}
	name := make([]byte, 0, len(results)*36)
	for _, r := range results {
		if err := r.Task.validate(); err != nil {
			return u, nil, err
		}
		if r.ID == "" || r.Task.Publishing != first.Publishing || r.Task.Table != u.Table {
			return u, nil, fmt.Errorf("compaction: results to publish together must be of one table and one set of options, and have ids: %q of table %s does not fit", r.ID, r.Task.Table)
		}
		g, err := r.Group()
		damaged = errors.Join(damaged, err)
		u.Groups = append(u.Groups, g)
		u.Transaction.ReadVersion = min(u.Transaction.ReadVersion, r.Task.ReadVersion)
		name = append(name, r.ID...)
	}
	u.Transaction.ID = uuid.NewSHA1(uuid.NameSpaceOID, name).String()
	return u, damaged, u.Validate()
}

// publisher decides, at each attempt, what becomes of indexes.
type publisher struct {
	engine      table.Engine
	publishing  Publishing
	view        indexView // of the version that is to be replaced
	decision    Decision
	transitions int
}

// admit chooses the index policy for the groups, and loses those that an index, built
// in the meantime, covers in part. Such a group costs less to make again than leaving
// every index behind for its sake.
func (p *publisher) admit(ctx context.Context, base *table.Snapshot, groups []rebase.Placed) (lost map[int]string, err error) {
	if p.view, err = viewIndexes(ctx, p.engine, base); err != nil {
		return nil, err
	}
	lost = map[int]string{}
	var all, whole [][]table.FragmentID
	for i, g := range groups {
		all = append(all, g.Present)
		if why := straddles(p.view.indexes, retargetable(base), g.SourceIDs(), g.Present); why != "" {
			lost[i] = why + ", and it is to answer for the new ones"
		} else {
			whole = append(whole, g.Present)
		}
	}
	gain := anyGain(p.view.indexes, whole)
	if p.decision, err = decide(base, p.view, p.publishing, all, gain); err != nil || !p.decision.retargets() {
		return nil, err
	}
	if len(lost) > 0 && len(whole) > 0 {
		p.decision, err = decide(base, p.view, p.publishing, whole, gain)
	}
	return lost, err
}

// complete adds the coverage of indexes and the fragment reuse index to the change.
// Both depend on the version that is replaced and on the ids of the new fragments, so
// nothing of them is kept for the next attempt.
func (p *publisher) complete(ctx context.Context, base *table.Snapshot, groups []rebase.Placed, change *table.Change) (err error) {
	change.SetCoverage = p.decision.coverage(p.view.indexes, groups)
	p.transitions = 0
	if p.decision.PublishFRI {
		change.Reuse, p.transitions, err = extend(ctx, p.engine, base, groups)
	}
	return err
}

// hooks tells the attempts of package commit as events of a compaction.
func hooks(ev Events) commit.Hooks {
	return commit.Hooks{
		Begin: func(i commit.Info) { ev.CommitBegin(commitInfo(i)) },
		End:   func(i commit.Info) { ev.CommitEnd(commitInfo(i)) },
		Pause: func(attempt int, d time.Duration) { ev.Backoff(BackoffInfo{Attempt: attempt, Pause: d}) },
	}
}

func commitInfo(i commit.Info) CommitInfo {
	p := i.Proposal
	info := CommitInfo{Attempt: i.Attempt, Base: p.Base.Version, PublishFRI: p.Change.Reuse != nil, Version: i.Version, Err: i.Err}
	switch op := p.Transaction.Operation.(type) {
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
	return info
}

// discarded tells of objects that were written in vain.
func (ev Events) discarded(deleted []table.Object, err error) {
	info := ObjectsInfo{Deleted: deleted}
	var left *commit.LeftoverError
	if errors.As(err, &left) {
		info.Left, info.Err = left.Objects, left.Err
	}
	ev.ObjectsDeleted(info)
}

// discard deletes objects that the caller made and nothing refers to. It does so
// even if ctx is done. The error is a [*commit.LeftoverError].
func discard(ctx context.Context, e table.ObjectStore, objects []table.Object, ev Events) error {
	if len(objects) == 0 {
		return nil
	}
	deleted, err := commit.Discard(ctx, e, "compaction", objects)
	ev.discarded(deleted, err)
	return err
}
