package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"

	"github.com/rehome-db/rehome/internal/recovered"
)

const (
	// parquetRows is the number of rows that are read at a time.
	parquetRows = 4096
	// parquetMost bounds what the library may allocate at once, whatever the file says:
	// a page, or a column of a batch.
	parquetMost = 256 << 20
)

// parquetBatches yields the rows of a Parquet file, a few at a time, row group by row
// group. Columns that the table has as large strings or bytes are read as such; other
// types are the file's. The library trusts what it reads: its panics become errors, and
// it is not given the memory that a damaged file asks for.
func parquetBatches(in parquet.ReaderAtSeeker, schema *arrow.Schema) iter.Seq2[arrow.RecordBatch, error] {
	return func(yield func(arrow.RecordBatch, error) bool) {
		p, err := openParquet(in, schema)
		if err != nil {
			yield(nil, notParquet(err))
			return
		}
		defer p.close()
		for {
			rec, err := p.next()
			if errors.Is(err, io.EOF) {
				return
			}
			if err != nil {
				yield(nil, notParquet(err))
				return
			}
			more := yield(rec, nil)
			rec.Release()
			if !more {
				return
			}
		}
	}
}

// notParquet says what is wrong; a panic is what the file did to the library.
func notParquet(err error) error {
	var stopped *recovered.Error
	if errors.As(err, &stopped) {
		return fmt.Errorf("the Parquet file is damaged: %v", stopped.Value)
	}
	return fmt.Errorf("as Parquet: %w", err)
}

// parquetReader reads a file column by column. The library's reader of records would do
// the same in goroutines of its own, whose panics nobody can stop.
type parquetReader struct {
	file    *file.Reader
	schema  *arrow.Schema
	columns []*pqarrow.ColumnReader
	left    int64 // rows
}

func openParquet(in parquet.ReaderAtSeeker, schema *arrow.Schema) (p *parquetReader, err error) {
	defer recovered.Into(&err)
	mem := boundedAllocator{memory.DefaultAllocator}
	// The file is not the library's to close.
	rdr, err := file.NewParquetReader(in, file.WithReadProps(parquet.NewReaderProperties(mem)))
	if err != nil {
		return nil, err
	}
	meta := rdr.MetaData()
	props := pqarrow.ArrowReadProperties{BatchSize: parquetRows}
	leaves := map[int]bool{}
	for i := range meta.Schema.NumColumns() {
		leaves[i] = true
		if f, ok := schema.FieldsByName(meta.Schema.Column(i).Name()); ok && (f[0].Type.ID() == arrow.LARGE_STRING || f[0].Type.ID() == arrow.LARGE_BINARY) {
			props.SetForceLarge(i, true)
		}
	}
	p = &parquetReader{file: rdr}
	var groups []int
	for g := range rdr.NumRowGroups() {
		rows := meta.RowGroup(g).NumRows()
		if rows < 0 || rows > 1<<40 {
			return nil, fmt.Errorf("row group %d has %d rows", g, rows)
		}
		groups = append(groups, g)
		p.left += rows
		// What is wrong with a chunk's description shows here, and not in a goroutine.
		for c := range leaves {
			if _, err := rdr.RowGroup(g).GetColumnPageReader(c); err != nil {
				return nil, err
			}
		}
	}
	columns, err := pqarrow.NewFileReader(rdr, props, mem)
	if err != nil {
		return nil, err
	}
	var fields []arrow.Field
	for i := range columns.Manifest.Fields {
		c, err := columns.GetFieldReader(context.Background(), i, leaves, groups)
		if err != nil {
			return nil, err
		}
		p.columns = append(p.columns, c)
		fields = append(fields, *c.Field())
	}
	p.schema = arrow.NewSchema(fields, nil)
	return p, nil
}

// next returns the next rows, io.EOF if there are none.
func (p *parquetReader) next() (rec arrow.RecordBatch, err error) {
	defer recovered.Into(&err)
	if p.left == 0 {
		return nil, io.EOF
	}
	n := min(p.left, parquetRows)
	p.left -= n
	var columns []arrow.Array
	defer func() {
		for _, c := range columns {
			c.Release()
		}
	}()
	for i, c := range p.columns {
		chunks, err := c.NextBatch(n)
		if err != nil {
			return nil, fmt.Errorf("column %q: %w", p.schema.Field(i).Name, err)
		}
		values, err := oneArray(chunks, p.schema.Field(i).Type)
		if err != nil {
			return nil, fmt.Errorf("column %q: %w", p.schema.Field(i).Name, err)
		}
		columns = append(columns, values)
		if int64(values.Len()) != n {
			return nil, fmt.Errorf("column %q: %d rows, where others have %d", p.schema.Field(i).Name, values.Len(), n)
		}
	}
	return array.NewRecordBatch(p.schema, columns, n), nil
}

func oneArray(chunks *arrow.Chunked, t arrow.DataType) (arrow.Array, error) {
	defer chunks.Release()
	switch len(chunks.Chunks()) {
	case 0:
		return array.MakeArrayOfNull(memory.DefaultAllocator, t, 0), nil
	case 1:
		c := chunks.Chunk(0)
		c.Retain()
		return c, nil
	}
	return array.Concatenate(chunks.Chunks(), memory.DefaultAllocator)
}

func (p *parquetReader) close() {
	var err error
	defer recovered.Into(&err)
	for _, c := range p.columns {
		c.Release()
	}
}

// boundedAllocator refuses what no sound file needs: it hands out nothing, over which
// the library panics as over other damage.
type boundedAllocator struct{ memory.Allocator }

func (a boundedAllocator) Allocate(size int) []byte {
	if size < 0 || size > parquetMost {
		return nil
	}
	return a.Allocator.Allocate(size)
}

func (a boundedAllocator) Reallocate(size int, b []byte) []byte {
	if size < 0 || size > parquetMost {
		return nil
	}
	return a.Allocator.Reallocate(size, b)
}
