package interop_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/stretchr/testify/require"

	"github.com/rehome-db/rehome/interop"
	"github.com/rehome-db/rehome/lance"
	"github.com/rehome-db/rehome/table"
)

// TestColumnTypes has pylance write a table for every column type and data format,
// with and without nulls, compacts it, and reads it back with every engine.
func TestColumnTypes(t *testing.T) {
	ctx := needEngines(t)
	for _, format := range []string{"2.0", "2.1", "2.2"} {
		for _, dt := range scalarTypes() {
			t.Run(format+"/"+typeName(dt), func(t *testing.T) {
				t.Parallel()
				testColumnType(ctx, t, dt, format)
			})
		}
	}
}

func typeName(dt arrow.DataType) string {
	return strings.NewReplacer(" ", "", "/", "-").Replace(dt.String())
}

func testColumnType(ctx context.Context, t *testing.T, dt arrow.DataType, format string) {
	s := typeTable(dt)
	rng := rand.New(rand.NewPCG(1, uint64(dt.ID())))
	testRows(ctx, t, s, format, func(first int64, n int) arrow.RecordBatch { return typeRows(s, first, n, rng) })
}

// nestedColumn is a column that is made of JSON.
type nestedColumn struct {
	dt    arrow.DataType
	value func(rng *rand.Rand) string
	// metadata of the field; format is the first that has the type, "" for all.
	metadata map[string]string
	format   string
	// whole says that there are no nulls: arrays that are made of JSON have nulls
	// in the fields of null structs, which the engine refuses to pack.
	whole bool
}

// rows makes rows of a table with an id and the column.
func (c nestedColumn) rows(t *testing.T) (*arrow.Schema, func(first int64, n int) arrow.RecordBatch) {
	s := arrow.NewSchema([]arrow.Field{
		{Name: "id", Type: arrow.PrimitiveTypes.Int64}, {Name: "nested", Type: c.dt, Nullable: true, Metadata: arrow.MetadataFrom(c.metadata)},
	}, nil)
	rng := rand.New(rand.NewPCG(2, 2))
	return s, func(first int64, n int) arrow.RecordBatch {
		rec, err := jsonRecord(s, first, n, func(int64) []string {
			if !c.whole && rng.IntN(7) == 0 {
				return []string{"null"}
			}
			return []string{c.value(rng)}
		})
		require.NoError(t, err)
		return rec
	}
}

