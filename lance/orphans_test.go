package lance_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/rehome-db/rehome/fri"
	"github.com/rehome-db/rehome/internal/testtable"
	tablepb "github.com/rehome-db/rehome/lance/internal/pb/table"
	"github.com/rehome-db/rehome/lance/manifest"
	"github.com/rehome-db/rehome/lance/store"
	"github.com/rehome-db/rehome/table"
)

func orphans(t *testing.T, f table.OrphanFinder) (paths []string) {
	t.Helper()
	_, err := f.Orphans(ctx, func(o table.Orphan) {
		require.NotZero(t, o.Bytes, o.Path)
		require.False(t, o.Modified.IsZero(), o.Path)
		paths = append(paths, o.Path)
	})
	require.NoError(t, err)
	return paths
}

// Every file of a table that a stock engine wrote is referred to by some version:
// one that is reported would be deleted by a clean-up.
func TestGoldenTablesHaveNoOrphans(t *testing.T) {
	for _, g := range testtable.All(t) {
		found := orphans(t, open(t, g.Dir))
		require.Empty(t, found, g.Name)
	}
}

func TestOrphansAreWhatNoVersionRefersTo(t *testing.T) {
	m := store.NewMem()
	e := newTable(t, m, 10, 10)
	require.Empty(t, orphans(t, e))

	// Written, and not committed.
	s := load(t, e, 0)
	out, err := e.WriteFragments(ctx, s.Schema, rows(100, 5), table.WriteOptions{})
	require.NoError(t, err)
	ref, err := e.WriteDeletions(ctx, 0, s.Version, deletedBefore)
	require.NoError(t, err)
	require.NoError(t, m.Put(ctx, "_transactions/1-lost.txn", []byte("x"), store.WriteOptions{}))
	require.NoError(t, m.Put(ctx, "_versions/.tmp_3.manifest_deadbeef", []byte("x"), store.WriteOptions{}))
	require.NoError(t, m.Put(ctx, "_indices/7ece35da-27ac-4bc9-a20b-534f6ad03122/page_data.lance", []byte("x"), store.WriteOptions{}))
	// Not of those directories, and not ours to judge.
	require.NoError(t, m.Put(ctx, "_versions/latest_version_hint.json", []byte("{}"), store.WriteOptions{}))
	require.NoError(t, m.Put(ctx, "_refs/tags/x.json", []byte("{}"), store.WriteOptions{}))
	require.NoError(t, m.Put(ctx, "notes.txt", []byte("x"), store.WriteOptions{}))
	require.ElementsMatch(t, []string{
		out.Objects[0].Path, ref.Path, "_transactions/1-lost.txn", "_versions/.tmp_3.manifest_deadbeef",
		"_indices/7ece35da-27ac-4bc9-a20b-534f6ad03122/page_data.lance",
	}, orphans(t, e))

	// Files of an old version are needed as long as it is there.
	before := s.Version
	_, err = e.Commit(ctx, rewrite(t, e, s, 0, 1))
	require.NoError(t, err)
	require.Len(t, orphans(t, e), 5)
	require.NoError(t, m.Delete(ctx, versionName(t, m, before)))
	require.Len(t, orphans(t, e), 5+2, "its transaction, and the file that it added; the version before it still has the other")
}

func TestLabelFilesAreOrphansWhenNoHistoryNeedsThem(t *testing.T) {
	for _, external := range []bool{false, true} {
		m := store.NewMem()
		r := recluster(t, m)
		require.Contains(t, orphans(t, r.engine), r.labels.Path, "not committed yet")
		if external {
			// Large enough for a file of its own.
			h, err := fri.Decode(r.change.Change.Reuse.Content, r.change.Change.Reuse.IndexVersion)
			require.NoError(t, err)
			r.change.Change.Reuse.Content = padded(h.Encode())
		}
		r.commit(t)
		require.Equal(t, external, r.after.Reuse.External)
		require.Empty(t, orphans(t, r.engine))

		_, err := r.engine.Commit(ctx, table.Proposal{
			Base:        r.after,
			Transaction: table.Transaction{ReadVersion: r.after.Version, Operation: table.CreateIndex{}},
			Change:      table.Change{DropReuse: true},
		})
		require.NoError(t, err)
		require.Empty(t, orphans(t, r.engine), "the version before still has it")
		require.NoError(t, m.Delete(ctx, versionName(t, m, r.after.Version)))
		require.Contains(t, orphans(t, r.engine), r.labels.Path)
	}
}

// padded makes an encoded history larger by a field that is not known.
func padded(content []byte) []byte {
	const tag = 15<<3 | 2
	n := 300 << 10
	content = append(content, tag, byte(n)|0x80, byte(n>>7)|0x80, byte(n>>14))
	return append(content, make([]byte, n)...)
}

