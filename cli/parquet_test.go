package cli

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
	"github.com/stretchr/testify/require"

	"github.com/rehome-db/rehome/lance"
)

// parquetOf writes n rows {"id": i, "s": text, "p": {"a": i, "b": text}, "l": [i, null]},
// so many of them a row group.
func parquetOf(t *testing.T, n, group int, codec compress.Compression) []byte {
	schema := arrow.NewSchema([]arrow.Field{
		{Name: "id", Type: arrow.PrimitiveTypes.Int64},
		{Name: "s", Type: arrow.BinaryTypes.String, Nullable: true},
		{Name: "p", Type: arrow.StructOf(arrow.Field{Name: "a", Type: arrow.PrimitiveTypes.Int32, Nullable: true}, arrow.Field{Name: "b", Type: arrow.BinaryTypes.String, Nullable: true}), Nullable: true},
		{Name: "l", Type: arrow.ListOf(arrow.PrimitiveTypes.Int32), Nullable: true},
	}, nil)
	b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
	defer b.Release()
	for i := range n {
		b.Field(0).(*array.Int64Builder).Append(int64(i))
		b.Field(1).(*array.StringBuilder).Append(strings.Repeat("x", i%7))
		p := b.Field(2).(*array.StructBuilder)
		if p.Append(i%5 > 0); i%5 > 0 { // the fields of a null are nulls by that
			p.FieldBuilder(0).(*array.Int32Builder).Append(int32(i))
			p.FieldBuilder(1).(*array.StringBuilder).Append("b")
		}
		l := b.Field(3).(*array.ListBuilder)
		l.Append(true)
		l.ValueBuilder().(*array.Int32Builder).Append(int32(i))
		l.ValueBuilder().AppendNull()
	}
	rec := b.NewRecordBatch()
	defer rec.Release()
	tbl := array.NewTableFromRecords(schema, []arrow.RecordBatch{rec})
	defer tbl.Release()
	var out bytes.Buffer
	require.NoError(t, pqarrow.WriteTable(tbl, &out, int64(group), parquet.NewWriterProperties(parquet.WithCompression(codec)), pqarrow.DefaultWriterProps()))
	return out.Bytes()
}

// TestReport24RowsFromParquet: rows come in batches, whatever the row groups, and no
// type but large text is made another.
func TestReport24RowsFromParquet(t *testing.T) {
	for _, codec := range []compress.Compression{compress.Codecs.Uncompressed, compress.Codecs.Snappy, compress.Codecs.Zstd} {
		data := parquetOf(t, 10_000, 3000, codec)
		want := int64(0)
		for rec, err := range parquetBatches(bytes.NewReader(data), arrow.NewSchema([]arrow.Field{{Name: "s", Type: arrow.BinaryTypes.LargeString}}, nil)) {
			require.NoError(t, err)
			require.LessOrEqual(t, rec.NumRows(), int64(parquetRows))
			require.Equal(t, arrow.LARGE_STRING, rec.Column(1).DataType().ID())
			require.NoError(t, checkRows(rec, 0))
			for i := range int(rec.NumRows()) {
				require.Equal(t, want, rec.Column(0).(*array.Int64).Value(i))
				require.Len(t, rec.Column(1).(*array.LargeString).Value(i), int(want%7))
				require.Equal(t, want%5 == 0, rec.Column(2).IsNull(i))
				want++
			}
		}
		require.EqualValues(t, 10_000, want)
	}
}

