package interop_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rehome-db/rehome/interop"
	"github.com/rehome-db/rehome/interop/workload"
)

// TestGeneratedTables has pylance make a table for each family of column types, of many
// pages, whose rows were updated, deleted all over and in runs, and whose columns came,
// went and changed. rehome must see what was drawn, compact it and verify it, and after
// that everybody must see it still.
func TestGeneratedTables(t *testing.T) {
	ctx := needEngines(t)
	const rows, fragments = 20_000, 10
	for k, format := range workload.Formats {
		tables, err := workload.Families(format)
		require.NoError(t, err)
		for i, table := range tables {
			t.Run(format+"/"+table.Name, func(t *testing.T) {
				t.Parallel()
				table.Rows, table.Fragments, table.DeletePercent, table.Seed = rows, fragments, 5, 1
				h := workload.History{Table: table, Clustered: true, Evolve: true}
				// The rest in turns, so that every family meets it in some format.
				h.StableRowIDs = (i+k)%3 == 0
				if (i+k)%3 == 1 {
					h.Indexes = []workload.Index{{Column: "id", Kind: interop.BTree}}
				}
				path := filepath.Join(t.TempDir(), "t.lance")
				defer forget(ctx, path)
				m, err := h.Make(ctx, pylance, path)
				require.NoError(t, err)
				require.Less(t, m.Latest().Rows, rows)

				last := m.Latest()
				check := func(when string) {
					got, err := workload.ReadRehome(ctx, path, 0, last)
					require.NoError(t, err, when)
					require.NoError(t, last.Check(got), "rehome %s", when)
				}
				check("before the compaction")
				old := m.Versions[len(m.Versions)/2]
				got, err := workload.ReadRehome(ctx, path, old.Version, old)
				require.NoError(t, err)
				require.NoError(t, old.Check(got), "rehome, an old version")
				c := compactTable(ctx, t, path)
				require.Less(t, c.FragmentsAdded, c.FragmentsRemoved)
				require.NoError(t, rehomeVerify(ctx, path))
				check("after the compaction")
				for _, e := range engines {
					got, err := m.ReadStock(ctx, e, path, 0, last)
					require.NoError(t, err, e.Name)
					require.NoError(t, last.Check(got), e.Name)
				}
			})
		}
	}
}
