package dml

import (
	"context"

	"github.com/rehome-db/rehome/rebase"
	"github.com/rehome-db/rehome/table"
)

// Delete deletes the rows that a predicate matches. It reads the columns that the
// predicate looks at, and holds the set of the rows.
type Delete struct {
	// Where says which rows; [All] of them, if that is meant. It has no default.
	Where Predicate
	// Threads bounds the fragments that are looked at at a time. The default is
	// GOMAXPROCS.
	Threads int
	// Events tells how far the change is. The default is nobody.
	Events Events
}

// ExecuteUncommitted finds the rows to delete in s, and commits nothing. If there
// are none the change is empty. It writes no objects.
func (d Delete) ExecuteUncommitted(ctx context.Context, e table.Engine, s *table.Snapshot) (rebase.Uncommitted, Stats, error) {
	return uncommittedChange(ctx, e, s, d.Events, d.compute)
}

// DryRun computes what the delete would do to s, and writes nothing at all: it works on a
// table that can only be read.
func (d Delete) DryRun(ctx context.Context, e table.Engine, s *table.Snapshot) (Stats, error) {
	return dryRun(ctx, e, s, d.Events, d.compute)
}

// Execute deletes the rows, in one commit. Rows that others delete meanwhile are no
// conflict, and rows that a compaction moves are followed; if a row is updated the
// rows are looked for again. If no row matches nothing is committed.
func (d Delete) Execute(ctx context.Context, e table.Engine, opts Options) (Result, error) {
	return execute(ctx, e, opts, d.Events, d.compute)
}

func (d Delete) compute(ctx context.Context, r reader) (computed, error) {
	if d.Where == nil {
		return computed{}, r.errorf("a delete without a condition: say All to delete every row")
	}
	rows, err := r.matching(ctx, d.Where, d.Threads)
	if err != nil {
		return computed{}, err
	}
	c := computed{change: uncommitted(r.snapshot, table.Delete{}), stats: Stats{Matched: rows.Rows(), Deleted: rows.Rows()}}
	c.change.Affect(r.snapshot, rows)
	return c, nil
}
