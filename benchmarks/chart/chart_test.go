package chart

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSaveDrawsEveryLine(t *testing.T) {
	for _, linear := range []bool{false, true} {
		f := Figure{Title: "a title", X: "rows", Y: "seconds", LinearY: linear}
		file := filepath.Join(t.TempDir(), "new", "f.svg")
		require.NoError(t, f.Save(file))
		require.NoFileExists(t, file, "nothing was measured")
		f.Add("one", 1000, 2)
		f.Add("two", 10, 3)
		f.Add("one", 10, 1)
		f.Add("none", 10, -1)
		f.Add("none", 0, 1)
		require.NoError(t, f.Save(file))
		svg, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, text := range []string{"a title", "rows", "seconds", ">one<", ">two<"} {
			require.Contains(t, string(svg), text)
		}
		require.NotContains(t, string(svg), ">none<")
	}
}
