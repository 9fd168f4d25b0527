package main

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/rehome-db/rehome/dml"
	"github.com/rehome-db/rehome/table"
)

// columns are the table's: a key that may be declared unique, a value that changes,
// and a text that follows from key and value, so that a row put together of two rows
// shows.
func columns(unique bool) *arrow.Schema {
	var declared arrow.Metadata
	if unique {
		declared = arrow.MetadataFrom(map[string]string{"lance-schema:unenforced-primary-key": "true"})
	}
	return arrow.NewSchema([]arrow.Field{
		{Name: "k", Type: arrow.PrimitiveTypes.Int64, Metadata: declared},
		{Name: "v", Type: arrow.PrimitiveTypes.Int64},
		{Name: "s", Type: arrow.BinaryTypes.String, Nullable: true},
	}, nil)
}

// row is one row that was read.
type row struct {
	key, value int64
	whole      bool // the text is right
	addr       table.RowAddr
}

// textOf is null for some values.
func textOf(key, value int64) (s string, null bool) {
	return fmt.Sprintf("%d is %d", key, value), value%11 == 0
}

func appendText(b *array.StringBuilder, key, value int64) {
	if s, null := textOf(key, value); null {
		b.AppendNull()
	} else {
		b.Append(s)
	}
}

// source is rows as a batch.
func source(rows map[int64]int64) iter.Seq2[arrow.RecordBatch, error] {
	b := array.NewRecordBuilder(memory.DefaultAllocator, columns(false))
	defer b.Release()
	for _, key := range slices.Sorted(maps.Keys(rows)) {
		b.Field(0).(*array.Int64Builder).Append(key)
		b.Field(1).(*array.Int64Builder).Append(rows[key])
		appendText(b.Field(2).(*array.StringBuilder), key, rows[key])
	}
	return dml.Records(b.NewRecordBatch())
}

// readRows reads all rows of a version.
func readRows(ctx context.Context, e table.Engine, s *table.Snapshot) (out []row, err error) {
	var ids []table.FragmentID
	for _, f := range s.Fragments {
		ids = append(ids, f.ID)
	}
	for b, err := range e.Rows(ctx, s, ids, table.ReadOptions{WithAddrs: true}) {
		if err != nil {
			return nil, err
		}
		keys, values, err := keysAndValues(b.Record)
		if err != nil {
			return nil, err
		}
		texts, ok := b.Record.Column(2).(*array.String)
		if !ok {
			return nil, fmt.Errorf("the columns are %s", b.Record.Schema())
		}
		for i := range keys.Len() {
			r := row{key: keys.Value(i), value: values.Value(i), addr: b.Addrs[i]}
			want, null := textOf(r.key, r.value)
			r.whole = texts.IsNull(i) == null && (null || texts.Value(i) == want)
			out = append(out, r)
		}
	}
	return out, nil
}

func keysAndValues(rec arrow.RecordBatch) (keys, values *array.Int64, err error) {
	for i, f := range rec.Schema().Fields() {
		switch f.Name {
		case "k":
			keys, _ = rec.Column(i).(*array.Int64)
		case "v":
			values, _ = rec.Column(i).(*array.Int64)
		}
	}
	if keys == nil || values == nil {
		return nil, nil, fmt.Errorf("the columns are %s", rec.Schema())
	}
	return keys, values, nil
}

// where is a condition on keys and values.
func where(matches func(key, value int64) bool) dml.Predicate {
	return dml.PredicateFunc([]string{"k", "v"}, func(_ context.Context, rec arrow.RecordBatch) (*array.Boolean, error) {
		keys, values, err := keysAndValues(rec)
		if err != nil {
			return nil, err
		}
		b := array.NewBooleanBuilder(memory.DefaultAllocator)
		defer b.Release()
		for i := range keys.Len() {
			b.Append(matches(keys.Value(i), values.Value(i)))
		}
		return b.NewBooleanArray(), nil
	})
}

// assignments are the new values and texts of updated rows.
func assignments(set func(key, value int64) int64) map[string]dml.Expr {
	expr := func(build func(keys, values *array.Int64) arrow.Array) dml.Expr {
		return dml.ExprFunc([]string{"k", "v"}, func(_ context.Context, rec arrow.RecordBatch) (arrow.Array, error) {
			keys, values, err := keysAndValues(rec)
			if err != nil {
				return nil, err
			}
			return build(keys, values), nil
		})
	}
	return map[string]dml.Expr{
		"v": expr(func(keys, values *array.Int64) arrow.Array {
			b := array.NewInt64Builder(memory.DefaultAllocator)
			defer b.Release()
			for i := range keys.Len() {
				b.Append(set(keys.Value(i), values.Value(i)))
			}
			return b.NewArray()
		}),
		"s": expr(func(keys, values *array.Int64) arrow.Array {
			b := array.NewStringBuilder(memory.DefaultAllocator)
			defer b.Release()
			for i := range keys.Len() {
				appendText(b, keys.Value(i), set(keys.Value(i), values.Value(i)))
			}
			return b.NewArray()
		}),
	}
}
