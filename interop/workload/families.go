package workload

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
)

// Formats are the stable versions of data files, for which [Families] has tables.
var Formats = []string{"2.0", "2.1", "2.2"}

// nextFormat is not stable: each version of an engine has its own.
const nextFormat = "2.3"

// Families returns tables that together have every column type of a version of data
// files, one table for each family of types. Only pylance writes all of them.
func Families(format string) ([]Table, error) {
	if !slices.Contains(Formats, format) && format != nextFormat {
		return nil, fmt.Errorf("workload: no tables in format %q: there are %q and %s", format, Formats, nextFormat)
	}
	var tables []Table
	add := func(name string, columns ...Column) {
		tables = append(tables, Table{Name: name, DataFormat: format, Columns: columns})
	}
	t := types{format: format}
	add("integers", slices.Concat(eachType(
		arrow.PrimitiveTypes.Int8, arrow.PrimitiveTypes.Int16, arrow.PrimitiveTypes.Int32, arrow.PrimitiveTypes.Int64,
		arrow.PrimitiveTypes.Uint8, arrow.PrimitiveTypes.Uint16, arrow.PrimitiveTypes.Uint32, arrow.PrimitiveTypes.Uint64,
		arrow.FixedWidthTypes.Boolean), []Column{whole("whole", arrow.PrimitiveTypes.Int64)})...)
	add("floats", eachType(arrow.FixedWidthTypes.Float16, arrow.PrimitiveTypes.Float32, arrow.PrimitiveTypes.Float64,
		&arrow.Decimal128Type{Precision: 20, Scale: 3}, &arrow.Decimal256Type{Precision: 50, Scale: 4})...)
	add("temporal", eachType(temporal()...)...)
	add("strings", slices.Concat(eachType(arrow.BinaryTypes.String, arrow.BinaryTypes.LargeString, arrow.BinaryTypes.Binary,
		arrow.BinaryTypes.LargeBinary, &arrow.FixedSizeBinaryType{ByteWidth: 5}), []Column{whole("whole", arrow.BinaryTypes.String)})...)
	add("vectors", eachType(
		arrow.FixedSizeListOf(16, arrow.PrimitiveTypes.Float32), arrow.FixedSizeListOf(6, arrow.FixedWidthTypes.Float16),
		arrow.FixedSizeListOf(3, arrow.PrimitiveTypes.Float64), arrow.FixedSizeListOf(8, arrow.PrimitiveTypes.Uint8),
		arrow.FixedSizeListOf(5, arrow.FixedWidthTypes.Boolean), arrow.FixedSizeListOf(2, &arrow.Decimal128Type{Precision: 20, Scale: 3}),
		arrow.FixedSizeListOf(3, arrow.FixedSizeListOf(2, arrow.PrimitiveTypes.Int16)))...)
	add("lists", eachType(
		arrow.ListOf(arrow.PrimitiveTypes.Int64), arrow.LargeListOf(arrow.BinaryTypes.String), arrow.ListOf(arrow.FixedWidthTypes.Boolean),
		arrow.ListOf(arrow.ListOf(arrow.PrimitiveTypes.Int32)), arrow.ListOf(arrow.FixedSizeListOf(4, arrow.PrimitiveTypes.Float32)),
		arrow.ListOfNonNullable(arrow.PrimitiveTypes.Float64))...)
	object := t.object(
		arrow.Field{Name: "a", Type: arrow.PrimitiveTypes.Int64, Nullable: true},
		arrow.Field{Name: "b", Type: arrow.BinaryTypes.String, Nullable: true},
		arrow.Field{Name: "l", Type: arrow.ListOf(arrow.PrimitiveTypes.Int16), Nullable: true})
	add("structs", t.column("plain", object),
		t.column("deep", t.object(t.field("o", t.object(t.field("o", object), arrow.Field{Name: "n", Type: arrow.PrimitiveTypes.Uint8})))),
		drawn("listed", arrow.ListOfField(t.field("item", object))),
		drawn("lists", arrow.LargeListOf(arrow.ListOfField(t.field("item", object)))))
	add("dictionaries",
		drawn("uint32_int64", dictionary(arrow.PrimitiveTypes.Uint32, arrow.PrimitiveTypes.Int64)),
		drawn("int8_utf8", dictionary(arrow.PrimitiveTypes.Int8, arrow.BinaryTypes.String)),
		drawn("int64_float64", dictionary(arrow.PrimitiveTypes.Int64, arrow.PrimitiveTypes.Float64)),
		drawn("listed", arrow.ListOf(dictionary(arrow.PrimitiveTypes.Int16, arrow.BinaryTypes.String))))
	add("nothing", drawn("null", arrow.Null), Column{Name: "nulls", Type: arrow.PrimitiveTypes.Int32, Nullable: true, Append: appendNull},
		Column{Name: "strings", Type: arrow.BinaryTypes.String, Nullable: true, Append: appendNull},
		Column{Name: "lists", Type: arrow.ListOf(arrow.BinaryTypes.String), Nullable: true, Append: appendNull},
		number("constant", arrow.PrimitiveTypes.Int64, 0, func(*rand.Rand, int) int64 { return 7 }))
	add("extensions",
		drawn("uuid", &arrow.FixedSizeBinaryType{ByteWidth: 16}, "ARROW:extension:name", "arrow.uuid", "ARROW:extension:metadata", ""),
		drawn("bfloat16", &arrow.FixedSizeBinaryType{ByteWidth: 2}, "ARROW:extension:name", "lance.bfloat16", "ARROW:extension:metadata", ""),
		drawn("other", arrow.BinaryTypes.String, "ARROW:extension:name", "example.words", "ARROW:extension:metadata", `{"a":1}`),
		drawn("noted", arrow.PrimitiveTypes.Int64, "unit", "kg"))
	add("compressed", compressed(format)...)
	add("packed", t.packed()...)
	// pylance 14.0.2 fails on packed strings with "invalid variable-width layout".
	tables[len(tables)-1].Unfiltered = t.late()
	add("blobs", t.blobs())
	add("nested", t.random(1, 3), t.random(2, 3), t.random(3, 4))
	if t.late() {
		add("maps", drawn("plain", arrow.MapOf(arrow.BinaryTypes.String, arrow.PrimitiveTypes.Int64)),
			drawn("numbers", arrow.MapOf(arrow.PrimitiveTypes.Int32, arrow.FixedSizeListOf(2, arrow.PrimitiveTypes.Float32))),
			drawn("lists", arrow.MapOf(arrow.BinaryTypes.String, arrow.ListOf(object))),
			drawn("listed", arrow.ListOf(arrow.MapOf(arrow.BinaryTypes.String, arrow.BinaryTypes.String))))
	}
	return tables, nil
}

