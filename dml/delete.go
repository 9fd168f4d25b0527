package dml

import (
	"context"

	"github.com/rehome-db/rehome/table"
)

// Delete deletes the rows that a predicate matches. It reads the columns that the
// predicate looks at, and holds the set of the rows. It writes no data.
//
// Rows that others delete before the commit are no conflict, and rows that a compaction
// moves are followed. If somebody updates one of the rows, the delete is computed again.
type Delete struct {
	// Where says which rows; [All] of them, if that is meant. It has no default.
	Where Predicate
}

func (d Delete) computer() computer { return computer{compute: d.compute} }

func (d Delete) compute(ctx context.Context, r reader) (computed, error) {
	if d.Where == nil {
		return computed{}, r.errorf("a delete without a condition: say All to delete every row")
	}
	rows, err := r.matching(ctx, d.Where)
	if err != nil {
		return computed{}, err
	}
	c := computed{change: uncommitted(r.snapshot, table.Delete{}), stats: Stats{Matched: rows.Rows(), Deleted: rows.Rows()}}
	c.change.Affect(r.snapshot, rows)
	return c, nil
}
