package dml

import (
	"context"
	"iter"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/rehome-db/rehome/internal/gather"
	"github.com/rehome-db/rehome/rebase"
	"github.com/rehome-db/rehome/table"
)

// outputRows is the number of rows a batch that is written.
const outputRows = 8192

// sourcePart is some rows of one batch of the source.
type sourcePart struct {
	batch sourceBatch
	items []int // whose rows they are, by the caller's count
	rows  []int // in the batch, parallel to items
}

// take copies the rows out of a column that the source has.
func (p sourcePart) take(column int) (arrow.Array, error) {
	return gather.Take(memory.DefaultAllocator, p.batch.columns[column], p.rows)
}

// parts divides items with a source row each into parts that are each of one batch of
// the source and can be copied. The order is kept within a batch of the source only.
func (src *source) parts(items int, rowOf func(item int) int32) iter.Seq[sourcePart] {
	return func(yield func(sourcePart) bool) {
		byBatch := map[int][]int{}
		var order []int
		for i := range items {
			b := src.batchOf(rowOf(i))
			if byBatch[b] == nil {
				order = append(order, b)
			}
			byBatch[b] = append(byBatch[b], i)
		}
		for _, b := range order {
			part := sourcePart{batch: src.batches[b]}
			used := map[int]int{} // how often a row came, if that can be too often
			flush := func() bool {
				done := part
				part.items, part.rows = nil, nil
				clear(used)
				return len(done.items) == 0 || yield(done)
			}
			for _, i := range byBatch[b] {
				row := int(rowOf(i)) - part.batch.start
				if (used[row] == part.batch.repeats || len(part.items) == outputRows) && !flush() {
					return
				}
				if part.batch.repeats < outputRows {
					used[row]++
				}
				part.items, part.rows = append(part.items, i), append(part.rows, row)
			}
			if !flush() {
				return
			}
		}
	}
}

// output yields the rows to be written: first those that were updated, so that they
// are the first in the new fragments and can be told who they were, then new ones.
func (j *join) output(ctx context.Context, updated rebase.RowSet, inserts []int32) iter.Seq2[table.Batch, error] {
	return func(yield func(table.Batch, error) bool) {
		if !j.updatedRows(ctx, updated, yield) {
			return
		}
		for part := range j.source.parts(len(inserts), func(i int) int32 { return inserts[i] }) {
			if !j.emit(part, nil, yield) {
				return
			}
		}
	}
}

// updatedRows yields the rows of the table that get new values, with these, and says
// whether to go on.
func (j *join) updatedRows(ctx context.Context, updated rebase.RowSet, yield func(table.Batch, error) bool) bool {
	values := j.values.read()
	missing := j.source.missing()
	if len(missing) == 0 {
		var pairs []pair
		for addr := range j.inOrder(updated) {
			if pairs = append(pairs, pair{addr, values.next()}); len(pairs) == outputRows {
				if !j.window(ctx, pairs, nil, yield) {
					return false
				}
				pairs = pairs[:0]
			}
		}
		return len(pairs) == 0 || j.window(ctx, pairs, nil, yield)
	}
	next, stop := iter.Pull(j.inOrder(updated))
	defer stop()
	for b, err := range j.at(ctx, updated, missing) {
		if err != nil {
			yield(table.Batch{}, err)
			return false
		}
		pairs := make([]pair, len(b.Addrs))
		for i, a := range b.Addrs {
			if addr, ok := next(); !ok || addr != a {
				yield(table.Batch{}, j.errorf("merge insert: row %s was read again out of order", a))
				return false
			}
			pairs[i] = pair{a, values.next()}
		}
		if !j.window(ctx, pairs, b.Record, yield) {
			return false
		}
	}
	return true
}

// window yields some of the updated rows. target are they as they were, without the
// columns that the source has; nil if it has all.
func (j *join) window(ctx context.Context, pairs []pair, target arrow.RecordBatch, yield func(table.Batch, error) bool) bool {
	for part := range j.source.parts(len(pairs), func(i int) int32 { return pairs[i].source }) {
		addrs := make([]table.RowAddr, len(part.items))
		for i, n := range part.items {
			addrs[i] = pairs[n].addr
		}
		if err := j.ids.add(ctx, addrs); err != nil {
			yield(table.Batch{}, err)
			return false
		}
		if !j.emit(part, target, yield) {
			return false
		}
	}
	return true
}

// emit yields rows put together out of a part of the source and, for the columns that
// the source does not have, the same items' rows of target, or nulls if there is no
// target.
func (j *join) emit(part sourcePart, target arrow.RecordBatch, yield func(table.Batch, error) bool) bool {
	rec, err := j.assemble(part, target)
	if err != nil {
		yield(table.Batch{}, j.errorf("merge insert: %w", err))
		return false
	}
	defer rec.Release()
	return yield(table.Batch{Record: rec}, nil)
}

func (j *join) assemble(part sourcePart, target arrow.RecordBatch) (arrow.RecordBatch, error) {
	columns := make([]arrow.Array, len(j.snapshot.Schema.Fields))
	missing := j.source.missing()
	for i, f := range j.snapshot.Schema.Fields {
		var err error
		var kept arrow.Array // what the rows have now
		if target != nil && slices.Contains(missing, f.Name) {
			if kept, err = column(target, f.Name); err == nil {
				kept, err = gather.Take(memory.DefaultAllocator, kept, part.items)
			}
		}
		switch {
		case err != nil:
		case j.source.has[i]:
			if columns[i], err = part.take(i); err == nil {
				columns[i], err = j.source.complete(i, columns[i], kept)
			}
			release([]arrow.Array{kept})
		case target == nil:
			columns[i] = nulls(f, len(part.rows))
		default:
			columns[i] = kept
		}
		if err != nil {
			release(columns)
			return nil, err
		}
	}
	rec, err := record(j.schema, columns, len(part.rows))
	if err != nil {
		return nil, err
	}
	if err := checkNulls(j.snapshot.Schema, rec); err != nil {
		rec.Release()
		return nil, err
	}
	return rec, nil
}
