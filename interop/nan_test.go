package interop_test

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"

	"github.com/rehome-db/rehome/interop"
)

// TestReport04NaNKeysThroughJSON upserts what scan prints of a table into the table
// itself, by a float that is NaN in one row: every row is found. Afterwards stock
// engines, which compare keys by their bits, find every row that was written, too. The
// zeros are two keys for all.
func TestReport04NaNKeysThroughJSON(t *testing.T) {
	ctx := needEngines(t)
	path, file := filepath.Join(t.TempDir(), "t.lance"), filepath.Join(t.TempDir(), "rows.jsonl")
	s := arrow.NewSchema([]arrow.Field{
		{Name: "id", Type: arrow.PrimitiveTypes.Int64, Nullable: true}, {Name: "k", Type: arrow.PrimitiveTypes.Float64, Nullable: true},
	}, nil)
	keys := []float64{0, math.Copysign(0, -1), math.Float64frombits(0x7ff8 << 48), math.Inf(1), 1.5}
	ids, k := array.NewInt64Builder(memory.DefaultAllocator), array.NewFloat64Builder(memory.DefaultAllocator)
	for i, key := range keys {
		ids.Append(int64(i))
		k.Append(key)
	}
	rows := array.NewRecordBatch(s, []arrow.Array{ids.NewArray(), k.NewArray()}, int64(len(keys)))
	_, err := pylance.Create(ctx, path, rows, interop.CreateOptions{})
	require.NoError(t, err)
	defer forget(ctx, path)

	code, out, stderr, err := run(ctx, "scan", path)
	require.NoError(t, err)
	require.Zero(t, code, stderr)
	require.Contains(t, out, `"NaN"`)
	require.NoError(t, os.WriteFile(file, []byte(out), 0o600))
	code, out, stderr, err = run(ctx, "upsert", path, file, "--on", "k", "--json")
	require.NoError(t, err)
	require.Zero(t, code, stderr+out)
	var doc struct {
		Updated  int `json:"rows_updated"`
		Inserted int `json:"rows_inserted"`
	}
	require.NoError(t, json.Unmarshal([]byte(out), &doc))
	require.Equal(t, len(keys), doc.Updated)
	require.Zero(t, doc.Inserted)

	for _, e := range engines {
		_, err := e.Merge(ctx, path, "k", rows)
		require.NoError(t, err, e.Name)
		n, err := e.Count(ctx, path, "id >= 0")
		require.NoError(t, err, e.Name)
		require.Equal(t, len(keys), n, "%s inserted a row that is there", e.Name)
	}
}
