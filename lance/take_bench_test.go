package lance_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"

	"github.com/rehome-db/rehome/lance"
	"github.com/rehome-db/rehome/table"
)

// benchRows is how many rows the tables of benchmarks have: TAKE_ROWS, or a million.
func benchRows(b *testing.B) int {
	text := os.Getenv("TAKE_ROWS")
	if text == "" {
		return 1_000_000
	}
	n, err := strconv.Atoi(text)
	require.NoError(b, err)
	return n
}

// benchTable makes a table on disk in fragments of a million rows at most, filled
// by fill a batch at a time.
func benchTable(b *testing.B, columns *arrow.Schema, rows int, fill func(rb *array.RecordBuilder, row int)) *lance.Engine {
	b.Helper()
	e, err := lance.Create(ctx, b.TempDir()+"/t.lance", columns, lance.CreateOptions{}, lance.Options{})
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, e.Close()) })
	_, err = e.Append(ctx, func(yield func(table.Batch, error) bool) {
		rb := array.NewRecordBuilder(memory.DefaultAllocator, columns)
		for row := 0; row < rows; {
			for range min(8192, rows-row) {
				fill(rb, row)
				row++
			}
			rec := rb.NewRecordBatch()
			more := yield(table.Batch{Record: rec}, nil)
			rec.Release()
			if !more {
				return
			}
		}
	}, table.WriteOptions{MaxRows: 1_000_000, NoSync: true})
	require.NoError(b, err)
	return e
}

// fiveIntsTwoStrings is a schema and what fills it: among the columns a key, one of
// few values, one of any, one with nulls, a text and a category.
func fiveIntsTwoStrings() (*arrow.Schema, func(rb *array.RecordBuilder, row int)) {
	rng := rand.New(rand.NewPCG(1, 2))
	words := make([]string, 2000)
	for i := range words {
		for range 2 + rng.IntN(8) {
			words[i] += string(rune('a' + rng.IntN(26)))
		}
	}
	columns := arrow.NewSchema([]arrow.Field{
		{Name: "id", Type: arrow.PrimitiveTypes.Int64},
		{Name: "any", Type: arrow.PrimitiveTypes.Int64},
		{Name: "small", Type: arrow.PrimitiveTypes.Int32},
		{Name: "some", Type: arrow.PrimitiveTypes.Int32, Nullable: true},
		{Name: "at", Type: arrow.FixedWidthTypes.Timestamp_us},
		{Name: "text", Type: arrow.BinaryTypes.String, Nullable: true},
		{Name: "category", Type: arrow.BinaryTypes.String},
	}, nil)
	return columns, func(rb *array.RecordBuilder, row int) {
		rb.Field(0).(*array.Int64Builder).Append(int64(row))
		rb.Field(1).(*array.Int64Builder).Append(int64(rng.Uint64()))
		rb.Field(2).(*array.Int32Builder).Append(rng.Int32N(1000))
		if rng.IntN(10) == 0 {
			rb.Field(3).AppendNull()
		} else {
			rb.Field(3).(*array.Int32Builder).Append(rng.Int32())
		}
		rb.Field(4).(*array.TimestampBuilder).Append(arrow.Timestamp(1_700_000_000_000_000 + int64(row)*1000))
		text := ""
		for range 4 {
			text += words[rng.IntN(len(words))] + " "
		}
		rb.Field(5).(*array.StringBuilder).Append(text)
		rb.Field(6).(*array.StringBuilder).Append(words[rng.IntN(100)])
	}
}

// scattered draws n addresses from all over a version.
func scattered(s *table.Snapshot, n int) []table.RowAddr {
	rng := rand.New(rand.NewPCG(3, 4))
	total := int(s.LiveRows())
	out := make([]table.RowAddr, 0, n)
	f, before := 0, 0
	for i := range n {
		row := i*(total/n) + rng.IntN(total/n)
		for row-before >= int(s.Fragments[f].PhysicalRows) {
			before += int(s.Fragments[f].PhysicalRows)
			f++
		}
		out = append(out, table.NewRowAddr(s.Fragments[f].ID, uint32(row-before)))
	}
	return out
}

func benchTake(b *testing.B, e *lance.Engine, n int) {
	s := load(b, e, 0)
	addrs := scattered(s, n)
	take := func() {
		rows := 0
		for batch, err := range e.Take(ctx, s, addrs, nil) {
			require.NoError(b, err)
			rows += int(batch.Record.NumRows())
		}
		require.Equal(b, n, rows)
	}
	take() // the files are open then
	b.ReportAllocs()
	for b.Loop() {
		take()
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/float64(n), "µs/row")
}

// BenchmarkTake takes scattered rows, and for comparison scans the table:
//
//	TAKE_ROWS=10000000 go test -run - -bench Take ./lance
func BenchmarkTake(b *testing.B) {
	rows := benchRows(b)
	columns, fill := fiveIntsTwoStrings()
	e := benchTable(b, columns, rows, fill)
	for _, n := range []int{1, 100, 1000, 10_000} {
		b.Run(fmt.Sprintf("of=%d/rows=%d", rows, n), func(b *testing.B) { benchTake(b, e, n) })
	}
	b.Run(fmt.Sprintf("of=%d/scan", rows), func(b *testing.B) {
		s := load(b, e, 0)
		for b.Loop() {
			for _, err := range e.Rows(ctx, s, fragmentIDs(s), table.ReadOptions{}) {
				require.NoError(b, err)
			}
		}
	})
}

// BenchmarkTakeVectors takes scattered vectors, whose pages are megabytes each.
func BenchmarkTakeVectors(b *testing.B) {
	const dim = 128
	columns := arrow.NewSchema([]arrow.Field{{Name: "vector", Type: arrow.FixedSizeListOf(dim, arrow.PrimitiveTypes.Float32), Nullable: true}}, nil)
	rng := rand.New(rand.NewPCG(1, 2))
	rows := min(benchRows(b), 200_000)
	e := benchTable(b, columns, rows, func(rb *array.RecordBuilder, _ int) {
		l := rb.Field(0).(*array.FixedSizeListBuilder)
		l.Append(true)
		for range dim {
			l.ValueBuilder().(*array.Float32Builder).Append(rng.Float32())
		}
	})
	b.Run(fmt.Sprintf("of=%d/rows=1000", rows), func(b *testing.B) { benchTake(b, e, 1000) })
}
