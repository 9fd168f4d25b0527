package lance

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"

	"github.com/google/uuid"

	"github.com/rehome-db/rehome/deletion"
	"github.com/rehome-db/rehome/table"
)

// Append commits rows, which have the table's columns in order, as new fragments
// at the end of the table. Concurrent appends, deletes, updates and compactions do
// not disturb it; anything else that happens meanwhile is a table.ErrConflict.
// Without rows nothing is committed and the latest version is returned.
func (e *Engine) Append(ctx context.Context, rows iter.Seq2[table.Batch, error], opts table.WriteOptions) (*table.Snapshot, error) {
	base, err := e.Load(ctx, 0)
	if err != nil {
		return nil, err
	}
	if base.StableRowIDs {
		return nil, table.Unsupportedf("lance: table %s has stable row ids: appending to it is not supported", e.store)
	}
	out, err := e.WriteFragments(ctx, base.Schema, rows, opts)
	if err == nil && len(out.Fragments) == 0 {
		return base, nil
	}
	var s *table.Snapshot
	if err == nil {
		s, err = e.change(ctx, base, changeAppend, func(base *table.Snapshot) (proposed, error) {
			var added []table.Fragment
			for i, f := range out.Fragments {
				id := base.NextFragmentID + table.FragmentID(i)
				added = append(added, table.Fragment{ID: id, PhysicalRows: f.PhysicalRows, Files: f.Files})
			}
			return proposed{operation: table.Append{Fragments: added}, change: table.Change{Add: added}}, nil
		})
	}
	if err != nil {
		if !errors.Is(err, table.ErrAmbiguousCommit) {
			err = errors.Join(err, e.deleteAll(ctx, out.Objects))
		}
		return nil, err
	}
	return s, nil
}

// DeleteRows commits the deletion of the rows at the given addresses. That a row
// is deleted already is no error. A fragment without a live row left is removed.
// It is a table.ErrConflict if a fragment is not there (any more), or if rows in
// it were updated since the deletion began: then the rows may have moved.
func (e *Engine) DeleteRows(ctx context.Context, addrs ...table.RowAddr) (*table.Snapshot, error) {
	base, err := e.Load(ctx, 0)
	if err != nil {
		return nil, err
	}
	byFragment := map[table.FragmentID][]uint32{}
	for _, a := range addrs {
		byFragment[a.Fragment()] = append(byFragment[a.Fragment()], a.Offset())
	}
	if len(byFragment) == 0 {
		return base, nil
	}
	touches := func(t table.Transaction) bool { return changeDelete(t, byFragment) }
	return e.change(ctx, base, touches, func(base *table.Snapshot) (p proposed, err error) {
		p.change.SetDeletion = map[table.FragmentID]*table.DeletionRef{}
		var op table.Delete
		for _, id := range slices.Sorted(maps.Keys(byFragment)) {
			f, ok := base.Fragment(id)
			if !ok {
				return p, table.Conflictf("lance: table %s version %d has no fragment %d to delete rows of", e.store, base.Version, id)
			}
			gone, err := e.deletionVector(ctx, f)
			if err != nil {
				return p, err
			}
			all := gone.Union(deletion.Of(byFragment[id]...))
			if last, _ := all.Max(); uint64(last) >= f.PhysicalRows {
				return p, fmt.Errorf("lance: table %s version %d: fragment %d has no row %d to delete: %w", e.store, base.Version, id, last, table.ErrNotFound)
			}
			if all.Cardinality() == f.PhysicalRows {
				p.change.Remove = append(p.change.Remove, id)
				op.Removed = append(op.Removed, id)
				continue
			}
			if all.Cardinality() == gone.Cardinality() {
				continue
			}
			ref, err := e.WriteDeletions(ctx, id, base.Version, all)
			if err != nil {
				return p, err
			}
			p.wrote = append(p.wrote, table.Object{Kind: table.ObjectDeletion, Path: ref.Path})
			p.change.SetDeletion[id] = &ref
			f.Deletion = &ref
			op.Updated = append(op.Updated, f)
		}
		p.operation = op
		return p, nil
	})
}

// proposed is what a change comes to over one base version.
type proposed struct {
	operation table.Operation
	change    table.Change
	wrote     []table.Object // for this base only
}

func (p proposed) nothing() bool {
	return len(p.change.Add)+len(p.change.Remove)+len(p.change.SetDeletion) == 0
}

// change commits what propose makes of base, and again of every version that
// another writer puts in its way, unless conflicts says that one of them makes the
// change meaningless.
func (e *Engine) change(ctx context.Context, base *table.Snapshot, conflicts func(table.Transaction) bool,
	propose func(base *table.Snapshot) (proposed, error),
) (*table.Snapshot, error) {
	t := table.Transaction{ID: uuid.NewString(), ReadVersion: base.Version}
	for {
		p, err := propose(base)
		if err == nil && p.nothing() {
			return base, nil
		}
		var s *table.Snapshot
		if err == nil {
			t.Operation = p.operation
			s, err = e.Commit(ctx, table.Proposal{Base: base, Transaction: t, Change: p.change})
		}
		if err == nil {
			return s, nil
		}
		if !errors.Is(err, table.ErrAmbiguousCommit) {
			err = errors.Join(err, e.deleteAll(ctx, p.wrote))
		}
		if !errors.Is(err, table.ErrVersionTaken) {
			return nil, err
		}
		before := base.Version
		if base, err = e.Load(ctx, 0); err != nil {
			return nil, err
		}
		since, err := e.TransactionsSince(ctx, before, base.Version)
		if err != nil {
			return nil, err
		}
		for _, other := range since {
			if conflicts(other) {
				return nil, table.Conflictf("lance: table %s: version %d (%s) was committed meanwhile, start again from it", e.store, other.Version, other.Operation.Kind())
			}
		}
	}
}

// changeAppend says whether an append can no longer be meant as it was. Its rows
// were shredded for the schema that it read.
func changeAppend(t table.Transaction) bool {
	switch t.Operation.(type) {
	case table.Append, table.Delete, table.Update, table.Rewrite, table.CreateIndex, table.ReserveFragments:
		return false
	default:
		return true
	}
}

// changeDelete says whether rows at known addresses in the given fragments may not
// be there any more.
func changeDelete(t table.Transaction, fragments map[table.FragmentID][]uint32) bool {
	switch op := t.Operation.(type) {
	case table.Append, table.Delete, table.CreateIndex, table.ReserveFragments:
		return false
	case table.Rewrite:
		for _, g := range op.Groups {
			if containsAny(fragments, g.Old) {
				return true
			}
		}
		return false
	case table.Update:
		return containsAny(fragments, op.Updated) ||
			slices.ContainsFunc(op.Removed, func(id table.FragmentID) bool { return fragments[id] != nil })
	default:
		return true
	}
}

func containsAny(ids map[table.FragmentID][]uint32, list []table.Fragment) bool {
	return slices.ContainsFunc(list, func(f table.Fragment) bool { return ids[f.ID] != nil })
}

// deleteAll deletes what a failed change wrote, also when ctx is over.
func (e *Engine) deleteAll(ctx context.Context, objects []table.Object) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
	defer cancel()
	var errs []error
	for _, o := range objects {
		errs = append(errs, e.Delete(ctx, o))
	}
	return errors.Join(errs...)
}