func versionName(t *testing.T, m *store.Mem, version uint64) string {
	t.Helper()
	for _, name := range m.Names() {
		if v, _, ok := manifest.ParseName(strings.TrimPrefix(name, "_versions/")); ok && v == version {
			return name
		}
	}
	t.Fatalf("no version %d", version)
	return ""
}

// A branch and a detached version refer to files that the history has no more.
func TestBranchesAndDetachedVersionsKeepFiles(t *testing.T) {
	for _, place := range []string{"_versions/d18446744073709551000.manifest", "tree/a/b/_versions/1.manifest"} {
		m := store.NewMem()
		e := newTable(t, m, 10, 10)
		s := load(t, e, 0)
		_, err := e.Commit(ctx, rewrite(t, e, s, 0, 1))
		require.NoError(t, err)
		data, err := store.ReadAll(ctx, m, versionName(t, m, s.Version), 1<<20)
		require.NoError(t, err)
		c, err := manifest.Decode(data)
		require.NoError(t, err)
		for v := s.Version; v > 0; v-- {
			require.NoError(t, m.Delete(ctx, versionName(t, m, v)))
		}
		require.Len(t, orphans(t, e), 2+3, "two data files, three transactions")
		if strings.HasPrefix(place, "tree/") {
			c.Manifest.Branch = proto.String("a/b")
			c.Manifest.BasePaths = []*tablepb.BasePath{{Id: 0, IsDatasetRoot: true, Path: "/moved/since/t.lance"}}
			for _, f := range c.Manifest.Fragments {
				f.Files[0].BaseId = proto.Uint32(0)
			}
		}
		data, err = c.Encode()
		require.NoError(t, err)
		require.NoError(t, m.Put(ctx, place, data, store.WriteOptions{}))
		for _, o := range orphans(t, e) {
			require.False(t, strings.HasPrefix(o, "data/"), "%s: %s", place, o)
		}
	}
}

// If what some version refers to cannot be told, nothing is called an orphan.
func TestOrphansOfATableThatIsNotUnderstoodAreRefused(t *testing.T) {
	damaged := func(t *testing.T, m *store.Mem) {
		require.NoError(t, m.Put(ctx, versionName(t, m, 1), []byte("no manifest"), store.WriteOptions{}))
	}
	for what, c := range map[string]struct {
		do   func(t *testing.T, m *store.Mem)
		want error
	}{
		"a damaged version": {damaged, table.ErrCorrupt},
		"a damaged detached version": {func(t *testing.T, m *store.Mem) {
			require.NoError(t, m.Put(ctx, "_versions/d9223372036854775809.manifest", []byte("x"), store.WriteOptions{}))
		}, table.ErrCorrupt},
		"a branch by itself": {func(t *testing.T, m *store.Mem) {
			tamper(t, m, func(c *manifest.Contents) { c.Manifest.Branch = proto.String("b") })
		}, table.ErrUnsupported},
	} {
		t.Run(what, func(t *testing.T) {
			m := store.NewMem()
			e := newTable(t, m, 10)
			require.NoError(t, m.Put(ctx, "data/lost.lance", []byte("x"), store.WriteOptions{}))
			require.Equal(t, []string{"data/lost.lance"}, orphans(t, e))
			c.do(t, m)
			_, err := e.Orphans(ctx, func(o table.Orphan) { t.Errorf("found %s", o.Path) })
			require.ErrorIs(t, err, c.want)
		})
	}
}

func TestOrphansOnDisk(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "t.lance")
	s, err := store.NewLocal(dir)
	require.NoError(t, err)
	e := newTable(t, s, 10)
	require.Empty(t, orphans(t, e))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "_versions", ".tmp_9.manifest_x"), []byte("half"), 0o644))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "data", "lost.lance"), []byte("half"), 0o644))
	require.Equal(t, []string{"_versions/.tmp_9.manifest_x", "data/lost.lance"}, orphans(t, e))
}

// TestReport12UnfinishedFilesAreNamed: what a killed process left under temporary names
// is found, and said to be that.
func TestReport12UnfinishedFilesAreNamed(t *testing.T) {
	m := store.NewMem()
	e := newTable(t, m, 10)
	want := []string{"_transactions/.tmp_1-x.txn_00112233", "_versions/.tmp_18446744073709551613.manifest_0011"}
	for _, name := range want {
		put(t, m, name, []byte("x"))
	}
	put(t, m, "_transactions/1-left.txn", []byte("x"))
	var got []string
	_, err := e.Orphans(ctx, func(o table.Orphan) {
		require.False(t, o.Unfinished && o.Foreign)
		if o.Unfinished {
			got = append(got, o.Path)
		}
	})
	require.NoError(t, err)
	require.Equal(t, want, got)
}
