package dml

import (
	"context"
	"iter"
	"maps"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/rehome-db/rehome/table"
)

// Update gives columns of some rows new values. A row is updated by writing it anew,
// whole, and deleting the old one: in a table with stable row ids it stays the same
// row. Rows are read twice, first the columns that Where looks at, then the rows that
// match; what is held in memory is the set of these, and of tables with stable row ids
// the ids.
//
// Rows that a compaction moves before it is committed are followed; if others delete
// or update one of them, everything is computed again from the newest version.
type Update struct {
	// Where says which rows. The default is all.
	Where Predicate
	// Set are the new values by column, each computed from the row as it was. They
	// are cast to the column's type; a value that does not fit is an error.
	Set map[string]Expr
	// Write bounds the fragments that are written.
	Write table.WriteOptions
}

func (u Update) computer() computer { return computer{compute: u.compute} }

func (u Update) compute(ctx context.Context, r reader) (computed, error) {
	set, err := u.assignments(r)
	if err != nil {
		return computed{}, err
	}
	ids, err := r.identities()
	if err != nil {
		return computed{}, err
	}
	where := u.Where
	if where == nil {
		where = All()
	}
	rows, err := r.matching(ctx, where)
	if err != nil {
		return computed{}, err
	}
	c := computed{change: uncommitted(r.snapshot, table.Update{})}
	if rows.IsEmpty() {
		return c, nil
	}
	out, err := r.write(ctx, set.apply(ctx, r.at(ctx, rows, nil), ids), rows.Rows(), u.Write)
	if err != nil {
		return computed{}, err
	}
	ids.give(out.Fragments)
	c.change.Affect(r.snapshot, rows)
	c.change.New, c.change.Objects = out.Fragments, out.Objects
	c.stats = Stats{Matched: rows.Rows(), Updated: rows.Rows()}
	return c, nil
}

// assignments are new values for columns of the table.
type assignments struct {
	reader
	schema *arrow.Schema
	exprs  []Expr // by column, nil for those that stay
}

// assignments checks Set against the table's columns.
func (u Update) assignments(r reader) (*assignments, error) {
	s := r.snapshot.Schema
	if len(u.Set) == 0 {
		return nil, r.errorf("an update that sets no column")
	}
	a := &assignments{reader: r, schema: s.Arrow(), exprs: make([]Expr, len(s.Fields))}
	for _, name := range slices.Sorted(maps.Keys(u.Set)) {
		at := slices.IndexFunc(s.Fields, func(f table.Field) bool { return f.Name == name })
		if at < 0 {
			return nil, r.errorf("no column %q to set: %w", name, table.ErrNotFound)
		}
		if u.Set[name] == nil {
			return nil, r.errorf("column %q is to be set and not said to what", name)
		}
		if _, err := u.Set[name].Columns(s); err != nil {
			return nil, r.errorf("the new value of column %q: %w", name, err)
		}
		a.exprs[at] = u.Set[name]
	}
	return a, nil
}

// apply yields the rows as they are to be. The rows have all columns, in order.
func (a *assignments) apply(ctx context.Context, rows iter.Seq2[table.Batch, error], ids *identities) iter.Seq2[table.Batch, error] {
	return func(yield func(table.Batch, error) bool) {
		for b, err := range rows {
			if err == nil {
				err = ids.add(ctx, b.Addrs)
			}
			var rec arrow.RecordBatch
			if err == nil {
				rec, err = a.record(ctx, b.Record)
			}
			if err != nil {
				yield(table.Batch{}, err)
				return
			}
			more := yield(table.Batch{Record: rec}, nil)
			rec.Release()
			if !more {
				return
			}
		}
	}
}

func (a *assignments) record(ctx context.Context, rec arrow.RecordBatch) (arrow.RecordBatch, error) {
	fields := a.snapshot.Schema.Fields
	columns := make([]arrow.Array, len(fields))
	for i, f := range fields {
		if a.exprs[i] == nil {
			columns[i] = rec.Column(i)
			columns[i].Retain()
			continue
		}
		var err error
		if columns[i], err = a.value(ctx, f, a.exprs[i], rec); err != nil {
			release(columns)
			return nil, err
		}
	}
	out, err := record(a.schema, columns, int(rec.NumRows()))
	if err != nil {
		return nil, a.errorf("%w", err)
	}
	if err := checkNulls(a.snapshot.Schema, out); err != nil {
		out.Release()
		return nil, a.errorf("%w", err)
	}
	return out, nil
}

func (a *assignments) value(ctx context.Context, f table.Field, expr Expr, rec arrow.RecordBatch) (arrow.Array, error) {
	values, err := expr.Eval(ctx, rec)
	if err != nil {
		return nil, a.errorf("the new value of column %q: %w", f.Name, err)
	}
	defer values.Release()
	if int64(values.Len()) != rec.NumRows() {
		return nil, a.errorf("the new value of column %q: %d values for %d rows", f.Name, values.Len(), rec.NumRows())
	}
	out, err := cast(values, f)
	if err != nil {
		return nil, a.errorf("%w", err)
	}
	return out, nil
}
