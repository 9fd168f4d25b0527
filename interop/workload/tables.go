package workload

import (
	"fmt"
	"math/rand/v2"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
)

// Vectors is the table of the headline comparison: an id, a short string and a
// vector of 128 floats that no encoding makes smaller.
func Vectors(rows, fragments int) Table {
	return Table{
		Name: "vectors", Rows: rows, Fragments: fragments,
		Columns: []Column{
			text("s", false, func(_ *rand.Rand, row int) string { return fmt.Sprintf("value-%d", row*2654435761%1000003) }),
			vector("vec", 128),
		},
	}
}

// Narrow is a table of five integers, the id among them, and two strings.
func Narrow(rows, fragments int) Table {
	return Table{
		Name: "narrow", Rows: rows, Fragments: fragments,
		Columns: []Column{
			number("kind", arrow.PrimitiveTypes.Int32, 0, func(rng *rand.Rand, _ int) int64 { return rng.Int64N(20) }),
			number("at", arrow.PrimitiveTypes.Int64, 0, func(rng *rand.Rand, row int) int64 { return 1_700_000_000_000 + int64(row)*1000 + rng.Int64N(1000) }),
			number("amount", arrow.PrimitiveTypes.Int64, 10, func(rng *rand.Rand, _ int) int64 { return rng.Int64N(2_000_001) - 1_000_000 }),
			number("hash", arrow.PrimitiveTypes.Int64, 0, func(rng *rand.Rand, _ int) int64 { return rng.Int64() }),
			text("user", false, func(rng *rand.Rand, _ int) string { return fmt.Sprintf("user-%06x", rng.Uint32()>>8) }),
			text("country", true, func(rng *rand.Rand, _ int) string { return fmt.Sprintf("country-%d", rng.IntN(60)) }),
		},
	}
}

// Wide is a table of so many columns: integers, floats and short strings in turns.
func Wide(rows, fragments, columns int) Table {
	t := Table{Name: "wide", Rows: rows, Fragments: fragments}
	for i := range columns - 1 {
		name := fmt.Sprintf("c%d", i)
		switch i % 3 {
		case 0:
			t.Columns = append(t.Columns, number(name, arrow.PrimitiveTypes.Int64, 10, func(rng *rand.Rand, _ int) int64 { return rng.Int64N(100_000) }))
		case 1:
			t.Columns = append(t.Columns, float(name, 0, func(rng *rand.Rand, _ int) float64 { return rng.Float64() }))
		default:
			t.Columns = append(t.Columns, text(name, true, func(rng *rand.Rand, _ int) string { return fmt.Sprintf("value-%d", rng.IntN(5000)) }))
		}
	}
	return t
}

// Texts is a table of long strings, 8 KiB each on average.
func Texts(rows, fragments int) Table {
	return Table{Name: "texts", Rows: rows, Fragments: fragments, Columns: []Column{text("text", false, sentence(1500))}}
}

