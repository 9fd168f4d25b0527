package cli

import (
	"context"
	"fmt"
	"iter"
	"math"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/rehome-db/rehome/table"
)

const demoDimension = 128

func demoColumns() *arrow.Schema {
	return arrow.NewSchema([]arrow.Field{
		{Name: "id", Type: arrow.PrimitiveTypes.Int64},
		{Name: "updates", Type: arrow.PrimitiveTypes.Int64},
		{Name: "name", Type: arrow.BinaryTypes.String, Nullable: true},
		{Name: "vector", Type: arrow.FixedSizeListOf(demoDimension, arrow.PrimitiveTypes.Float32), Nullable: true},
	}, nil)
}

// demoModel is what must be in the table: how often each row that is there was
// updated. The other columns follow from the id.
type demoModel map[int64]int64

// What became of a row since it was written.
const (
	untouched = "untouched"
	updated   = "updated"
	deleted   = "deleted"
)

func (m demoModel) fate(id int64) string {
	switch updates, live := m[id]; {
	case !live:
		return deleted
	case updates > 0:
		return updated
	default:
		return untouched
	}
}

func demoName(id int64) string { return fmt.Sprintf("item %d", id) }

func demoVectorItem(id int64, i int) float32 {
	return float32(math.Sin(float64(id+1) * float64(i+1)))
}

// append commits rows as one new fragment.
func (d *demo) append(ctx context.Context, first int64, rows int) error {
	record := demoRecord(first, rows)
	defer record.Release()
	batches := func(yield func(table.Batch, error) bool) { yield(table.Batch{Record: record}, nil) }
	if _, err := d.engine.Append(ctx, batches, table.WriteOptions{}); err != nil {
		return fmt.Errorf("demo: write %d rows: %w", rows, err)
	}
	for id := first; id < first+int64(rows); id++ {
		d.model[id] = 0
	}
	return nil
}

func demoRecord(first int64, rows int) arrow.RecordBatch {
	b := array.NewRecordBuilder(memory.DefaultAllocator, demoColumns())
	defer b.Release()
	ids, updates := b.Field(0).(*array.Int64Builder), b.Field(1).(*array.Int64Builder)
	names, vectors := b.Field(2).(*array.StringBuilder), b.Field(3).(*array.FixedSizeListBuilder)
	items := vectors.ValueBuilder().(*array.Float32Builder)
	for id := first; id < first+int64(rows); id++ {
		ids.Append(id)
		updates.Append(0)
		names.Append(demoName(id))
		vectors.Append(true)
		for i := range demoDimension {
			items.Append(demoVectorItem(id, i))
		}
	}
	return b.NewRecordBatch()
}

// demoRow is a row as it was read.
type demoRow struct {
	addr        table.RowAddr
	id, updates int64
	name        string
	vector      []float32
}

// differs says in what the row is not what it must be after so many updates.
func (r demoRow) differs(updates int64) string {
	if r.updates != updates {
		return fmt.Sprintf("was updated %d times, the table has %d", updates, r.updates)
	}
	if r.name != demoName(r.id) {
		return fmt.Sprintf("has the name %q", r.name)
	}
	for i := range demoDimension {
		if r.vector[i] != demoVectorItem(r.id, i) {
			return fmt.Sprintf("has %v at %d of its vector", r.vector[i], i)
		}
	}
	return ""
}

// rows reads the table.
func (d *demo) rows(ctx context.Context, s *table.Snapshot) iter.Seq2[demoRow, error] {
	return func(yield func(demoRow, error) bool) {
		for batch, err := range d.engine.Rows(ctx, s, fragmentIDs(s), table.ReadOptions{WithAddrs: true}) {
			if err != nil {
				yield(demoRow{}, err)
				return
			}
			rec := batch.Record
			ids, ok1 := rec.Column(0).(*array.Int64)
			updates, ok2 := rec.Column(1).(*array.Int64)
			names, ok3 := rec.Column(2).(*array.String)
			vectors, ok4 := rec.Column(3).(*array.FixedSizeList)
			if !ok1 || !ok2 || !ok3 || !ok4 {
				yield(demoRow{}, fmt.Errorf("demo: the columns are %s", rec.Schema()))
				return
			}
			items := vectors.ListValues().(*array.Float32).Float32Values()
			for i := range ids.Len() {
				from, to := vectors.ValueOffsets(i)
				row := demoRow{batch.Addrs[i], ids.Value(i), updates.Value(i), names.Value(i), items[from:to]}
				if !yield(row, nil) {
					return
				}
			}
		}
	}
}
