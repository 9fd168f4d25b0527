package dml

import (
	"context"

	"github.com/rehome-db/rehome/table"
)

// identities collects who the rows are that a change writes again, so that they stay
// the same rows in a table with stable row ids. The nil *identities is for tables
// without.
type identities struct {
	reader
	from table.RowIdentifier
	rows []table.RowIdentity
}

// identities returns what collects them, nil if the table's rows have none.
func (r reader) identities() (*identities, error) {
	if !r.snapshot.StableRowIDs {
		return nil, nil
	}
	from, ok := table.As[table.RowIdentifier](r.engine)
	if !ok {
		return nil, table.Unsupportedf("dml: table %s version %d has stable row ids, and its engine cannot tell them: rows cannot be written again", r.snapshot.Table, r.snapshot.Version)
	}
	return &identities{reader: r, from: from}, nil
}

// add takes down the rows at addrs, which are about to be written in that order.
func (k *identities) add(ctx context.Context, addrs []table.RowAddr) error {
	if k == nil {
		return nil
	}
	got, err := k.from.RowIdentities(ctx, k.snapshot, addrs)
	if err != nil {
		return k.errorf("row ids: %w", err)
	}
	if len(got) != len(addrs) {
		return k.errorf("%d rows have %d row ids", len(addrs), len(got))
	}
	k.rows = append(k.rows, got...)
	return nil
}

// give tells the fragments that were written who their first rows are.
func (k *identities) give(fragments []table.NewFragment) {
	if k == nil {
		return
	}
	for i := range fragments {
		n := min(uint64(len(k.rows)), fragments[i].PhysicalRows)
		fragments[i].Kept, k.rows = k.rows[:n:n], k.rows[n:]
	}
}
