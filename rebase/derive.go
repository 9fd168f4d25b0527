package rebase

import (
	"context"
	"errors"

	"github.com/rehome-db/rehome/table"
)

// derived derives the change of address from the rewrite itself, as stock engines
// commit it: the old fragments as they were read, deletion vectors included, and the
// new ones with their row counts. If the rewrite kept the order of rows, the k-th
// survivor is the k-th new row. But the transaction may have changed the order, or may
// name other vectors, or list the fragments in another order than they were read. So
// derived reads every affected row at both addresses and compares the values; if any
// differ, it has no answer.
//
// This cannot tell apart rows that are equal in all columns, and neither can anybody
// who asks for rows by their values.
func (r *rebasing) derived(ctx context.Context, tx table.Transaction, g table.RewriteGroup, rows RowSet) (*ChangeOfAddress, error) {
	before, after, err := r.around(ctx, tx, rows)
	if err != nil {
		return nil, err
	}
	c, err := r.byRank(ctx, before, after, g, rows)
	if err != nil {
		return nil, err
	}
	return c, r.prove(ctx, before, after, c, rows)
}

// byRank returns the change of address on the assumption that the rewrite kept the
// order. It reads the vectors of those old fragments only that rows lie in; for the
// others the number of deleted rows is enough.
func (r *rebasing) byRank(ctx context.Context, before, after *table.Snapshot, g table.RewriteGroup, rows RowSet) (*ChangeOfAddress, error) {
	var out addressGroup
	for _, f := range g.Old {
		s := addressSource{id: f.ID, rows: f.PhysicalRows, dead: f.DeletedRows(), known: f.Deletion == nil}
		if now, ok := before.Fragment(f.ID); ok && now.PhysicalRows != f.PhysicalRows {
			return nil, unknownf("the rewrite says that fragment %d had %d rows, it has %d", f.ID, f.PhysicalRows, now.PhysicalRows)
		}
		if !rows[f.ID].IsEmpty() && !s.known {
			v, err := r.readDeletions(ctx, before, f)
			if errors.Is(err, table.ErrCorrupt) || errors.Is(err, table.ErrNotFound) {
				return nil, unknownf("the deletion vector that the rewrite read of fragment %d is not there any more", f.ID)
			}
			if err != nil {
				return nil, err
			}
			s.deleted, s.known, s.dead = v, true, v.Cardinality()
		}
		out.sources = append(out.sources, s)
	}
	var written []uint64
	for _, f := range g.New {
		now, ok := after.Fragment(f.ID)
		if !ok || now.PhysicalRows != f.PhysicalRows {
			return nil, unknownf("the rewrite says that it wrote fragment %d of %d rows, and version %d has no such fragment", f.ID, f.PhysicalRows, after.Version)
		}
		out.to = append(out.to, f.ID)
		written = append(written, f.PhysicalRows)
	}
	c := &ChangeOfAddress{}
	return c, c.add(out, written)
}
