package results

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rehome-db/rehome/benchmarks/rowmap"
)

func TestNumbersForPeople(t *testing.T) {
	for n, want := range map[uint64]string{0: "0 B", 999: "999 B", 1000: "1 kB", 1234: "1.23 kB", 32_000_130: "32.0 MB", 999_999: "1000 kB", 1 << 40: "1100 GB"} {
		require.Equal(t, want, Bytes(n))
	}
	for d, want := range map[time.Duration]string{0: "0 ns", 61 * time.Second: "61 s", 318 * time.Microsecond: "318 µs", 2_421_091: "2.42 ms", 1500: "1.50 µs"} {
		require.Equal(t, want, Time(d))
	}
}

// sample is one case with round numbers.
func sample() Report {
	w := rowmap.Workload{Rows: 1_000_000, DeletedPercent: 10}
	w.EnsureDefaults()
	answer := func(stored rowmap.Stored, form rowmap.Form, first time.Duration, live uint64, random float64) Answer {
		return Answer{Approach: rowmap.Approach{Stored: stored, Form: form}, Answers: rowmap.Answers{FirstAnswer: first, Live: live, Random: random, Batch: 70e6}}
	}
	return Report{Command: "c", Cases: []Case{{
		Workload: w,
		Costs: map[rowmap.Stored]rowmap.Cost{
			rowmap.StoredFRI: {Last: 200_000, Kept: 200_000}, rowmap.StoredPlain: {Last: 32_000_000}, rowmap.StoredPacked: {Last: 130_000, Coding: "gaps"},
		},
		Answers: []Answer{
			answer(rowmap.StoredFRI, rowmap.FormFRI, time.Millisecond, 300_000, 20),
			answer(rowmap.StoredPlain, rowmap.FormHash, 200*time.Millisecond, 36_000_000, 70),
			answer(rowmap.StoredPacked, rowmap.FormSorted, 50*time.Millisecond, 12_000_000, 100),
		},
	}}}
}

func TestTargets(t *testing.T) {
	r := sample()
	got := make(map[string]bool)
	for _, target := range r.Targets() {
		got[target.What+": "+target.Got] = target.Met
	}
	require.Equal(t, map[string]bool{
		"plain pairs take at least 100 times the bytes: 160":                                  true,
		"plain pairs, one copy only: at least 100 times: 80":                                  false,
		"at most 1.5 times the bytes of packed pairs: 1.54":                                   false,
		"first answer at least 100 times sooner than from packed pairs as a Go map: 200":      true,
		"memory at least 50 times smaller than a Go map: 120":                                 true,
		"first answer at least 100 times sooner than from packed pairs as a sorted array: 50": false,
		"memory at least 50 times smaller than a sorted array: 40":                            false,
		"random lookups at least 4 times faster than a Go map: 3.5":                           false,
		"sorted batches of at least 60 M addresses a second, drawn from everywhere: 70":       true,
		"sorted batches of at least 60 M addresses a second, consecutive rows: 0":             false,
		"decoded segments at most 0.2 bytes a moved row: 0.1":                                 true,
	}, got)
}

func TestAReportIsKept(t *testing.T) {
	r := sample()
	path := filepath.Join(t.TempDir(), "new", "r")
	require.NoError(t, r.Save(path))
	back, err := Load(path + ".json")
	require.NoError(t, err)
	require.Equal(t, r, back)
	back.Add(r.Cases[0])
	require.Len(t, back.Cases, 1, "a case replaces that of the same workload")
	require.Contains(t, back.Text(), "MISSED")
}
