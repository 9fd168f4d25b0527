package rebase

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/rehome-db/rehome/commit"
	"github.com/rehome-db/rehome/deletion"
	"github.com/rehome-db/rehome/table"
)

// This file adds the rows that a change deletes to what others deleted. Deleting a
// row twice is to delete it. But an update has read the row that it replaces, and
// who deletes a row chose it by what it held: the same row deleted and updated, or
// updated twice, is a conflict.
//
// That rows died at all shows in the vector that is to be replaced, which is read
// anyway. Only if it does are the vectors that others left on the way looked at, to
// tell who did it.

// othersDelete is a delete or an update by somebody else, seen from one fragment.
type othersDelete struct {
	tx       table.Transaction
	fragment table.Fragment // as it left it
	removed  bool           // it left nothing of it
	update   bool
}

// othersDeleted remembers what others deleted of the fragments that matter.
func (r *rebasing) othersDeleted(tx table.Transaction, updated []table.Fragment, removed []table.FragmentID, update bool) {
	tx.Operation = named(tx.Operation) // which may be large
	for _, f := range updated {
		if f.PhysicalRows > 0 && f.LiveRows() == 0 {
			r.died[f.ID] = true
		}
		if !r.rows[f.ID].IsEmpty() {
			r.deletes[f.ID] = append(r.deletes[f.ID], othersDelete{tx: tx, fragment: f, update: update})
		}
	}
	for _, id := range removed {
		r.died[id] = true
		if !r.rows[id].IsEmpty() {
			r.deletes[id] = append(r.deletes[id], othersDelete{tx: tx, fragment: table.Fragment{ID: id}, removed: true, update: update})
		}
	}
}

// settleDead takes the rows of a fragment that others deleted out of the change. s is
// any version that vectors can be read with.
func (r *rebasing) settleDead(ctx context.Context, s *table.Snapshot, id table.FragmentID, dead *deletion.Vector) error {
	hit := r.rows[id].Intersect(dead)
	if hit.IsEmpty() {
		return nil
	}
	if ds := r.deletes[id]; r.inTheWay(ds) {
		known, err := r.deadAfter(ctx, s, ds[len(ds)-1], hit)
		if err == nil {
			err = r.blame(ctx, s, ds, known)
		}
		if err != nil {
			return err
		}
	}
	if r.updates() {
		// Nobody is known to have done it, but it was done.
		return r.conflictAt(s.Version, RowSet{id: hit}, "what this change updates is deleted")
	}
	r.merged += hit.Cardinality()
	r.rows[id] = r.rows[id].Difference(hit)
	r.footprint = nil
	return nil
}

func (r *rebasing) updates() bool {
	_, ok := r.u.Transaction.Operation.(table.Update)
	return ok
}

// inTheWay says whether any of ds makes a conflict if it hit a row of this change.
func (r *rebasing) inTheWay(ds []othersDelete) bool {
	return len(ds) > 0 && (r.updates() || slices.ContainsFunc(ds, func(d othersDelete) bool { return d.update }))
}

// blame finds out who deleted rows, which are dead after the last of ds and were
// alive before the first, and returns the conflict that this makes, if any. What is
// dead stays dead, so the range is halved: one that is not in the way, or hit none of
// the rows, is not looked into.
func (r *rebasing) blame(ctx context.Context, s *table.Snapshot, ds []othersDelete, rows *deletion.Vector) error {
	if rows.IsEmpty() || !r.inTheWay(ds) {
		return nil
	}
	if len(ds) > 1 {
		half := len(ds) / 2
		first, err := r.deadAfter(ctx, s, ds[half-1], rows)
		if err == nil {
			err = r.blame(ctx, s, ds[:half], first)
		}
		if err != nil {
			return err
		}
		return r.blame(ctx, s, ds[half:], rows.Difference(first))
	}
	who, set := ds[0], RowSet{ds[0].fragment.ID: rows}
	switch {
	case who.update && r.updates():
		return r.conflict(who.tx, retry, set, "it updated what this change updates")
	case who.update:
		return r.conflict(who.tx, retry, set, "it updated what this change deletes")
	default:
		return r.conflict(who.tx, retry, set, "it deleted what this change updates")
	}
}

