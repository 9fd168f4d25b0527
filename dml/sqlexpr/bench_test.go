package sqlexpr_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"

	"github.com/rehome-db/rehome/dml/sqlexpr"
)

// BenchmarkMatches measures conditions over a batch of 64 Ki rows: id int64, a int32
// with nulls, s strings of 8 to 12 bytes.
func BenchmarkMatches(b *testing.B) {
	const rows = 64 << 10
	schema := arrow.NewSchema([]arrow.Field{
		{Name: "id", Type: arrow.PrimitiveTypes.Int64}, {Name: "a", Type: arrow.PrimitiveTypes.Int32, Nullable: true}, {Name: "s", Type: arrow.BinaryTypes.String},
		{Name: "f", Type: arrow.PrimitiveTypes.Float64},
	}, nil)
	rb := array.NewRecordBuilder(memory.DefaultAllocator, schema)
	for i := range rows {
		rb.Field(0).(*array.Int64Builder).Append(int64(i))
		if i%10 == 0 {
			rb.Field(1).AppendNull()
		} else {
			rb.Field(1).(*array.Int32Builder).Append(int32(i % 7))
		}
		rb.Field(2).(*array.StringBuilder).Append(fmt.Sprintf("%c-value-%d", 'a'+i%26, i%1000))
		rb.Field(3).(*array.Float64Builder).Append(float64(i) / 3)
	}
	rec := rb.NewRecordBatch()
	many := make([]string, 1000)
	for i := range many {
		many[i] = fmt.Sprint(i * 50)
	}
	for _, text := range []string{
		"id = 5", "a > 1 and s like 'x%'", "s like '%value-1_'", "s = 'x-value-10'", "f > 1.5 and f < 100", "a + 1 > 3 or id is null", "a <> 0 and id / a > 10",
		"id in (" + strings.Join(many, ", ") + ")", "case when a > 3 then s else 'none' end = 'none'",
	} {
		name := text
		if len(name) > 24 {
			name = name[:24] + "…"
		}
		b.Run(name, func(b *testing.B) {
			p, err := sqlexpr.ParsePredicate(text)
			require.NoError(b, err)
			for b.Loop() {
				m, err := p.Matches(context.Background(), rec)
				if err != nil {
					b.Fatal(err)
				}
				m.Release()
			}
			b.ReportMetric(float64(rows)*float64(b.N)/b.Elapsed().Seconds()/1e6, "Mrows/s")
		})
	}
}

// BenchmarkParse measures a text from parsing to binding.
func BenchmarkParse(b *testing.B) {
	rec := readBatch(b, "rows.arrow")
	schema := schemaOf(rec)
	for b.Loop() {
		p, err := sqlexpr.ParsePredicate("n > 1 and s like 'x%' or ts >= timestamp '2020-01-01 00:00:00'")
		if err == nil {
			_, err = p.Columns(schema)
		}
		if err != nil {
			b.Fatal(err)
		}
	}
}
