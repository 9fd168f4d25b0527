package cli_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rehome-db/rehome/cli"
)

func dataPaths(t *testing.T, location string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(location, "data", "*.lance"))
	require.NoError(t, err)
	return files
}

// TestReport14ACompactionThatLosesAFile: a clean-up takes one of the new files between the
// last look and the commit. The command says at once what is lost and what to do, and
// deletes none of the others, which the version refers to.
func TestReport14ACompactionThatLosesAFile(t *testing.T) {
	location := goldenCopy(t, "many_small_fragments")
	before := dataPaths(t, location)
	var added []string
	e := &watched{committed: func() {
		for _, f := range dataPaths(t, location) {
			if !slices.Contains(before, f) {
				added = append(added, f)
			}
		}
		require.Greater(t, len(added), 1)
		require.NoError(t, os.Remove(added[0]))
	}}
	code, doc := e.compact(t.Context(), t, location, "--target-rows", "50")
	require.Equal(t, cli.ExitDamaged, code, "%v", doc)
	failure := doc["error"].(map[string]any)
	require.Equal(t, "corrupt", failure["kind"])
	message := failure["message"].(string)
	require.Contains(t, message, "was committed, and 1 of its objects were removed just before that: data/"+filepath.Base(added[0]))
	require.Contains(t, message, "restore version")
	require.NotContains(t, message, "the table was not changed")
	for _, f := range added[1:] {
		require.FileExists(t, f)
	}
}
