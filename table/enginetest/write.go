package enginetest

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/rehome-db/rehome/table"
)

func testWrite(t *testing.T, cfg Config) {
	cases{
		{"closes fragments at exactly MaxRows", writeClosesFragmentsAtExactlyMaxRows},
		{"names every object that it made", writeNamesEveryObjectThatItMade},
		{"shows nothing until a commit", writeShowsNothingUntilACommit},
		{"makes nothing of zero rows", writeMakesNothingOfZeroRows},
		{"closes fragments at about MaxBytes", writeClosesFragmentsAtAboutMaxBytes},
		{"writes the same without flushing", writeWritesTheSameWithoutFlushing},
		{"names its objects when the rows end in an error", writeNamesItsObjectsWhenTheRowsEndInAnError},
		{"names its objects when the context is cancelled", writeNamesItsObjectsWhenTheContextIsCancelled},
		{"refuses rows that do not have the schema's columns", writeRefusesRowsThatDoNotHaveTheSchemaSColumns},
	}.run(t, cfg)
}

func writeClosesFragmentsAtExactlyMaxRows(t *testing.T, cfg Config) {
	for _, c := range []struct {
		rows, batch int
		maxRows     uint64
		want        []uint64
	}{
		{rows: 100, batch: 7, maxRows: 30, want: []uint64{30, 30, 30, 10}},
		{rows: 90, batch: 90, maxRows: 30, want: []uint64{30, 30, 30}},
		{rows: 90, batch: 30, maxRows: 30, want: []uint64{30, 30, 30}},
		{rows: 5, batch: 2, maxRows: 1, want: []uint64{1, 1, 1, 1, 1}},
		{rows: 50, batch: 50, maxRows: 51, want: []uint64{50}},
		{rows: 50, batch: 1, maxRows: 0, want: []uint64{50}},
	} {
		f := newFixture(t, cfg)
		out := f.write(numbers(0, c.rows), c.batch, table.WriteOptions{MaxRows: c.maxRows})
		var got []uint64
		for _, frag := range out.Fragments {
			got = append(got, frag.PhysicalRows)
		}
		f.Equal(c.want, got, "%+v", c)
		f.commit(table.Change{Add: place(f.latest(), out.Fragments)})
		f.hasRows(f.latest(), numbers(0, c.rows))
	}
}

func writeNamesEveryObjectThatItMade(t *testing.T, cfg Config) {
	f := newFixture(t, cfg)
	before := f.objects()
	out := f.write(numbers(0, 100), 9, table.WriteOptions{MaxRows: 40})
	f.named(before, out)
	var sum uint64
	for _, o := range out.Objects {
		size, err := f.engine.Stat(f.ctx, o)
		f.NoError(err)
		f.NotZero(size)
		f.Equal(size, o.Bytes, "recorded size of %s", o.Path)
		sum += size
	}
	f.Equal(sum, out.BytesWritten)
	for _, frag := range out.Fragments {
		for _, file := range frag.Files {
			size, err := f.engine.Stat(f.ctx, table.Object{Kind: table.ObjectData, Path: file.Path})
			f.NoError(err)
			f.Equal(size, file.Bytes)
		}
	}
}

func writeShowsNothingUntilACommit(t *testing.T, cfg Config) {
	f := newFixture(t, cfg, 10)
	before := f.latest()
	f.write(numbers(10, 10), 10, table.WriteOptions{})
	f.unchangedSince(before)
	f.hasRows(f.latest(), numbers(0, 10))
}

func writeMakesNothingOfZeroRows(t *testing.T, cfg Config) {
	f := newFixture(t, cfg)
	before := f.objects()
	empty := makeRecord(f.t, cfg.Schema, memory.DefaultAllocator, nil)
	defer empty.Release()
	for _, rows := range []iter.Seq2[table.Batch, error]{
		func(func(table.Batch, error) bool) {},
		func(yield func(table.Batch, error) bool) { yield(table.Batch{Record: empty}, nil) },
	} {
		out, err := f.engine.WriteFragments(f.ctx, f.latest().Schema, rows, table.WriteOptions{})
		f.NoError(err)
		f.Empty(out.Fragments)
		f.Empty(out.Objects)
		f.Equal(before, f.objects())
	}
}

