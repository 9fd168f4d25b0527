package interop_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/stretchr/testify/require"

	"github.com/rehome-db/rehome/interop"
	"github.com/rehome-db/rehome/lance"
	"github.com/rehome-db/rehome/table"
)

// What TestNestedTypes does for the later formats, with what 2.0 has: no maps, no null
// structs, no encodings to choose but the compression of strings.
func TestFormat20Types(t *testing.T) {
	ctx := needEngines(t)
	i64, str := arrow.PrimitiveTypes.Int64, arrow.BinaryTypes.String
	word := func(rng *rand.Rand) string { return fmt.Sprintf("%q", words[rng.IntN(len(words))]) }
	text := func(rng *rand.Rand) string {
		var s []string
		for range 3 + rng.IntN(9) {
			s = append(s, words[rng.IntN(len(words))])
		}
		return fmt.Sprintf("%q", strings.Join(s, " ")+strconv.Itoa(rng.IntN(1000)))
	}
	bytes := func(rng *rand.Rand) string {
		return fmt.Sprintf("%q", base64.StdEncoding.EncodeToString([]byte(strings.Repeat(words[rng.IntN(len(words))], rng.IntN(9)))))
	}
	numbers := func(rng *rand.Rand) string {
		var items []string
		for range rng.IntN(5) {
			items = append(items, []string{"null", "7", "12345678901"}[rng.IntN(3)])
		}
		return "[" + strings.Join(items, ",") + "]"
	}
	compressed := func(scheme string) map[string]string {
		return map[string]string{"lance-encoding:compression": scheme}
	}
	packed := map[string]string{"packed": "true"}
	nested := arrow.StructOf(arrow.Field{Name: "a", Type: i64, Nullable: true}, arrow.Field{Name: "b", Type: str, Nullable: true},
		arrow.Field{Name: "l", Type: arrow.ListOf(i64), Nullable: true})
	object := func(rng *rand.Rand) string {
		return fmt.Sprintf(`{"a": %d, "b": %s, "l": %s}`, rng.IntN(100), word(rng), numbers(rng))
	}
	for name, c := range map[string]struct {
		dt       arrow.DataType
		value    func(rng *rand.Rand) string
		metadata map[string]string
		whole    bool // without nulls
	}{
		"struct":                   {dt: nested, value: object, whole: true},
		"list of structs":          {dt: arrow.ListOf(nested), value: func(rng *rand.Rand) string { return "[" + object(rng) + "," + object(rng) + "]" }},
		"large list of lists":      {dt: arrow.LargeListOf(arrow.ListOf(i64)), value: func(rng *rand.Rand) string { return "[" + numbers(rng) + ", null, []]" }},
		"list of nothing":          {dt: arrow.ListOf(arrow.Null), value: func(*rand.Rand) string { return "[null]" }},
		"empty lists":              {dt: arrow.ListOf(str), value: func(*rand.Rand) string { return "[]" }},
		"list of dictionaries":     {dt: arrow.ListOf(&arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int16, ValueType: str}), value: func(rng *rand.Rand) string { return "[" + word(rng) + ", null]" }},
		"dictionary":               {dt: &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int8, ValueType: str}, value: word},
		"dictionary of numbers":    {dt: &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Uint32, ValueType: i64}, value: func(rng *rand.Rand) string { return strconv.Itoa(rng.IntN(5)) }},
		"null dictionary":          {dt: &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int32, ValueType: arrow.PrimitiveTypes.Float64}, value: func(*rand.Rand) string { return "null" }},
		"fixed-size lists of each": {dt: arrow.FixedSizeListOf(3, arrow.FixedSizeListOf(2, arrow.PrimitiveTypes.Int16)), value: func(rng *rand.Rand) string { return fmt.Sprintf("[[%d, null], null, [1, 2]]", rng.IntN(9)) }},
		"lists of fixed-size ones": {dt: arrow.ListOf(arrow.FixedSizeListOf(5, arrow.FixedWidthTypes.Boolean)), value: func(*rand.Rand) string { return "[[true, null, false, true, true], null]" }},
		"packed struct":            {dt: arrow.StructOf(arrow.Field{Name: "a", Type: i64}, arrow.Field{Name: "b", Type: arrow.PrimitiveTypes.Int16}), metadata: packed, whole: true, value: func(rng *rand.Rand) string { return fmt.Sprintf(`{"a": %d, "b": 7}`, rng.IntN(1<<40)) }},
		"packed struct of vectors": {dt: arrow.StructOf(arrow.Field{Name: "a", Type: i64}, arrow.Field{Name: "b", Type: arrow.FixedSizeListOf(2, arrow.PrimitiveTypes.Float32)}), metadata: packed, whole: true, value: func(rng *rand.Rand) string { return fmt.Sprintf(`{"a": %d, "b": [1, 2]}`, rng.IntN(9)) }},
		"zstd":                     {dt: str, value: text, metadata: compressed("zstd")},
		"lz4":                      {dt: str, value: text, metadata: compressed("lz4")},
		"fsst":                     {dt: str, value: text, metadata: compressed("fsst")},
		"few words":                {dt: str, value: word},
		"few words, zstd":          {dt: str, value: word, metadata: compressed("zstd")},
		"nothing but nulls":        {dt: str, value: func(*rand.Rand) string { return "null" }},
		"fsst of bytes":            {dt: arrow.BinaryTypes.Binary, value: bytes, metadata: compressed("fsst")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := arrow.NewSchema([]arrow.Field{
				{Name: "id", Type: i64}, {Name: "c", Type: c.dt, Nullable: true, Metadata: arrow.MetadataFrom(c.metadata)},
			}, nil)
			rng := rand.New(rand.NewPCG(4, 4))
			testRows(ctx, t, s, "2.0", func(first int64, n int) arrow.RecordBatch {
				rec, err := jsonRecord(s, first, n, func(int64) []string {
					if !c.whole && rng.IntN(7) == 0 {
						return []string{"null"}
					}
					return []string{c.value(rng)}
				})
				require.NoError(t, err)
				return rec
			})
		})
	}
}

