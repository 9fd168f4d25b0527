package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rehome-db/rehome/benchmarks/addresses/results"
	"github.com/rehome-db/rehome/benchmarks/rowmap"
)

func TestReport(t *testing.T) {
	dir := t.TempDir()
	w := rowmap.Workload{Rows: 20_000, DeletedPercent: 10}
	w.EnsureDefaults()
	costs, answers, err := rowmap.Run(t.Context(), w, rowmap.Approaches(), rowmap.Questions{Lookups: 1000, Rounds: 1, Rebase: []int{1}})
	require.NoError(t, err)
	c := results.Case{Workload: w, Costs: costs}
	for _, a := range rowmap.Approaches() {
		c.Answers = append(c.Answers, results.Answer{Approach: a, Answers: answers[a]})
	}
	r := results.Report{Cases: []results.Case{c}}
	in, page := filepath.Join(dir, "r"), filepath.Join(dir, "page.md")
	require.NoError(t, r.Save(in))
	require.NoError(t, os.WriteFile(page, []byte("before\n"+begin+"old\n"+end+"after\n"), 0o644))
	require.NoError(t, run([]string{"-results", in + ".json", "-page", page, "-images", filepath.Join(dir, "img")}))

	b, err := os.ReadFile(page)
	require.NoError(t, err)
	require.Contains(t, string(b), "| 20000 rows, 10 % scattered |")
	require.NotContains(t, string(b), "old")
	require.Regexp(t, `(?s)^before\n.*after\n$`, string(b))
	for _, name := range []string{"addresses-first-answer.svg", "addresses-memory.svg", "addresses-lookup.svg"} {
		svg, err := os.ReadFile(filepath.Join(dir, "img", name))
		require.NoError(t, err)
		require.Contains(t, string(svg), "<svg")
	}

	require.NoError(t, os.WriteFile(page, []byte("nothing"), 0o644))
	require.ErrorContains(t, run([]string{"-results", in + ".json", "-page", page, "-images", dir}), "no place for the tables")
}
