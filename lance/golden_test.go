package lance_test

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rehome-db/rehome/internal/testtable"
	"github.com/rehome-db/rehome/table"
)

func readable(format string) bool {
	return format == "2.0" || format == "2.1" || format == "2.2" || format == "2.3"
}

// handmade tables got their last commits by hand, whose descriptions leave
// versions out.
func handmade(g testtable.Golden) bool { return strings.HasPrefix(g.Name, "fri_handmade") }

func TestGoldenTablesLoad(t *testing.T) {
	for _, g := range testtable.All(t) {
		t.Run(g.Name, func(t *testing.T) {
			e := open(t, g.Dir)
			latest := load(t, e, 0)
			if !handmade(g) {
				require.Equal(t, g.Latest(), latest.Version)
				require.Equal(t, g.DataFormat.Version, latest.DataFormat)
			}
			for n, want := range g.Versions {
				s := load(t, e, n)
				require.Equal(t, n, s.Version)
				if want.Rows != nil { // else it was not counted either
					require.Equal(t, want.RowCount, s.LiveRows())
				}
				require.Len(t, s.Fragments, len(want.Fragments))
				for i, f := range want.Fragments {
					got := s.Fragments[i]
					require.EqualValues(t, f.ID, got.ID)
					require.Equal(t, f.PhysicalRows, got.PhysicalRows)
					require.Equal(t, f.Deleted, got.DeletedRows())
					require.Less(t, got.ID, s.NextFragmentID)
					if got.Deletion != nil && f.DeletionType != "" {
						require.Equal(t, f.DeletionType == "BITMAP", strings.HasSuffix(got.Deletion.Path, ".bin"))
					}
					set, err := e.ReadDeletions(context.Background(), s, got)
					require.NoError(t, err)
					require.Equal(t, f.Deleted, set.Cardinality())
				}
				require.Len(t, s.Indexes, len(want.Indexes))
				for i, x := range want.Indexes {
					got := s.Indexes[i]
					require.Equal(t, x.Name, got.Name)
					coverage, err := x.Coverage()
					require.NoError(t, err)
					require.True(t, got.CoverageKnown)
					require.Len(t, got.Coverage, len(coverage))
					for k, id := range coverage {
						require.EqualValues(t, id, got.Coverage[k])
					}
				}
				require.Equal(t, g.ReaderFlags&2 != 0, s.StableRowIDs)

				since, err := e.TransactionsSince(context.Background(), n-1, n)
				require.NoError(t, err)
				require.Len(t, since, 1)
				require.Equal(t, want.Transaction, since[0].Operation.Kind())
				require.Equal(t, n, since[0].Version)
			}
		})
	}
}

// The golden test: whatever a stock engine stored, we read, at every version.
func TestGoldenTablesScan(t *testing.T) {
	for _, g := range testtable.All(t) {
		t.Run(g.Name, func(t *testing.T) {
			e := open(t, g.Dir)
			for _, n := range g.Numbers() {
				v := g.Versions[n]
				if v.Rows == nil {
					continue
				}
				s := load(t, e, n)
				rows, err := scan(t, e, s, v.Columns(t)...)
				if !readable(s.DataFormat) {
					require.ErrorIs(t, err, table.ErrUnsupported)
					require.ErrorContains(t, err, s.DataFormat)
					continue
				}
				require.NoError(t, err, "version %d", n)
				testtable.RequireRows(t, v, rows)
			}
		})
	}
}
