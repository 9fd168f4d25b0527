package rebase

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"github.com/rehome-db/rehome/commit"
	"github.com/rehome-db/rehome/fri"
	"github.com/rehome-db/rehome/table"
)

// rebasing carries one uncommitted change over everything that others committed since
// the version that it was computed from, oldest first, and makes a proposal of it.
// [Commit] runs it in a loop. It is for one change, and not safe for concurrent use.
type rebasing struct {
	opts    Options
	engine  table.Engine
	u       Uncommitted
	vectors commit.Vectors

	// at is the version that the change was carried to. rows are the affected rows at
	// their addresses there, without those that others are known to have deleted.
	at     uint64
	rows   RowSet
	merged uint64
	// deletes are the deletes of others in the fragments of rows, oldest first.
	deletes map[table.FragmentID][]othersDelete
	// files are the data files that the fragments of rows must have. filesOf is the
	// version that they are of, if it is not the read version. See columns.go.
	files   map[table.FragmentID][]table.DataFile
	filesOf map[table.FragmentID]uint64
	// seen are the transactions of the window, without what they did.
	seen []table.Transaction
	// died are the fragments that others left without a live row.
	died map[table.FragmentID]bool
	// footprint is what the change touches at the version; nil if rows moved since
	// it was computed.
	footprint *footprint
	// reshaped says that columns were changed since the read version.
	reshaped bool
	// loaded is the history of addresses of the version that it was last asked of.
	loaded map[uint64]*fri.History

	// groups are the groups that are not lost, lost the others; left are objects of
	// lost groups that could not be deleted.
	groups []*groupState
	lost   []LostGroup
	left   []table.Object
	// leftErr is why.
	leftErr error
	// unknown says whether an earlier attempt may have been committed.
	unknown func() bool

	proposed Committed // of the last proposal
}

// newRebasing returns the rebase of a change. Of the options those about
// attempts do not matter.
func newRebasing(e table.Engine, u Uncommitted, opts Options) (*rebasing, error) {
	if err := u.Validate(); err != nil {
		return nil, err
	}
	opts.ensureDefaults(e)
	return &rebasing{
		opts: opts, engine: e, u: u, at: u.Transaction.ReadVersion, rows: u.Affected.Clone(),
		files: maps.Clone(u.Files), filesOf: map[table.FragmentID]uint64{},
		deletes: map[table.FragmentID][]othersDelete{}, died: map[table.FragmentID]bool{}, loaded: map[uint64]*fri.History{},
		groups: groupStates(u), unknown: func() bool { return false },
	}, nil
}

// overAll carries the change over the transactions of others since the last call, or
// since the read version, up to the version base. It skips those that it has seen. If
// one is in the way, the error is a [*ConflictError], and the change is lost.
func (r *rebasing) overAll(ctx context.Context, base *table.Snapshot, transactions []table.Transaction) error {
	for _, tx := range transactions {
		if tx.Version <= r.at {
			continue
		}
		if tx.Version != r.at+1 {
			return fmt.Errorf("rebase: table %s: the transactions of versions %d to %d are missing", r.u.Table, r.at+1, tx.Version-1)
		}
		if err := r.over(ctx, base, tx); err != nil {
			return err
		}
		r.at = tx.Version
	}
	return nil
}

func (r *rebasing) over(ctx context.Context, base *table.Snapshot, tx table.Transaction) error {
	r.seen = append(r.seen, table.Transaction{ID: tx.ID, Version: tx.Version, Operation: named(tx.Operation)})
	theirs := footprintOf(tx.Operation)
	if r.rewrites() {
		for _, g := range r.groups {
			g.over(tx, theirs)
		}
	} else {
		if r.footprint == nil {
			r.footprint = footprintOf(r.operation())
		}
		if c := compare(r.footprint, theirs); c.Verdict > relocate {
			return r.conflict(tx, c.Verdict, nil, c.Reason)
		}
	}
	if err := r.compareKeys(ctx, tx); err != nil {
		return err
	}
	switch op := tx.Operation.(type) {
	case table.Merge, table.Project:
		r.reshaped = true
	case table.Delete:
		r.othersDeleted(tx, op.Updated, op.Removed, false)
	case table.Update:
		if op.InPlace {
			op.Updated = nil // no row of them died
		}
		r.othersDeleted(tx, op.Updated, op.Removed, true)
	case table.Rewrite:
		return r.overRewrite(ctx, base, tx, op)
	}
	return nil
}