// nestedColumns are lists, structs, maps and dictionaries, and columns whose metadata
// asks for an encoding.
func nestedColumns() map[string]nestedColumn {
	i64, str := arrow.PrimitiveTypes.Int64, arrow.BinaryTypes.String
	numbers := func(rng *rand.Rand) string {
		var items []string
		for range rng.IntN(5) {
			if rng.IntN(6) == 0 {
				items = append(items, "null")
			} else {
				items = append(items, fmt.Sprint(rng.IntN(1000)))
			}
		}
		return "[" + strings.Join(items, ",") + "]"
	}
	object := func(rng *rand.Rand) string {
		return fmt.Sprintf(`{"a": %d, "b": %q, "l": %s}`, rng.IntN(100), words[rng.IntN(len(words))], numbers(rng))
	}
	dictionary := func(index, value arrow.DataType) arrow.DataType {
		return &arrow.DictionaryType{IndexType: index, ValueType: value}
	}
	word := func(rng *rand.Rand) string { return fmt.Sprintf("%q", words[rng.IntN(len(words))]) }
	packed := map[string]string{"lance-encoding:packed": "true"}
	nested := arrow.StructOf(arrow.Field{Name: "a", Type: i64, Nullable: true}, arrow.Field{Name: "b", Type: str, Nullable: true},
		arrow.Field{Name: "l", Type: arrow.ListOf(i64), Nullable: true})
	return map[string]nestedColumn{
		"list":            {dt: arrow.ListOf(i64), value: numbers},
		"large list":      {dt: arrow.LargeListOf(i64), value: numbers},
		"struct":          {dt: nested, value: object},
		"list of structs": {dt: arrow.ListOf(nested), value: func(rng *rand.Rand) string { return "[" + object(rng) + "," + object(rng) + "]" }},
		"list of lists":   {dt: arrow.ListOf(arrow.ListOf(i64)), value: func(rng *rand.Rand) string { return "[" + numbers(rng) + ", null, []]" }},
		"null items": {dt: arrow.FixedSizeListOf(3, arrow.PrimitiveTypes.Float32), value: func(rng *rand.Rand) string {
			return fmt.Sprintf("[%d, null, %d]", rng.IntN(9), rng.IntN(9))
		}},
		"no type":    {dt: arrow.Null, value: func(*rand.Rand) string { return "null" }},
		"dictionary": {dt: dictionary(arrow.PrimitiveTypes.Int8, str), value: word},
		"dictionary of numbers": {dt: dictionary(arrow.PrimitiveTypes.Uint32, i64), value: func(rng *rand.Rand) string {
			return fmt.Sprint(rng.IntN(5) * 1_000_000_000_000)
		}},
		"list of dictionaries": {dt: arrow.ListOf(dictionary(arrow.PrimitiveTypes.Int32, str)), value: func(rng *rand.Rand) string {
			return fmt.Sprintf("[%s, null, %s]", word(rng), word(rng))
		}},
		"map": {format: "2.2", dt: arrow.MapOf(str, i64), value: func(rng *rand.Rand) string {
			if rng.IntN(4) == 0 {
				return "[]"
			}
			return fmt.Sprintf(`[{"key": "a", "value": %d}, {"key": "b", "value": null}]`, rng.IntN(99))
		}},
		"map of lists of structs": {format: "2.2", dt: arrow.MapOf(str, arrow.ListOf(nested)), value: func(rng *rand.Rand) string {
			return fmt.Sprintf(`[{"key": "a", "value": [%s, null]}, {"key": "b", "value": []}]`, object(rng))
		}},
		"booleans of a fixed size": {dt: arrow.FixedSizeListOf(5, arrow.FixedWidthTypes.Boolean), value: func(rng *rand.Rand) string {
			return fmt.Sprintf("[true, %t, null, false, %t]", rng.IntN(2) == 0, rng.IntN(2) == 0)
		}},
		"fixed-size lists of each other": {dt: arrow.FixedSizeListOf(3, arrow.FixedSizeListOf(2, arrow.PrimitiveTypes.Int16)), value: func(rng *rand.Rand) string {
			return fmt.Sprintf("[[%d, null], null, [%d, 1]]", rng.IntN(99), rng.IntN(99))
		}},
		"packed struct": {metadata: packed, whole: true, dt: arrow.StructOf(arrow.Field{Name: "a", Type: i64, Nullable: true}, arrow.Field{Name: "b", Type: arrow.PrimitiveTypes.Int16, Nullable: true}),
			value: func(rng *rand.Rand) string { return fmt.Sprintf(`{"a": %d, "b": %d}`, rng.Int64N(1<<40), rng.IntN(99)) }},
		"packed struct with strings": {metadata: packed, whole: true, format: "2.2", dt: arrow.StructOf(arrow.Field{Name: "a", Type: str, Nullable: true}, arrow.Field{Name: "b", Type: i64, Nullable: true}),
			value: func(rng *rand.Rand) string { return fmt.Sprintf(`{"a": %s, "b": %d}`, word(rng), rng.IntN(99)) }},
		"compressed as asked": {metadata: map[string]string{"lance-encoding:compression": "zstd", "lance-encoding:compression-level": "7"}, dt: str, value: word},
		"split into bytes":    {metadata: map[string]string{"lance-encoding:compression": "lz4", "lance-encoding:bss": "on"}, dt: arrow.PrimitiveTypes.Float64, value: func(rng *rand.Rand) string { return fmt.Sprint(rng.IntN(1000)) }},
		"zipped as asked":     {metadata: map[string]string{"lance-encoding:structural-encoding": "fullzip"}, dt: i64, value: func(rng *rand.Rand) string { return fmt.Sprint(rng.IntN(1000)) }},
	}
}

