package interop_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/stretchr/testify/require"

	"github.com/rehome-db/rehome/interop"
	"github.com/rehome-db/rehome/lance/datafile"
	"github.com/rehome-db/rehome/lance/readat"
)

// drawn20 is a type of format 2.0 and what makes its values, in JSON. Values of structs
// are never null, as the format has no such.
type drawn20 struct {
	dt    arrow.DataType
	value func(rng *rand.Rand) string
}

// draw20 draws a type, at most depth lists and structs deep.
func draw20(rng *rand.Rand, depth int) drawn20 {
	i64, str := arrow.PrimitiveTypes.Int64, arrow.BinaryTypes.String
	text := func(rng *rand.Rand) string {
		return strconv.Quote(strings.Repeat(words[rng.IntN(len(words))], rng.IntN(5)))
	}
	few := func(rng *rand.Rand) string { return strconv.Quote(words[rng.IntN(3)]) }
	number := func(rng *rand.Rand) string { return strconv.Itoa(rng.IntN(1<<20) - 1000) }
	plain := []drawn20{
		{i64, number}, {str, text}, {str, few}, {arrow.BinaryTypes.LargeString, text},
		{arrow.PrimitiveTypes.Int8, func(rng *rand.Rand) string { return strconv.Itoa(rng.IntN(100)) }},
		{arrow.FixedWidthTypes.Boolean, func(rng *rand.Rand) string { return strconv.FormatBool(rng.IntN(2) == 0) }},
		{arrow.PrimitiveTypes.Float64, func(rng *rand.Rand) string { return strconv.Itoa(rng.IntN(99)) + ".5" }},
		{arrow.FixedSizeListOf(3, arrow.PrimitiveTypes.Float32), func(*rand.Rand) string { return "[1.5, null, -2]" }},
		{arrow.FixedSizeListOf(9, arrow.FixedWidthTypes.Boolean), func(*rand.Rand) string { return "[true,true,null,false,true,true,true,true,true]" }},
		{&arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int32, ValueType: str}, few},
		{&arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int8, ValueType: str}, few},
	}
	if depth == 0 || rng.IntN(3) == 0 {
		return plain[rng.IntN(len(plain))]
	}
	if rng.IntN(2) == 0 {
		of := draw20(rng, depth-1)
		list := arrow.DataType(arrow.ListOf(of.dt))
		if rng.IntN(2) == 0 {
			list = arrow.LargeListOf(of.dt)
		}
		return drawn20{list, func(rng *rand.Rand) string {
			items := make([]string, rng.IntN(4))
			for i := range items {
				items[i] = of.orNull(rng)
			}
			return "[" + strings.Join(items, ",") + "]"
		}}
	}
	fields := make([]arrow.Field, 1+rng.IntN(3))
	of := make([]drawn20, len(fields))
	for i := range fields {
		of[i] = draw20(rng, depth-1)
		fields[i] = arrow.Field{Name: string(rune('a' + i)), Type: of[i].dt, Nullable: true}
	}
	return drawn20{arrow.StructOf(fields...), func(rng *rand.Rand) string {
		parts := make([]string, len(of))
		for i := range of {
			parts[i] = fmt.Sprintf("%q: %s", fields[i].Name, of[i].orNull(rng))
		}
		return "{" + strings.Join(parts, ",") + "}"
	}}
}

func (d drawn20) orNull(rng *rand.Rand) string {
	if d.dt.ID() != arrow.STRUCT && rng.IntN(7) == 0 {
		return "null"
	}
	return d.value(rng)
}

// Random schemas, rows and deletions: whether pages are copied, encoded anew, or what is
// better, makes no difference to what the engines read.
func TestFormat20PageCopy(t *testing.T) {
	ctx := needEngines(t)
	for seed := range uint64(6) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			rng := rand.New(rand.NewPCG(20, seed))
			fields := []arrow.Field{{Name: "id", Type: arrow.PrimitiveTypes.Int64}}
			var columns []drawn20
			for i := range 5 {
				c := draw20(rng, 3)
				columns = append(columns, c)
				metadata := map[string]string{}
				if scheme := []string{"", "zstd", "lz4", "fsst"}[rng.IntN(4)]; scheme != "" && c.dt.ID() == arrow.STRING {
					metadata["lance-encoding:compression"] = scheme
				}
				fields = append(fields, arrow.Field{Name: fmt.Sprintf("c%d", i), Type: c.dt, Nullable: c.dt.ID() != arrow.STRUCT, Metadata: arrow.MetadataFrom(metadata)})
			}
			s := arrow.NewSchema(fields, nil)
			r := &rowsTest{ctx: ctx, t: t, path: filepath.Join(t.TempDir(), "t.lance"), s: s, want: map[int64]string{},
				make: func(first int64, n int) arrow.RecordBatch {
					rec, err := jsonRecord(s, first, n, func(int64) []string {
						var row []string
						for _, c := range columns {
							row = append(row, c.orNull(rng))
						}
						return row
					})
					require.NoError(t, err)
					return rec
				}}
			defer forget(ctx, r.path)
			require.NoError(t, r.create(pylance, "2.0"))
			next := int64(1000)
			for range 2 + rng.IntN(3) {
				n := 1 + rng.IntN(400)
				require.NoError(t, r.add(pylance, next, n))
				next += int64(n)
			}
			compareModes(t, r, rng, next)
		})
	}
}

