package datafile_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"

	"github.com/rehome-db/rehome/lance/datafile"
	"github.com/rehome-db/rehome/lance/datafile/encoding"
	"github.com/rehome-db/rehome/lance/readat"
)

// written writes columns and opens the file. read is counted in n.
func written(t *testing.T, version datafile.Version, fields []arrow.Field, arrays []arrow.Array, pageBytes int, n *int64) *datafile.File {
	var raw bytes.Buffer
	writeArrays(t, &raw, version, newSchema(t, arrow.NewSchema(fields, nil)), arrays, pageBytes)
	f, err := datafile.Open(context.Background(), &countingReader{readat.Bytes(raw.Bytes()), n}, int64(raw.Len()), "test")
	require.NoError(t, err)
	return f
}

type countingReader struct {
	readat.ReaderAt
	n *int64
}

func (c *countingReader) ReadAt(ctx context.Context, b []byte, off int64) (int, error) {
	*c.n += int64(len(b))
	return c.ReaderAt.ReadAt(ctx, b, off)
}

// takes draws rows of each column again and again, with small blocks and large ones.
func takes(t *testing.T, rng *rand.Rand, f *datafile.File, times int) {
	for i := range f.Schema().Leaves() {
		c, err := f.Column(i)
		require.NoError(t, err)
		for n := range times {
			f.SetLimits([]encoding.Limits{{}, {BlockBytes: 64}, {BlockBytes: 1 << 12, BlockEntries: 100}}[n%3])
			datafile.RequireTaken(t, c, i, datafile.DrawRanges(rng, f.Rows()), "test")
		}
	}
}

// readFor is how much is read for one row of a column.
func readFor(t *testing.T, f *datafile.File, column int, row uint64, n *int64) int64 {
	f.SetLimits(encoding.Limits{})
	c, err := f.Column(column)
	require.NoError(t, err)
	before := *n
	for _, err := range c.Take(context.Background(), f.Schema().Leaves()[column], []datafile.Range{{From: row, To: row + 1}}) {
		require.NoError(t, err)
	}
	return *n - before
}

// Rows of lists that go on over many chunks stand between ones that take no room.
func TestTakeListsOverManyChunks(t *testing.T) {
	item := func(typ arrow.DataType) arrow.DataType { return arrow.ListOf(typ) }
	fields := []arrow.Field{
		{Name: "numbers", Type: item(arrow.PrimitiveTypes.Int64), Nullable: true},
		{Name: "texts", Type: item(arrow.BinaryTypes.String), Nullable: true},
		{Name: "nested", Type: item(item(arrow.PrimitiveTypes.Int32)), Nullable: true},
		{Name: "none", Type: item(arrow.PrimitiveTypes.Int8), Nullable: true},
	}
	rng := rand.New(rand.NewPCG(7, 8))
	b := array.NewRecordBuilder(memory.DefaultAllocator, arrow.NewSchema(fields, nil))
	const rows = 60
	long := 0 // the last row that is
	for row := range rows {
		n := rng.IntN(4)
		if rng.IntN(4) == 0 {
			n, long = 3000+rng.IntN(20_000), row
		}
		for i := range fields {
			l := b.Field(i).(*array.ListBuilder)
			if rng.IntN(8) == 0 {
				l.AppendNull()
				continue
			}
			l.Append(true)
			switch v := l.ValueBuilder().(type) {
			case *array.Int64Builder:
				for k := range n {
					v.Append(int64(k) * rng.Int64N(1<<40))
				}
			case *array.StringBuilder:
				for k := range n / 4 {
					v.Append(fmt.Sprintf("text %d of row %d", k, row))
				}
			case *array.ListBuilder:
				for k := range n / 10 {
					v.Append(k%7 != 3)
					for range (k % 7) * 3 {
						v.ValueBuilder().(*array.Int32Builder).Append(rng.Int32())
					}
				}
			}
		}
	}
	rec := b.NewRecordBatch()
	for _, version := range []datafile.Version{datafile.V2_1, datafile.V2_2, datafile.V2_3, datafile.V2_3Planar} {
		for _, page := range []int{0, 50_000} {
			var n int64
			f := written(t, version, fields, rec.Columns(), page, &n)
			takes(t, rng, f, 15)
			for i := range fields[:3] {
				c, err := f.Column(i)
				require.NoError(t, err)
				if long == 0 || long == rows-1 {
					t.Fatal("the rows are not as they should be")
				}
				// The chunks that the row is in, and what says where they are.
				require.Less(t, readFor(t, f, i, rows-1, &n), int64(40<<10), "%s, of %d bytes", c.Pages()[0].Encoding(), c.Bytes())
			}
		}
	}
}

// Of a column of blobs, those that are wanted are read and no others.
func TestTakeBlobs(t *testing.T) {
	fields := []arrow.Field{{Name: "b", Type: arrow.BinaryTypes.LargeBinary, Nullable: true,
		Metadata: arrow.MetadataFrom(map[string]string{"lance-encoding:blob": "true"})}}
	rng := rand.New(rand.NewPCG(9, 10))
	b := array.NewBinaryBuilder(memory.DefaultAllocator, arrow.BinaryTypes.LargeBinary)
	const rows, large = 500, 30_000
	for row := range rows {
		switch rng.IntN(5) {
		case 0:
			b.AppendNull()
		case 1:
			b.Append(nil)
		case 2:
			b.AppendString(strings.Repeat("x", large))
		default:
			b.AppendString(fmt.Sprint("blob ", row))
		}
	}
	var n int64
	f := written(t, datafile.V2_1, fields, []arrow.Array{b.NewArray()}, 0, &n)
	c, err := f.Column(0)
	require.NoError(t, err)
	require.Contains(t, c.Pages()[0].Encoding(), "blob")
	takes(t, rng, f, 60)
	for row := range uint64(rows) {
		require.Less(t, readFor(t, f, 0, row, &n), int64(large+20_000))
	}
}
