package datafile_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/stretchr/testify/require"

	"github.com/rehome-db/rehome/lance/datafile"
	"github.com/rehome-db/rehome/lance/datafile/filetest"
	"github.com/rehome-db/rehome/lance/schema"
)

// writeIPC writes the batches of an Arrow IPC file as a data file.
func writeIPC(t testing.TB, from, to string, version datafile.Version) {
	f, err := os.Open(from)
	require.NoError(t, err)
	defer f.Close()
	r, err := ipc.NewFileReader(f)
	require.NoError(t, err)
	defer r.Close()
	s, err := schema.FromArrow(r.Schema(), 0)
	require.NoError(t, err)
	out, err := os.Create(to)
	require.NoError(t, err)
	w, err := datafile.NewWriter(out, version, s, datafile.WriterOptions{})
	require.NoError(t, err)
	for i := range r.NumRecords() {
		batch, err := r.RecordBatch(i)
		require.NoError(t, err)
		filetest.Append(t, w, s, batch.Columns())
	}
	info, err := w.Finish()
	require.NoError(t, err)
	require.NoError(t, out.Close())
	stat, err := os.Stat(to)
	require.NoError(t, err)
	require.Equal(t, uint64(stat.Size()), info.Bytes)
}

// The stock engine reads what is written here, whole, in part and by row, and
// would not have made it much smaller.
func TestStockEngineReadsWhatIsWritten(t *testing.T) {
	python := interopPython(t)
	dir := os.Getenv("REHOME_INTEROP_KEEP")
	if dir == "" {
		dir = t.TempDir()
	}
	if names, _ := filepath.Glob(filepath.Join(dir, "*.arrow")); len(names) == 0 {
		runPython(t, python, "generate.py", dir)
	}
	names, err := filepath.Glob(filepath.Join(dir, "*.arrow"))
	require.NoError(t, err)
	require.NotEmpty(t, names)
	for _, name := range names {
		for _, version := range []datafile.Version{datafile.V2_1, datafile.V2_2, datafile.V2_3Planar} {
			writeIPC(t, name, strings.TrimSuffix(name, "arrow")+version.String()+".lance", version)
		}
	}
	lines := bufio.NewScanner(bytes.NewReader(runPython(t, python, "check.py", dir)))
	lines.Buffer(nil, 1<<20)
	files := 0
	for lines.Scan() {
		var result struct {
			File     string
			Problems []string
			Columns  [][3]any
			Sizes    [2]float64
		}
		require.NoError(t, json.Unmarshal(lines.Bytes(), &result), lines.Text())
		files++
		require.Empty(t, result.Problems, result.File)
		if result.Sizes[1] == 0 {
			continue // the stock engine could not write it
		}
		t.Logf("%-28s %9.0f bytes, %.2f of the stock engine's", result.File, result.Sizes[0], result.Sizes[0]/result.Sizes[1])
		// Tiny files are mostly metadata.
		const enough = 4096
		bound := 1.3
		if strings.Contains(result.File, "list_of_nulls") {
			bound = 1.5 // ours has values, as Lance up to 6 reads no page of lists without any
		}
		if result.Sizes[1] >= enough {
			require.Less(t, result.Sizes[0]/result.Sizes[1], bound, result.File)
		}
		for _, c := range result.Columns {
			ours, stock := c[1].(float64), c[2].(float64)
			if ours > enough && ours > bound*stock {
				t.Errorf("%s: column %v takes %.0f bytes, the stock engine's %.0f", result.File, c[0], ours, stock)
			}
		}
	}
	require.Equal(t, 3*len(names), files)
}

// interopPython returns the interpreter that has the stock engine, or skips.
func interopPython(t *testing.T) string {
	if os.Getenv("REHOME_INTEROP") != "1" {
		t.Skip("set REHOME_INTEROP=1, and REHOME_INTEROP_PYTHON to a python that has pylance, to compare with the stock engine")
	}
	python := os.Getenv("REHOME_INTEROP_PYTHON")
	if python == "" {
		python = "python3"
	}
	return python
}

func runPython(t *testing.T, python, script string, args ...string) []byte {
	cmd := exec.Command(python, append([]string{filepath.Join("testdata", "interop", script)}, args...)...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	require.NoError(t, err, "%s: %s", script, tail(stderr.String(), 2000))
	return out
}

func tail(s string, n int) string { return s[max(0, len(s)-n):] }
