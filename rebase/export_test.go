package rebase

import (
	"context"

	"github.com/rehome-db/rehome/table"
)

// What tests outside the package look into.
type (
	Verdict    = verdict
	Comparison = comparison
	Footprint  = footprint
	Rebasing   = rebasing
)

const (
	Compatible   = compatible
	Relocate     = relocate
	Retry        = retry
	Incompatible = incompatible
)

var (
	FootprintOf = footprintOf
	Compare     = compare
	NewRebasing = newRebasing
)

// Over carries the change over transactions.
func (r *rebasing) Over(ctx context.Context, base *table.Snapshot, transactions []table.Transaction) error {
	return r.overAll(ctx, base, transactions)
}

// Propose makes the change over a version.
func (r *rebasing) Propose(ctx context.Context, base *table.Snapshot) (*table.Proposal, error) {
	return r.propose(ctx, base)
}

// Rows are the affected rows where they are by now.
func (r *rebasing) Rows() RowSet { return r.rows }
