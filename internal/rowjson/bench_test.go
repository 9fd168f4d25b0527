package rowjson_test

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/stretchr/testify/require"

	"github.com/rehome-db/rehome/internal/rowjson"
)

// BenchmarkDecode reads rows with a vector, as an upsert does.
func BenchmarkDecode(b *testing.B) {
	schema := arrow.NewSchema([]arrow.Field{
		{Name: "id", Type: arrow.PrimitiveTypes.Int64},
		{Name: "name", Type: arrow.BinaryTypes.String, Nullable: true},
		{Name: "vector", Type: arrow.FixedSizeListOf(64, arrow.PrimitiveTypes.Float32), Nullable: true},
	}, nil)
	var text bytes.Buffer
	const rows = 2000
	for i := range rows {
		fmt.Fprintf(&text, `{"id":%d,"name":"item %d","vector":[0.5`, i, i)
		for k := range 63 {
			fmt.Fprintf(&text, ",%v", float32(k)/7)
		}
		text.WriteString("]}\n")
	}
	b.SetBytes(int64(text.Len()))
	b.ReportAllocs()
	for b.Loop() {
		n := int64(0)
		for rec, err := range rowjson.NewDecoder(bytes.NewReader(text.Bytes()), schema).Batches() {
			require.NoError(b, err)
			n += rec.NumRows()
		}
		require.EqualValues(b, rows, n)
	}
}
