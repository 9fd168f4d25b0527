package interop_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/stretchr/testify/require"

	"github.com/rehome-db/rehome/interop"
)

// TestColumnTypes has pylance write a table for every column type and data format,
// with and without nulls, compacts it, and reads it back with every engine.
func TestColumnTypes(t *testing.T) {
	ctx := needEngines(t)
	for _, format := range []string{"2.1", "2.2"} {
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

// TestNestedTypes does the same for lists and structs.
func TestNestedTypes(t *testing.T) {
	ctx := needEngines(t)
	i64, str := arrow.PrimitiveTypes.Int64, arrow.BinaryTypes.String
	type column struct {
		dt    arrow.DataType
		value func(rng *rand.Rand) string
	}
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
	nested := arrow.StructOf(arrow.Field{Name: "a", Type: i64, Nullable: true}, arrow.Field{Name: "b", Type: str, Nullable: true},
		arrow.Field{Name: "l", Type: arrow.ListOf(i64), Nullable: true})
	columns := map[string]column{
		"list":            {arrow.ListOf(i64), numbers},
		"large list":      {arrow.LargeListOf(i64), numbers},
		"struct":          {nested, object},
		"list of structs": {arrow.ListOf(nested), func(rng *rand.Rand) string { return "[" + object(rng) + "," + object(rng) + "]" }},
		"list of lists":   {arrow.ListOf(arrow.ListOf(i64)), func(rng *rand.Rand) string { return "[" + numbers(rng) + ", null, []]" }},
		"null items": {arrow.FixedSizeListOf(3, arrow.PrimitiveTypes.Float32), func(rng *rand.Rand) string {
			return fmt.Sprintf("[%d, null, %d]", rng.IntN(9), rng.IntN(9))
		}},
		"no type": {arrow.Null, func(*rand.Rand) string { return "null" }},
	}
	for _, format := range []string{"2.1", "2.2"} {
		for name, c := range columns {
			t.Run(format+"/"+name, func(t *testing.T) {
				t.Parallel()
				s := arrow.NewSchema([]arrow.Field{
					{Name: "id", Type: i64}, {Name: "nested", Type: c.dt, Nullable: true},
				}, nil)
				rng := rand.New(rand.NewPCG(2, 2))
				testRows(ctx, t, s, format, func(first int64, n int) arrow.RecordBatch {
					rec, err := jsonRecord(s, first, n, func(int64) []string {
						if rng.IntN(7) == 0 {
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
}

// testRows has pylance write a table of the rows that make gives, deletes some,
// compacts it, and reads it back with every engine, also after another engine's own
// compaction.
func testRows(ctx context.Context, t *testing.T, s *arrow.Schema, format string, make func(first int64, n int) arrow.RecordBatch) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "t.lance")
	defer forget(ctx, path)
	want := map[int64]string{}
	add := func(first int64, n int) {
		rec := make(first, n)
		defer rec.Release()
		rows, err := rowsOf([]arrow.RecordBatch{rec}, columnNames(s))
		require.NoError(t, err)
		for _, r := range rows {
			want[r.id] = r.json
		}
		if first == 0 {
			_, err = pylance.Create(ctx, path, rec, interop.CreateOptions{DataFormat: format})
		} else {
			_, err = pylance.Append(ctx, path, rec)
		}
		require.NoError(t, err)
	}
	for k := range int64(4) {
		add(k*300, 300)
	}
	_, err := pylance.Delete(ctx, path, "id % 7 = 3 AND id < 900")
	require.NoError(t, err)
	for id := range want {
		if id%7 == 3 && id < 900 {
			delete(want, id)
		}
	}
	check := func(when string) {
		for _, e := range engines {
			require.NoError(t, holds(ctx, e, path, s, want), when)
		}
	}
	check("before the compaction")
	compactTable(ctx, t, path)
	require.NoError(t, rehomeVerify(ctx, path))
	check("after the compaction")
	// What was written, together with rows of theirs, through the engine's own.
	add(5000, 100)
	_, err = lancedb39.Optimize(ctx, path)
	require.NoError(t, err)
	check("after the engine's own compaction")
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
			if !arrow.TypeEqual(f.Type, s.Field(i).Type) {
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
