package interop_test

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

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/stretchr/testify/require"

	"github.com/rehome-db/rehome/internal/rowjson"
	"github.com/rehome-db/rehome/interop"
)

// TestGoldenTables compacts a copy of every golden table and has every engine read
// the rows that the engine which wrote it recorded.
func TestGoldenTables(t *testing.T) {
	ctx := needEngines(t)
	dirs, err := filepath.Glob("../testdata/golden/*/t.lance")
	require.NoError(t, err)
	require.NotEmpty(t, dirs)
	for _, dir := range dirs {
		g := readGolden(t, filepath.Dir(dir))
		// The tables with a hand-made fragment reuse index do not say theirs.
		if f := g.DataFormat.Version; f != "2.0" && f != "2.1" && f != "2.2" && f != "" {
			continue
		}
		t.Run(filepath.Base(filepath.Dir(dir)), func(t *testing.T) {
			t.Parallel()
			path := copyTable(t, dir)
			defer forget(ctx, path)
			_, err := rehomeCompact(ctx, path)
			var r *refusal
			if errors.As(err, &r) && r.code == exitUnsupported {
				require.NotEmpty(t, g.unsupported(), "refused: %s", r.message)
			} else {
				require.NoError(t, err)
			}
			for _, e := range engines {
				a, err := e.Query(ctx, path, interop.Query{})
				require.NoError(t, err, e.Name)
				got, err := allRows(a.Batches)
				a.Release()
				require.NoError(t, err)
				require.Equal(t, g.rows(t), only(got, g.columns(t)), e.Name)
			}
		})
	}
}

// golden is an expected.json.
type golden struct {
	DataFormat struct {
		Version string `json:"version"`
	} `json:"data_format"`
	Schema []struct {
		Name string `json:"name"`
		Type string `json:"type"`
	} `json:"schema"`
	Versions map[string]struct {
		Rows []json.RawMessage `json:"rows"`
	} `json:"versions"`
}

func readGolden(t *testing.T, dir string) (g golden) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, "expected.json"))
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(data, &g))
	return g
}

// unsupported says what of the table compaction does not handle yet, "" if it
// handles all of it.
func (g golden) unsupported() string {
	for _, f := range g.Schema {
		for _, nested := range []string{"List<", "Struct<", "Dictionary<"} {
			if strings.HasPrefix(f.Type, nested) {
				return f.Name + " " + f.Type
			}
		}
	}
	return ""
}

// latest returns the rows of the newest version.
func (g golden) latest(t *testing.T) []json.RawMessage {
	t.Helper()
	latest := 0
	for v := range g.Versions {
		n, err := strconv.Atoi(v)
		require.NoError(t, err)
		latest = max(latest, n)
	}
	return g.Versions[strconv.Itoa(latest)].Rows
}

// columns returns the columns that the rows were recorded with, nil for no rows:
// the vectors of some tables were left out.
func (g golden) columns(t *testing.T) []string {
	t.Helper()
	for _, r := range g.latest(t) {
		var row map[string]any
		require.NoError(t, json.Unmarshal(r, &row))
		return slices.Collect(maps.Keys(row))
	}
	return nil
}

func (g golden) rows(t *testing.T) []string {
	t.Helper()
	var rows []map[string]any
	for _, r := range g.latest(t) {
		var row map[string]any
		require.NoError(t, json.Unmarshal(r, &row))
		rows = append(rows, row)
	}
	return only(rows, g.columns(t))
}

// only writes the rows' given columns with keys and rows sorted and numbers in one
// form.
func only(rows []map[string]any, columns []string) []string {
	var out []string
	for _, row := range rows {
		part := map[string]any{}
		for _, c := range columns {
			part[c] = row[c]
		}
		line, err := json.Marshal(part)
		if err != nil {
			panic(err) // it came from JSON
		}
		out = append(out, string(line))
	}
	slices.Sort(out)
	return out
}

// allRows turns batches into what a JSON reader makes of their rows.
func allRows(batches []arrow.RecordBatch) ([]map[string]any, error) {
	var out []map[string]any
	for _, b := range batches {
		enc, err := rowjson.New(b.Schema(), rowjson.Raw)
		if err != nil {
			return nil, err
		}
		for i := range int(b.NumRows()) {
			line, err := enc.AppendRow(nil, b, i, nil)
			if err != nil {
				return nil, err
			}
			var row map[string]any
			if err := json.Unmarshal(line, &row); err != nil {
				return nil, fmt.Errorf("row %d: %w", i, err)
			}
			out = append(out, row)
		}
	}
	return out, nil
}
