package rebase

import (
	"context"
	"errors"

	"github.com/rehome-db/rehome/table"
)

// derived works the change of address out of the rewrite itself, as stock engines
// commit it: with its old fragments as they were read, deletion vectors included,
// and its new ones with their numbers of rows. If the rewrite kept the order of
// rows, the k-th survivor is the k-th new row. That it did, that the transaction
// names the vectors that were read, and the fragments in the order in which they
// were, is not known. So every affected row is read at both addresses, and the
// values have to be equal; if not, nothing is concluded.
//
// Rows that are equal in all columns cannot be told apart by that, nor by anybody
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

// byRank is the change of address on the assumption that the rewrite kept the order.
// Of the old fragments' vectors only those are read that rows lie in; of the others
// the number of deleted rows is enough.
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