// TestNestedTypes does as TestColumnTypes for what nestedColumns are.
func TestNestedTypes(t *testing.T) {
	ctx := needEngines(t)
	for _, format := range []string{"2.1", "2.2"} {
		for name, c := range nestedColumns() {
			if c.format > format {
				continue
			}
			t.Run(format+"/"+name, func(t *testing.T) {
				t.Parallel()
				s, make := c.rows(t)
				testRows(ctx, t, s, format, make)
			})
		}
	}
}

// TestWrittenTypes appends the rows of golden tables to themselves, through the
// library, and has every engine read what it wrote.
func TestWrittenTypes(t *testing.T) {
	ctx := needEngines(t)
	dirs, err := filepath.Glob("../testdata/golden/types_*/t.lance")
	require.NoError(t, err)
	require.Greater(t, len(dirs), 10)
	for _, dir := range dirs {
		g := readGolden(t, filepath.Dir(dir))
		if v := g.DataFormat.Version; v != "2.0" && v != "2.1" && v != "2.2" {
			continue
		}
		t.Run(filepath.Base(filepath.Dir(dir)), func(t *testing.T) {
			t.Parallel()
			path := copyTable(t, dir)
			defer forget(ctx, path)
			e, err := lance.Open(ctx, path, lance.Options{})
			require.NoError(t, err)
			defer e.Close()
			s, err := e.Load(ctx, 0)
			require.NoError(t, err)
			var all []table.FragmentID
			for _, f := range s.Fragments {
				all = append(all, f.ID)
			}
			_, err = e.Append(ctx, e.Rows(ctx, s, all, table.ReadOptions{}), table.WriteOptions{})
			require.NoError(t, err)
			want := append(g.rows(t), g.rows(t)...)
			slices.Sort(want)
			for _, engine := range engines {
				a, err := engine.Query(ctx, path, interop.Query{})
				require.NoError(t, err, engine.Name)
				got, err := allRows(a.Batches)
				a.Release()
				require.NoError(t, err)
				require.Equal(t, want, only(got, g.columns(t)), engine.Name)
			}
		})
	}
}

// TestRandomTypes compacts tables as TestNestedTypes does, of types that are drawn: of
// everything inside of everything else.
func TestRandomTypes(t *testing.T) {
	ctx := needEngines(t)
	for _, format := range []string{"2.0", "2.1", "2.2"} {
		for seed := range uint64(8) {
			t.Run(fmt.Sprint(format, "/", seed), func(t *testing.T) {
				t.Parallel()
				rng := rand.New(rand.NewPCG(seed, 3))
				var columns []randomColumn
				fields := []arrow.Field{{Name: "id", Type: arrow.PrimitiveTypes.Int64}}
				for i := range 1 + rng.IntN(3) {
					c := drawColumn(rng, 3, format)
					columns = append(columns, c)
					fields = append(fields, arrow.Field{Name: fmt.Sprint("c", i), Type: c.dt, Nullable: true})
				}
				t.Log(fields)
				s := arrow.NewSchema(fields, nil)
				testRows(ctx, t, s, format, func(first int64, n int) arrow.RecordBatch {
					rec, err := jsonRecord(s, first, n, func(int64) (out []string) {
						for _, c := range columns {
							out = append(out, c.value(rng))
						}
						return out
					})
					require.NoError(t, err)
					return rec
				})
			})
		}
	}
}

// randomColumn is a type and how to draw a value of it, in JSON, which may be null.
type randomColumn struct {
	dt    arrow.DataType
	value func(rng *rand.Rand) string
}

