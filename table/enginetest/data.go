package enginetest

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/rehome-db/rehome/table"
)

// DefaultSchema is a key, a text, a vector and a flag; the text and the flag are
// nullable. The vector is not: many a writer, Parquet's for one, refuses a null
// fixed-size list.
func DefaultSchema() table.Schema {
	s := NullVectorSchema()
	s.Fields[2].Nullable = false
	return s
}

// NullVectorSchema is DefaultSchema with a vector that can be null, for engines that
// hold such.
func NullVectorSchema() table.Schema {
	return table.Schema{Fields: []table.Field{
		{ID: 0, Name: "id", Type: arrow.PrimitiveTypes.Int64},
		{ID: 1, Name: "name", Type: arrow.BinaryTypes.String, Nullable: true},
		{ID: 2, Name: "vector", Type: arrow.FixedSizeListOf(4, arrow.PrimitiveTypes.Float32), Nullable: true},
		{ID: 3, Name: "flag", Type: arrow.FixedWidthTypes.Boolean, Nullable: true},
	}}
}

// makeRecord makes the rows with the given numbers. A row is a function of its
// number, so whoever knows the number knows what every column must hold.
func makeRecord(t testing.TB, schema table.Schema, mem memory.Allocator, ids []int64) arrow.RecordBatch {
	t.Helper()
	b := array.NewRecordBuilder(mem, schema.Arrow())
	defer b.Release()
	for i, field := range schema.Fields {
		for _, id := range ids {
			// A different row is null in each column.
			if field.Nullable && (id+int64(i))%7 == 3 {
				b.Field(i).AppendNull()
				continue
			}
			if !appendValue(b.Field(i), id) {
				t.Fatalf("Config.Schema has column %q of type %s, which the suite cannot fill", field.Name, field.Type)
			}
		}
	}
	return b.NewRecordBatch()
}

// appendValue appends the value that a row has in a column of the builder's type,
// or returns false if there is none.
func appendValue(b array.Builder, id int64) bool {
	switch b := b.(type) {
	case *array.BooleanBuilder:
		b.Append(id%3 == 0)
	case *array.Int32Builder:
		b.Append(int32(id * 3))
	case *array.Int64Builder:
		b.Append(id)
	case *array.Float32Builder:
		b.Append(float32(id) / 4)
	case *array.Float64Builder:
		b.Append(float64(id) / 8)
	case *array.StringBuilder:
		b.Append(text(id))
	case *array.BinaryBuilder:
		b.Append([]byte(text(id)))
	case *array.FixedSizeListBuilder:
		b.Append(true)
		for i := range b.Type().(*arrow.FixedSizeListType).Len() {
			if !appendValue(b.ValueBuilder(), id+int64(i)) {
				return false
			}
		}
	default:
		return false
	}
	return true
}

// text is empty for some rows and long for others.
func text(id int64) string {
	return strings.Repeat(fmt.Sprintf("row %d ", id), int(id%4))
}

func arbitraryBytes(_ *testing.T, size int) []byte {
	out := make([]byte, size)
	rng := rand.New(rand.NewPCG(1, uint64(size)))
	for i := range out {
		out[i] = byte(rng.Uint32())
	}
	return out
}
