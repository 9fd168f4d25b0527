package lance_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/rehome-db/rehome/internal/testtable"
	"github.com/rehome-db/rehome/lance/manifest"
	"github.com/rehome-db/rehome/lance/store"
	"github.com/rehome-db/rehome/table"
)

// FuzzSnapshot loads a version from whatever bytes, and does with it what needs no
// data files.
func FuzzSnapshot(f *testing.F) {
	for _, name := range []string{"fri_handmade", "with_hnsw_sq", "stable_row_ids", "schema_evolution", "storage_legacy", "empty_table"} {
		g := testtable.Get(f, name)
		s, err := store.NewLocal(g.Dir)
		if err != nil {
			f.Fatal(err)
		}
		infos, err := s.List(ctx, "_versions")
		if err != nil {
			f.Fatal(err)
		}
		for _, info := range infos {
			if strings.HasSuffix(info.Name, ".manifest") {
				data, err := store.ReadAll(ctx, s, "_versions/"+info.Name, 1<<20)
				if err != nil {
					f.Fatal(err)
				}
				f.Add(data)
			}
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		version := uint64(1)
		if c, err := manifest.Decode(data); err == nil {
			if version = c.Manifest.GetVersion(); version == 0 || version > manifest.MaxVersion {
				return
			}
		}
		m := store.NewMem()
		put(t, m, filepath.ToSlash(filepath.Join("_versions", manifest.V2.Name(version))), data)
		e := openStore(t, m)
		s, err := e.Load(ctx, 0)
		if err != nil {
			return
		}
		_, _ = e.ReuseIndex(ctx, s)
		_, _ = e.TransactionsSince(ctx, version-1, 0)
		_, _ = e.Check(ctx, s, func(table.Finding) {})
		if next, err := e.Commit(ctx, reserve(s, 1)); err == nil && next.NextFragmentID != s.NextFragmentID+1 {
			t.Fatalf("ids %d, then %d", s.NextFragmentID, next.NextFragmentID)
		}
	})
}