// drawColumn draws a type that is nested at most depth deep.
func drawColumn(rng *rand.Rand, depth int, format string) randomColumn {
	some := func(dt arrow.DataType, value func(rng *rand.Rand) string) randomColumn {
		return randomColumn{dt, func(rng *rand.Rand) string {
			if rng.IntN(6) == 0 {
				return "null"
			}
			return value(rng)
		}}
	}
	items := func(rng *rand.Rand, n int, item func(rng *rand.Rand) string) string {
		var out []string
		for range n {
			out = append(out, item(rng))
		}
		return "[" + strings.Join(out, ",") + "]"
	}
	word := func(rng *rand.Rand) string { return fmt.Sprintf("%q", words[rng.IntN(len(words))]) }
	number := func(rng *rand.Rand) string { return fmt.Sprint(rng.IntN(100)) }
	leaves := []func() randomColumn{
		func() randomColumn { return some(arrow.PrimitiveTypes.Int64, number) },
		func() randomColumn { return some(arrow.BinaryTypes.String, word) },
		func() randomColumn {
			return some(arrow.FixedWidthTypes.Boolean, func(rng *rand.Rand) string { return fmt.Sprint(rng.IntN(2) == 0) })
		},
		func() randomColumn {
			index := []arrow.DataType{arrow.PrimitiveTypes.Int8, arrow.PrimitiveTypes.Uint16, arrow.PrimitiveTypes.Int64}[rng.IntN(3)]
			return some(&arrow.DictionaryType{IndexType: index, ValueType: arrow.BinaryTypes.String}, word)
		},
		func() randomColumn {
			n := 1 + rng.IntN(9)
			return some(arrow.FixedSizeListOf(int32(n), arrow.FixedWidthTypes.Boolean), func(rng *rand.Rand) string {
				return items(rng, n, func(rng *rand.Rand) string { return []string{"true", "false", "null"}[rng.IntN(3)] })
			})
		},
		func() randomColumn {
			outer, inner := 1+rng.IntN(3), 1+rng.IntN(3)
			list := some(nil, func(rng *rand.Rand) string { return items(rng, inner, number) })
			return some(arrow.FixedSizeListOf(int32(outer), arrow.FixedSizeListOf(int32(inner), arrow.PrimitiveTypes.Float32)),
				func(rng *rand.Rand) string { return items(rng, outer, list.value) })
		},
	}
	kind := rng.IntN(5)
	switch {
	case depth == 0 || kind == 0:
		return leaves[rng.IntN(len(leaves))]()
	case kind == 1:
		item := drawColumn(rng, depth-1, format)
		return some(arrow.ListOf(item.dt), func(rng *rand.Rand) string { return items(rng, rng.IntN(4), item.value) })
	case kind == 2:
		item := drawColumn(rng, depth-1, format)
		return some(arrow.LargeListOf(item.dt), func(rng *rand.Rand) string { return items(rng, rng.IntN(4), item.value) })
	case kind == 3 && format >= "2.2":
		item := drawColumn(rng, depth-1, format)
		return some(arrow.MapOf(arrow.BinaryTypes.String, item.dt), func(rng *rand.Rand) string {
			k := 0
			return items(rng, rng.IntN(3), func(rng *rand.Rand) string {
				k++
				return fmt.Sprintf(`{"key": "k%d", "value": %s}`, k, item.value(rng))
			})
		})
	}
	var fields []arrow.Field
	var values []func(rng *rand.Rand) string
	for i := range 1 + rng.IntN(3) {
		c := drawColumn(rng, depth-1, format)
		fields = append(fields, arrow.Field{Name: fmt.Sprint("f", i), Type: c.dt, Nullable: true})
		values = append(values, c.value)
	}
	object := func(rng *rand.Rand) string {
		var out []string
		for i, v := range values {
			out = append(out, fmt.Sprintf(`"f%d": %s`, i, v(rng)))
		}
		return "{" + strings.Join(out, ",") + "}"
	}
	if format == "2.0" {
		return randomColumn{arrow.StructOf(fields...), object} // which has no null structs
	}
	return some(arrow.StructOf(fields...), object)
}

// testRows has pylance write a table of the rows that make gives, deletes some,
// compacts it, and reads it back with every engine, also after another engine's own
// compaction.
func testRows(ctx context.Context, t *testing.T, s *arrow.Schema, format string, make func(first int64, n int) arrow.RecordBatch) {
	t.Helper()
	testRowsBy(ctx, t, pylance, lancedb39, engines, s, format, make)
}

