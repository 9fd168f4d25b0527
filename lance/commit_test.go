package lance_test

import (
	"bytes"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/rehome-db/rehome/deletion"
	"github.com/rehome-db/rehome/internal/testtable"
	tablepb "github.com/rehome-db/rehome/lance/internal/pb/table"
	"github.com/rehome-db/rehome/lance/manifest"
	"github.com/rehome-db/rehome/lance/store"
	"github.com/rehome-db/rehome/table"
)

// contents decodes a version's manifest.
func contents(t *testing.T, s store.Store, version uint64) *manifest.Contents {
	t.Helper()
	c, err := manifest.Decode(read(t, s, "_versions/"+manifest.V2.Name(version)))
	require.NoError(t, err)
	return c
}

// tamper changes the latest manifest in place, as another writer would have
// written it.
func tamper(t *testing.T, m *store.Mem, change func(c *manifest.Contents)) {
	t.Helper()
	name := latestName(t, m)
	c, err := manifest.Decode(read(t, m, name))
	require.NoError(t, err)
	change(c)
	data, err := c.Encode()
	require.NoError(t, err)
	put(t, m, name, data)
}

func reserve(base *table.Snapshot, n uint32) table.Proposal {
	return table.Proposal{
		Base:        base,
		Transaction: table.Transaction{ReadVersion: base.Version, Operation: table.ReserveFragments{Count: n}},
		Change:      table.Change{Reserve: n},
	}
}

