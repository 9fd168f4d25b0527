package rebase

import (
	"context"
	"errors"
	"slices"

	"github.com/rehome-db/rehome/table"
)

// identified finds rows by their stable ids: it asks for the ids that the rows had
// just before the rewrite, and where these ids are just after it.
func (r *rebasing) identified(ctx context.Context, tx table.Transaction, g table.RewriteGroup, rows RowSet) (*ChangeOfAddress, error) {
	e, ok := table.As[table.RowIdentifier](r.engine)
	if !ok {
		return nil, &unknownAddress{}
	}
	before, after, err := r.around(ctx, tx, rows)
	if err != nil {
		return nil, err
	}
	if !after.StableRowIDs {
		return nil, &unknownAddress{}
	}
	var to addressList // rows ascend
	piece := make([]table.RowAddr, 0, min(rows.Rows(), identityPiece))
	for a := range rows.Addrs() {
		if piece = append(piece, a); len(piece) == cap(piece) {
			if err := identify(ctx, e, before, after, g, piece, &to); err != nil {
				return nil, err
			}
			piece = piece[:0]
		}
	}
	if err := identify(ctx, e, before, after, g, piece, &to); err != nil {
		return nil, err
	}
	group := addressGroup{by: to}
	for _, f := range g.Old {
		group.sources = append(group.sources, addressSource{id: f.ID, rows: f.PhysicalRows})
	}
	c := &ChangeOfAddress{}
	return c, c.link(group)
}

// identityPiece is the number of rows whose ids are held at a time.
const identityPiece = 1 << 18

// identify finds some of the rows.
func identify(ctx context.Context, e table.RowIdentifier, before, after *table.Snapshot, g table.RewriteGroup, addrs []table.RowAddr, to *addressList) error {
	if len(addrs) == 0 {
		return nil
	}
	who, err := e.RowIdentities(ctx, before, addrs)
	if err != nil {
		return err
	}
	if len(who) != len(addrs) {
		return unknownf("%d rows have %d identities", len(addrs), len(who))
	}
	ids := make([]table.RowID, len(who))
	for i, w := range who {
		ids[i] = w.ID
	}
	found, err := e.FindRows(ctx, after, ids)
	if err != nil {
		return err
	}
	for i, a := range addrs {
		at, ok := found[ids[i]]
		if !ok {
			return unknownf("row %s, which has the stable id %d, is nowhere in version %d", a, ids[i], after.Version)
		}
		if !slices.ContainsFunc(g.New, func(f table.Fragment) bool { return f.ID == at.Fragment() }) {
			return unknownf("row %s, which has the stable id %d, is at %s, where the rewrite put nothing", a, ids[i], at)
		}
		to.add(a, at)
	}
	return nil
}

// around returns the version that a rewrite made, and one before it that has the
// rows which it moved: the one that it replaced or, if that was cleaned up, the one
// that the change was computed from.
func (r *rebasing) around(ctx context.Context, tx table.Transaction, rows RowSet) (before, after *table.Snapshot, err error) {
	if after, err = r.load(ctx, tx.Version); err != nil {
		return nil, nil, unlessConflict(err)
	}
	for _, v := range []uint64{tx.Version - 1, r.u.Transaction.ReadVersion} {
		s, gone := r.load(ctx, v)
		var no *unknownAddress
		if err = unlessConflict(gone); errors.As(err, &no) {
			continue
		}
		if err != nil {
			return nil, nil, err
		}
		if !slices.ContainsFunc(rows.Fragments(), func(id table.FragmentID) bool { _, ok := s.Fragment(id); return !ok }) {
			return s, after, nil
		}
		err = unknownf("version %d does not have %s", v, rows)
	}
	return nil, nil, err
}
