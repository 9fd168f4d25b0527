package table

import (
	"context"
	"iter"
)

// RowTaker is implemented by an engine that reads single rows without reading their
// whole fragments. It is optional; [RowReader] does the same, slowly.
type RowTaker interface {
	// Take yields the rows at addrs, which ascend strictly, in that order, with the
	// given top-level columns (none: all, in schema order). Unlike RowReader it also
	// reads rows that are deleted in s. Batches are owned as in RowReader, and their
	// Addrs are set. An address without a row is ErrNotFound.
	//
	// The work grows with the number of rows, and the pages that they are in, not
	// with the size of the fragments.
	Take(ctx context.Context, s *Snapshot, addrs []RowAddr, columns []string) iter.Seq2[Batch, error]
}
