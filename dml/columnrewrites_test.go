package dml_test

import (
	"context"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/scalar"
	"github.com/stretchr/testify/require"

	"github.com/rehome-db/rehome/compaction"
	"github.com/rehome-db/rehome/dml"
	"github.com/rehome-db/rehome/lance"
	"github.com/rehome-db/rehome/lance/store"
	"github.com/rehome-db/rehome/rebase"
	"github.com/rehome-db/rehome/table"
)

// rewrittenTable is a table in which a release of the stock engine rewrote a column
// where it lies; see testdata/columnrewrites/generate.py.
type rewrittenTable struct {
	dir    string
	Before uint64
	Rows   []row
}

func rewrittenTables(t *testing.T) map[string]rewrittenTable {
	out := map[string]rewrittenTable{}
	dirs, err := filepath.Glob("testdata/columnrewrites/*/expected.json")
	require.NoError(t, err)
	require.Greater(t, len(dirs), 20)
	for _, file := range dirs {
		data, err := os.ReadFile(file)
		require.NoError(t, err)
		var r rewrittenTable
		require.NoError(t, json.Unmarshal(data, &r))
		r.dir = filepath.Dir(file)
		out[filepath.Base(r.dir)] = r
	}
	return out
}

func (r rewrittenTable) open(t *testing.T) *lance.Engine {
	m := store.NewMem()
	dir := os.DirFS(filepath.Join(r.dir, "t.lance"))
	require.NoError(t, fs.WalkDir(dir, ".", func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := fs.ReadFile(dir, p)
		require.NoError(t, err)
		return m.PutIfAbsent(t.Context(), p, data)
	}))
	e, err := lance.OpenStore(t.Context(), m, lance.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, e.Close()) })
	return e
}

// late is an engine that believes an old version to be the latest, once.
type late struct {
	*lance.Engine
	version uint64
}

func (l *late) Load(ctx context.Context, version uint64) (*table.Snapshot, error) {
	if version == 0 {
		version, l.version = l.version, 0
	}
	return l.Engine.Load(ctx, version)
}

// rowChanges are changes whose outcome depends on the column that was rewritten, with
// what they make of a row: nil if it is gone.
func rowChanges() map[string]struct {
	change func() change
	model  func(row) *row
} {
	zero := func(r row) bool { return r.F != nil && *r.F == 0 }
	return map[string]struct {
		change func() change
		model  func(row) *row
	}{
		"delete": {
			func() change { return dml.Delete{Where: where([]string{"f"}, zero)} },
			func(r row) *row {
				if zero(r) {
					return nil
				}
				return &r
			},
		},
		"update": {
			func() change {
				return dml.Update{Where: where([]string{"n"}, func(r row) bool { return r.N < 15 }), Set: map[string]dml.Expr{"s": dml.Constant(scalar.MakeScalar("ours"))}}
			},
			func(r row) *row {
				if r.N < 15 {
					r.S = ptr("ours")
				}
				return &r
			},
		},
		"partial upsert": {
			func() change {
				return dml.MergeInsert{On: []string{"k"}, Source: in(100, numbered(12), "k", "s"), WhenMatched: dml.MatchedUpdate}
			},
			func(r row) *row { return &r }, // s is as it was: what counts is that f stays
		},
		"delete by source": {
			func() change {
				return dml.MergeInsert{
					On: []string{"k"}, Source: in(100, numbered(3)), WhenNotMatched: dml.NotMatchedSkip,
					WhenNotMatchedBySource: dml.BySourceDelete, DeleteIf: where([]string{"f"}, zero),
				}
			},
			func(r row) *row {
				if r.N >= 3 && zero(r) {
					return nil
				}
				return &r
			},
		},
	}
}

// TestReport01ColumnRewritesOfOldReleases: a change that was computed before a column
// was rewritten where it lies, by any means that any release has and whatever the
// transaction says of itself, is computed again. So it is if a compaction moved the
// rows since.
func TestReport01ColumnRewritesOfOldReleases(t *testing.T) {
	for name, r := range rewrittenTables(t) {
		for what, c := range rowChanges() {
			for _, compacted := range []bool{false, true} {
				t.Run(name+"/"+what+map[bool]string{true: ", compacted"}[compacted], func(t *testing.T) {
					e := r.open(t)
					require.Equal(t, values(r.Rows), values(contents(t, e, 0)), "as the stock engine reads it")
					u, _, err := dml.Compute(t.Context(), e, snapshot(t, e, r.Before), c.change(), dml.Options{})
					require.NoError(t, err)
					data, err := json.Marshal(u)
					require.NoError(t, err)
					if compacted {
						_, err := compaction.Compact(t.Context(), e, compaction.Options{})
						require.NoError(t, err)
					}

					var back rebase.Uncommitted
					require.NoError(t, json.Unmarshal(data, &back))
					_, err = rebase.Commit(t.Context(), e, back, rebase.Options{Fresh: true})
					var conflict *rebase.ConflictError
					require.ErrorAs(t, err, &conflict)
					require.True(t, conflict.Retryable(), "%v", err)
					require.Equal(t, values(r.Rows), values(contents(t, e, 0)))

					done, err := dml.Execute(t.Context(), &late{Engine: e, version: r.Before}, c.change(), dml.Options{})
					if _, merge := c.change().(dml.MergeInsert); merge && strings.HasPrefix(name, "add_and_drop") {
						// The source was read for other columns.
						require.ErrorIs(t, err, table.ErrTerminal)
						require.Equal(t, values(r.Rows), values(contents(t, e, 0)))
						return
					}
					require.NoError(t, err)
					require.Equal(t, 2, done.Attempts)
					var want []row
					for _, row := range r.Rows {
						if left := c.model(row); left != nil {
							want = append(want, *left)
						}
					}
					require.Equal(t, values(want), values(contents(t, e, 0)))
				})
			}
		}
	}
}
