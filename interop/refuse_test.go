package interop_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"

	"github.com/rehome-db/rehome/interop"
)

// TestRefusals asks for compactions after which some stock engine would answer
// wrongly, and of tables that are not supported yet: each is refused with the
// reason, and not a byte of the table changes.
func TestRefusals(t *testing.T) {
	ctx := needEngines(t)
	always := []string{"--fri", "always"}
	through := []string{"--index-policy", "through"}
	for _, c := range []struct {
		name  string
		table scenario
		flags []string
		// says are words that the reason must have.
		says []string
	}{
		{"HNSW_SQ always", scenario{writer: lancedb39, kinds: kinds(interop.HNSWSQ)}, always, []string{"vec_idx", "HNSW"}},
		{"HNSW_PQ through", scenario{writer: lancedb31, kinds: kinds(interop.Bitmap, interop.HNSWPQ)}, through, []string{"vec_idx", "HNSW"}},
		{"HNSW_FLAT through", scenario{writer: pylance, kinds: kinds(interop.Bitmap, interop.HNSWFlat)}, through, []string{"vec_idx", "HNSW"}},
		{"FM through", scenario{writer: lancedb39, kinds: kinds(interop.Bitmap, interop.FM)}, through, []string{"sub_idx", "FM"}},
		{"zone map through", scenario{writer: pylance, kinds: kinds(interop.Bitmap, interop.ZoneMap)}, through, []string{"n_idx", "ZoneMap"}},
		{"Bloom filter always", scenario{writer: pylance, kinds: kinds(interop.BloomFilter)}, always, []string{"n_idx", "Bloom"}},
		{"leave with always", scenario{writer: lancedb39, kinds: kinds(interop.BTree)}, append(always, "--index-policy", "leave"), []string{"index"}},
		{"stable row ids always", scenario{writer: lancedb39, opts: interop.CreateOptions{StableRowIDs: true}}, always, []string{"rows have stable ids"}},
		{"stable row ids leave", scenario{writer: pylance, opts: interop.CreateOptions{StableRowIDs: true}}, []string{"--index-policy", "leave"}, []string{"stable row ids"}},
		{"legacy format", scenario{writer: lancedb31, opts: interop.CreateOptions{DataFormat: "legacy"}}, nil, []string{"0."}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "t.lance")
			_, err := c.table.build(ctx, path)
			require.NoError(t, err)
			defer forget(ctx, path)
			requireRefusal(ctx, t, path, c.says, c.flags...)
		})
	}
}

func requireRefusal(ctx context.Context, t *testing.T, path string, says []string, flags ...string) {
	t.Helper()
	before := contents(t, path)
	_, err := rehomeCompact(ctx, path, flags...)
	var r *refusal
	require.True(t, errors.As(err, &r), "not refused: %v", err)
	require.Equal(t, exitUnsupported, r.code, r.message)
	for _, word := range says {
		require.Contains(t, r.message, word)
	}
	require.Equal(t, before, contents(t, path))
}

// TestRefusedColumns asks for the compaction of tables with a column of a kind that
// is not supported yet.
func TestRefusedColumns(t *testing.T) {
	ctx := needEngines(t)
	pair := arrow.StructOf(arrow.Field{Name: "a", Type: arrow.PrimitiveTypes.Int64}, arrow.Field{Name: "b", Type: arrow.PrimitiveTypes.Int64})
	for name, c := range map[string]struct {
		field  arrow.Field
		value  string
		format string
		says   string
	}{
		// Stock engines write it and cannot read it.
		"fixed-size list of structs": {arrow.Field{Type: arrow.FixedSizeListOf(2, pair)}, `[{"a": 1, "b": 2}, {"a": 3, "b": 4}]`, "2.2", "fixed-size list of structs"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "t.lance")
			defer forget(ctx, path)
			c.field.Name, c.field.Nullable = "odd", true
			s := arrow.NewSchema([]arrow.Field{{Name: "id", Type: arrow.PrimitiveTypes.Int64}, c.field}, nil)
			for k := range 2 {
				rec, err := jsonRecord(s, int64(k*10), 10, func(int64) []string { return []string{c.value} })
				require.NoError(t, err)
				if k == 0 {
					_, err = pylance.Create(ctx, path, rec, interop.CreateOptions{DataFormat: c.format})
				} else {
					_, err = pylance.Append(ctx, path, rec)
				}
				rec.Release()
				require.NoError(t, err)
			}
			requireRefusal(ctx, t, path, []string{"odd", c.says})
		})
	}
}

