package table

import "context"

// RowIdentity is what stays with a row of a table with stable row ids wherever the
// row goes. It is plain data.
type RowIdentity struct {
	ID RowID `json:"id"`
	// CreatedAt is the version that first held the row.
	CreatedAt uint64 `json:"created_at"`
}

// RowIdentifier is implemented by an engine whose tables can have stable row ids.
// It is optional: without it a table with [Snapshot.StableRowIDs] cannot be changed
// row by row.
type RowIdentifier interface {
	// RowIdentities returns the identities of the rows at addrs, parallel to them;
	// rows that are deleted in s have theirs too. A snapshot without stable row ids
	// is ErrUnsupported, an address without a row ErrNotFound.
	RowIdentities(ctx context.Context, s *Snapshot, addrs []RowAddr) ([]RowIdentity, error)

	// FindRows returns where the live rows with the given ids are in s. Ids that no
	// live row has are left out of the map, and so cannot be taken for address 0.
	FindRows(ctx context.Context, s *Snapshot, ids []RowID) (map[RowID]RowAddr, error)
}