// TestReport24DamagedParquetIsAnError: whatever bytes of a file are wrong, reading it
// ends with rows that are whole or an error that names the file, and takes no more
// memory than a sound file may.
func TestReport24DamagedParquetIsAnError(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	path := filepath.Join(t.TempDir(), "hostile.parquet")
	schema := arrow.NewSchema(nil, nil)
	failed := 0
	for _, codec := range []compress.Compression{compress.Codecs.Uncompressed, compress.Codecs.Snappy} {
		sound := parquetOf(t, 300, 100, codec)
		for range 400 {
			data := bytes.Clone(sound)
			for range 1 + random.IntN(3) {
				at := random.IntN(len(data))
				if random.IntN(2) == 0 { // the footer
					at = len(data) - 1 - random.IntN(min(len(data), 2500))
				}
				data[at] = byte(random.Uint32())
			}
			if random.IntN(10) == 0 {
				data = data[:random.IntN(len(data))]
			}
			copy(data, parquetFile)
			require.NoError(t, os.WriteFile(path, data, 0o600))
			a := &app{}
			f, err := a.openRows(t.Context(), path)
			require.NoError(t, err)
			for _, err := range f.rows(schema) {
				if err != nil {
					require.ErrorContains(t, err, "hostile.parquet")
					failed++
				}
			}
			f.close()
		}
	}
	require.Greater(t, failed, 200)
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	require.Less(t, m.Sys, uint64(1<<30))
	t.Log(failed, "of 800 were errors; memory from the system:", m.Sys>>20, "MiB")
}

// TestReport24UpsertFromParquet: the command takes a Parquet file, checks its types
// against the table's, and refuses one from a pipe.
func TestReport24UpsertFromParquet(t *testing.T) {
	dir := t.TempDir()
	location, rows := filepath.Join(dir, "t.lance"), filepath.Join(dir, "rows.parquet")
	require.NoError(t, os.WriteFile(rows, parquetOf(t, 5000, 1000, compress.Codecs.Snappy), 0o600))
	run := func(stdin string, args ...string) (string, string, int) {
		var stdout, stderr bytes.Buffer
		code := Run(t.Context(), Options{Stdin: strings.NewReader(stdin), Stdout: &stdout, Stderr: &stderr}, args)
		return stdout.String(), stderr.String(), code
	}
	schema := arrow.NewSchema([]arrow.Field{
		{Name: "id", Type: arrow.PrimitiveTypes.Int64}, {Name: "s", Type: arrow.BinaryTypes.LargeString, Nullable: true},
		{Name: "p", Type: arrow.StructOf(optionalFields("a", "c")...), Nullable: true},
		{Name: "l", Type: arrow.ListOf(arrow.PrimitiveTypes.Int32), Nullable: true},
	}, nil)
	create := func(schema *arrow.Schema) {
		require.NoError(t, os.RemoveAll(location))
		e, err := lance.Create(t.Context(), location, schema, lance.CreateOptions{}, lance.Options{})
		require.NoError(t, err)
		require.NoError(t, e.Close())
	}
	create(schema)
	_, stderr, code := run("", "upsert", location, rows, "--on", "id")
	require.Equal(t, 1, code)
	require.Contains(t, stderr, `column "p": the rows to be written have it as struct`)

	fields := schema.Fields()
	fields[2].Type = arrow.StructOf(optionalFields("a", "b", "c")...)
	create(arrow.NewSchema(fields, nil))
	for _, want := range []string{"5,000 inserted", "5,000 updated"} {
		stdout, stderr, code := run("", "upsert", location, rows, "--on", "id")
		require.Zero(t, code, stderr)
		require.Contains(t, stdout, want)
	}
	stdout, _, _ := run("", "scan", location, "--where", "id = 4321")
	require.Equal(t, `{"id":4321,"s":"xx","p":{"a":4321,"b":"b","c":null},"l":[4321,null]}`+"\n", stdout)
	_, stderr, code = run("PAR1....", "upsert", location, "-", "--on", "id")
	require.Equal(t, 2, code)
	require.Contains(t, stderr, "a Parquet file cannot be read from a pipe")
}

func optionalFields(names ...string) (out []arrow.Field) {
	for _, n := range names {
		f := arrow.Field{Name: n, Type: arrow.BinaryTypes.String, Nullable: true}
		if n == "a" {
			f.Type = arrow.PrimitiveTypes.Int32
		}
		out = append(out, f)
	}
	return out
}