// testRowsBy is testRows with who writes, who compacts in the end and who reads.
func testRowsBy(ctx context.Context, t *testing.T, writer, optimizer *interop.Engine, readers []*interop.Engine, s *arrow.Schema, format string, make func(first int64, n int) arrow.RecordBatch) {
	t.Helper()
	r := &rowsTest{ctx: ctx, t: t, path: filepath.Join(t.TempDir(), "t.lance"), s: s, make: make, want: map[int64]string{}}
	defer forget(ctx, r.path)
	require.NoError(t, r.create(writer, format))
	for k := range int64(3) {
		require.NoError(t, r.add(writer, 300*(k+1), 300))
	}
	r.dropSome(writer)
	r.check("before the compaction", readers)
	compactTable(ctx, t, r.path)
	require.NoError(t, rehomeVerify(ctx, r.path))
	r.check("after the compaction", readers)
	// What was written, together with rows of theirs, through the engine's own.
	require.NoError(t, r.add(writer, 5000, 100))
	_, err := optimizer.Optimize(ctx, r.path)
	require.NoError(t, err)
	r.check("after the engine's own compaction", readers)
}

// rowsTest is a table and the rows that it must have.
type rowsTest struct {
	ctx  context.Context
	t    *testing.T
	path string
	s    *arrow.Schema
	make func(first int64, n int) arrow.RecordBatch
	want map[int64]string
}

// create has an engine make the table, with its first rows.
func (r *rowsTest) create(e *interop.Engine, format string) error {
	return r.write(0, 300, func(rec arrow.RecordBatch) (uint64, error) {
		return e.Create(r.ctx, r.path, rec, interop.CreateOptions{DataFormat: format})
	})
}

// add has an engine append rows.
func (r *rowsTest) add(e *interop.Engine, first int64, n int) error {
	return r.write(first, n, func(rec arrow.RecordBatch) (uint64, error) { return e.Append(r.ctx, r.path, rec) })
}

func (r *rowsTest) write(first int64, n int, write func(rec arrow.RecordBatch) (uint64, error)) error {
	rec := r.make(first, n)
	defer rec.Release()
	rows, err := rowsOf([]arrow.RecordBatch{rec}, columnNames(r.s))
	require.NoError(r.t, err)
	if _, err := write(rec); err != nil {
		return err
	}
	for _, row := range rows {
		r.want[row.id] = row.json
	}
	return nil
}

// dropSome has an engine delete rows.
func (r *rowsTest) dropSome(e *interop.Engine) {
	_, err := e.Delete(r.ctx, r.path, "id % 7 = 3 AND id < 900")
	require.NoError(r.t, err)
	maps.DeleteFunc(r.want, func(id int64, _ string) bool { return id%7 == 3 && id < 900 })
}

func (r *rowsTest) check(when string, readers []*interop.Engine) {
	r.t.Helper()
	for _, e := range readers {
		require.NoError(r.t, holds(r.ctx, e, r.path, r.s, r.want), when)
	}
}

// holds says how what e reads differs from the wanted rows, if it does.
func holds(ctx context.Context, e *interop.Engine, path string, s *arrow.Schema, want map[int64]string) error {
	a, err := e.Query(ctx, path, interop.Query{})
	if err != nil {
		return err
	}
	defer a.Release()
	for _, b := range a.Batches {
		for i, f := range b.Schema().Fields() {
			// Arrow holds large lists of maps for different if the maps' entries, whose
			// names mean nothing, are called differently.
			if want := s.Field(i).Type; !arrow.TypeEqual(f.Type, want) && f.Type.String() != want.String() {
				return fmt.Errorf("%s: column %q is %s, want %s", e.Name, f.Name, f.Type, s.Field(i).Type)
			}
		}
	}
	rows, err := rowsOf(a.Batches, columnNames(s))
	if err != nil {
		return fmt.Errorf("%s: %w", e.Name, err)
	}
	if len(rows) != len(want) {
		return fmt.Errorf("%s: %d rows, want %d", e.Name, len(rows), len(want))
	}
	seen := map[int64]bool{}
	for _, r := range rows {
		if seen[r.id] || want[r.id] != r.json {
			return fmt.Errorf("%s: row %d (seen before: %t) is\n  %s, want\n  %s", e.Name, r.id, seen[r.id], r.json, want[r.id])
		}
		seen[r.id] = true
	}
	return nil
}
