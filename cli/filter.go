package cli

import (
	"context"
	"fmt"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/rehome-db/rehome/dml"
	"github.com/rehome-db/rehome/table"
)

// filter picks rows by a condition, and of them the columns that are wanted.
type filter struct {
	// where is nil if every row is picked.
	where dml.Predicate
	// positions are what where looks at that is no column.
	positions dml.Positions
	// none says that no row can be picked.
	none bool
	// columns are to be read: those that are wanted, and behind them those that only
	// the condition looks at. None are all.
	columns []string
	wanted  int // 0 for all
}

// newFilter checks a condition against the columns of a table; there is none if text
// is empty. Without wanted columns all are wanted.
func newFilter(text string, e table.Engine, s *table.Snapshot, wanted []string) (filter, error) {
	schema := s.Schema
	f := filter{columns: wanted, wanted: len(wanted)}
	if text == "" {
		return f, nil
	}
	p, err := predicate("--where", text, schema)
	if err != nil {
		return f, err
	}
	if d, ok := p.(dml.Decider); ok {
		if matches, decided := d.Decide(schema); decided {
			f.none = !matches
			return f, nil
		}
	}
	f.where = p
	looksAt, err := p.Columns(schema)
	if err != nil {
		return f, err
	}
	if f.positions, looksAt, err = dml.NewPositions(e, s, looksAt); err != nil || len(wanted) == 0 {
		return f, err
	}
	f.columns = slices.Clone(wanted)
	for _, name := range looksAt {
		if !slices.Contains(wanted, name) {
			f.columns = append(f.columns, name)
		}
	}
	return f, nil
}

// each calls do for each row of a batch that is picked, with the record of the wanted
// columns. The batch has addresses if the filter has positions.
func (f filter) each(ctx context.Context, batch table.Batch, do func(rec arrow.RecordBatch, i int) error) error {
	var hit *array.Boolean
	rec := batch.Record
	if f.where != nil {
		looked, err := f.positions.Add(ctx, batch)
		if err != nil {
			return fmt.Errorf("--where: %w", err)
		}
		defer looked.Release()
		if hit, err = f.where.Matches(ctx, looked); err != nil {
			return fmt.Errorf("--where: %w", err)
		}
		defer hit.Release()
	}
	printed := rec
	if f.wanted > 0 && f.wanted < int(rec.NumCols()) {
		printed = array.NewRecordBatch(arrow.NewSchema(rec.Schema().Fields()[:f.wanted], nil), rec.Columns()[:f.wanted], rec.NumRows())
		defer printed.Release()
	}
	for i := range int(rec.NumRows()) {
		if hit != nil && (hit.IsNull(i) || !hit.Value(i)) {
			continue
		}
		if err := do(printed, i); err != nil {
			return err
		}
	}
	return nil
}