// Typed returns small tables, one for each family of column types, each with the
// kinds of values that make the engines choose different encodings.
func Typed(rows, fragments int) []Table {
	tables := []Table{
		{Name: "integers", Columns: []Column{
			number("small", arrow.PrimitiveTypes.Int32, 0, func(rng *rand.Rand, _ int) int64 { return rng.Int64N(100) }),
			number("signed", arrow.PrimitiveTypes.Int64, 10, func(rng *rand.Rand, _ int) int64 { return rng.Int64N(2_000_001) - 1_000_000 }),
			number("wide", arrow.PrimitiveTypes.Int64, 0, func(rng *rand.Rand, _ int) int64 { return rng.Int64() }),
			number("rising", arrow.PrimitiveTypes.Int64, 0, func(rng *rand.Rand, row int) int64 { return 1_700_000_000_000 + int64(row)*1000 + rng.Int64N(100) }),
			number("runs", arrow.PrimitiveTypes.Int32, 0, func(_ *rand.Rand, row int) int64 { return int64(row / 500) }),
			number("constant", arrow.PrimitiveTypes.Int32, 0, func(*rand.Rand, int) int64 { return 42 }),
			number("mostly_null", arrow.PrimitiveTypes.Int32, 95, func(rng *rand.Rand, _ int) int64 { return rng.Int64N(1000) }),
		}},
		{Name: "strings", Columns: []Column{
			text("unique", false, func(rng *rand.Rand, row int) string { return fmt.Sprintf("user-%08x-%d", rng.Uint32(), row) }),
			text("category", true, func(rng *rand.Rand, _ int) string { return fmt.Sprintf("category-%d", rng.IntN(50)) }),
			text("sentence", true, sentence(12)),
			text("paragraph", false, sentence(80)),
		}},
		{Name: "floats", Columns: []Column{
			float("uniform", 0, func(rng *rand.Rand, _ int) float64 { return rng.Float64() }),
			float("rounded", 10, func(rng *rand.Rand, _ int) float64 { return float64(rng.IntN(10000)) / 100 }),
			float("runs", 0, func(_ *rand.Rand, row int) float64 { return float64(row/50) * 1.5 }),
		}},
		{Name: "times", Columns: []Column{
			{Name: "at", Type: arrow.FixedWidthTypes.Timestamp_us, Nullable: true, Append: func(b array.Builder, rng *rand.Rand, row int) {
				b.(*array.TimestampBuilder).Append(arrow.Timestamp(1_700_000_000_000_000 + int64(row)*1_000_000 + rng.Int64N(1_000_000)))
			}},
			{Name: "day", Type: arrow.FixedWidthTypes.Date32, Nullable: true, Append: func(b array.Builder, rng *rand.Rand, row int) {
				b.(*array.Date32Builder).Append(arrow.Date32(19000 + row/1000))
			}},
			{Name: "ok", Type: arrow.FixedWidthTypes.Boolean, Nullable: true, Append: func(b array.Builder, rng *rand.Rand, _ int) {
				b.(*array.BooleanBuilder).Append(rng.IntN(10) > 0)
			}},
		}},
		{Name: "sequences", Columns: []Column{
			number("sorted", arrow.PrimitiveTypes.Int64, 0, func(_ *rand.Rand, row int) int64 { return 3*int64(row) + 1_000_000 }),
			number("random", arrow.PrimitiveTypes.Int32, 0, func(rng *rand.Rand, _ int) int64 { return rng.Int64N(1 << 31) }),
			number("sparse", arrow.PrimitiveTypes.Int64, 99, func(rng *rand.Rand, _ int) int64 { return rng.Int64N(1 << 40) }),
			number("half", arrow.PrimitiveTypes.Int64, 50, func(rng *rand.Rand, _ int) int64 { return rng.Int64N(1000) }),
		}},
		{Name: "urls", Columns: []Column{
			text("url", false, func(rng *rand.Rand, _ int) string {
				return fmt.Sprintf("https://www.example-%d.com/%s/%s?user=%d&page=%d", rng.IntN(200),
					vocabulary[rng.IntN(len(vocabulary))], vocabulary[rng.IntN(len(vocabulary))], rng.IntN(1_000_000), rng.IntN(20))
			}),
			text("host", true, func(rng *rand.Rand, _ int) string { return fmt.Sprintf("www.example-%d.com", rng.IntN(200)) }),
		}},
		{Name: "json", Columns: []Column{
			text("json", false, func(rng *rand.Rand, row int) string {
				return fmt.Sprintf(`{"id":%d,"name":"user-%x","tags":[%q,%q],"score":%.3f,"active":%t}`, row, rng.Uint32(),
					vocabulary[rng.IntN(len(vocabulary))], vocabulary[rng.IntN(len(vocabulary))], rng.Float64(), rng.IntN(2) == 0)
			}),
		}},
		{Name: "embeddings", Columns: []Column{vector("vec", 64)}},
	}
	for i := range tables {
		tables[i].Rows, tables[i].Fragments, tables[i].DeletePercent = rows, fragments, 5
	}
	return tables
}

func text(name string, nulls bool, value func(rng *rand.Rand, row int) string) Column {
	return Column{Name: name, Type: arrow.BinaryTypes.String, Nullable: nulls, Append: func(b array.Builder, rng *rand.Rand, row int) {
		if v := value(rng, row); nulls && rng.IntN(10) == 0 {
			b.AppendNull()
		} else {
			b.(*array.StringBuilder).Append(v)
		}
	}}
}

var vocabulary = []string{
	"fragment", "compaction", "of", "the", "a", "row", "moves", "and", "index", "keeps", "table", "version", "deleted",
	"address", "survivor", "reader", "writer", "commit", "rank", "bitmap", "while", "every", "never", "again",
}

func sentence(words int) func(*rand.Rand, int) string {
	return func(rng *rand.Rand, _ int) string {
		var b []byte
		for range words/2 + rng.IntN(words) {
			b = append(b, vocabulary[rng.IntN(len(vocabulary))]...)
			b = append(b, ' ')
		}
		return string(b)
	}
}

func number(name string, dt arrow.DataType, nullPercent int, value func(rng *rand.Rand, row int) int64) Column {
	return Column{Name: name, Type: dt, Nullable: nullPercent > 0, Append: func(b array.Builder, rng *rand.Rand, row int) {
		v := value(rng, row)
		if nullPercent > 0 && rng.IntN(100) < nullPercent {
			b.AppendNull()
			return
		}
		switch b := b.(type) {
		case *array.Int32Builder:
			b.Append(int32(v))
		case *array.Int64Builder:
			b.Append(v)
		}
	}}
}

func float(name string, nullPercent int, value func(rng *rand.Rand, row int) float64) Column {
	return Column{Name: name, Type: arrow.PrimitiveTypes.Float64, Nullable: nullPercent > 0, Append: func(b array.Builder, rng *rand.Rand, row int) {
		if v := value(rng, row); nullPercent > 0 && rng.IntN(100) < nullPercent {
			b.AppendNull()
		} else {
			b.(*array.Float64Builder).Append(v)
		}
	}}
}

func vector(name string, dim int) Column {
	return Column{Name: name, Type: arrow.FixedSizeListOf(int32(dim), arrow.PrimitiveTypes.Float32), Nullable: true,
		Append: func(b array.Builder, rng *rand.Rand, _ int) {
			l := b.(*array.FixedSizeListBuilder)
			l.Append(true)
			items := l.ValueBuilder().(*array.Float32Builder)
			for range dim {
				items.Append(rng.Float32())
			}
		}}
}
