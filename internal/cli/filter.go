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
	// none says that no row can be picked.
	none bool
	// columns are to be read: those that are wanted, and behind them those that only
	// the condition looks at. None are all.
	columns []string
	wanted  int // 0 for all
}

// newFilter checks a condition against the columns of a table; there is none if text
// is empty. Without wanted columns all are wanted.
func newFilter(text string, schema table.Schema, wanted []string) (filter, error) {
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
	if len(wanted) == 0 {
		return f, nil
	}
	looksAt, err := p.Columns(schema)
	if err != nil {
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

// each calls do for each row of a record that is picked, with the record of the wanted
// columns.
func (f filter) each(ctx context.Context, rec arrow.RecordBatch, do func(rec arrow.RecordBatch, i int) error) error {
	var hit *array.Boolean
	if f.where != nil {
		var err error
		if hit, err = f.where.Matches(ctx, rec); err != nil {
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
