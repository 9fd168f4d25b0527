package versus

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestMedianIsTakenFigureByFigure(t *testing.T) {
	odd := []Cost{{Wall: 3, PeakRSS: 10}, {Wall: 1, PeakRSS: 30}, {Wall: 2, PeakRSS: 20}}
	require.Equal(t, Cost{Wall: 2, PeakRSS: 20}, Median(odd))
	require.Equal(t, time.Duration(2), Median([]Cost{{Wall: 1}, {Wall: 4}, {Wall: 3}, {Wall: 2}}).Wall)
}

func TestCopyLinksDataAndMeasureCountsWhatIsNew(t *testing.T) {
	dir := t.TempDir()
	table := filepath.Join(dir, "t.lance")
	require.NoError(t, os.MkdirAll(filepath.Join(table, "data"), 0o755))
	require.NoError(t, os.MkdirAll(filepath.Join(table, "_versions"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(table, "data", "old.lance"), make([]byte, 100), 0o644))
	require.NoError(t, os.WriteFile(filepath.Join(table, "_versions", "1.manifest"), []byte("one"), 0o644))

	// A contender that makes a data file and overwrites a manifest.
	c := Contender{Name: "fake", Run: func(_ context.Context, path string) (Cost, error) {
		a, err := os.Stat(filepath.Join(table, "data", "old.lance"))
		require.NoError(t, err)
		b, err := os.Stat(filepath.Join(path, "data", "old.lance"))
		require.NoError(t, err)
		require.True(t, os.SameFile(a, b))
		require.NoError(t, os.WriteFile(filepath.Join(path, "_versions", "1.manifest"), []byte("two"), 0o644))
		return Cost{Wall: 7}, os.WriteFile(filepath.Join(path, "data", "new.lance"), make([]byte, 42), 0o644)
	}}
	cost, err := Measure(t.Context(), c, table, dir)
	require.NoError(t, err)
	require.Equal(t, Cost{Wall: 7, DataBytes: 42}, cost)

	manifest, err := os.ReadFile(filepath.Join(table, "_versions", "1.manifest"))
	require.NoError(t, err)
	require.Equal(t, "one", string(manifest), "the original is untouched")
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, left, 1, "the copy is gone")
}

func TestRunReportsWhatTheProcessUsed(t *testing.T) {
	out, cost, err := run(t.Context(), []string{"sh", "-c", "echo hello"})
	require.NoError(t, err)
	require.Equal(t, "hello\n", string(out))
	require.Positive(t, cost.Wall)
	require.Positive(t, cost.PeakRSS)
	_, _, err = run(t.Context(), []string{"sh", "-c", "echo broken >&2; exit 3"})
	require.ErrorContains(t, err, "broken")
}
