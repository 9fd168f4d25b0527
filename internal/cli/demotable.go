package cli

import (
	"context"
	"fmt"
	"math"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/rehome-db/rehome/lance"
	"github.com/rehome-db/rehome/table"
)

// demoTable is a table whose only writer, the demo, remembers what must be in it.
type demoTable struct {
	engine *lance.Engine
	// next is the id of the next row that is written; live are the ids that were
	// written and not deleted.
	next int64
	live map[int64]bool
}

const demoDimension = 16

func demoColumns() *arrow.Schema {
	return arrow.NewSchema([]arrow.Field{
		{Name: "id", Type: arrow.PrimitiveTypes.Int64},
		{Name: "name", Type: arrow.BinaryTypes.String, Nullable: true},
		{Name: "vector", Type: arrow.FixedSizeListOf(demoDimension, arrow.PrimitiveTypes.Float32), Nullable: true},
	}, nil)
}

// append commits the next rows as one new fragment.
func (d *demoTable) append(ctx context.Context, rows int) error {
	record := demoRecord(d.next, rows)
	defer record.Release()
	batches := func(yield func(table.Batch, error) bool) { yield(table.Batch{Record: record}, nil) }
	if _, err := d.engine.Append(ctx, batches, table.WriteOptions{}); err != nil {
		return fmt.Errorf("demo: write %d rows: %w", rows, err)
	}
	for range rows {
		d.live[d.next] = true
		d.next++
	}
	return nil
}

// delete commits the deletion of the rows whose id the predicate picks, and says
// how many there were.
func (d *demoTable) delete(ctx context.Context, pick func(id int64) bool) (int, error) {
	s, err := d.engine.Load(ctx, 0)
	if err != nil {
		return 0, err
	}
	rows, err := d.addresses(ctx, s)
	if err != nil {
		return 0, err
	}
	var doomed []table.RowAddr
	for id, addr := range rows {
		if pick(id) {
			doomed = append(doomed, addr)
		}
	}
	if _, err := d.engine.DeleteRows(ctx, doomed...); err != nil {
		return 0, fmt.Errorf("demo: delete %d rows: %w", len(doomed), err)
	}
	for id := range rows {
		if pick(id) {
			delete(d.live, id)
		}
	}
	return len(doomed), nil
}

// addresses reads the live rows' addresses by id. An id that is there twice is an
// error: the demo never writes one twice.
func (d *demoTable) addresses(ctx context.Context, s *table.Snapshot) (map[int64]table.RowAddr, error) {
	out := map[int64]table.RowAddr{}
	opts := table.ReadOptions{Columns: []string{"id"}, WithAddrs: true}
	for batch, err := range d.engine.Rows(ctx, s, fragmentIDs(s), opts) {
		if err != nil {
			return nil, err
		}
		ids, ok := batch.Record.Column(0).(*array.Int64)
		if !ok {
			return nil, fmt.Errorf("demo: column id is a %s", batch.Record.Column(0).DataType())
		}
		for i, id := range ids.Int64Values() {
			if _, twice := out[id]; twice {
				return nil, fmt.Errorf("demo: table %s version %d: id %d is there twice", s.Table, s.Version, id)
			}
			out[id] = batch.Addrs[i]
		}
	}
	return out, nil
}

// demoRecord makes rows whose content follows from their id.
func demoRecord(first int64, rows int) arrow.RecordBatch {
	b := array.NewRecordBuilder(memory.DefaultAllocator, demoColumns())
	defer b.Release()
	ids, names, vectors := b.Field(0).(*array.Int64Builder), b.Field(1).(*array.StringBuilder), b.Field(2).(*array.FixedSizeListBuilder)
	values := vectors.ValueBuilder().(*array.Float32Builder)
	for id := first; id < first+int64(rows); id++ {
		ids.Append(id)
		names.Append(fmt.Sprintf("item %d", id))
		vectors.Append(true)
		for i := range demoDimension {
			values.Append(float32(math.Sin(float64(id+1) * float64(i+1))))
		}
	}
	return b.NewRecordBatch()
}
