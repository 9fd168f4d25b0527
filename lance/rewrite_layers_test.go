package lance_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rehome-db/rehome/internal/testtable"
	"github.com/rehome-db/rehome/lance/datafile"
	"github.com/rehome-db/rehome/lance/datafile/encoding"
	"github.com/rehome-db/rehome/lance/datafile/level"
	"github.com/rehome-db/rehome/lance/readat"
	"github.com/rehome-db/rehome/lance/store"
	"github.com/rehome-db/rehome/table"
)

// layersOfPages checks that the pages of each column of lists declare the same where
// readers need it, and returns how many such pages it saw.
func layersOfPages(t *testing.T, s store.Store, v *table.Snapshot) (pages int) {
	for _, fragment := range v.Fragments {
		path := fragment.Files[0].Path
		data, err := store.ReadAll(t.Context(), s, path, 1<<30)
		require.NoError(t, err)
		f, err := datafile.Open(t.Context(), readat.Bytes(data), int64(len(data)), path)
		require.NoError(t, err)
		for i, leaf := range f.Schema().Leaves() {
			column, err := f.Column(i)
			require.NoError(t, err)
			if level.MaxRep(leaf.Layers) == 0 {
				continue
			}
			asked := column.Layers(leaf)
			for k, p := range column.Pages() {
				layers, def := encoding.PageLayers(encoding.Page{Layout: p.Layout, Buffers: p.Buffers})
				if layers == nil {
					continue // of another kind
				}
				same, levels := level.SameItems(asked, layers, p.Layout.GetFullZip() != nil)
				require.True(t, same, "%s, page %d: %v where the column has %v", leaf.Path, k, layers, asked)
				require.True(t, def || !levels, "%s, page %d: no definition levels", leaf.Path, k)
				pages++
			}
		}
	}
	return pages
}

// Whatever pages were before, copied or encoded anew, the pages of a new file go together.
func TestPagesOfListsAgree(t *testing.T) {
	seen := 0
	for _, g := range testtable.All(t) {
		t.Run(g.Name, func(t *testing.T) {
			s := inMemory(t, g.Name)
			e := openStore(t, s)
			base := load(t, e, 0)
			if base.DataFormat == "2.0" || e.CanRewrite(t.Context(), base, fragmentIDs(base)) != nil {
				return
			}
			for _, pages := range []table.PageCopy{table.CopyAlways, table.CopyNever, table.CopyAlways} {
				base = rewriteAll(t, e, base, table.WriteOptions{}, pages)
				seen += layersOfPages(t, s, base)
			}
		})
	}
	require.Greater(t, seen, 20)
}
