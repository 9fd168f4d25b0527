package rebase

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rehome-db/rehome/commit"
	"github.com/rehome-db/rehome/table"
)

// Committed is the result of a commit. It is plain data but for Snapshot.
type Committed struct {
	Table string `json:"table"`
	// Version is the version that holds the change or, if Nothing, one in which all
	// of the rows are deleted already and the change adds none.
	Version uint64 `json:"version"`
	Nothing bool   `json:"nothing,omitempty"`
	// ReadVersion is the version that the change was computed from.
	ReadVersion uint64 `json:"read_version"`
	// RebasedOver are the versions that others committed in between.
	RebasedOver []uint64 `json:"rebased_over"`
	// RowsDeleted is the number of rows that this commit deleted. If Commit found the
	// change in the table, from an earlier call, others may have deleted some of them.
	RowsDeleted uint64 `json:"rows_deleted"`
	// RowsMerged is the number of rows that others had deleted already.
	RowsMerged uint64 `json:"rows_merged"`
	// RowsRelocated is the number of rows to delete that Commit followed to another
	// address; for a rewrite, these are rows that others deleted since it read them.
	RowsRelocated uint64 `json:"rows_relocated"`
	// Added are the ids of the new fragments, those of groups included.
	Added []table.FragmentID `json:"added"`
	// Published and Lost are the groups of a rewrite.
	Published []PublishedGroup `json:"published,omitempty"`
	Lost      []LostGroup      `json:"lost,omitempty"`
	// Attempts is the number of commits tried, by this call.
	Attempts int `json:"attempts"`
	// Leftover are objects of lost attempts that could not be deleted.
	Leftover []table.Object `json:"leftover,omitempty"`
	// Snapshot is the version, as the engine returned it or, if its answer was
	// lost, loaded again; nil if even that failed.
	Snapshot *table.Snapshot `json:"-"`
}

// publish sets what is published.
func (c *Committed) publish(groups []table.RewriteGroup) {
	c.Published = publishes(groups)
	for _, g := range c.Published {
		c.RowsRelocated += g.RowsCarried
		c.Added = append(c.Added, g.Destinations...)
	}
}

// KeysClash says whether rows that others inserted have a key that this change also
// inserts as unique. added are their fragments, in base, the version that the other
// change made. See [Options].
type KeysClash func(ctx context.Context, base *table.Snapshot, added []table.Fragment) (bool, error)

// Options say how to commit a change. The zero value suits most callers.
type Options struct {
	// By names the committer in messages. The default is "rebase".
	By string
	// Addresses are known changes of address of rewrites that the change may meet. The
	// default is none: Commit finds them.
	Addresses []*ChangeOfAddress
	// Memory looks up and stores changes of address. The default is the engine's, if
	// the engine is a [Rememberer].
	Memory Memory
	// KeysClash compares keys when a change that inserts unique keys meets rows that
	// others inserted. The default is a conflict.
	KeysClash KeysClash
	// Rewriting holds the decisions of the groups' author at each attempt. The default
	// leaves indexes as they are, and refuses tables where that would be wrong.
	Rewriting Rewriting
	// Fresh says that nobody can have committed under the transaction's id before: the
	// change was computed just now. An error before the first attempt then needs no
	// search for the id. If versions since the read version were removed, the error is
	// a retryable [*ConflictError]: compute the change anew. The default is false.
	Fresh bool
	// MaxAttempts bounds the commits tried. The default is
	// [commit.DefaultMaxAttempts].
	MaxAttempts int
	// Threads bounds the calls to the engine at a time. The default is 4.
	Threads int
	// Sleep waits between attempts. The default is [commit.Sleep].
	Sleep func(context.Context, time.Duration) error
	// Hooks are called at each attempt. The default is none.
	Hooks commit.Hooks
	// Discarded gets the objects that lost attempts or groups wrote and that were
	// deleted, and a [*commit.LeftoverError] if some could not be. The default is none.
	Discarded func(deleted []table.Object, err error)
}

func (o *Options) ensureDefaults(e table.Engine) {
	if o.By == "" {
		o.By = "rebase"
	}
	if o.Memory == nil {
		o.Memory = memoryOf(e)
	}
	if o.Threads == 0 {
		o.Threads = 4
	}
	if o.Rewriting.Admit == nil && o.Rewriting.Complete == nil {
		o.Rewriting.Admit = leavesIndexes
	}
}

// Commit rebases a change over what others committed since it was computed and commits
// it over the newest version; it tries again as long as other writers are faster. The
// error is a [*ConflictError] if the change cannot be rebased, or a
// [*commit.OvertakenError] if attempts run out. On every error Commit deletes the
// change's objects, with two exceptions. After [table.ErrAmbiguousCommit] the change may
// be committed, and nothing was deleted: commit the same change again to find out. With
// a [*commit.LostError] the change is committed, as the result says, and some of its
// objects were gone right after that.
func Commit(ctx context.Context, e table.Engine, u Uncommitted, opts Options) (Committed, error) {
	r, err := newRebasing(e, u, opts)
	if err != nil {
		return Committed{}, err
	}
	l := commit.Loop{
		Engine: e, By: r.opts.By, Table: u.Table, ID: u.Transaction.ID, Sleep: opts.Sleep,
		Seen: u.Transaction.ReadVersion, Fresh: opts.Fresh, MaxAttempts: opts.MaxAttempts, Threads: r.opts.Threads, Hooks: opts.Hooks,
	}
	r.unknown = l.Unknown
	done, err := l.Commit(ctx, func(ctx context.Context, w commit.Window) (*table.Proposal, error) {
		if err := r.overAll(ctx, w.Base, w.Transactions); err != nil {
			return nil, err
		}
		p, err := r.propose(ctx, w.Base)
		if err != nil || p == nil {
			return nil, err
		}
		return p, r.checkObjects(ctx)
	})
	if err != nil {
		err = r.historyGone(err)
		var c *ConflictError
		if errors.As(err, &c) {
			c.Attempts = l.Attempts()
		}
		return Committed{}, r.abandon(ctx, err)
	}
	out := r.committed(ctx, done, l.Attempts())
	if done.Lost != nil {
		return out, done.Lost
	}
	return out, nil
}

