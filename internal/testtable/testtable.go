// Package testtable gives tests the golden tables: real Lance tables that stock
// engines wrote, each with the rows that the engine itself read back at every
// version. They lie in testdata/golden at the root of the module; README.md there
// says where they come from.
//
//	for _, g := range testtable.All(t) {
//		dir := g.Copy(t)                     // a table of the test's own
//		for n, v := range g.Versions {
//			rows := ...                      // scanned, in the encoding rowjson.Raw
//			testtable.RequireRows(t, v, rows)
//		}
//	}
package testtable

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Golden is one golden table and what is expected of it.
type Golden struct {
	// Name is the directory's name.
	Name string `json:"-"`
	// Dir is the table itself. Tests read it and never write to it: see Copy.
	Dir string `json:"-"`

	Schema     []Column `json:"schema"`
	DataFormat struct {
		Version string `json:"version"`
	} `json:"data_format"`
	Naming      string `json:"manifest_naming"`
	ReaderFlags uint64 `json:"reader_flags"`
	// Versions by number.
	Versions map[uint64]Version `json:"versions"`
	// Queries are what the engine answered to indexed and other queries.
	Queries []json.RawMessage `json:"queries"`
}

// Column is one column, its type in the words of Arrow's JavaScript library.
type Column struct {
	Name     string `json:"name"`
	Type     string `json:"type"`
	Nullable bool   `json:"nullable"`
}

// Version is what a version of the table has.
type Version struct {
	// Transaction is the kind of the commit: "append", "delete", ...
	Transaction string     `json:"txn"`
	Fragments   []Fragment `json:"fragments"`
	Indexes     []Index    `json:"indices"`
	RowCount    uint64     `json:"row_count"`
	// Rows are the live rows by ascending id, nil if they were not recorded.
	Rows []json.RawMessage `json:"rows"`
}

// Fragment is one fragment of a version.
type Fragment struct {
	ID           uint64 `json:"id"`
	PhysicalRows uint64 `json:"physical_rows"`
	Deleted      uint64 `json:"deleted"`
	// DeletionType is ARROW_ARRAY or BITMAP, empty if there is no deletion file.
	DeletionType string `json:"deletion_type"`
}

// Index is one index segment of a version.
type Index struct {
	Name string `json:"name"`
	// Fragments is the coverage, like "0-1" or "0,2".
	Fragments string `json:"fragments"`
	Type      string `json:"type"`
}

// Coverage lists the fragments that the index covers.
func (x Index) Coverage() ([]uint64, error) {
	var out []uint64
	for part := range strings.SplitSeq(x.Fragments, ",") {
		if part == "" {
			continue
		}
		first, last, pair := strings.Cut(part, "-")
		if !pair {
			last = first
		}
		from, err1 := strconv.ParseUint(first, 10, 32)
		to, err2 := strconv.ParseUint(last, 10, 32)
		if err := errors.Join(err1, err2); err != nil {
			return nil, fmt.Errorf("testtable: coverage %q: %w", x.Fragments, err)
		}
		for id := from; id <= to; id++ {
			out = append(out, id)
		}
	}
	return out, nil
}

// Columns are the columns that Rows have; some tables recorded not all of them.
func (v Version) Columns(t testing.TB) []string {
	t.Helper()
	if len(v.Rows) == 0 {
		return nil
	}
	var row map[string]json.RawMessage
	require.NoError(t, json.Unmarshal(v.Rows[0], &row))
	return slices.Sorted(maps.Keys(row))
}

// Root is the directory of the golden tables.
func Root(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	require.NoError(t, err)
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return filepath.Join(dir, "testdata", "golden")
		}
		parent := filepath.Dir(dir)
		require.NotEqual(t, dir, parent, "no go.mod above the test's directory")
		dir = parent
	}
}

// All returns every golden table, by name.
func All(t testing.TB) []Golden {
	t.Helper()
	entries, err := os.ReadDir(Root(t))
	require.NoError(t, err)
	var out []Golden
	for _, e := range entries {
		if e.IsDir() {
			out = append(out, Get(t, e.Name()))
		}
	}
	require.NotEmpty(t, out)
	return out
}

// Get returns a golden table by name.
func Get(t testing.TB, name string) Golden {
	t.Helper()
	dir := filepath.Join(Root(t), name)
	data, err := os.ReadFile(filepath.Join(dir, "expected.json"))
	require.NoError(t, err)
	g := Golden{Name: name, Dir: filepath.Join(dir, "t.lance")}
	require.NoError(t, json.Unmarshal(data, &g), name)
	return g
}

// Latest is the number of the latest version.
func (g Golden) Latest() uint64 {
	var latest uint64
	for n := range g.Versions {
		latest = max(latest, n)
	}
	return latest
}

// Numbers are the numbers of the versions, ascending.
func (g Golden) Numbers() []uint64 {
	out := make([]uint64, 0, len(g.Versions))
	for n := range g.Versions {
		out = append(out, n)
	}
	slices.Sort(out)
	return out
}

// Copy copies the table into a directory of the test's own and returns its path.
func (g Golden) Copy(t testing.TB) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "t.lance")
	require.NoError(t, os.CopyFS(dir, os.DirFS(g.Dir)))
	return dir
}
