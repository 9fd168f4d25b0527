package rebase

import (
	"context"
	"errors"
	"fmt"

	"github.com/rehome-db/rehome/commit"
	"github.com/rehome-db/rehome/table"
)

// Committed is what a commit of a change did. It is plain data but for Snapshot.
type Committed struct {
	Table string `json:"table"`
	// Version is the version that holds the change or, if Nothing, one that needs
	// nothing: all of the rows are deleted already, and there are no new ones.
	Version uint64 `json:"version"`
	Nothing bool   `json:"nothing,omitempty"`
	// ReadVersion is the version that the change was computed from.
	ReadVersion uint64 `json:"read_version"`
	// RebasedOver are the versions that others committed in between.
	RebasedOver []uint64 `json:"rebased_over"`
	// RowsDeleted is the number of rows that this commit deleted. If it was found
	// in the table, from an earlier call, others may have deleted some of them.
	RowsDeleted uint64 `json:"rows_deleted"`
	// RowsMerged is the number of rows that others had deleted already.
	RowsMerged uint64 `json:"rows_merged"`
	// RowsRelocated is the number of rows to delete that were followed to another
	// address; of a rewrite, of those that others deleted since it read them.
	RowsRelocated uint64 `json:"rows_relocated"`
	// Added are the ids that the new fragments got.
	Added []table.FragmentID `json:"added"`
	// Attempts is the number of commits tried, by this call.
	Attempts int `json:"attempts"`
	// Leftover are objects of lost attempts that could not be deleted.
	Leftover []table.Object `json:"leftover,omitempty"`
	// Snapshot is the version, as the engine returned it or, if its answer was
	// lost, loaded again; nil if even that failed.
	Snapshot *table.Snapshot `json:"-"`
}

// KeysClash says whether rows that others inserted have a key that the change
// inserts as the first to have it. added are fragments of base, the version that
// the other change made. See [CommitBuilder.WithKeysClash].
type KeysClash func(ctx context.Context, base *table.Snapshot, added []table.Fragment) (bool, error)

// CommitBuilder commits changes of rows. Each With method returns a builder that
// has one setting more and leaves the one it is called on as it is, so that a
// builder may be kept and shared.
type CommitBuilder struct {
	engine      table.Engine
	affected    RowSet
	addresses   []*ChangeOfAddress
	memory      Memory
	keysClash   KeysClash
	fresh       bool
	maxAttempts int
	threads     int
	hooks       commit.Hooks
}

const defaultThreads = 4

// NewCommitBuilder returns a builder of commits to the engine's table, with the
// engine's memory if it is a [Rememberer].
func NewCommitBuilder(e table.Engine) CommitBuilder {
	return CommitBuilder{engine: e, memory: MemoryOf(e)}
}

// WithAffectedRows sets the rows to be deleted, instead of those that the change
// came with.
func (b CommitBuilder) WithAffectedRows(rows RowSet) CommitBuilder {
	b.affected = rows
	return b
}

// WithChangeOfAddress adds a change of address that is known: of a rewrite that the
// change may meet or, if the change is a rewrite itself, its own.
func (b CommitBuilder) WithChangeOfAddress(c ...*ChangeOfAddress) CommitBuilder {
	b.addresses = append(b.addresses[:len(b.addresses):len(b.addresses)], c...)
	return b
}

// WithMemory sets where changes of address are looked up and remembered; nil is
// nowhere. The default is the engine's.
func (b CommitBuilder) WithMemory(m Memory) CommitBuilder {
	b.memory = m
	return b
}

// WithKeysClash has the keys compared where a change that inserts unique keys meets
// rows that others inserted. Without it that is a conflict.
func (b CommitBuilder) WithKeysClash(f KeysClash) CommitBuilder {
	b.keysClash = f
	return b
}

// WithFreshID says that nobody can have committed under the transaction's id before:
// the change was computed just now. A failure before the first attempt is then a
// failure, whatever cannot be looked up any more; and that versions since the read
// version were removed is a [*ConflictError] that computing the change anew resolves.
func (b CommitBuilder) WithFreshID() CommitBuilder {
	b.fresh = true
	return b
}

// WithMaxAttempts bounds the commits tried. The default is 100.
func (b CommitBuilder) WithMaxAttempts(n int) CommitBuilder {
	b.maxAttempts = n
	return b
}

// WithThreads bounds the calls to the engine at a time. The default is 4.
func (b CommitBuilder) WithThreads(n int) CommitBuilder {
	b.threads = n
	return b
}

