// Package workload makes the tables that the benchmarks compare engines on. A
// stock engine writes them, so that what is compacted is what users have.
//
// A table is a number of fragments of equal size, then one delete that touches all
// of them. Everything is drawn from a seed: the same [Table] is the same rows on
// every machine.
//
//	t := workload.Vectors(1_000_000, 100)
//	err := t.Build(ctx, engine, dir+"/t.lance")
package workload

import (
	"context"
	"fmt"
	"math/rand/v2"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/rehome-db/rehome/interop"
)

// Table describes a table. The first column is always "id", an int64 that counts
// rows from 0.
type Table struct {
	// Name is what results call the table.
	Name string
	// Rows and Fragments are how many; the fragments share the rows equally.
	Rows, Fragments int
	// DeletePercent of the rows, spread over all fragments, are deleted. The
	// default is none.
	DeletePercent int
	// DataFormat is the version of the data files. The default is the engine's.
	DataFormat string
	// Seed of the values. The default is 0.
	Seed uint64
	// Columns beside the id.
	Columns []Column
}

// Column is a column and what fills it.
type Column struct {
	Name     string
	Type     arrow.DataType
	Nullable bool
	// Append adds the value of the given row.
	Append func(b array.Builder, rng *rand.Rand, row int)
}

// Build writes the table at path, which ends in "/t.lance".
func (t Table) Build(ctx context.Context, e *interop.Engine, path string) error {
	per := t.Rows / t.Fragments
	if per == 0 {
		return fmt.Errorf("workload: %d rows do not fill %d fragments", t.Rows, t.Fragments)
	}
	for k := range t.Fragments {
		rec := t.record(k*per, per)
		var err error
		if k == 0 {
			_, err = e.Create(ctx, path, rec, interop.CreateOptions{DataFormat: t.DataFormat})
		} else {
			_, err = e.Append(ctx, path, rec)
		}
		rec.Release()
		if err != nil {
			return fmt.Errorf("workload: table %s, fragment %d: %w", t.Name, k, err)
		}
	}
	if t.DeletePercent > 0 {
		if _, err := e.Delete(ctx, path, fmt.Sprintf("(id * 7919) %% 100 < %d", t.DeletePercent)); err != nil {
			return fmt.Errorf("workload: table %s: %w", t.Name, err)
		}
	}
	return e.Forget(ctx, path)
}

func (t Table) record(first, n int) arrow.RecordBatch {
	fields := []arrow.Field{{Name: "id", Type: arrow.PrimitiveTypes.Int64}}
	for _, c := range t.Columns {
		fields = append(fields, arrow.Field{Name: c.Name, Type: c.Type, Nullable: c.Nullable})
	}
	b := array.NewRecordBuilder(memory.DefaultAllocator, arrow.NewSchema(fields, nil))
	defer b.Release()
	ids := b.Field(0).(*array.Int64Builder)
	for i := range n {
		ids.Append(int64(first + i))
	}
	for c, column := range t.Columns {
		// A generator of its own for each column and fragment: a column's values do
		// not depend on what stands beside it.
		rng := rand.New(rand.NewPCG(t.Seed+uint64(c)<<32, uint64(first)))
		for i := range n {
			column.Append(b.Field(c+1), rng, first+i)
		}
	}
	return b.NewRecordBatch()
}
