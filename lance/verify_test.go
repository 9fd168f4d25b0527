package lance_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/rehome-db/rehome/internal/testtable"
	tablepb "github.com/rehome-db/rehome/lance/internal/pb/table"
	"github.com/rehome-db/rehome/lance/manifest"
	"github.com/rehome-db/rehome/lance/rowids"
	"github.com/rehome-db/rehome/lance/store"
	"github.com/rehome-db/rehome/table"
)

func check(t *testing.T, s store.Store, version uint64) (findings []string, checked map[string]int) {
	t.Helper()
	e := openStore(t, s)
	checked, err := e.Check(ctx, load(t, e, version), func(f table.Finding) {
		findings = append(findings, f.Kind+": "+f.Where+": "+f.Err.Error())
	})
	require.NoError(t, err)
	return findings, checked
}

func TestGoldenTablesAreSound(t *testing.T) {
	for _, g := range testtable.All(t) {
		s, err := store.NewLocal(g.Dir)
		require.NoError(t, err)
		findings, checked := check(t, s, 0)
		require.Empty(t, findings, g.Name)
		require.Equal(t, 1, checked["manifests"])
		latest := g.Versions[g.Latest()]
		if len(latest.Indexes) > 0 && !handmade(g) {
			require.NotZero(t, checked["index_files"], g.Name)
		}
		if readable(g.DataFormat.Version) && len(latest.Fragments) > 0 {
			require.NotZero(t, checked["columns"], g.Name)
		}
	}
}

func TestCheckFinds(t *testing.T) {
	remove := func(part string) func(t *testing.T, m *store.Mem) {
		return func(t *testing.T, m *store.Mem) {
			removed := 0
			for _, name := range m.Names() {
				if strings.Contains(name, part) {
					require.NoError(t, m.Delete(ctx, name))
					removed++
				}
			}
			require.NotZero(t, removed)
		}
	}
	edit := func(change func(c *manifest.Contents)) func(t *testing.T, m *store.Mem) {
		return func(t *testing.T, m *store.Mem) { tamper(t, m, change) }
	}
	for what, c := range map[string]struct {
		table  string
		damage func(t *testing.T, m *store.Mem)
		want   string
	}{
		"a data file that is gone": {"ints_basic", remove("data/0"), "file: fragment"},
		"a data file of the wrong size": {"ints_basic", edit(func(c *manifest.Contents) {
			c.Manifest.Fragments[0].Files[0].FileSizeBytes++
		}), "the version records"},
		"a row count that is wrong": {"ints_basic", edit(func(c *manifest.Contents) {
			c.Manifest.Fragments[1].PhysicalRows++
		}), "file: fragment 1 file data/"},
		"a file of another format": {"ints_basic", edit(func(c *manifest.Contents) {
			c.Manifest.Fragments[1].Files[0].FileMinorVersion = 2
		}), "it has format 2.1, the manifest says 2.2"},
		"a column that is not there": {"ints_basic", edit(func(c *manifest.Contents) {
			c.Manifest.Fragments[1].Files[0].ColumnIndices[0] = 99
		}), "no column 99"},
		"a column of another type": {"strings_nulls", edit(func(c *manifest.Contents) {
			x := c.Manifest.Fragments[1].Files[0].ColumnIndices
			x[0], x[1] = x[1], x[0]
		}), "file: fragment 1"},
		"a flag that is not set": {"with_deletions_small", edit(func(c *manifest.Contents) {
			c.Manifest.ReaderFeatureFlags = 0
		}), "manifest: version 4: the reader flags 1 are not set"},
		"a writer flag that is not set": {"with_deletions_small", edit(func(c *manifest.Contents) {
			c.Manifest.WriterFeatureFlags = 0
		}), "manifest: version 4: the writer flags 1 are not set"},
		"a mark that fell behind": {"ints_basic", edit(func(c *manifest.Contents) {
			c.Manifest.MaxFragmentId = proto.Uint32(0)
		}), "below fragment 1"},
		"rows without ids": {"stable_row_ids", edit(func(c *manifest.Contents) {
			c.Manifest.Fragments[0].RowIdSequence = nil
		}), "fragment: fragment 4: the table has stable row ids"},
		"fewer ids than rows": {"stable_row_ids", edit(func(c *manifest.Contents) {
			c.Manifest.Fragments[0].RowIdSequence = inlineIDs(rowids.Range(0, 76))
		}), "fragment: fragment 4: row ids: rowids: 76 ids for 77 rows"},
		"ids that were not given out": {"stable_row_ids", edit(func(c *manifest.Contents) {
			c.Manifest.NextRowId = 80
		}), "and only those below 80 were given out"},
		"an id that is alive twice": {"stable_row_ids", edit(func(c *manifest.Contents) {
			c.Manifest.Fragments[0].RowIdSequence = inlineIDs(rowids.Concat(rowids.Range(0, 76), rowids.Of(7)))
		}), "the row id 7 is that of a live row"},
		"versions of other rows": {"stable_row_ids", edit(func(c *manifest.Contents) {
			c.Manifest.Fragments[0].CreatedAtVersionSequence = &tablepb.DataFragment_InlineCreatedAtVersions{InlineCreatedAtVersions: rowids.Uniform(3, 1).Encode()}
		}), "row versions: rowids: versions of 3 rows for 77 rows"},
		"a row of a version to come": {"stable_row_ids", edit(func(c *manifest.Contents) {
			c.Manifest.Fragments[0].LastUpdatedAtVersionSequence = &tablepb.DataFragment_InlineLastUpdatedAtVersions{InlineLastUpdatedAtVersions: rowids.Uniform(77, 99).Encode()}
		}), "it has a row of version 99"},
		"no transaction": {"ints_basic", edit(func(c *manifest.Contents) {
			c.Transaction, c.Manifest.TransactionFile = nil, ""
		}), "the version has no transaction"},
		"an index file that is gone": {"with_btree_index", remove("page_lookup.lance"), "index: index id_idx segment"},
		"index files that are gone and were not recorded": {"with_btree_index", func(t *testing.T, m *store.Mem) {
			remove("_indices/")(t, m)
			tamper(t, m, func(c *manifest.Contents) { c.Indexes.Indices[0].Files = nil })
		}, "there are no files in _indices/"},
		"an index file of the wrong size": {"with_btree_index", edit(func(c *manifest.Contents) {
			c.Indexes.Indices[0].Files[0].SizeBytes++
		}), "page_data.lance has"},
		"segments that overlap": {"with_btree_index", edit(func(c *manifest.Contents) {
			again := proto.CloneOf(c.Indexes.Indices[0])
			again.Uuid = &tablepb.UUID{Uuid: make([]byte, 16)}
			again.FragmentBitmap = manifest.CoverageBytes([]table.FragmentID{1})
			c.Indexes.Indices = append(c.Indexes.Indices, again)
		}), "fragment 1 is covered by segment"},
	} {
		t.Run(what, func(t *testing.T) {
			m := inMemory(t, c.table)
			findings, _ := check(t, m, 0)
			require.Empty(t, findings)
			c.damage(t, m)
			findings, _ = check(t, m, 0)
			require.NotEmpty(t, findings)
			require.Contains(t, strings.Join(findings, "\n"), c.want)
		})
	}
}

