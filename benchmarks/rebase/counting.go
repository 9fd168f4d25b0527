package main

import (
	"context"
	"errors"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/rehome-db/rehome/lance"
	"github.com/rehome-db/rehome/table"
)

// createCounting makes a table of one int32 column that counts, in fragments of
// equal size.
func createCounting(ctx context.Context, path string, fragments, rows int) (*lance.Engine, error) {
	columns := arrow.NewSchema([]arrow.Field{{Name: "n", Type: arrow.PrimitiveTypes.Int32}}, nil)
	e, err := lance.Create(ctx, path, columns, lance.CreateOptions{}, lance.Options{})
	if err != nil {
		return nil, err
	}
	for f := range fragments {
		_, err := e.Append(ctx, counting(columns, f*rows, rows), table.WriteOptions{MaxRows: uint64(rows), NoSync: true})
		if err != nil {
			return nil, errors.Join(err, e.Close())
		}
	}
	return e, nil
}

// counting yields rows whose values count up from first.
func counting(columns *arrow.Schema, first, rows int) func(func(table.Batch, error) bool) {
	const together = 1 << 16
	return func(yield func(table.Batch, error) bool) {
		b := array.NewInt32Builder(memory.DefaultAllocator)
		defer b.Release()
		for from := 0; from < rows; from += together {
			n := min(together, rows-from)
			b.Reserve(n)
			for i := range n {
				b.UnsafeAppend(int32(first + from + i))
			}
			values := b.NewArray()
			rec := array.NewRecordBatch(columns, []arrow.Array{values}, int64(n))
			more := yield(table.Batch{Record: rec}, nil)
			rec.Release()
			values.Release()
			if !more {
				return
			}
		}
	}
}