func eachType(types ...arrow.DataType) []Column {
	columns := make([]Column, len(types))
	for i, dt := range types {
		columns[i] = drawn(fmt.Sprintf("c%d", i), dt)
	}
	return columns
}

func temporal() []arrow.DataType {
	types := []arrow.DataType{
		arrow.FixedWidthTypes.Date32, arrow.FixedWidthTypes.Date64, arrow.FixedWidthTypes.Time32s, arrow.FixedWidthTypes.Time32ms,
		arrow.FixedWidthTypes.Time64us, arrow.FixedWidthTypes.Time64ns,
	}
	for _, unit := range []arrow.TimeUnit{arrow.Second, arrow.Millisecond, arrow.Microsecond, arrow.Nanosecond} {
		types = append(types, &arrow.TimestampType{Unit: unit}, &arrow.TimestampType{Unit: unit, TimeZone: "UTC"}, &arrow.DurationType{Unit: unit})
	}
	return types
}

func dictionary(index, value arrow.DataType) arrow.DataType {
	return &arrow.DictionaryType{IndexType: index, ValueType: value}
}

func appendNull(b array.Builder, _ *rand.Rand, _ int) { b.AppendNull() }

// compressed are columns whose metadata asks for encodings.
func compressed(format string) []Column {
	ask := func(name string, dt arrow.DataType, kv ...string) Column {
		for i := 0; i < len(kv); i += 2 {
			kv[i] = "lance-encoding:" + kv[i]
		}
		return drawn(name, dt, kv...)
	}
	str, f64, i64 := arrow.BinaryTypes.String, arrow.PrimitiveTypes.Float64, arrow.PrimitiveTypes.Int64
	columns := []Column{
		ask("zstd", str, "compression", "zstd", "compression-level", "5"), ask("lz4", str, "compression", "lz4"), ask("fsst", str, "compression", "fsst"),
	}
	if format == "2.0" {
		return columns // which has nothing else to ask for
	}
	return append(columns,
		ask("none", str, "compression", "none"), ask("split", f64, "compression", "lz4", "bss", "on"), ask("packed_bytes", f64, "compression", "zstd"),
		ask("zipped", i64, "structural-encoding", "fullzip"), ask("chunked", str, "structural-encoding", "miniblock"),
		ask("runs", i64, "rle-threshold", "0.9"), ask("dictionary", str, "dict-divisor", "2", "dict-size-ratio", "0.9"))
}

// types makes types for a format.
type types struct{ format string }

// late says whether it is 2.2 or later.
func (t types) late() bool { return t.format >= "2.2" }

// nulls says whether structs can be null.
func (t types) nulls() bool { return t.format != "2.0" }

func (t types) object(fields ...arrow.Field) arrow.DataType { return arrow.StructOf(fields...) }

func (t types) field(name string, object arrow.DataType) arrow.Field {
	return arrow.Field{Name: name, Type: object, Nullable: t.nulls()}
}

func (t types) column(name string, object arrow.DataType) Column {
	return fieldColumn(t.field(name, object))
}