func writeClosesFragmentsAtAboutMaxBytes(t *testing.T, cfg Config) {
	f := newFixture(t, cfg)
	whole := f.write(numbers(0, 4000), 100, table.WriteOptions{})
	f.Len(whole.Fragments, 1)
	out := f.write(numbers(0, 4000), 100, table.WriteOptions{MaxBytes: whole.BytesWritten / 4})
	f.GreaterOrEqual(len(out.Fragments), 2)
	f.LessOrEqual(len(out.Fragments), 16)
	f.commit(table.Change{Add: place(f.latest(), out.Fragments)})
	f.hasRows(f.latest(), numbers(0, 4000))
}

func writeWritesTheSameWithoutFlushing(t *testing.T, cfg Config) {
	f := newFixture(t, cfg)
	out := f.write(numbers(0, 50), 20, table.WriteOptions{NoSync: true})
	f.commit(table.Change{Add: place(f.latest(), out.Fragments)})
	f.hasRows(f.latest(), numbers(0, 50))
}

func writeNamesItsObjectsWhenTheRowsEndInAnError(t *testing.T, cfg Config) {
	f := newFixture(t, cfg, 10)
	before, broken := f.objects(), errors.New("the source broke")
	out, err := f.engine.WriteFragments(f.ctx, f.latest().Schema, endingIn(f.batches(numbers(0, 95), 10), broken), table.WriteOptions{MaxRows: 30})
	f.ErrorIs(err, broken)
	f.cleanUp(before, out)
}

func writeNamesItsObjectsWhenTheContextIsCancelled(t *testing.T, cfg Config) {
	f := newFixture(t, cfg, 10)
	before, schema := f.objects(), f.latest().Schema
	ctx, cancel := context.WithCancel(f.ctx)
	defer cancel()
	rows := func(yield func(table.Batch, error) bool) {
		count := 0
		for batch, err := range f.batches(numbers(0, 1000), 10) {
			if count++; count == 50 {
				cancel()
			}
			if !yield(batch, err) {
				return
			}
		}
	}
	out, err := f.engine.WriteFragments(ctx, schema, rows, table.WriteOptions{MaxRows: 100})
	f.ErrorIs(err, context.Canceled)
	f.cleanUp(before, out)
}

func writeRefusesRowsThatDoNotHaveTheSchemaSColumns(t *testing.T, cfg Config) {
	f := newFixture(t, cfg)
	before := f.objects()
	other := table.Schema{Fields: []table.Field{{Name: "other", Type: arrow.BinaryTypes.LargeString}}}
	if len(cfg.Schema.Fields) == 1 {
		other.Fields = append(other.Fields, other.Fields[0])
	}
	b := array.NewRecordBuilder(memory.DefaultAllocator, other.Arrow())
	defer b.Release()
	for _, column := range b.Fields() {
		column.AppendEmptyValues(3)
	}
	rec := b.NewRecordBatch()
	defer rec.Release()
	rows := func(yield func(table.Batch, error) bool) { yield(table.Batch{Record: rec}, nil) }
	out, err := f.engine.WriteFragments(f.ctx, f.latest().Schema, rows, table.WriteOptions{})
	f.Error(err)
	f.cleanUp(before, out)
}

// named checks that what appeared among the objects since before is what out
// says it made.
func (f *fixture) named(before []string, out table.Written) {
	f.t.Helper()
	var paths []string
	for _, o := range out.Objects {
		f.NotContains(paths, o.Path)
		paths = append(paths, o.Path)
	}
	for _, frag := range out.Fragments {
		for _, file := range frag.Files {
			f.Contains(paths, file.Path)
		}
	}
	if before != nil {
		f.ElementsMatch(append(paths, before...), f.objects())
	}
}

// cleanUp checks that deleting the objects that a failed write names leaves no
// trace of it.
func (f *fixture) cleanUp(before []string, out table.Written) {
	f.t.Helper()
	for _, o := range out.Objects {
		f.NoError(f.engine.Delete(f.ctx, o))
	}
	f.Equal(before, f.objects())
}

// endingIn yields rows, then the error.
func endingIn(rows iter.Seq2[table.Batch, error], last error) iter.Seq2[table.Batch, error] {
	return func(yield func(table.Batch, error) bool) {
		for batch, err := range rows {
			if !yield(batch, err) {
				return
			}
		}
		yield(table.Batch{}, fmt.Errorf("after the rows: %w", last))
	}
}
