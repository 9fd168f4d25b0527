package main

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rehome-db/rehome/benchmarks/versus"
)

// TestSmallRun measures small tables, so that the command works on the day somebody
// wants figures.
func TestSmallRun(t *testing.T) {
	if os.Getenv("REHOME_INTEROP") == "" {
		t.Skip("REHOME_INTEROP is not set: the stock engines are needed, see interop/doc.go")
	}
	out := t.TempDir()
	require.NoError(t, run(t.Context(), []string{
		"-fragments", "4,8", "-fragment-rows", "4000", "-more-fragments", "4", "-small", "100", "-rows", "2000", "-large", "500",
		"-rounds", "1", "-dir", t.TempDir(), "-results", out, "-plots", out,
	}))
	got, err := os.ReadFile(filepath.Join(out, "growth.txt"))
	require.NoError(t, err)
	for _, part := range []string{"4000 rows in more and more fragments", "8 -> 1", "lancedb-0.39.0: between ", "rehome: between "} {
		require.Contains(t, string(got), part)
	}
	for _, name := range []string{"fragments", "more-fragments", "rows"} {
		require.FileExists(t, filepath.Join(out, "growth-"+name+".svg"))
	}
}

func TestSeriesKeepFragmentsWhole(t *testing.T) {
	o := options{fragments: numbers{3}, fragmentRows: 100, perFragment: numbers{2, 4}, small: 7, rows: numbers{50, 1050}, large: 100}
	all := o.series()
	require.Len(t, all, 3)
	require.Equal(t, []point{{rows: 99, fragments: 3, x: 3}}, all[0].points)
	require.Equal(t, []point{{rows: 14, fragments: 2, x: 2}, {rows: 28, fragments: 4, x: 4}}, all[1].points)
	require.Equal(t, []point{{rows: 50, fragments: 1, x: 50}, {rows: 1050, fragments: 10, x: 1050}}, all[2].points)
	require.Empty(t, options{}.series())
}

func TestSpreadIsOfMediansPerRow(t *testing.T) {
	cost := func(d time.Duration) versus.Cost { return versus.Cost{Wall: d} }
	s := series{points: []point{
		{rows: 10, costs: map[string][]versus.Cost{"a": {cost(100), cost(1000), cost(200)}}},
		{rows: 100, costs: map[string][]versus.Cost{"a": {cost(500)}}},
	}}
	low, high := s.spread("a")
	require.Equal(t, 5.0, low)
	require.Equal(t, 20.0, high)
	_, ok := s.perFragment("a")
	require.False(t, ok, "of other rows")
	s.points[0].fragments, s.points[1].fragments, s.points[1].rows = 1, 4, 10
	each, ok := s.perFragment("a")
	require.True(t, ok)
	require.Equal(t, time.Duration(100), each)
}

func TestNumbers(t *testing.T) {
	var n numbers
	require.NoError(t, n.Set("1,20"))
	require.Equal(t, numbers{1, 20}, n)
	require.Equal(t, "1,20", n.String())
	require.NoError(t, n.Set(""))
	require.Empty(t, n)
	require.Error(t, n.Set("1,0"))
	require.Error(t, n.Set("x"))
}