func TestCheckFindsAReuseIndexThatIsGone(t *testing.T) {
	m := store.NewMem()
	e := newTable(t, m, 5)
	s, err := e.Commit(ctx, table.Proposal{Base: load(t, e, 0), Transaction: table.Transaction{Operation: table.Rewrite{}},
		Change: table.Change{Reuse: &table.ReuseIndexUpdate{Content: make([]byte, 300<<10)}}})
	require.NoError(t, err)
	findings, _ := check(t, m, 0)
	require.Empty(t, findings)
	require.NoError(t, m.Delete(ctx, s.Reuse.Path))
	findings, _ = check(t, m, 0)
	require.Len(t, findings, 1)
	require.Contains(t, findings[0], "fri: fragment reuse index "+s.Reuse.UUID.String())
}

// Stock engines record index segments that hold nothing and write no files of them.
func TestASegmentThatHoldsNothingNeedsNoFiles(t *testing.T) {
	m := inMemory(t, "with_btree_index")
	for _, name := range m.Names() {
		if strings.HasPrefix(name, "_indices/") {
			require.NoError(t, m.Delete(ctx, name))
		}
	}
	tamper(t, m, func(c *manifest.Contents) {
		c.Indexes.Indices[0].Files = nil
		c.Indexes.Indices[0].FragmentBitmap = manifest.CoverageBytes(nil)
	})
	findings, _ := check(t, m, 0)
	require.Empty(t, findings)
}

func inlineIDs(s *rowids.Sequence) *tablepb.DataFragment_InlineRowIds {
	return &tablepb.DataFragment_InlineRowIds{InlineRowIds: s.Encode()}
}