// WithHooks has attempts told as they are made. The default is nobody.
func (b CommitBuilder) WithHooks(h commit.Hooks) CommitBuilder {
	b.hooks = h
	return b
}

// Execute commits the change over the newest version: it carries it over what
// others committed since it was computed, and does so again as long as others are
// faster. The error is a [*ConflictError] if that is impossible, or a
// [*commit.OvertakenError] if attempts run out. Whatever the error, the change's
// objects are deleted, with one exception: on [table.ErrAmbiguousCommit] the change
// may be committed or not, and nothing was deleted. Executing the same change again
// then finds out. A [*commit.LostError] comes with what was committed: it was, and some
// of its objects were gone right after that.
func (b CommitBuilder) Execute(ctx context.Context, u Uncommitted) (Committed, error) {
	r, err := NewTransactionRebase(b, u)
	if err != nil {
		return Committed{}, err
	}
	l := commit.Loop{
		Engine: b.engine, By: "rebase", Table: u.Table, ID: u.Transaction.ID,
		Seen: u.Transaction.ReadVersion, Fresh: b.fresh, MaxAttempts: b.maxAttempts, Hooks: b.hooks,
	}
	done, err := l.Commit(ctx, func(ctx context.Context, w commit.Window) (*table.Proposal, error) {
		if err := r.Over(ctx, w.Base, w.Transactions); err != nil {
			return nil, err
		}
		p, err := r.Propose(ctx, w.Base)
		if err != nil || p == nil {
			return nil, err
		}
		return p, r.checkObjects(ctx)
	})
	if err != nil {
		return Committed{}, r.abandon(ctx, r.historyGone(err))
	}
	out := r.committed(ctx, done, l.Attempts())
	if done.Lost != nil {
		return out, done.Lost
	}
	return out, nil
}

// historyGone makes a conflict of the loss of versions that the change would have to be
// carried over: it was not committed, and can be computed again.
func (r *TransactionRebase) historyGone(err error) error {
	var gone *commit.HistoryGoneError
	if !errors.As(err, &gone) || errors.Is(err, table.ErrAmbiguousCommit) {
		return err
	}
	return r.conflictAt(gone.UpTo, nil, "versions since %d were removed, and what happened in them cannot be told any more (%v)", gone.After, gone.Err)
}

// checkObjects makes sure that every file to be referred to is still there, whole: a
// clean-up run by somebody else may take files that no version refers to yet.
func (r *TransactionRebase) checkObjects(ctx context.Context) error {
	return r.each(ctx, len(r.u.Objects), func(ctx context.Context, i int) error {
		o := r.u.Objects[i]
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

// abandon ends a commit that failed with cause: everything that was written is
// deleted or, if nobody can tell whether it was committed, kept.
func (r *TransactionRebase) abandon(ctx context.Context, cause error) error {
	objects := append(r.vectors.Unreferred(nil), r.u.Objects...)
	if errors.Is(cause, table.ErrAmbiguousCommit) {
		return fmt.Errorf("rebase: table %s: whether transaction %s was committed is unknown; the %d objects written for it were kept; commit the same change again to find out: %w",
			r.u.Table, r.u.Transaction.ID, len(objects), cause)
	}
	r.vectors.Forget()
	_, err := commit.Discard(ctx, r.engine, "rebase", objects)
	return errors.Join(cause, err)
}

// committed describes how a commit ended well, and deletes what lost attempts wrote.
func (r *TransactionRebase) committed(ctx context.Context, done commit.Done, attempts int) Committed {
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
	var unused []table.Object
	switch {
	case done.Nothing:
		unused = append(r.vectors.Unreferred(nil), r.u.Objects...)
	case out.Snapshot != nil:
		unused = r.vectors.Unreferred(commit.Referred(out.Snapshot))
		// Which attempt was committed shows in the version.
		out.Added = []table.FragmentID{}
		for _, f := range withFilesOf(out.Snapshot, r.newFragments()) {
			out.Added = append(out.Added, f.ID)
		}
		r.remember(ctx, out.Snapshot, out.Added)
	}
	r.vectors.Forget()
	_, err := commit.Discard(ctx, r.engine, "rebase", unused)
	out.Leftover = commit.Leftovers(err)
	return out
}

func (r *TransactionRebase) newFragments() (out []table.Fragment) {
	for _, f := range r.u.New {
		out = append(out, table.Fragment{PhysicalRows: f.PhysicalRows, Files: f.Files})
	}
	return out
}
