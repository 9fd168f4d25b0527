package version

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rehome-db/rehome/internal/testtable"
)

func TestReport21WhatEnginesWriteIsNotForeign(t *testing.T) {
	seen := 0
	for _, g := range testtable.All(t) {
		for _, dir := range collectedDirs {
			require.NoError(t, filepath.WalkDir(filepath.Join(g.Dir, dir), func(path string, d fs.DirEntry, err error) error {
				if os.IsNotExist(err) || err == nil && d.IsDir() {
					return nil
				}
				require.NoError(t, err)
				name, err := filepath.Rel(g.Dir, path)
				require.NoError(t, err)
				require.False(t, foreignName(filepath.ToSlash(name)), "%s of %s", name, g.Name)
				seen++
				return nil
			}))
		}
	}
	require.Greater(t, seen, 100)
	for _, name := range []string{
		"data/7ece35da-27ac-4bc9-a20b-534f6ad03122.lance#1", "_versions/.tmp_3.manifest_deadbeef", "_transactions/.tmp_4-x.txn_17",
		"_versions/18446744073709551614.manifest-7ece35da-27ac-4bc9-a20b-534f6ad03122", "_versions/3.manifest#2",
		"_fri/7ece35da-27ac-4bc9-a20b-534f6ad03122/stable_partition.lance", "_indices/7ece35da-27ac-4bc9-a20b-534f6ad03122/.tmp_page_data.lance_1",
	} {
		require.False(t, foreignName(name), name)
	}
}

func TestReport21OtherNamesAndPlacesAreForeign(t *testing.T) {
	for _, name := range []string{
		"data/backup.lance.gz", "data/notes.txt", "data/.DS_Store", "data/old/7ece35da-27ac-4bc9-a20b-534f6ad03122.lance",
		"data/7ece35da-27ac-4bc9-a20b-534f6ad03122.parquet", "_deletions/README", "_deletions/0-1-2.json",
		"_deletions/7ece35da-27ac-4bc9-a20b-534f6ad03122.lance", "_transactions/log.txt", "_indices/page_data.lance",
		"_indices/mine/page_data.lance", "_versions/3.manifest.bak", "_versions/latest", "_fri/x.lance",
	} {
		require.True(t, foreignName(name), name)
	}
}