// packed are structs stored row by row.
func (t types) packed() []Column {
	numbers := arrow.StructOf(arrow.Field{Name: "a", Type: arrow.PrimitiveTypes.Int64}, arrow.Field{Name: "b", Type: arrow.PrimitiveTypes.Int16})
	vectors := arrow.StructOf(arrow.Field{Name: "a", Type: arrow.PrimitiveTypes.Float64},
		arrow.Field{Name: "v", Type: arrow.FixedSizeListOfNonNullable(2, arrow.PrimitiveTypes.Float32)})
	key := "lance-encoding:packed"
	if t.format == "2.0" {
		return []Column{whole("numbers", numbers, "packed", "true"), whole("vectors", vectors, "packed", "true")}
	}
	columns := []Column{whole("numbers", numbers, key, "true")}
	if t.late() {
		strings := arrow.StructOf(arrow.Field{Name: "s", Type: arrow.BinaryTypes.String}, arrow.Field{Name: "n", Type: arrow.PrimitiveTypes.Int64})
		columns = append(columns, whole("strings", strings, key, "true"), whole("vectors", vectors, key, "true"))
	}
	return columns
}

// blobs is a column of blobs: most small, some null or empty, a few larger than a page
// of other columns would be.
func (t types) blobs() Column {
	draw := func(rng *rand.Rand) []byte {
		switch k := rng.IntN(1000); {
		case k < 100:
			return nil
		case k < 200:
			return []byte{}
		case k < 990:
			return bytesOf(rng.Uint64(), rng.IntN(300))
		case k < 999:
			return bytesOf(rng.Uint64(), 1000+rng.IntN(9000))
		default:
			return bytesOf(rng.Uint64(), 50_000+rng.IntN(100_000))
		}
	}
	add := func(b *array.BinaryBuilder, v []byte) {
		if v == nil {
			b.AppendNull()
		} else {
			b.Append(v)
		}
	}
	if !t.late() {
		return Column{Name: "blob", Type: arrow.BinaryTypes.LargeBinary, Nullable: true, Metadata: pairs([]string{"lance-encoding:blob", "true"}),
			Blob: true, Append: func(b array.Builder, rng *rand.Rand, _ int) { add(b.(*array.BinaryBuilder), draw(rng)) }}
	}
	dt := arrow.StructOf(arrow.Field{Name: "data", Type: arrow.BinaryTypes.LargeBinary, Nullable: true}, arrow.Field{Name: "uri", Type: arrow.BinaryTypes.String, Nullable: true})
	return Column{Name: "blob", Type: dt, Nullable: true, Blob: true,
		// Inline up to 200 bytes, in files of their own from 40,000 on.
		Metadata: pairs([]string{"ARROW:extension:name", "lance.blob.v2", "ARROW:extension:metadata", "",
			"lance-encoding:blob-inline-size-threshold", "200", "lance-encoding:blob-dedicated-size-threshold", "40000"}),
		Append: func(b array.Builder, rng *rand.Rand, _ int) {
			s, v := b.(*array.StructBuilder), draw(rng)
			if v == nil {
				s.AppendNull()
				return
			}
			s.Append(true)
			add(s.FieldBuilder(0).(*array.BinaryBuilder), v)
			s.FieldBuilder(1).AppendNull()
		},
		Shown: blobBytes}
}

// blobBytes is what queries make of described blobs.
func blobBytes(a arrow.Array) arrow.Array {
	s := a.(*array.Struct)
	data := array.NewData(s.Field(0).DataType(), s.Len(), s.Field(0).Data().Buffers(), nil, s.Field(0).NullN(), s.Field(0).Data().Offset())
	defer data.Release()
	return array.MakeFromData(data)
}

// random is a column of a type that is drawn from a seed: of everything inside of
// everything else, so many levels deep.
func (t types) random(seed uint64, depth int) Column {
	rng := rand.New(rand.NewPCG(seed, uint64(depth)))
	return fieldColumn(t.draw(fmt.Sprintf("r%d", seed), rng, depth))
}

func (t types) draw(name string, rng *rand.Rand, depth int) arrow.Field {
	leaves := []arrow.DataType{
		arrow.PrimitiveTypes.Int64, arrow.BinaryTypes.String, arrow.FixedWidthTypes.Boolean, arrow.PrimitiveTypes.Float32,
		dictionary(arrow.PrimitiveTypes.Int16, arrow.BinaryTypes.String), arrow.FixedSizeListOf(3, arrow.PrimitiveTypes.Int8),
		arrow.FixedSizeListOf(2, arrow.FixedSizeListOf(2, arrow.PrimitiveTypes.Float32)), arrow.FixedWidthTypes.Timestamp_us,
	}
	f := arrow.Field{Name: name, Nullable: true}
	switch kind := rng.IntN(5); {
	case depth == 0:
		f.Type = leaves[rng.IntN(len(leaves))]
	case kind == 0:
		f.Type = arrow.ListOfField(t.draw("item", rng, depth-1))
	case kind == 1:
		f.Type = arrow.LargeListOfField(t.draw("item", rng, depth-1))
	case kind == 2 && t.late():
		item := t.draw("value", rng, depth-1)
		f.Type = arrow.MapOf(arrow.BinaryTypes.String, item.Type)
	default:
		var fields []arrow.Field
		for i := range 1 + rng.IntN(3) {
			fields = append(fields, t.draw(fmt.Sprintf("f%d", i), rng, depth-1))
		}
		f = t.field(name, t.object(fields...))
	}
	return f
}
