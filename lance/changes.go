package lance

import (
	"context"
	"fmt"
	"iter"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/google/uuid"

	"github.com/rehome-db/rehome/dml"
	"github.com/rehome-db/rehome/rebase"
	"github.com/rehome-db/rehome/table"
)

// Append commits rows as new fragments at the end of the table. It is [dml.Append] for
// rows that come as an engine has them: their columns may be in any order, and those
// that are not there are null. Concurrent appends, deletes, updates and compactions do
// not disturb it; what changes the columns meanwhile is a table.ErrConflict. Without
// rows nothing is committed and the latest version is returned.
func (e *Engine) Append(ctx context.Context, rows iter.Seq2[table.Batch, error], opts table.WriteOptions) (*table.Snapshot, error) {
	records := func(yield func(arrow.RecordBatch, error) bool) {
		for b, err := range rows {
			if !yield(b.Record, err) {
				return
			}
		}
	}
	out, err := dml.Execute(ctx, e, dml.Append{Rows: records, Write: opts}, dml.Options{})
	if err != nil {
		return nil, err
	}
	return e.committed(ctx, out.Snapshot, out.Version)
}

// DeleteRows commits the deletion of the rows at the given addresses of the latest
// version. That a row is deleted already is no error, and rows that a compaction moves
// meanwhile are followed. A fragment without a live row left is removed. It is a
// table.ErrConflict if a fragment is not there (any more), or if a row was updated
// since the deletion began, and table.ErrNotFound if a fragment has no such row.
// Without rows nothing is committed and the latest version is returned.
func (e *Engine) DeleteRows(ctx context.Context, addrs ...table.RowAddr) (*table.Snapshot, error) {
	base, err := e.Load(ctx, 0)
	if err != nil {
		return nil, err
	}
	for _, a := range addrs {
		f, ok := base.Fragment(a.Fragment())
		if !ok {
			return nil, table.Conflictf("lance: table %s version %d has no fragment %d to delete rows of", e.root.Store, base.Version, a.Fragment())
		}
		if uint64(a.Offset()) >= f.PhysicalRows {
			return nil, fmt.Errorf("lance: table %s version %d: fragment %d has no row %d to delete: %w", e.root.Store, base.Version, f.ID, a.Offset(), table.ErrNotFound)
		}
	}
	if len(addrs) == 0 {
		return base, nil
	}
	out, err := rebase.Commit(ctx, e, rebase.Uncommitted{
		Table:       base.Table,
		Transaction: table.Transaction{ID: uuid.NewString(), ReadVersion: base.Version, Operation: table.Delete{}},
		Affected:    rebase.Rows(addrs...),
	}, rebase.Options{})
	if err != nil {
		return nil, err
	}
	return e.committed(ctx, out.Snapshot, out.Version)
}

// committed is a version that was committed, loaded if its commit did not return it.
func (e *Engine) committed(ctx context.Context, s *table.Snapshot, version uint64) (*table.Snapshot, error) {
	if s != nil {
		return s, nil
	}
	return e.Load(ctx, version)
}