// jsonRecord makes n rows with ids from first on; values gives the other columns of
// the row with an id, as JSON.
func jsonRecord(s *arrow.Schema, first int64, n int, values func(id int64) []string) (arrow.RecordBatch, error) {
	columns := make([][]string, s.NumFields())
	for id := first; id < first+int64(n); id++ {
		columns[0] = append(columns[0], fmt.Sprint(id))
		for c, v := range values(id) {
			columns[c+1] = append(columns[c+1], v)
		}
	}
	arrays := make([]arrow.Array, len(columns))
	for c, f := range s.Fields() {
		var err error
		arrays[c], _, err = array.FromJSON(memory.DefaultAllocator, f.Type, strings.NewReader("["+strings.Join(columns[c], ",")+"]"))
		if err != nil {
			return nil, fmt.Errorf("column %s: %w", f.Name, err)
		}
	}
	return array.NewRecordBatch(s, arrays, int64(n)), nil
}

func kinds(k ...interop.IndexKind) []interop.IndexKind { return k }

// contents hashes every file of a table.
func contents(t *testing.T, path string) map[string][32]byte {
	t.Helper()
	out := map[string][32]byte{}
	require.NoError(t, filepath.WalkDir(path, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(name)
		out[name] = sha256.Sum256(data)
		return err
	}))
	return out
}

// TestLayouts compacts tables of both manifest naming schemes and of both data
// formats, from every writer.
func TestLayouts(t *testing.T) {
	ctx := needEngines(t)
	for _, writer := range engines {
		for name, opts := range map[string]interop.CreateOptions{
			"V1 manifests": {V1Manifests: true},
			"format 2.1":   {DataFormat: "2.1"},
			"format 2.2":   {DataFormat: "2.2"},
		} {
			t.Run(writer.Name+"/"+name, func(t *testing.T) {
				t.Parallel()
				s := scenario{writer: writer, kinds: kinds(interop.BTree), opts: opts}
				s.run(ctx, t, "--target-rows", "600")
			})
		}
	}
}

// TestOlderVersions reads the versions before a compaction, which share their files
// with nothing new, after it.
func TestOlderVersions(t *testing.T) {
	ctx := needEngines(t)
	for _, writer := range engines {
		t.Run(writer.Name, func(t *testing.T) {
			t.Parallel()
			s := scenario{writer: writer, kinds: kinds(interop.Bitmap)}
			path, m := s.template(ctx, t)
			defer forget(ctx, path)
			version, err := writer.Version(ctx, path)
			require.NoError(t, err)
			compactTable(ctx, t, path)
			for _, e := range engines {
				for _, v := range []uint64{version, version + 1} {
					require.NoError(t, holdsVersion(ctx, e, path, v, m), "%s, version %d", e.Name, v)
				}
			}
		})
	}
}

func holdsVersion(ctx context.Context, e *interop.Engine, path string, version uint64, m *model) error {
	a, err := e.Query(ctx, path, interop.Query{Version: version})
	if err != nil {
		return err
	}
	defer a.Release()
	rows, err := rowsOf(a.Batches, columnNames(m.schema))
	if err != nil {
		return err
	}
	q := question{name: "scan", want: m.ids(func(row) bool { return true })}
	if problem := compare(m, q, rows); problem != "" {
		return errors.New(problem)
	}
	return nil
}
