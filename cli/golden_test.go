package cli_test

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rehome-db/rehome/cli"
	"github.com/rehome-db/rehome/internal/rowjson"
	"github.com/rehome-db/rehome/internal/testtable"
	"github.com/rehome-db/rehome/lance"
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
// version scans as it was written, what scan prints can be read back, a compaction
// changes no row, and neither that nor a change of rows leaves problems or litter.
func TestGoldenTablesThroughTheCommands(t *testing.T) {
	for _, g := range testtable.All(t) {
		t.Run(g.Name, func(t *testing.T) {
			t.Parallel()
			location := g.Copy(t)
			code, _ := run(t, "inspect", location)
			require.Zero(t, code, "a table can be inspected whatever is in it")
			code, _ = run(t, "scan", location, "--limit", "1")
			if code == cli.ExitDamaged {
				refused := strings.HasPrefix(g.Name, "storage_")
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
			dictionaries := slices.ContainsFunc(g.Schema, func(c testtable.Column) bool { return strings.Contains(c.Type, "dictionary<") })
			if !dictionaries && !strings.HasPrefix(g.Name, "types_dictionar") && g.Name != "types_2_0_p14" { // scan writes them, upsert does not read them
				requireReadBack(t, location)
			}

			code, out := run(t, "compact", location, "--json")
			require.Zero(t, code, "%s", out)
			require.Equal(t, sorted(before), sorted(scan(testtable.Version{})))
			requireSound(t, location)

			// An update that changes no value moves rows and nothing else, and a
			// delete is one that does not come back.
			code, out = run(t, "update", location, "--where", "id % 3 = 1", "--set", "id = id", "--json")
			if code == cli.ExitDamaged {
				// Columns that can be moved and not written.
				require.Contains(t, string(out), `"unsupported"`)
				requireSound(t, location)
				return
			}
			require.Zero(t, code, "%s", out)
			require.Equal(t, sorted(before), sorted(scan(testtable.Version{})))
			code, out = run(t, "delete", location, "--where", "id % 3 = 1", "--json")
			require.Zero(t, code, "%s", out)
			var deleted struct{ Rows int }
			require.NoError(t, json.Unmarshal(out, &deleted))
			code, out = run(t, "compact", location, "--deletion-threshold", "0")
			require.Zero(t, code, "%s", out)
			left := scan(testtable.Version{})
			require.Len(t, left, len(before)-deleted.Rows)
			rest := sorted(before)
			for _, row := range sorted(left) {
				i, found := slices.BinarySearch(rest, row)
				require.True(t, found, "%s was not in the table before", row)
				rest = rest[i+1:]
			}
			requireSound(t, location)
		})
	}
}

// requireReadBack checks that what scan prints is read back exactly, as upsert does.
func requireReadBack(t *testing.T, location string) {
	t.Helper()
	e, err := lance.Open(t.Context(), location, lance.Options{})
	require.NoError(t, err)
	defer e.Close()
	s, err := e.Load(t.Context(), 0)
	require.NoError(t, err)
	code, want := run(t, "scan", location)
	require.Zero(t, code)
	var got []byte
	for rec, err := range rowjson.NewDecoder(bytes.NewReader(want), s.Schema.Arrow()).Batches() {
		require.NoError(t, err)
		enc, err := rowjson.New(rec.Schema(), rowjson.Plain)
		require.NoError(t, err)
		for i := range int(rec.NumRows()) {
			got, err = enc.AppendRow(got, rec, i, nil)
			require.NoError(t, err)
			got = append(got, '\n')
		}
	}
	require.Equal(t, string(want), string(got))
}
