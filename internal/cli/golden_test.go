package cli_test

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rehome-db/rehome/internal/cli"
	"github.com/rehome-db/rehome/internal/testtable"
)

// run runs a command and returns its exit code and what it printed.
func run(t *testing.T, args ...string) (code int, stdout []byte) {
	t.Helper()
	var out, stderr bytes.Buffer
	code = cli.Run(t.Context(), cli.Options{Stdout: &out, Stderr: &stderr}, args)
	t.Log(args, code, stderr.String())
	return code, out.Bytes()
}

func sorted(lines [][]byte) []string {
	out := make([]string, len(lines))
	for i, l := range lines {
		out[i] = string(l)
	}
	slices.Sort(out)
	return out
}

// What the commands promise, on every table that stock engines wrote for us: every
// version scans as it was written, and a compaction changes no row and leaves a
// table without problems.
func TestGoldenTablesThroughTheCommands(t *testing.T) {
	for _, g := range testtable.All(t) {
		t.Run(g.Name, func(t *testing.T) {
			t.Parallel()
			location := g.Copy(t)
			code, out := run(t, "inspect", location, "--json")
			require.Zero(t, code, "a table can be inspected whatever is in it")
			var doc struct {
				DataFormat   string `json:"data_format"`
				StableRowIDs bool   `json:"stable_row_ids"`
			}
			require.NoError(t, json.Unmarshal(out, &doc))

			code, _ = run(t, "scan", location, "--limit", "1")
			if code == cli.ExitDamaged {
				refused := strings.HasPrefix(g.Name, "storage_") || strings.HasPrefix(g.Name, "types_dictionary")
				require.True(t, refused, "this table is to be read")
				return
			}
			scan := func(v testtable.Version, more ...string) [][]byte {
				args := []string{"scan", location, "--raw"}
				if len(v.Rows) > 0 {
					args = append(args, "--columns", strings.Join(v.Columns(t), ","))
				}
				code, out := run(t, append(args, more...)...)
				require.Zero(t, code)
				lines := bytes.Split(out, []byte("\n"))
				return lines[:len(lines)-1]
			}
			for _, n := range g.Numbers() {
				if v := g.Versions[n]; v.Rows != nil {
					testtable.RequireRows(t, v, scan(v, "--version", strconv.FormatUint(n, 10)))
				}
			}
			before := scan(testtable.Version{})

			code, out = run(t, "compact", location, "--json")
			if doc.StableRowIDs {
				require.Equal(t, cli.ExitDamaged, code)
				return
			}
			require.Zero(t, code, "%s", out)
			require.Equal(t, sorted(before), sorted(scan(testtable.Version{})))
			code, out = run(t, "verify", location, "--deep", "--json")
			require.Zero(t, code, "%s", out)
		})
	}
}