func TestConcurrentCommitters(t *testing.T) {
	m := store.NewMem()
	newTable(t, m, 10)
	const writers, each = 8, 5
	var wg sync.WaitGroup
	for w := range writers {
		e := openStore(t, m)
		wg.Go(func() {
			for i := range each {
				from := int64(1000*(w+1) + 10*i)
				if _, err := e.Append(ctx, rows(from, 10), table.WriteOptions{}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	e := openStore(t, m)
	s := load(t, e, 0)
	require.EqualValues(t, 2+writers*each, s.Version, "every commit is one version")
	require.Len(t, s.Fragments, 1+writers*each)
	since, err := e.TransactionsSince(ctx, 1, 0)
	require.NoError(t, err)
	ids := map[string]bool{}
	for i, txn := range since {
		require.EqualValues(t, i+2, txn.Version)
		ids[txn.ID] = true
	}
	require.Len(t, ids, 1+writers*each)
	lines := strings.Split(strings.TrimSpace(text(t, e, s)), "\n")
	require.Len(t, lines, 10+writers*each*10)
	for w := range writers {
		require.Contains(t, text(t, e, s), fmt.Sprintf(`"id":"%d"`, 1000*(w+1)+45))
	}
	var txns int
	for _, name := range m.Names() {
		if strings.HasPrefix(name, "_transactions/") {
			txns++
		}
	}
	require.Equal(t, int(s.Version), txns, "attempts that lost took theirs away")
}

func TestACommitOverAVersionWhoseSuccessorWasCleanedUp(t *testing.T) {
	m := store.NewMem()
	e := newTable(t, m, 10)
	old := load(t, e, 1)
	_, err := e.Append(ctx, rows(10, 10), table.WriteOptions{})
	require.NoError(t, err)
	require.NoError(t, m.Delete(ctx, "_versions/"+manifest.V2.Name(2)))
	_, err = e.Commit(ctx, reserve(old, 1))
	require.ErrorIs(t, err, table.ErrVersionTaken, "version 2 is free, and would lie behind the latest")
	require.NotContains(t, m.Names(), "_versions/"+manifest.V2.Name(2))
}

func TestCommitKeepsWhatItDoesNotUnderstand(t *testing.T) {
	m := inMemory(t, "with_ivf_pq_v39")
	extra := protowire.AppendVarint(protowire.AppendTag(nil, 999, protowire.VarintType), 42)
	tamper(t, m, func(c *manifest.Contents) {
		c.Manifest.Config = map[string]string{"lance.auto_cleanup.interval": "20"}
		c.Manifest.TableMetadata = map[string]string{"a": "b"}
		c.Manifest.Branch = proto.String("dev")
		f := c.Manifest.GetFragments()[1]
		for _, msg := range []proto.Message{c.Manifest, f, f.GetFiles()[0], c.Manifest.GetFields()[0], c.Indexes.GetIndices()[0]} {
			msg.ProtoReflect().SetUnknown(extra)
		}
	})
	e := openStore(t, m)
	base := load(t, e, 0)
	before := contents(t, m, base.Version)
	ref, err := e.WriteDeletions(ctx, 1, base.Version, deletion.Of(3))
	require.NoError(t, err)
	frag, _ := base.Fragment(1)
	frag.Deletion = &ref
	s, err := e.Commit(ctx, table.Proposal{
		Base:        base,
		Transaction: table.Transaction{ReadVersion: base.Version, Operation: table.Delete{Updated: []table.Fragment{frag}}},
		Change:      table.Change{SetDeletion: map[table.FragmentID]*table.DeletionRef{1: &ref}},
	})
	require.NoError(t, err)
	after := contents(t, m, s.Version)

	// Undo what is the commit's own, and nothing may differ.
	require.NotEqual(t, before.Manifest.GetTransactionFile(), after.Manifest.GetTransactionFile())
	for _, c := range []*manifest.Contents{before, after} {
		c.Manifest.Version = 0
		c.Manifest.Timestamp = nil
		c.Manifest.TransactionFile = ""
		c.Manifest.WriterVersion = nil
		c.Manifest.TransactionSection, c.Manifest.IndexSection = nil, nil
		c.Manifest.ReaderFeatureFlags, c.Manifest.WriterFeatureFlags = 0, 0
		c.Manifest.Fragments[1].DeletionFile = nil
	}
	require.True(t, proto.Equal(before.Manifest, after.Manifest))
	require.True(t, proto.Equal(before.Indexes, after.Indexes))

	// The transaction shows the fragment as it is now, for stock engines to
	// compare with theirs.
	txn, err := manifest.DecodeTransaction(after.Transaction)
	require.NoError(t, err)
	updated := txn.GetDelete().GetUpdatedFragments()[0]
	require.Equal(t, extra, []byte(updated.ProtoReflect().GetUnknown()))
	require.EqualValues(t, 1, updated.GetDeletionFile().GetNumDeletedRows())
	file := read(t, m, "_transactions/"+contents(t, m, s.Version).Manifest.GetTransactionFile())
	require.Equal(t, after.Transaction, file)
}

func TestFlagsOfOtherEngines(t *testing.T) {
	m := inMemory(t, "ints_basic")
	tamper(t, m, func(c *manifest.Contents) { c.Manifest.WriterFeatureFlags = 1 << 9 })
	e := openStore(t, m)
	s := load(t, e, 0)
	_, err := scan(t, e, s)
	require.NoError(t, err, "readable")
	names := m.Names()
	_, err = e.Commit(ctx, reserve(s, 1))
	require.ErrorIs(t, err, table.ErrUnsupported)
	require.ErrorContains(t, err, "512")
	require.Equal(t, names, m.Names())

	tamper(t, m, func(c *manifest.Contents) { c.Manifest.ReaderFeatureFlags = 1 << 6 })
	_, err = e.Load(ctx, 0)
	require.ErrorIs(t, err, table.ErrUnsupported)
	require.ErrorContains(t, err, "data overlay files")
}

func TestDeletionFlagIsRaisedAndCleared(t *testing.T) {
	m := store.NewMem()
	e := newTable(t, m, 10, 10)
	s, err := e.DeleteRows(ctx, table.NewRowAddr(0, 1))
	require.NoError(t, err)
	require.EqualValues(t, 1, contents(t, m, s.Version).Manifest.GetReaderFeatureFlags())
	require.EqualValues(t, 1, contents(t, m, s.Version).Manifest.GetWriterFeatureFlags())
	s, err = e.Commit(ctx, rewrite(t, e, s, 0, 1))
	require.NoError(t, err)
	require.Zero(t, contents(t, m, s.Version).Manifest.GetReaderFeatureFlags())
	require.Zero(t, contents(t, m, s.Version).Manifest.GetWriterFeatureFlags())
}

func TestFragmentIDsAreNeverUsedAgain(t *testing.T) {
	m := store.NewMem()
	e := newTable(t, m)
	s := load(t, e, 0)
	require.Nil(t, contents(t, m, 1).Manifest.MaxFragmentId, "none was ever used")
	s, err := e.Commit(ctx, reserve(s, 2))
	require.NoError(t, err)
	require.EqualValues(t, 2, s.NextFragmentID)
	require.EqualValues(t, 1, contents(t, m, 2).Manifest.GetMaxFragmentId())
	s, err = e.Append(ctx, rows(0, 5), table.WriteOptions{})
	require.NoError(t, err)
	require.EqualValues(t, 2, s.Fragments[0].ID)

	// A writer that let its mark fall behind: ids continue after those in use,
	// and the mark is put right.
	tamper(t, m, func(c *manifest.Contents) { c.Manifest.MaxFragmentId = nil })
	s = load(t, e, 0)
	require.EqualValues(t, 3, s.NextFragmentID)
	s, err = e.Commit(ctx, table.Proposal{Base: s, Transaction: table.Transaction{Operation: table.Delete{Removed: []table.FragmentID{2}}},
		Change: table.Change{Remove: []table.FragmentID{2}}})
	require.NoError(t, err)
	require.EqualValues(t, 3, s.NextFragmentID)
	require.EqualValues(t, 2, contents(t, m, s.Version).Manifest.GetMaxFragmentId())

	tamper(t, m, func(c *manifest.Contents) { c.Manifest.MaxFragmentId = proto.Uint32(1<<32 - 3) })
	s = load(t, e, 0)
	_, err = e.Commit(ctx, reserve(s, 2))
	require.ErrorContains(t, err, "1 are left")
	s, err = e.Commit(ctx, reserve(s, 1))
	require.NoError(t, err)
	_, err = e.Append(ctx, rows(0, 5), table.WriteOptions{})
	require.ErrorContains(t, err, "none is ever used again")
	require.EqualValues(t, 1<<32-1, s.NextFragmentID)
	infos, err := m.List(ctx, "data")
	require.NoError(t, err)
	require.Len(t, infos, 1, "the append that failed left no data file")
}

func TestCommitsThatStableRowIDsForbid(t *testing.T) {
	m := inMemory(t, "stable_row_ids")
	e := openStore(t, m)
	s := load(t, e, 0)
	require.True(t, s.StableRowIDs)
	names := m.Names()
	_, err := e.Commit(ctx, table.Proposal{Base: s, Transaction: table.Transaction{Operation: table.CreateIndex{}},
		Change: table.Change{Reuse: &table.ReuseIndexUpdate{Content: []byte{1}}}})
	require.ErrorIs(t, err, table.ErrUnsupported)
	require.ErrorContains(t, err, "stable row ids")
	require.Equal(t, names, m.Names())

	s, err = e.DeleteRows(ctx, table.NewRowAddr(s.Fragments[0].ID, 0))
	require.NoError(t, err, "a deletion keeps the ids as they are")
	require.True(t, s.StableRowIDs)
	require.NotNil(t, contents(t, m, s.Version).Manifest.GetFragments()[0].GetRowIdSequence())
}

func TestCoverageEdits(t *testing.T) {
	m := inMemory(t, "with_btree_index")
	e := openStore(t, m)
	s := load(t, e, 0)
	id := s.Indexes[0].UUID
	require.Equal(t, "BTree", s.Indexes[0].Kind)
	require.Equal(t, table.ReuseMasked, s.Indexes[0].Reuse)
	commit := func(c table.Change) *table.Snapshot {
		s, err := e.Commit(ctx, table.Proposal{Base: load(t, e, 0), Transaction: table.Transaction{Operation: table.CreateIndex{}}, Change: c})
		require.NoError(t, err)
		return s
	}
	s = commit(table.Change{SetCoverage: map[table.UUID][]table.FragmentID{id: nil}})
	require.Empty(t, s.Indexes[0].Coverage)
	require.True(t, s.Indexes[0].CoverageKnown)
	raw := contents(t, m, s.Version).Indexes.GetIndices()[0]
	require.Equal(t, []byte{0x3a, 0x30, 0, 0, 0, 0, 0, 0}, raw.GetFragmentBitmap(), "nothing, not unknown")
	require.NotEmpty(t, raw.GetFiles())

	s = commit(table.Change{SetCoverage: map[table.UUID][]table.FragmentID{id: {9, 2}}})
	require.Equal(t, []table.FragmentID{2, 9}, s.Indexes[0].Coverage)
	s = commit(table.Change{DropIndexes: []table.UUID{id}})
	require.Empty(t, s.Indexes)
	require.Nil(t, contents(t, m, s.Version).Manifest.IndexSection, "no index, no section")
}

func TestReuseIndexInlineAndExternal(t *testing.T) {
	m := inMemory(t, "with_bitmap_index")
	e := openStore(t, m)
	seen := map[table.UUID]bool{}
	set := func(size int) *table.Snapshot {
		content := bytes.Repeat([]byte{7}, size)
		s, err := e.Commit(ctx, table.Proposal{Base: load(t, e, 0), Transaction: table.Transaction{Operation: table.Rewrite{}},
			Change: table.Change{Reuse: &table.ReuseIndexUpdate{Content: content, Coverage: []table.FragmentID{1}}}})
		require.NoError(t, err)
		got, err := e.ReuseIndex(ctx, s)
		require.NoError(t, err)
		require.Equal(t, content, got)
		require.EqualValues(t, size, s.Reuse.Bytes)
		require.False(t, seen[s.Reuse.UUID], "content and id change together: readers cache by id")
		seen[s.Reuse.UUID] = true
		require.Len(t, s.Indexes, 2, "the old entry is replaced")
		entry := s.Indexes[1]
		require.Equal(t, "__lance_frag_reuse", entry.Name)
		require.True(t, entry.System)
		require.Equal(t, []table.FragmentID{1}, entry.Coverage)
		return s
	}
	require.False(t, set(100).Reuse.External)
	require.False(t, set(204_800).Reuse.External)
	s := set(204_801)
	require.True(t, s.Reuse.External)
	require.Equal(t, fmt.Sprintf("_indices/%s/details.binpb", s.Reuse.UUID), s.Reuse.Path)
	require.Contains(t, m.Names(), s.Reuse.Path)

	// Damage to the file.
	data := read(t, m, s.Reuse.Path)
	put(t, m, s.Reuse.Path, data[:len(data)-1])
	_, err := e.ReuseIndex(ctx, s)
	require.ErrorIs(t, err, table.ErrCorrupt)
	require.NoError(t, m.Delete(ctx, s.Reuse.Path))
	_, err = e.ReuseIndex(ctx, s)
	require.ErrorIs(t, err, table.ErrNotFound)
	set(10)

	_, err = e.Commit(ctx, table.Proposal{Base: load(t, e, 0), Transaction: table.Transaction{Operation: table.Rewrite{}},
		Change: table.Change{Reuse: &table.ReuseIndexUpdate{IndexVersion: 2}}})
	require.ErrorIs(t, err, table.ErrUnsupported)
}

func TestHandmadeReuseIndexesAreFound(t *testing.T) {
	for _, name := range []string{"fri_handmade", "fri_handmade_stacked", "fri_handmade_v39"} {
		e := open(t, testtable.Get(t, name).Dir)
		s := load(t, e, 0)
		require.NotNil(t, s.Reuse)
		content, err := e.ReuseIndex(ctx, s)
		require.NoError(t, err)
		require.EqualValues(t, s.Reuse.Bytes, len(content))
		require.NotEmpty(t, content)
	}
}

// A trim is a CreateIndex that replaces the entry, in the words of the format.
func TestATrimSaysWhatItReplaced(t *testing.T) {
	m := inMemory(t, "fri_handmade")
	e := openStore(t, m)
	base := load(t, e, 0)
	s, err := e.Commit(ctx, table.Proposal{Base: base, Transaction: table.Transaction{Operation: table.CreateIndex{}},
		Change: table.Change{Reuse: &table.ReuseIndexUpdate{Content: []byte{}}}})
	require.NoError(t, err)
	since, err := e.TransactionsSince(ctx, base.Version, 0)
	require.NoError(t, err)
	op := since[0].Operation.(table.CreateIndex)
	require.Len(t, op.New, 1)
	require.Equal(t, s.Reuse.UUID, op.New[0].UUID)
	require.Len(t, op.Removed, 1)
	require.Equal(t, base.Reuse.UUID, op.Removed[0].UUID)
}

func TestATableThatWantsNoTransactionFiles(t *testing.T) {
	m := inMemory(t, "ints_basic")
	tamper(t, m, func(c *manifest.Contents) { c.Manifest.WriterFeatureFlags |= manifest.FlagNoTransactionFile })
	before := m.Names()
	e := openStore(t, m)
	s, err := e.Commit(ctx, reserve(load(t, e, 0), 1))
	require.NoError(t, err)
	require.Empty(t, contents(t, m, s.Version).Manifest.GetTransactionFile())
	require.Equal(t, manifest.FlagNoTransactionFile, contents(t, m, s.Version).Manifest.GetWriterFeatureFlags())
	for _, name := range m.Names() {
		require.True(t, !strings.HasPrefix(name, "_transactions/") || strings.Contains(strings.Join(before, " "), name), name)
	}
	_, err = e.TransactionsSince(ctx, s.Version-1, 0)
	require.NoError(t, err)
}

func TestWhoSignsAVersion(t *testing.T) {
	m := inMemory(t, "ints_basic")
	e := openStore(t, m)
	s, err := e.ReserveFragments(ctx, 1)
	require.NoError(t, err)
	c := contents(t, m, s.Version).Manifest
	require.Equal(t, "rehome", c.GetWriterVersion().GetLibrary())
	require.NotEmpty(t, c.GetWriterVersion().GetVersion())
	require.False(t, s.Timestamp.IsZero())
	require.Equal(t, fmt.Sprintf(`{"version":%d}`, s.Version), string(read(t, m, "_versions/latest_version_hint.json")))
	require.IsType(t, &tablepb.Manifest{}, c)
}

func TestCommitsThatMakeNoSense(t *testing.T) {
	m := store.NewMem()
	e := newTable(t, m, 10, 10)
	s := load(t, e, 0)
	ref, err := e.WriteDeletions(ctx, 0, s.Version, deletion.Of(1, 2))
	require.NoError(t, err)
	s, err = e.Commit(ctx, table.Proposal{Base: s, Transaction: table.Transaction{Operation: table.Delete{}},
		Change: table.Change{SetDeletion: map[table.FragmentID]*table.DeletionRef{0: &ref}}})
	require.NoError(t, err)
	fewer, err := e.WriteDeletions(ctx, 0, s.Version, deletion.Of(1))
	require.NoError(t, err)
	other, err := e.WriteDeletions(ctx, 1, s.Version, deletion.Of(1))
	require.NoError(t, err)
	p := rewrite(t, e, s, 0, 1)
	spoil := func(change func(f *table.Fragment)) table.Change {
		add := p.Change.Add[0]
		add.Files = append([]table.DataFile{}, add.Files...)
		change(&add)
		return table.Change{Add: []table.Fragment{add}}
	}
	set := func(id table.FragmentID, ref *table.DeletionRef) table.Change {
		return table.Change{SetDeletion: map[table.FragmentID]*table.DeletionRef{id: ref}}
	}
	names := m.Names()
	for what, c := range map[string]table.Change{
		"rows that come back":              set(0, &fewer),
		"no vector at all":                 set(0, nil),
		"another fragment's vector":        set(0, &other),
		"a vector at another place":        set(0, &table.DeletionRef{Path: "data/0-1-2.arrow", Rows: 3}),
		"a vector by another name":         set(0, &table.DeletionRef{Path: "_deletions/0-1-x.arrow", Rows: 3}),
		"a vector of another kind":         set(0, &table.DeletionRef{Path: "_deletions/0-1-2.txt", Rows: 3}),
		"more deleted than there are":      set(0, &table.DeletionRef{Path: ref.Path, Rows: 11}),
		"another table's vector":           set(0, &table.DeletionRef{Path: ref.Path, Rows: 3, Base: "/x"}),
		"a fragment without rows":          spoil(func(f *table.Fragment) { f.PhysicalRows = 0 }),
		"a fragment with too many rows":    spoil(func(f *table.Fragment) { f.PhysicalRows = 1<<32 + 1 }),
		"a fragment without files":         spoil(func(f *table.Fragment) { f.Files = nil }),
		"a file of another format":         spoil(func(f *table.Fragment) { f.Files[0].Format = "2.0" }),
		"a file of no format":              spoil(func(f *table.Fragment) { f.Files[0].Format = "two" }),
		"a file of another size":           spoil(func(f *table.Fragment) { f.Files[0].Bytes++ }),
		"a file of another table":          spoil(func(f *table.Fragment) { f.Files[0].Base = "/x" }),
		"a file outside of the data":       spoil(func(f *table.Fragment) { f.Files[0].Path = "_versions/x" }),
		"a file outside of the table":      spoil(func(f *table.Fragment) { f.Files[0].Path = "data/../../x" }),
		"a field that was replaced":        spoil(func(f *table.Fragment) { f.Files[0].Fields = []int32{-2, 1} }),
		"fields and columns that disagree": spoil(func(f *table.Fragment) { f.Files[0].Columns = nil }),
		"one field in two files":           spoil(func(f *table.Fragment) { f.Files = append(f.Files, f.Files[0]) }),
	} {
		_, err := e.Commit(ctx, table.Proposal{Base: s, Transaction: table.Transaction{Operation: table.Rewrite{}}, Change: c})
		require.Error(t, err, what)
		require.Equal(t, names, m.Names(), what)
	}
	for what, txn := range map[string]table.Transaction{
		"no operation":         {},
		"an unknown operation": {Operation: table.Unknown{Name: "restore"}},
		"an id with a slash":   {ID: "../x", Operation: table.Append{}},
	} {
		_, err := e.Commit(ctx, table.Proposal{Base: s, Transaction: txn})
		require.Error(t, err, what)
		require.Equal(t, names, m.Names(), what)
	}
	_, err = e.Commit(ctx, table.Proposal{Base: &table.Snapshot{Version: 3}, Transaction: table.Transaction{Operation: table.Append{}}})
	require.ErrorContains(t, err, "another engine")
	_, err = e.Commit(ctx, table.Proposal{})
	require.Error(t, err)
}
