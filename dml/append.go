package dml

import (
	"context"
	"iter"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/rehome-db/rehome/internal/arrowcheck"
	"github.com/rehome-db/rehome/table"
)

// Append adds rows at the end of the table. It holds one batch at a time.
//
// Append reads and writes the rows once, for the columns that the table has then.
// Changes of the table's rows by others are no conflict. A conflict (over columns, for
// example) is an error at once, because the rows cannot be read again.
type Append struct {
	// Rows are the rows to be added, in batches that have the same columns of the
	// table, in any order: all of them or some. Those that they do not have are null
	// in the new rows. It is read once. Each batch is checked: arrays that are not whole
	// and values that other engines cannot read are refused.
	Rows iter.Seq2[arrow.RecordBatch, error]
	// Write bounds the fragments that are written.
	Write table.WriteOptions
}

func (a Append) computer() computer { return computer{compute: a.compute, once: true} }

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