// rewrites says whether the change is a rewrite. Its groups are compared one by one.
func (r *rebasing) rewrites() bool { return len(r.u.Groups) > 0 }

// operation is the change's operation at the current addresses of its rows, as far as
// a footprint needs it.
func (r *rebasing) operation() table.Operation {
	var updated []table.Fragment
	for _, id := range r.rows.Fragments() {
		updated = append(updated, table.Fragment{ID: id})
	}
	added := make([]table.Fragment, len(r.u.New))
	switch op := r.u.Transaction.Operation.(type) {
	case table.Append:
		return table.Append{Fragments: added}
	case table.Delete:
		return table.Delete{Updated: updated}
	case table.Update:
		out := table.Update{Updated: updated, New: added, UniqueKeys: op.UniqueKeys}
		if r.opts.KeysClash != nil {
			out.UniqueKeys = nil // they are compared one by one
		}
		return out
	default:
		return op
	}
}

// named returns an empty operation with the name of another.
func named(op table.Operation) table.Operation {
	if op == nil {
		return nil
	}
	return table.Unknown{Name: op.Kind()}
}

// conflict makes the error for a transaction in the way.
func (r *rebasing) conflict(tx table.Transaction, v verdict, rows RowSet, reason string) error {
	kind := ""
	if tx.Operation != nil {
		kind = tx.Operation.Kind()
	}
	return &ConflictError{Table: r.u.Table, Version: tx.Version, Transaction: tx.ID, Operation: kind, Rows: rows, Reason: reason, verdict: v}
}

// conflictAt makes the error for a version whose state rules the change out.
func (r *rebasing) conflictAt(version uint64, rows RowSet, format string, args ...any) error {
	return &ConflictError{Table: r.u.Table, Version: version, Rows: rows, Reason: fmt.Sprintf(format, args...), verdict: retry}
}

// compareKeys has KeysClash compare the keys of rows that others inserted with the keys
// that this change asserts to be new.
func (r *rebasing) compareKeys(ctx context.Context, tx table.Transaction) error {
	mine, ok := r.u.Transaction.Operation.(table.Update)
	if !ok || len(mine.UniqueKeys) == 0 || r.opts.KeysClash == nil {
		return nil
	}
	var added []table.Fragment
	switch op := tx.Operation.(type) {
	case table.Append:
		added = op.Fragments
	case table.Update:
		added = op.New
	}
	if len(added) == 0 {
		return nil
	}
	s, err := r.load(ctx, tx.Version)
	if err != nil {
		return err
	}
	// Formats number fragments as they commit: the ids in the transaction need not be
	// final, but each file belongs to one fragment only.
	if added = withFilesOf(s, added); added == nil {
		return r.conflict(tx, retry, nil, "it inserted rows that are not to be found, so that their keys cannot be compared")
	}
	clash, err := r.opts.KeysClash(ctx, s, added)
	switch {
	case err != nil:
		return fmt.Errorf("rebase: table %s version %d: keys that were inserted: %w", r.u.Table, tx.Version, err)
	case clash:
		return r.conflict(tx, retry, nil, "it inserted a row with a key that this change inserts as the first to have it")
	}
	return nil
}

// withFilesOf finds fragments in a version by their files; nil unless all are there.
func withFilesOf(s *table.Snapshot, fragments []table.Fragment) (out []table.Fragment) {
	byPath := map[string]table.Fragment{}
	for _, f := range s.Fragments {
		for _, d := range f.Files {
			byPath[d.Path] = f
		}
	}
	for _, f := range fragments {
		if len(f.Files) == 0 {
			return nil
		}
		found, ok := byPath[f.Files[0].Path]
		if !ok {
			return nil
		}
		out = append(out, found)
	}
	return out
}

// load loads a version. If the version is gone the error is a conflict: nothing else
// can tell what it held.
func (r *rebasing) load(ctx context.Context, version uint64) (*table.Snapshot, error) {
	s, err := r.engine.Load(ctx, version)
	switch {
	case errors.Is(err, table.ErrNotFound):
		return nil, r.conflictAt(version, nil, "the version was removed, and what happened in it cannot be told any more")
	case err != nil:
		return nil, fmt.Errorf("rebase: table %s: load version %d: %w", r.u.Table, version, err)
	}
	return s, nil
}

