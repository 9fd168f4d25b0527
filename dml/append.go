package dml

import (
	"context"
	"iter"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/rehome-db/rehome/internal/arrowcheck"
	"github.com/rehome-db/rehome/rebase"
	"github.com/rehome-db/rehome/table"
)

// Append adds rows at the end of the table. It holds one batch at a time.
type Append struct {
	// Rows are the rows to be added, in batches that have the same columns of the
	// table, in any order: all of them or some. Those that they do not have are null
	// in the new rows. It is read once. Each batch is checked: arrays that are not whole
	// and values that other engines cannot read are refused.
	Rows iter.Seq2[arrow.RecordBatch, error]
	// Write bounds the fragments that are written.
	Write table.WriteOptions
	// Events tells how far the change is. The default is nobody.
	Events Events
}

// ExecuteUncommitted writes the rows, for the columns that the table has in s, and
// commits nothing. Without rows it writes nothing and the change is empty. On an error
// nothing that was written is left.
func (a Append) ExecuteUncommitted(ctx context.Context, e table.Engine, s *table.Snapshot) (rebase.Uncommitted, Stats, error) {
	return uncommittedChange(ctx, e, s, a.Events, a.compute)
}

// DryRun computes what the append would do to s, and writes nothing at all: it works on a
// table that can only be read. Values that cannot be stored are an error, as when they
// are written.
func (a Append) DryRun(ctx context.Context, e table.Engine, s *table.Snapshot) (Stats, error) {
	return dryRun(ctx, e, s, a.Events, a.compute)
}

// Execute adds the rows, in one commit. The rows are read and written once: what
// others do to the table's rows meanwhile is no conflict, and a conflict (over its
// columns, for example) is an error at once. Without rows nothing is committed.
func (a Append) Execute(ctx context.Context, e table.Engine, opts Options) (Result, error) {
	opts.MaxAttempts = 1
	return execute(ctx, e, opts, a.Events, a.compute)
}

func (a Append) compute(ctx context.Context, r reader) (computed, error) {
	if a.Rows == nil {
		return computed{}, r.errorf("an append without rows to read")
	}
	c := computed{change: uncommitted(r.snapshot, table.Append{})}
	out, err := r.write(ctx, a.rows(r), 0, a.Write)
	if err != nil {
		return computed{}, err
	}
	for _, f := range out.Fragments {
		c.stats.Inserted += f.PhysicalRows
	}
	c.change.New, c.change.Objects = out.Fragments, out.Objects
	return c, nil
}

// rows yields the rows with all columns of the table in order.
func (a Append) rows(r reader) iter.Seq2[table.Batch, error] {
	schema := r.snapshot.Schema.Arrow()
	return func(yield func(table.Batch, error) bool) {
		var l layout
		for rec, err := range a.Rows {
			if err == nil {
				err = arrowcheck.Record(rec)
			}
			if err == nil && l.has == nil {
				if l, err = layoutOf(r.snapshot.Schema, rec.Schema()); err == nil {
					err = l.canInsert()
				}
			}
			var out arrow.RecordBatch
			if err == nil {
				out, err = l.whole(schema, rec)
			}
			if err != nil {
				yield(table.Batch{}, r.errorf("append: %w", err))
				return
			}
			more := yield(table.Batch{Record: out}, nil)
			out.Release()
			if !more {
				return
			}
		}
	}
}

// whole is a batch with all columns of the table, null where it has none.
func (l layout) whole(schema *arrow.Schema, rec arrow.RecordBatch) (arrow.RecordBatch, error) {
	columns, err := l.columns(rec)
	if err != nil {
		return nil, err
	}
	for i, f := range l.schema.Fields {
		if columns[i] == nil {
			columns[i] = nulls(f, int(rec.NumRows()))
			continue
		}
		columns[i].Retain()
		if columns[i], err = l.complete(i, columns[i], nil); err != nil {
			release(columns[:i])
			return nil, err
		}
	}
	out, err := record(schema, columns, int(rec.NumRows()))
	if err != nil {
		return nil, err
	}
	if err := checkNulls(l.schema, out); err != nil {
		out.Release()
		return nil, err
	}
	return out, nil
}
