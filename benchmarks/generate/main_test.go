package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rehome-db/rehome/interop"
	"github.com/rehome-db/rehome/interop/workload"
)

func needEngines(t *testing.T) {
	t.Helper()
	if os.Getenv("REHOME_INTEROP") == "" {
		t.Skip("REHOME_INTEROP is not set: the stock engines are needed, see interop/doc.go")
	}
}

// What is made is found to be so in every version, and nothing else is.
func TestMakeAndCheck(t *testing.T) {
	needEngines(t)
	out := t.TempDir()
	small := []string{"-rows", "800", "-fragments", "8", "-deleted", "10", "-clustered", "-evolve", "-seed", "3", "-out", out}
	require.NoError(t, run(t.Context(), append(small, "-types", "strings,blobs", "-format", "2.2", "-indexes", "id:BTREE", "-stable-row-ids")))
	require.NoError(t, run(t.Context(), append(small, "-types", "narrow", "-engine", "lancedb-0.39.0")))
	require.NoError(t, run(t.Context(), []string{"-check", out, "-versions"}))
	require.ErrorContains(t, run(t.Context(), append(small, "-types", "narrow")), "is there already")

	path := filepath.Join(out, "strings", "t.lance")
	m, err := workload.LoadMade(path)
	require.NoError(t, err)
	require.True(t, m.StableRowIDs)
	last := &m.Versions[len(m.Versions)-1]
	last.Columns[1].Digest, last.Columns[2].Digest = last.Columns[2].Digest, last.Columns[1].Digest
	require.NoError(t, m.Save(path))
	err = run(t.Context(), []string{"-check", out})
	require.ErrorContains(t, err, filepath.Join("strings", "t.lance")+": rehome: version")
	require.ErrorContains(t, err, `column "`+last.Columns[1].Name+`"`)
	require.NotContains(t, err.Error(), "blobs")
}

// The same flags make the same rows, whoever writes them and in however many commits.
func TestRowsDependOnFlagsAlone(t *testing.T) {
	needEngines(t)
	e, err := interop.Start(t.Context(), interop.PyLance14)
	require.NoError(t, err)
	defer e.Close()
	made := func(change func(*workload.Table)) workload.Version {
		table := workload.Narrow(1200, 6)
		change(&table)
		m, err := workload.History{Table: table}.Make(t.Context(), e, filepath.Join(t.TempDir(), "t.lance"))
		require.NoError(t, err)
		last := m.Latest()
		last.Version = 0
		return last
	}
	base := made(func(*workload.Table) {})
	require.Equal(t, base, made(func(t *workload.Table) { t.PerCommit = 4 }))
	require.NotEqual(t, base, made(func(t *workload.Table) { t.Seed = 1 }))
}

func TestWrongFlags(t *testing.T) {
	for want, args := range map[string]string{
		"no stock engine":                 "-engine duckdb -out x",
		`no family "maps"`:                "-types maps -format 2.1 -out x",
		`no tables in format "0.1"`:       "-format 0.1 -out x",
		"-out":                            "-rows 10",
		`an index is COLUMN:KIND, not "i`: "-indexes id -out x",
		"no tables in":                    "-check .",
		"not understood":                  "-out x y",
	} {
		require.ErrorContains(t, run(t.Context(), strings.Fields(args)), want)
	}
	require.NoError(t, run(t.Context(), []string{"-types", "list"}))
}
