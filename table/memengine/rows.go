package memengine

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"math"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/rehome-db/rehome/table"
)

// Rows implements table.RowReader.
func (e *Engine) Rows(ctx context.Context, s *table.Snapshot, ids []table.FragmentID, opts table.ReadOptions) iter.Seq2[table.Batch, error] {
	return func(yield func(table.Batch, error) bool) {
		for _, id := range ids {
			if !e.fragmentRows(ctx, s, id, opts, yield) {
				return
			}
		}
	}
}

// fragmentRows yields the live rows of one fragment and says whether to go on
// with the next: neither the consumer nor an error has ended the read.
func (e *Engine) fragmentRows(ctx context.Context, s *table.Snapshot, id table.FragmentID, opts table.ReadOptions, yield func(table.Batch, error) bool) bool {
	fail := func(err error) bool {
		yield(table.Batch{}, err)
		return false
	}
	f, ok := s.Fragment(id)
	if !ok {
		return fail(fmt.Errorf("memengine: table %s version %d has no fragment %d: %w", e.name, s.Version, id, table.ErrNotFound))
	}
	file, err := e.get(table.ObjectData, f.Files[0].Path)
	if err != nil {
		return fail(err)
	}
	rows, err := project(file.rows, opts.Columns)
	if err != nil {
		return fail(fmt.Errorf("memengine: table %s version %d: %w", e.name, s.Version, err))
	}
	deleted, err := e.deletions(f)
	if err != nil {
		return fail(fmt.Errorf("memengine: table %s version %d: %w", e.name, s.Version, err))
	}
	batchRows := 8192
	if opts.BatchRows > 0 {
		batchRows = opts.BatchRows
	}
	for from, to := range cut(deleted.Live(f.PhysicalRows), uint64(batchRows)) {
		if err := ctx.Err(); err != nil {
			return fail(err)
		}
		batch := table.Batch{Record: rows.NewSlice(from, to)}
		if opts.WithAddrs {
			for offset := from; offset < to; offset++ {
				batch.Addrs = append(batch.Addrs, table.NewRowAddr(id, uint32(offset)))
			}
		}
		more := yield(batch, nil)
		batch.Record.Release()
		if !more {
			return false
		}
	}
	return true
}

// cut divides each range into pieces of at most limit rows.
func cut(ranges iter.Seq2[uint64, uint64], limit uint64) iter.Seq2[int64, int64] {
	return func(yield func(from, to int64) bool) {
		for start, end := range ranges {
			for ; start < end; start += limit {
				if !yield(int64(start), int64(min(end, start+limit))) {
					return
				}
			}
		}
	}
}

// project narrows a record to the named columns, in that order; none means all.
func project(rec arrow.RecordBatch, names []string) (arrow.RecordBatch, error) {
	if len(names) == 0 {
		return rec, nil
	}
	var fields []arrow.Field
	var columns []arrow.Array
	for _, name := range names {
		at := rec.Schema().FieldIndices(name)
		if len(at) == 0 {
			return nil, fmt.Errorf("no column %q: %w", name, table.ErrNotFound)
		}
		fields = append(fields, rec.Schema().Field(at[0]))
		columns = append(columns, rec.Column(at[0]))
	}
	return array.NewRecordBatch(arrow.NewSchema(fields, nil), columns, rec.NumRows()), nil
}

