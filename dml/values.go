package dml

import (
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/rehome-db/rehome/internal/gather"
	"github.com/rehome-db/rehome/table"
)

// nulls returns an array of nulls for a field.
func nulls(f table.Field, rows int) arrow.Array {
	return gather.Nulls(memory.DefaultAllocator, f.Type, rows)
}

// checkNulls refuses nulls in columns that must not have any.
func checkNulls(s table.Schema, rec arrow.RecordBatch) error {
	for i, f := range s.Fields {
		if n := rec.Column(i).NullN(); n > 0 && !f.Nullable {
			return fmt.Errorf("column %q must not be null, and %d of %d rows to be written have no value for it", f.Name, n, rec.NumRows())
		}
	}
	return nil
}

// record puts columns, which are those of the schema in order, together and lets go
// of them.
func record(schema *arrow.Schema, columns []arrow.Array, rows int) (arrow.RecordBatch, error) {
	defer release(columns)
	for i, c := range columns {
		if f := schema.Field(i); c.Len() != rows || !arrow.TypeEqual(f.Type, c.DataType()) {
			return nil, fmt.Errorf("column %q: %d values of type %s for %d rows of type %s", f.Name, c.Len(), c.DataType(), rows, f.Type)
		}
	}
	return array.NewRecordBatch(schema, columns, int64(rows)), nil
}

func release(columns []arrow.Array) {
	for _, c := range columns {
		if c != nil {
			c.Release()
		}
	}
}

// column finds a column of a record by its name.
func column(rec arrow.RecordBatch, name string) (arrow.Array, error) {
	at := rec.Schema().FieldIndices(name)
	if len(at) == 0 {
		return nil, fmt.Errorf("rows without column %q: %w", name, table.ErrNotFound)
	}
	return rec.Column(at[0]), nil
}