// Columns of several pages, which pages of lists and of their items have to agree on:
// written by pylance and compacted, and written by the library from the start.
func TestFormat20LargeColumns(t *testing.T) {
	ctx := needEngines(t)
	i64, str := arrow.PrimitiveTypes.Int64, arrow.BinaryTypes.String
	item := arrow.StructOf(arrow.Field{Name: "n", Type: i64, Nullable: true}, arrow.Field{Name: "s", Type: str, Nullable: true},
		arrow.Field{Name: "l", Type: arrow.ListOf(arrow.PrimitiveTypes.Int8), Nullable: true})
	s := arrow.NewSchema([]arrow.Field{
		{Name: "id", Type: i64}, {Name: "c", Type: arrow.ListOf(item), Nullable: true}, {Name: "v", Type: arrow.FixedSizeListOf(64, arrow.PrimitiveTypes.Float32)},
	}, nil)
	vector := "[" + strings.Repeat("1.5,", 63) + "2.5]"
	long := strings.Repeat("long ", 40)
	rows := func(first int64, n int) arrow.RecordBatch {
		rng := rand.New(rand.NewPCG(uint64(first), 9))
		rec, err := jsonRecord(s, first, n, func(int64) []string {
			c := "null"
			if rng.IntN(9) > 0 {
				var items []string
				for range rng.IntN(5) {
					items = append(items, fmt.Sprintf(`{"n": %d, "s": "%s%d", "l": [%d, 2, null]}`, rng.IntN(1000), long, rng.IntN(1000), rng.IntN(99)))
				}
				c = "[" + strings.Join(items, ",") + "]"
			}
			return []string{c, vector}
		})
		require.NoError(t, err)
		return rec
	}
	const batch, batches = 9000, 4
	want := map[int64]string{}
	for k := range int64(batches) {
		rec := rows(k*batch, batch)
		all, err := rowsOf([]arrow.RecordBatch{rec}, columnNames(s))
		require.NoError(t, err)
		for _, r := range all {
			want[r.id] = r.json
		}
		rec.Release()
	}
	check := func(path string, want map[int64]string) {
		for _, e := range engines {
			require.NoError(t, holds(ctx, e, path, s, want))
		}
	}
	less := map[int64]string{}
	for id, row := range want {
		if id%5 != 4 {
			less[id] = row
		}
	}

	theirs := filepath.Join(t.TempDir(), "t.lance")
	defer forget(ctx, theirs)
	for k := range int64(batches) {
		rec := rows(k*batch, batch)
		var err error
		if k == 0 {
			_, err = pylance.Create(ctx, theirs, rec, interop.CreateOptions{DataFormat: "2.0"})
		} else {
			_, err = pylance.Append(ctx, theirs, rec)
		}
		rec.Release()
		require.NoError(t, err)
	}
	_, err := pylance.Delete(ctx, theirs, "id % 5 = 4")
	require.NoError(t, err)
	compactTable(ctx, t, theirs)
	require.NoError(t, rehomeVerify(ctx, theirs))
	check(theirs, less)

	ours := filepath.Join(t.TempDir(), "t.lance")
	defer forget(ctx, ours)
	e, err := lance.Create(ctx, ours, s, lance.CreateOptions{DataFormat: "2.0"}, lance.Options{})
	require.NoError(t, err)
	defer e.Close()
	_, err = e.Append(ctx, func(yield func(table.Batch, error) bool) {
		for k := range int64(batches) {
			rec := rows(k*batch, batch)
			more := yield(table.Batch{Record: rec}, nil)
			rec.Release()
			if !more {
				return
			}
		}
	}, table.WriteOptions{})
	require.NoError(t, err)
	require.NoError(t, rehomeVerify(ctx, ours))
	check(ours, want)
	_, err = lancedb39.Delete(ctx, ours, "id % 5 = 4")
	require.NoError(t, err)
	compactTable(ctx, t, ours)
	check(ours, less)
	_, err = lancedb31.Optimize(ctx, ours)
	require.NoError(t, err)
	check(ours, less)
}

