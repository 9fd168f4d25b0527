package dml

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/rehome-db/rehome/internal/arrowcheck"
	"github.com/rehome-db/rehome/table"
)

// Records makes a source of rows out of record batches, which it does not own.
func Records(records ...arrow.RecordBatch) iter.Seq2[arrow.RecordBatch, error] {
	return func(yield func(arrow.RecordBatch, error) bool) {
		for _, r := range records {
			if !yield(r, nil) {
				return
			}
		}
	}
}

// layout is which columns of a table a source has.
type layout struct {
	schema table.Schema
	// has says for each column of the table whether the source has it.
	has []bool
	// from are the types of the columns that the source has and that lack subfields, or
	// have them in another order; see subfields.go. The others are as in the table.
	from []arrow.DataType
}

// layoutOf finds the columns of a batch among those of the table, whatever their
// order. A column that the table does not have, or has with another type, is an
// error, apart from subfields that it lacks. That it may have nulls is none: only nulls are.
func layoutOf(schema table.Schema, rec *arrow.Schema) (layout, error) {
	l := layout{schema: schema, has: make([]bool, len(schema.Fields)), from: make([]arrow.DataType, len(schema.Fields))}
	for _, f := range rec.Fields() {
		at := slices.IndexFunc(schema.Fields, func(g table.Field) bool { return g.Name == f.Name })
		switch {
		case at < 0:
			return l, fmt.Errorf("the table has no column %q, and the rows to be written have", f.Name)
		case l.has[at]:
			return l, fmt.Errorf("the rows to be written have column %q twice", f.Name)
		case !fits(f.Type, schema.Fields[at].Type):
			return l, fmt.Errorf("column %q: the rows to be written have it as %s, the table as %s", f.Name, f.Type, schema.Fields[at].Type)
		}
		l.has[at] = true
		if !arrow.TypeEqual(f.Type, schema.Fields[at].Type) {
			l.from[at] = f.Type
		}
	}
	return l, nil
}

// missing are those of which a row that is updated keeps something.
func (l layout) missing() []string {
	var out []string
	for i, f := range l.schema.Fields {
		if !l.has[i] || l.from[i] != nil && len(lacking(l.from[i], f.Type, f.Name, false)) > 0 {
			out = append(out, f.Name)
		}
	}
	return out
}

// complete makes values of a column that the source has such of the table's, with what
// they lack from target, or nulls if that is nil. It releases the values.
func (l layout) complete(column int, values, target arrow.Array) (arrow.Array, error) {
	if l.from[column] == nil {
		return values, nil
	}
	defer values.Release()
	f := l.schema.Fields[column]
	return complete(values, target, f.Type, f.Name)
}

// names are the columns that the source has, in the table's order.
func (l layout) names() []string {
	var out []string
	for i, f := range l.schema.Fields {
		if l.has[i] {
			out = append(out, f.Name)
		}
	}
	return out
}

// canInsert says why rows with these columns alone cannot be new rows of the table.
func (l layout) canInsert() error {
	var lacks []string
	for i, f := range l.schema.Fields {
		if !l.has[i] && !f.Nullable {
			lacks = append(lacks, fmt.Sprintf("%q", f.Name))
		}
		if l.from[i] != nil {
			for _, name := range lacking(l.from[i], f.Type, f.Name, true) {
				lacks = append(lacks, fmt.Sprintf("%q", name))
			}
		}
	}
	if len(lacks) == 0 {
		return nil
	}
	return fmt.Errorf("rows cannot be inserted without a value for %s, which must not be null", strings.Join(lacks, ", "))
}