// historyGone turns the loss of versions in the window into a retryable conflict: the
// change was not committed, and can be computed again.
func (r *rebasing) historyGone(err error) error {
	var gone *commit.HistoryGoneError
	if !errors.As(err, &gone) || errors.Is(err, table.ErrAmbiguousCommit) {
		return err
	}
	return r.conflictAt(gone.UpTo, nil, "versions since %d were removed, and what happened in them cannot be told any more (%v)", gone.After, gone.Err)
}

// objects are the change's objects that are neither committed nor deleted yet.
func (r *rebasing) objects() []table.Object {
	out := r.u.Objects[:len(r.u.Objects):len(r.u.Objects)]
	for _, g := range r.groups {
		out = append(out, g.Objects...)
	}
	return out
}

// checkObjects checks that every file which the commit will refer to still exists, with
// its full size: another's clean-up may delete files that no version refers to yet.
func (r *rebasing) checkObjects(ctx context.Context) error {
	objects := r.objects()
	return r.each(ctx, len(objects), func(ctx context.Context, i int) error {
		o := objects[i]
		size, err := r.engine.Stat(ctx, o)
		switch {
		case errors.Is(err, table.ErrNotFound):
			return table.Conflictf("rebase: table %s: %s object %s was removed before it could be committed, perhaps by a clean-up of unreferenced files; run again", r.u.Table, o.Kind, o.Path)
		case err != nil:
			return fmt.Errorf("rebase: table %s: check of %s object %s: %w", r.u.Table, o.Kind, o.Path, err)
		case size != o.Bytes && o.Bytes != 0:
			return table.Corruptf("rebase: table %s: %s object %s has %d bytes, %d were written", r.u.Table, o.Kind, o.Path, size, o.Bytes)
		}
		return nil
	})
}

// abandon ends a commit that failed with cause. It deletes everything that was written
// or, if nobody can tell whether the change was committed, keeps it.
func (r *rebasing) abandon(ctx context.Context, cause error) error {
	objects := append(r.vectors.Unreferred(nil), r.objects()...)
	if errors.Is(cause, table.ErrAmbiguousCommit) {
		return fmt.Errorf("%s: table %s: whether transaction %s was committed is unknown; the %d objects written for it were kept; commit the same change again to find out: %w",
			r.opts.By, r.u.Table, r.u.Transaction.ID, len(objects), cause)
	}
	r.vectors.Forget()
	r.discard(ctx, objects)
	if len(r.left) == 0 {
		return cause
	}
	return errors.Join(cause, &commit.LeftoverError{By: r.opts.By, Objects: r.left, Err: r.leftErr})
}

// committed makes the result of a successful commit, and deletes what lost attempts
// wrote.
func (r *rebasing) committed(ctx context.Context, done commit.Done, attempts int) Committed {
	out := r.proposed
	if out.Table == "" { // found before anything was proposed: an earlier call's
		out = r.outcome(done.Version)
	}
	out.Version, out.Nothing, out.Attempts, out.Snapshot = done.Version, done.Nothing, attempts, done.Snapshot
	for v := out.ReadVersion + 1; v < done.Version || v == done.Version && done.Nothing; v++ {
		out.RebasedOver = append(out.RebasedOver, v)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), commit.SettleTime)
	defer cancel()
	if out.Snapshot == nil {
		if s, err := r.engine.Load(ctx, done.Version); err == nil {
			out.Snapshot = s
		}
	}
	// The version tells which attempt was committed, and so does the transaction if the
	// loop found it.
	if out.Snapshot != nil && !done.Nothing {
		out.Added = append([]table.FragmentID{}, idsOf(withFilesOf(out.Snapshot, r.newFragments()))...)
	}
	if done.Found != nil {
		if op, ok := done.Found.Operation.(table.Rewrite); ok {
			out.RowsRelocated = 0
			out.publish(op.Groups)
		}
	} else {
		for _, g := range out.Published {
			out.Added = append(out.Added, g.Destinations...)
		}
	}
	r.remember(out.Published)
	var unused []table.Object
	switch {
	case done.Nothing:
		unused = append(r.vectors.Unreferred(nil), r.objects()...)
	case out.Snapshot != nil:
		unused = r.vectors.Unreferred(commit.Referred(out.Snapshot))
	}
	// If the version cannot be read, the vectors stay: a clean-up of unreferenced files
	// finds those that nobody needs.
	r.vectors.Forget()
	r.discard(ctx, unused)
	out.Leftover = r.left
	return out
}

func (r *rebasing) newFragments() (out []table.Fragment) {
	for _, f := range r.u.New {
		out = append(out, table.Fragment{PhysicalRows: f.PhysicalRows, Files: f.Files})
	}
	return out
}