// compareModes compacts a table and copies of it in each mode, deletes and adds rows, and
// goes on with the table: its files have pages of all kinds then.
func compareModes(t *testing.T, r *rowsTest, rng *rand.Rand, next int64) {
	for range 3 {
		for _, mode := range []string{"reencode", "auto", "copy"} {
			path := r.path
			if mode != "copy" {
				path = copyTable(t, r.path)
			}
			compactTable(r.ctx, t, path, "--mode", mode, "--deletion-threshold", "0")
			require.NoError(t, rehomeVerify(r.ctx, path))
			for _, e := range engines {
				require.NoError(t, holds(r.ctx, e, path, r.s, r.want), mode)
			}
			if path != r.path {
				forget(r.ctx, path)
			}
		}
		// Some rows together, some here and there, so that there is something to do.
		from := rng.Int64N(next)
		to, every := from+rng.Int64N(next/4), 200+rng.Int64N(400)
		dead := func(id int64) bool { return id >= from && id < to || id%every == 7 }
		_, err := pylance.Delete(r.ctx, r.path, fmt.Sprintf("(id >= %d AND id < %d) OR id %% %d = 7", from, to, every))
		require.NoError(t, err)
		maps.DeleteFunc(r.want, func(id int64, _ string) bool { return dead(id) })
		require.NoError(t, r.add(pylance, next, 50))
		next += 50
	}
}

// Columns of several large pages, lists also, of which those without deleted rows are
// copied without being asked to.
func TestFormat20LargePageCopy(t *testing.T) {
	ctx := needEngines(t)
	item := arrow.StructOf(
		arrow.Field{Name: "n", Type: arrow.PrimitiveTypes.Int64, Nullable: true},
		arrow.Field{Name: "s", Type: arrow.BinaryTypes.String, Nullable: true},
		arrow.Field{Name: "l", Type: arrow.ListOf(arrow.PrimitiveTypes.Int16), Nullable: true})
	s := arrow.NewSchema([]arrow.Field{
		{Name: "id", Type: arrow.PrimitiveTypes.Int64},
		{Name: "items", Type: arrow.ListOf(item), Nullable: true},
		{Name: "v", Type: arrow.FixedSizeListOf(128, arrow.PrimitiveTypes.Float32)},
		{Name: "tags", Type: arrow.LargeListOf(arrow.BinaryTypes.String), Nullable: true},
	}, nil)
	vector, long := "["+strings.Repeat("1.5,", 127)+"2.5]", strings.Repeat("long ", 60)
	rng := rand.New(rand.NewPCG(20, 20))
	r := &rowsTest{ctx: ctx, t: t, path: filepath.Join(t.TempDir(), "t.lance"), s: s, want: map[int64]string{},
		make: func(first int64, n int) arrow.RecordBatch {
			rec, err := jsonRecord(s, first, n, func(int64) []string {
				var items, tags []string
				for range rng.IntN(5) {
					items = append(items, fmt.Sprintf(`{"n": %d, "s": "%s%d", "l": [%d, 2, null]}`, rng.IntN(1000), long, rng.IntN(1000), rng.IntN(99)))
					tags = append(tags, fmt.Sprintf(`"%s%d"`, long, rng.IntN(1000)))
				}
				return []string{"[" + strings.Join(items, ",") + "]", vector, "[" + strings.Join(tags, ",") + "]"}
			})
			require.NoError(t, err)
			return rec
		}}
	defer forget(ctx, r.path)
	require.NoError(t, r.write(0, 4000, func(rec arrow.RecordBatch) (uint64, error) {
		return pylance.Create(ctx, r.path, rec, interop.CreateOptions{DataFormat: "2.0"})
	}))
	for k := range int64(3) {
		require.NoError(t, r.add(pylance, 4000*(k+1), 4000))
	}
	// Within the second fragment.
	_, err := pylance.Delete(ctx, r.path, "id >= 5000 AND id < 5100")
	require.NoError(t, err)
	maps.DeleteFunc(r.want, func(id int64, _ string) bool { return id >= 5000 && id < 5100 })
	sources, err := filepath.Glob(filepath.Join(r.path, "data", "*"))
	require.NoError(t, err)
	compactTable(ctx, t, r.path)
	require.NoError(t, rehomeVerify(ctx, r.path))
	r.check("after the compaction", engines)
	results, err := filepath.Glob(filepath.Join(r.path, "data", "*"))
	require.NoError(t, err)
	results = slices.DeleteFunc(results, func(name string) bool { return slices.Contains(sources, name) })
	require.Len(t, results, 1)
	stored := storedPages(t, sources...)
	for column, now := range storedPages(t, results...) {
		copied := 0
		for page := range now {
			if stored[column][page] {
				copied++
			}
		}
		switch column {
		case 0: // small
			require.Zero(t, copied)
		case 2: // a struct, which has one page
			require.Len(t, now, 1)
		default:
			require.GreaterOrEqual(t, copied, 3*len(stored[column])/4, "column %d", column)
			require.Less(t, copied, len(now))
		}
	}
	_, err = lancedb39.Optimize(ctx, r.path)
	require.NoError(t, err)
	r.check("after the engine's own compaction", engines)
}

// storedPages returns the pages of each column of data files, as bytes.
func storedPages(t *testing.T, files ...string) (out []map[string]bool) {
	t.Helper()
	for _, name := range files {
		raw, err := os.ReadFile(name)
		require.NoError(t, err)
		f, err := datafile.Open(t.Context(), readat.Bytes(raw), int64(len(raw)), name)
		require.NoError(t, err)
		for i := range f.NumColumns() {
			c, err := f.Column(i)
			require.NoError(t, err)
			if i == len(out) {
				out = append(out, map[string]bool{})
			}
			for _, p := range c.Pages() {
				page := p.Encoding()
				for _, b := range p.Buffers {
					page += string(raw[b.Offset : b.Offset+b.Size])
				}
				out[i][page] = true
			}
		}
	}
	return out
}
