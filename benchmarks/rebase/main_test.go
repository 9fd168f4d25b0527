package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCost(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, run(t.Context(), []string{"cost", "-rows", "20000", "-dead", "0,10", "-deletes", "100", "-rounds", "1", "-dir", dir, "-results", dir}))
	text, err := os.ReadFile(filepath.Join(dir, "rebase-cost.txt"))
	require.NoError(t, err)
	require.Regexp(t, `20000 +10 % +100 +delete +compaction, found out`, string(text))
}

// TestBeside runs the benchmark on a small table: rehome's compactions are all
// committed, and the rows are right.
func TestBeside(t *testing.T) {
	if os.Getenv("REHOME_INTEROP") == "" {
		t.Skip("REHOME_INTEROP is not set: the stock engines are needed, see interop/doc.go")
	}
	dir := t.TempDir()
	args := []string{"beside", "-rows", "20000", "-fragments", "20", "-duration", "3s", "-every", "100ms", "-only", "rehome", "-dir", dir, "-results", dir}
	require.NoError(t, run(t.Context(), args))
	text, err := os.ReadFile(filepath.Join(dir, "rebase-beside.txt"))
	require.NoError(t, err)
	require.NotContains(t, string(text), errLost.Error())
	require.Regexp(t, ` 0\n$`, string(text), "wrong rows")
}

func TestUsage(t *testing.T) {
	require.Error(t, run(t.Context(), nil))
	require.Error(t, run(t.Context(), []string{"cost", "-rows", "many"}))
}
