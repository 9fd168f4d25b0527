package lance

import (
	"context"

	"github.com/rehome-db/rehome/lance/version"
	"github.com/rehome-db/rehome/table"
)

// identified returns the handle of a snapshot whose rows have stable ids.
func (e *Engine) identified(ctx context.Context, s *table.Snapshot) (*version.Version, error) {
	if err := e.root.Ready(ctx); err != nil {
		return nil, err
	}
	v, err := version.Of(s)
	if err != nil {
		return nil, err
	}
	if !s.StableRowIDs {
		return nil, table.Unsupportedf("lance: table %s version %d has no stable row ids", e.root.Store, s.Version)
	}
	return v, nil
}

// RowIdentities implements table.RowIdentifier. The row ids of the fragments that
// addrs are in are decoded once for a snapshot.
func (e *Engine) RowIdentities(ctx context.Context, s *table.Snapshot, addrs []table.RowAddr) ([]table.RowIdentity, error) {
	v, err := e.identified(ctx, s)
	if err != nil {
		return nil, err
	}
	return e.ids.Identities(ctx, s, v, addrs)
}

// FindRows implements table.RowIdentifier. It looks at the row ids of all fragments
// and at the deletion vectors of those that have some of the ids. That two live rows
// have the same id is ErrCorrupt.
func (e *Engine) FindRows(ctx context.Context, s *table.Snapshot, ids []table.RowID) (map[table.RowID]table.RowAddr, error) {
	v, err := e.identified(ctx, s)
	if err != nil {
		return nil, err
	}
	return e.ids.Find(ctx, s, v, ids)
}

var _ table.RowIdentifier = (*Engine)(nil)
