package gather

import (
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// Record returns the rows of rec in the ranges, from all columns. It is refused
// before anything is copied if some column cannot be gathered. The caller releases
// the result.
func Record(mem memory.Allocator, rec arrow.RecordBatch, ranges []Range) (arrow.RecordBatch, error) {
	for i, c := range rec.Columns() {
		if err := Check(c.DataType()); err != nil {
			return nil, fmt.Errorf("column %q: %w", rec.ColumnName(i), err)
		}
	}
	cols := make([]arrow.Array, rec.NumCols())
	for i, c := range rec.Columns() {
		d := gather(mem, c.Data(), ranges)
		cols[i] = array.MakeFromData(d)
		d.Release()
	}
	out := array.NewRecordBatch(rec.Schema(), cols, int64(Len(ranges)))
	for _, c := range cols {
		c.Release()
	}
	return out, nil
}
