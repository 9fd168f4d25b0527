package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rehome-db/rehome/benchmarks/rowmap"
)

func TestWorkloadsOfTheFlags(t *testing.T) {
	o := options{rows: "1000000,100000000", deleted: "0,10", pattern: "scattered,clustered,regular", stacked: "1,50", shuffled: true}
	ws, err := o.workloads()
	require.NoError(t, err)
	var names []string
	for _, w := range ws {
		names = append(names, w.String())
	}
	require.Equal(t, []string{
		"1000000 rows, 0 %", "1000000 rows, 10 % scattered", "1000000 rows, 10 % clustered", "1000000 rows, 10 % regular",
		"1000000 rows, 10 % scattered, 50 stacked", "1000000 rows, 10 % scattered, shuffled",
		"100000000 rows, 0 %", "100000000 rows, 10 % scattered", "100000000 rows, 10 % clustered",
	}, names)
	for _, bad := range []options{{rows: "x"}, {rows: "1", deleted: "101", pattern: "scattered", stacked: "1"}, {rows: "1", deleted: "1", pattern: "odd", stacked: "1"}} {
		_, err := bad.workloads()
		require.Error(t, err)
	}
}

// What a process is asked to do comes back as it would from the library.
func TestChild(t *testing.T) {
	w := rowmap.Workload{Rows: 5000, DeletedPercent: 10}
	w.EnsureDefaults()
	dir := t.TempDir()
	ask := func(q request) (r response) {
		in, err := json.Marshal(q)
		require.NoError(t, err)
		var out bytes.Buffer
		require.NoError(t, child(t.Context(), bytes.NewReader(in), &out))
		require.NoError(t, json.Unmarshal(out.Bytes(), &r))
		return r
	}
	costs := ask(request{Workload: w, Dir: dir, Forms: []rowmap.Stored{rowmap.StoredFRI, rowmap.StoredPacked}}).Costs
	require.Len(t, costs, 2)
	var digests []uint64
	for _, a := range []rowmap.Approach{{Stored: rowmap.StoredFRI, Form: rowmap.FormFRI}, {Stored: rowmap.StoredPacked, Form: rowmap.FormIntervals}} {
		digests = append(digests, ask(request{Workload: w, Dir: dir, Approach: &a, Questions: rowmap.Questions{Lookups: 1000, Rounds: 1, Rebase: []int{1}}}).Answers.Digest)
	}
	require.Equal(t, digests[0], digests[1])
	require.Error(t, child(t.Context(), strings.NewReader("?"), &bytes.Buffer{}))
}