// WriteFragments implements table.FragmentWriter.
func (e *Engine) WriteFragments(ctx context.Context, schema table.Schema, rows iter.Seq2[table.Batch, error], opts table.WriteOptions) (table.Written, error) {
	maxRows := int64(min(cmp.Or(opts.MaxRows, 1<<20), 1<<32)) // an offset has 32 bits
	maxBytes := cmp.Or(opts.MaxBytes, math.MaxUint64)
	var out table.Written
	open := builder{schema: schema}
	closeFragment := func() error {
		if open.rows == 0 {
			return nil
		}
		f, file, err := e.writeFragment(open)
		if err != nil {
			return err
		}
		out.Fragments = append(out.Fragments, f)
		out.Objects = append(out.Objects, file)
		out.BytesWritten += file.Bytes
		open = builder{schema: schema}
		return nil
	}
	for batch, err := range rows {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return out, fmt.Errorf("memengine: write of table %s: %w", e.name, err)
		}
		for from := int64(0); from < batch.Record.NumRows(); {
			to := min(batch.Record.NumRows(), from+maxRows-open.rows)
			if err := open.add(batch.Record, from, to); err != nil {
				return out, fmt.Errorf("memengine: write of table %s: %w", e.name, err)
			}
			if from = to; open.rows == maxRows || open.bytes >= maxBytes {
				if err := closeFragment(); err != nil {
					return out, err
				}
			}
		}
	}
	return out, closeFragment()
}

// writeFragment stores the builder's rows as the one file of a new fragment.
func (e *Engine) writeFragment(b builder) (table.NewFragment, table.Object, error) {
	rec, err := concatenate(b.schema.Arrow(), b.parts)
	if err != nil {
		return table.NewFragment{}, table.Object{}, fmt.Errorf("memengine: write of table %s: %w", e.name, err)
	}
	file := table.DataFile{Format: "memory", Bytes: sizeOf(rec)}
	for i, field := range b.schema.Fields {
		file.Fields = append(file.Fields, field.ID)
		file.Columns = append(file.Columns, int32(i))
	}
	o := e.put(object{Object: table.Object{Kind: table.ObjectData, Bytes: file.Bytes}, rows: rec}, "data/")
	file.Path = o.Path
	return table.NewFragment{PhysicalRows: uint64(b.rows), Files: []table.DataFile{file}}, o, nil
}

// builder collects the rows of the fragment that is being written.
type builder struct {
	schema table.Schema
	parts  []arrow.RecordBatch
	rows   int64
	bytes  uint64
}

// add copies the rows [from, to) of rec. A copy, because the producer releases
// rec as soon as it is asked for the next one, and because the buffers of a slice
// are those of the whole: only a copy knows its size.
func (b *builder) add(rec arrow.RecordBatch, from, to int64) error {
	if int(rec.NumCols()) != len(b.schema.Fields) {
		return fmt.Errorf("rows have %d columns, the schema has %d", rec.NumCols(), len(b.schema.Fields))
	}
	for i, field := range b.schema.Fields {
		if got := rec.Column(i).DataType(); !arrow.TypeEqual(got, field.Type) {
			return fmt.Errorf("column %q: rows hold %s, the schema says %s", field.Name, got, field.Type)
		}
	}
	slice := rec.NewSlice(from, to)
	defer slice.Release()
	part, err := concatenate(b.schema.Arrow(), []arrow.RecordBatch{slice})
	if err != nil {
		return err
	}
	b.parts = append(b.parts, part)
	b.rows += to - from
	b.bytes += sizeOf(part)
	return nil
}

// concatenate copies records that have the schema's columns into one.
func concatenate(schema *arrow.Schema, parts []arrow.RecordBatch) (arrow.RecordBatch, error) {
	var rows int64
	for _, p := range parts {
		rows += p.NumRows()
	}
	columns := make([]arrow.Array, schema.NumFields())
	for i := range columns {
		chunks := make([]arrow.Array, len(parts))
		for j, p := range parts {
			chunks[j] = p.Column(i)
		}
		var err error
		if columns[i], err = array.Concatenate(chunks, memory.DefaultAllocator); err != nil {
			return nil, fmt.Errorf("column %q: %w", schema.Field(i).Name, err)
		}
	}
	return array.NewRecordBatch(schema, columns, rows), nil
}

// sizeOf is the size of the record's buffers, which must be its own.
func sizeOf(rec arrow.RecordBatch) uint64 {
	var n uint64
	for _, column := range rec.Columns() {
		n += column.Data().SizeInBytes()
	}
	return n
}
