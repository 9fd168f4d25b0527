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

// This file merges the rows that a change deletes with the rows that others deleted.
// Two deletes of one row are one delete. But an update has read the row that it
// replaces, and a delete chose its rows by their values: one row both deleted and
// updated, or updated twice, is a conflict.
//
// The vector to be replaced, which is read anyway, shows whether rows of the change
// died. Only then are the vectors that others left in the window read, to find who
// deleted them.

// othersDelete is a delete or an update by somebody else, seen from one fragment.
type othersDelete struct {
	tx       table.Transaction
	fragment table.Fragment // as the transaction left it
	removed  bool           // the transaction removed the fragment
	update   bool
}

// othersDeleted notes a delete or update of fragments that the change has rows of.
func (r *rebasing) othersDeleted(tx table.Transaction, updated []table.Fragment, removed []table.FragmentID, update bool) {
	tx.Operation = named(tx.Operation) // the whole may be large
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

// settleDead takes the dead rows of a fragment, which others deleted, out of the change.
// s is any version that can read vectors.
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
		// No known transaction deleted the rows, but they are dead.
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

// inTheWay says whether any of ds is a conflict if it deleted a row of this change.
func (r *rebasing) inTheWay(ds []othersDelete) bool {
	return len(ds) > 0 && (r.updates() || slices.ContainsFunc(ds, func(d othersDelete) bool { return d.update }))
}

// blame finds who deleted rows, and returns the conflict that this makes, if any. The
// rows were alive before the first of ds and are dead after the last. Dead rows stay
// dead, so blame halves the range; it skips a half that cannot conflict or deleted none
// of the rows.
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

// deadAfter returns the rows that were dead after another's delete.
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

// settleBefore takes the rows that others deleted so far in the window out of the
// change, for a fragment that is gone or about to go.
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

// delete deletes the change's rows: it returns the fragments of base that keep live
// rows, with newly stored vectors, and the ids of those that keep none.
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

// fragmentsNow finds fragments in base. If one is gone, all rows in it must have been
// deleted; one that is there must be the one that was read.
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

// store stores the vectors, parallel to fragments, and makes the fragments refer to
// them. A fragment with a nil vector keeps its own.
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

// each calls do for 0 to n-1, a few in parallel.
func (r *rebasing) each(ctx context.Context, n int, do func(context.Context, int) error) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(r.opts.Threads)
	for i := range n {
		g.Go(func() error { return do(ctx, i) })
	}
	return g.Wait()
}