// Queries give where blobs are: the engines find them where a compaction put them.
func TestFormat20Blobs(t *testing.T) {
	ctx := needEngines(t)
	const golden = "../testdata/golden/types_2_0_blobs_p14"
	raw, err := os.ReadFile(filepath.Join(golden, "expected.json"))
	require.NoError(t, err)
	type blob struct{ B64 *string }
	var expected struct {
		Versions map[string]struct {
			Blobs []struct {
				ID int
				A  *blob
				B  struct{ X *blob }
			}
		}
	}
	require.NoError(t, json.Unmarshal(raw, &expected))
	path := copyTable(t, filepath.Join(golden, "t.lance"))
	defer forget(ctx, path)
	old, err := filepath.Glob(filepath.Join(path, "data", "*.lance"))
	require.NoError(t, err)
	compactTable(ctx, t, path)
	files, err := filepath.Glob(filepath.Join(path, "data", "*.lance"))
	require.NoError(t, err)
	require.Len(t, files, len(old)+1)
	before := map[string]bool{}
	for _, f := range old {
		before[f] = true
	}
	var data []byte
	for _, f := range files {
		if !before[f] {
			data, err = os.ReadFile(f)
			require.NoError(t, err)
		}
	}
	for _, e := range engines {
		requireBlobs(ctx, t, e, path, func(found map[int][2]*string) {
			last := expected.Versions[strconv.Itoa(len(expected.Versions))]
			require.Len(t, found, len(last.Blobs))
			for _, want := range last.Blobs {
				for k, b := range []*blob{want.A, want.B.X} {
					if b == nil {
						require.Nil(t, found[want.ID][k], "%s: row %d", e.Name, want.ID)
						continue
					}
					require.NotNil(t, found[want.ID][k], "%s: row %d", e.Name, want.ID)
					require.Equal(t, *b.B64, *found[want.ID][k], "%s: row %d", e.Name, want.ID)
				}
			}
		}, data)
	}
}

// requireBlobs passes the blobs that an engine finds in data on, by row; nil is null.
func requireBlobs(ctx context.Context, t *testing.T, e *interop.Engine, path string, check func(map[int][2]*string), data []byte) {
	a, err := e.Query(ctx, path, interop.Query{})
	require.NoError(t, err)
	defer a.Release()
	rows, err := allRows(a.Batches)
	require.NoError(t, err)
	number := func(v any) int {
		n, err := strconv.Atoi(fmt.Sprint(v))
		require.NoError(t, err)
		return n
	}
	find := func(v any) *string {
		where := v.(map[string]any)
		at, size := number(where["position"]), number(where["size"])
		if size == 0 && at != 0 {
			return nil
		}
		s := base64.StdEncoding.EncodeToString(data[at : at+size])
		return &s
	}
	found := map[int][2]*string{}
	for _, r := range rows {
		found[number(r["id"])] = [2]*string{find(r["a"]), find(r["b"].(map[string]any)["x"])}
	}
	check(found)
}
