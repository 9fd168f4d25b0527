package main

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// The command starts itself to make a table: here it is the test's binary.
func TestMain(m *testing.M) {
	if slices.Contains(os.Args, "-build") {
		main()
		return
	}
	os.Exit(m.Run())
}

// TestSmallRun runs both comparisons on small tables, so that they work on the day
// somebody wants figures.
func TestSmallRun(t *testing.T) {
	if os.Getenv("REHOME_INTEROP") == "" {
		t.Skip("REHOME_INTEROP is not set: the stock engines are needed, see interop/doc.go")
	}
	results := t.TempDir()
	small := []string{"-rows", "2000", "-fragments", "4", "-rounds", "1", "-dir", t.TempDir(), "-results", results}
	require.NoError(t, run(t.Context(), append(small, "-stock", "lancedb-0.39.0,pylance-14.0.2", "-flags=--no-sync", "-name", "costs")))
	costs, err := os.ReadFile(filepath.Join(results, "costs.txt"))
	require.NoError(t, err)
	for _, line := range []string{"lancedb-0.39.0 ", "pylance-14.0.2 ", "rehome ", "rehome --no-sync ", "4 -> 1"} {
		require.Contains(t, string(costs), line)
	}
	// Fails by itself if a result is too large.
	require.NoError(t, run(t.Context(), append(small, "-sizes", "-name", "sizes")))
	sizes, err := os.ReadFile(filepath.Join(results, "sizes.txt"))
	require.NoError(t, err)
	require.Contains(t, string(sizes), "strings, 2.2, 2000 rows")
	require.Contains(t, string(sizes), "golden with_btree_index")
}

func TestUnknownEngineIsRefused(t *testing.T) {
	require.ErrorContains(t, run(t.Context(), []string{"-stock", "duckdb"}), `no stock engine "duckdb"`)
}