// deadAfter are those of the rows that were dead after somebody's delete.
func (r *rebasing) deadAfter(ctx context.Context, s *table.Snapshot, d othersDelete, rows *deletion.Vector) (*deletion.Vector, error) {
	if d.removed {
		return rows, nil
	}
	v, err := r.readDeletions(ctx, s, d.fragment)
	if errors.Is(err, table.ErrNotFound) || errors.Is(err, table.ErrCorrupt) {
		return nil, r.conflict(d.tx, retry, RowSet{d.fragment.ID: rows}, "which rows it deleted cannot be told any more ("+err.Error()+")")
	}
	return rows.Intersect(v), err
}

// settleBefore takes the rows out that others deleted in the window so far, of a
// fragment that is gone or about to go.
func (r *rebasing) settleBefore(ctx context.Context, s *table.Snapshot, id table.FragmentID) error {
	ds := r.deletes[id]
	if len(ds) == 0 {
		return nil
	}
	dead, err := r.deadAfter(ctx, s, ds[len(ds)-1], r.rows[id])
	if err != nil {
		return err
	}
	return r.settleDead(ctx, s, id, dead)
}

func (r *rebasing) readDeletions(ctx context.Context, s *table.Snapshot, f table.Fragment) (*deletion.Vector, error) {
	if f.Deletion == nil {
		return nil, nil
	}
	set, err := r.engine.ReadDeletions(ctx, s, f)
	if err != nil {
		return nil, fmt.Errorf("rebase: table %s: deletions of fragment %d: %w", r.u.Table, f.ID, err)
	}
	return commit.VectorOf(set), nil
}

// delete works out what becomes of the fragments that the rows are in, and stores
// their vectors. Updated fragments are as in base, with the new vector.
func (r *rebasing) delete(ctx context.Context, base *table.Snapshot) (updated []table.Fragment, removed []table.FragmentID, err error) {
	ids := r.rows.Fragments()
	now, err := r.fragmentsNow(ctx, base, ids)
	if err != nil {
		return nil, nil, err
	}
	current := make([]*deletion.Vector, len(now))
	if err := r.each(ctx, len(now), func(ctx context.Context, i int) (err error) {
		current[i], err = r.readDeletions(ctx, base, now[i])
		return err
	}); err != nil {
		return nil, nil, err
	}
	var vectors []*deletion.Vector // of the updated
	for i, f := range now {
		if err := r.settleDead(ctx, base, f.ID, current[i]); err != nil {
			return nil, nil, err
		}
		rows := r.rows[f.ID]
		if rows.IsEmpty() {
			continue
		}
		if err := rows.Validate(f.PhysicalRows, 0); err != nil {
			return nil, nil, table.Corruptf("rebase: table %s version %d: fragment %d: rows to delete: %w", r.u.Table, base.Version, f.ID, err)
		}
		all := current[i].Union(rows)
		if all.Cardinality() == f.PhysicalRows {
			removed = append(removed, f.ID)
			continue
		}
		updated, vectors = append(updated, f), append(vectors, all)
	}
	return updated, removed, r.store(ctx, base, updated, vectors)
}

// fragmentsNow finds fragments in base. Of one that is gone every row must have been
// deleted, and one that is there must be the one that was read.
func (r *rebasing) fragmentsNow(ctx context.Context, base *table.Snapshot, ids []table.FragmentID) (now []table.Fragment, err error) {
	for _, id := range ids {
		if f, ok := base.Fragment(id); ok {
			if err := r.checkFiles(ctx, base, f); err != nil {
				return nil, err
			}
			now = append(now, f)
			continue
		}
		if err := r.settleBefore(ctx, base, id); err != nil {
			return nil, err
		}
		if rows := r.rows[id]; !rows.IsEmpty() {
			return nil, r.conflictAt(base.Version, RowSet{id: rows}, "fragment %d is gone", id)
		}
	}
	return now, nil
}

// store stores the vectors of fragments, which are parallel, and refers to them; nil
// for those that keep theirs.
func (r *rebasing) store(ctx context.Context, base *table.Snapshot, fragments []table.Fragment, vectors []*deletion.Vector) error {
	err := r.each(ctx, len(fragments), func(ctx context.Context, i int) (err error) {
		if vectors[i] != nil {
			fragments[i].Deletion, err = r.vectors.Write(ctx, r.engine, fragments[i].ID, base.Version, vectors[i])
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("rebase: table %s version %d: deletion vectors: %w", r.u.Table, base.Version, err)
	}
	return nil
}

// each calls do for 0 to n-1, a few at a time.
func (r *rebasing) each(ctx context.Context, n int, do func(context.Context, int) error) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(r.opts.Threads)
	for i := range n {
		g.Go(func() error { return do(ctx, i) })
	}
	return g.Wait()
}