// propose makes the proposal over the version that the change was carried to. It reads
// the current deletion vectors and adds to them; it never installs a vector that was
// read earlier. It removes fragments without a live row. It returns nil if every row is
// dead already and none is new. The error is a [*ConflictError] if somebody updated a
// row that the change deletes.
func (r *rebasing) propose(ctx context.Context, base *table.Snapshot) (*table.Proposal, error) {
	if base.Version != r.at {
		return nil, fmt.Errorf("rebase: table %s: a proposal over version %d of a change that was carried to version %d", r.u.Table, base.Version, r.at)
	}
	if err := base.CheckSuccessor(); err != nil {
		return nil, fmt.Errorf("rebase: %w", err)
	}
	if err := r.checkShape(ctx, base); err != nil {
		return nil, err
	}
	if err := r.admit(ctx, base); err != nil {
		return nil, err
	}
	updated, removed, err := r.delete(ctx, base)
	if err != nil {
		return nil, err
	}
	added, err := r.number(base, base.NextFragmentID, r.u.New)
	if err != nil {
		return nil, err
	}
	change := table.Change{Add: added, Remove: removed, SetDeletion: map[table.FragmentID]*table.DeletionRef{}}
	for _, f := range updated {
		change.SetDeletion[f.ID] = f.Deletion
	}
	groups, err := r.publish(ctx, base, base.NextFragmentID+table.FragmentID(len(added)), &change)
	if err != nil {
		return nil, err
	}
	r.proposed = r.outcome(base.Version + 1)
	r.proposed.publish(groups)
	if len(updated)+len(removed)+len(added)+len(groups) == 0 {
		return nil, nil
	}
	r.proposed.Added = append(r.proposed.Added, idsOf(added)...)
	tx := r.u.Transaction
	switch op := tx.Operation.(type) {
	case table.Append:
		tx.Operation = table.Append{Fragments: added}
	case table.Delete:
		tx.Operation = table.Delete{Updated: updated, Removed: removed}
	case table.Update:
		tx.Operation = table.Update{Updated: updated, Removed: removed, New: added, UniqueKeys: op.UniqueKeys}
	case table.Rewrite:
		tx.Operation = table.Rewrite{Groups: groups}
	}
	return &table.Proposal{Base: base, Transaction: tx, Change: change}, nil
}

// number gives new fragments their ids, from next on.
func (r *rebasing) number(base *table.Snapshot, next table.FragmentID, fragments []table.NewFragment) ([]table.Fragment, error) {
	if left := uint64(table.MaxFragmentID) + 1 - uint64(next); uint64(len(fragments)) > left {
		return nil, table.Unsupportedf("rebase: table %s version %d: %d new fragments, and %d ids are left", r.u.Table, base.Version, len(fragments), left)
	}
	var out []table.Fragment
	for i, f := range fragments {
		out = append(out, table.Fragment{ID: next + table.FragmentID(i), PhysicalRows: f.PhysicalRows, Files: f.Files, Kept: f.Kept})
	}
	return out, nil
}

// checkShape checks, if somebody changed columns, that the files of the new rows still
// fit the current ones.
func (r *rebasing) checkShape(ctx context.Context, base *table.Snapshot) error {
	if !r.reshaped || len(r.u.New) == 0 {
		return nil
	}
	if r.u.Shape == nil {
		then, err := r.load(ctx, r.u.Transaction.ReadVersion)
		if err != nil {
			return err
		}
		r.u.Shape = ShapeOf(then.Schema)
	}
	if why := r.u.Shape.misfit(ShapeOf(base.Schema), true); why != "" {
		return r.conflictAt(base.Version, nil, "the schema changed: %s", why)
	}
	return nil
}

// outcome is the result if the proposal is committed as the given version.
func (r *rebasing) outcome(version uint64) Committed {
	out := Committed{
		Table: r.u.Table, Version: version, ReadVersion: r.u.Transaction.ReadVersion,
		RebasedOver: []uint64{}, Added: []table.FragmentID{},
		RowsDeleted: r.rows.Rows(), RowsMerged: r.merged, Lost: r.lost,
	}
	for id, v := range r.rows {
		// A destination is younger than the fragments that were read.
		if _, ok := r.u.Affected[id]; !ok {
			out.RowsRelocated += v.Cardinality()
		}
	}
	return out
}