// columns are the table's columns of a batch, nil where the batch has none. They are
// the batch's.
func (l layout) columns(rec arrow.RecordBatch) ([]arrow.Array, error) {
	got, err := layoutOf(l.schema, rec.Schema())
	if err != nil {
		return nil, err
	}
	if !slices.Equal(got.has, l.has) {
		return nil, fmt.Errorf("one batch has the columns %q, another %q", l.names(), got.names())
	}
	for i, f := range l.schema.Fields {
		if a, b := l.from[i], got.from[i]; (a == nil) != (b == nil) || a != nil && !arrow.TypeEqual(a, b) {
			return nil, fmt.Errorf("column %q has other subfields in one batch than in another", f.Name)
		}
	}
	out := make([]arrow.Array, len(l.schema.Fields))
	for i, f := range l.schema.Fields {
		if l.has[i] {
			if out[i], err = column(rec, f.Name); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}

// source is all rows of a merge, held in memory, and their keys.
type source struct {
	layout
	batches []sourceBatch
	rows    int
	// first is the first row with a key, and next for each row the next one with the
	// same key, -1 at the end.
	first map[string]int32
	next  []int32
	// last is the last row with a key by the first, of keys that come again.
	last map[int32]int32
	// skipped are rows that are left out as duplicates.
	skipped map[int32]bool
}

// sourceBatch is a batch of the source. Its columns are the table's, nil for those
// that the source does not have.
type sourceBatch struct {
	record  arrow.RecordBatch
	columns []arrow.Array
	start   int // the number of its first row
	// repeats is how often a row may come in a copy of rows of the batch, so that the
	// copy has less than 2 GiB of anything.
	repeats int
}

// readSource reads a merge's source to its end. The caller releases it.
func readSource(ctx context.Context, schema table.Schema, rows iter.Seq2[arrow.RecordBatch, error], on []string, skipDuplicates bool) (*source, error) {
	src := &source{first: map[string]int32{}, last: map[int32]int32{}, skipped: map[int32]bool{}}
	if err := src.read(ctx, schema, rows, on, skipDuplicates); err != nil {
		src.release()
		return nil, err
	}
	return src, nil
}

func (src *source) read(ctx context.Context, schema table.Schema, rows iter.Seq2[arrow.RecordBatch, error], on []string, skipDuplicates bool) error {
	for rec, err := range rows {
		if err == nil {
			err = ctx.Err()
		}
		if err == nil {
			err = arrowcheck.Record(rec)
		}
		if err == nil && src.has == nil {
			src.layout, err = layoutOf(schema, rec.Schema())
		}
		if err == nil {
			err = src.add(rec, on, skipDuplicates)
		}
		if err != nil {
			return err
		}
	}
	if src.has == nil { // no batch at all says nothing of columns
		src.layout = layout{schema: schema, has: make([]bool, len(schema.Fields)), from: make([]arrow.DataType, len(schema.Fields))}
	}
	return nil
}

func (src *source) add(rec arrow.RecordBatch, on []string, skipDuplicates bool) error {
	columns, err := src.columns(rec)
	if err != nil {
		return err
	}
	keys, err := newKeyReader(rec, on)
	if err != nil {
		return err
	}
	n := int(rec.NumRows())
	if n == 0 {
		return nil
	}
	if src.rows > math.MaxInt32-n {
		return errors.New("the source has 2^31 rows or more")
	}
	rec.Retain()
	src.batches = append(src.batches, sourceBatch{record: rec, columns: columns, start: src.rows, repeats: repeats(columns)})
	for i := range n {
		row := int32(src.rows + i)
		src.next = append(src.next, -1)
		key, ok := keys.key(i)
		if !ok {
			continue
		}
		head, again := src.first[string(key)]
		switch {
		case !again:
			src.first[string(key)] = row
		case skipDuplicates:
			src.skipped[row] = true
		default:
			tail, ok := src.last[head]
			if !ok {
				tail = head
			}
			src.next[tail], src.last[head] = row, row
		}
	}
	src.rows += n
	return nil
}

// repeats bounds how often a row can be repeated before a buffer overflows: that many
// times all of the batch is less than 2 GiB.
func repeats(columns []arrow.Array) int {
	var most uint64 = 1
	for _, c := range columns {
		if c != nil {
			most = max(most, c.Data().SizeInBytes())
		}
	}
	return int(max(1, 1<<30/most))
}

func (src *source) release() {
	for _, b := range src.batches {
		b.record.Release()
	}
	src.batches = nil
}

// find yields the rows that have a key.
func (src *source) find(key []byte) iter.Seq[int32] {
	return func(yield func(int32) bool) {
		row, ok := src.first[string(key)]
		for ok && row >= 0 && yield(row) {
			row = src.next[row]
		}
	}
}

// batchOf finds the batch that a row is in.
func (src *source) batchOf(row int32) int {
	at, ok := slices.BinarySearchFunc(src.batches, int(row), func(b sourceBatch, row int) int { return b.start - row })
	if ok {
		return at
	}
	return at - 1
}
