package lance_test

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/rehome-db/rehome/deletion"
	"github.com/rehome-db/rehome/internal/testtable"
	"github.com/rehome-db/rehome/lance"
	tablepb "github.com/rehome-db/rehome/lance/internal/pb/table"
	"github.com/rehome-db/rehome/lance/manifest"
	"github.com/rehome-db/rehome/lance/store"
	"github.com/rehome-db/rehome/table"
)

func TestDamagedDataFilesAreNamed(t *testing.T) {
	m := store.NewMem()
	e := newTable(t, m, 50, 50)
	s := load(t, e, 0)
	name := s.Fragments[1].Files[0].Path
	data := read(t, m, name)
	scanAnew := func() error {
		_, err := scan(t, openStore(t, m), s)
		return err
	}
	require.NoError(t, scanAnew())

	put(t, m, name, data[:len(data)-1])
	err := scanAnew()
	require.ErrorIs(t, err, table.ErrCorrupt)
	require.ErrorContains(t, err, "version 3: fragment 1: data file "+name+": it has ")

	require.NoError(t, m.Delete(ctx, name))
	err = scanAnew()
	require.ErrorIs(t, err, table.ErrNotFound)
	require.ErrorContains(t, err, "fragment 1: data file "+name)

	bad := append([]byte{}, data...)
	bad[len(bad)-1] = 'X'
	put(t, m, name, bad)
	err = scanAnew()
	require.ErrorIs(t, err, table.ErrCorrupt)

	put(t, m, name, data)
	tamper(t, m, func(c *manifest.Contents) { c.Manifest.Fragments[1].PhysicalRows = 49 })
	s = load(t, e, 0)
	err = scanAnew()
	require.ErrorIs(t, err, table.ErrCorrupt)
	require.ErrorContains(t, err, "it has 50 rows, the fragment 49")

	tamper(t, m, func(c *manifest.Contents) {
		c.Manifest.Fragments[1].PhysicalRows = 50
		c.Manifest.Fragments[1].Files[0].ColumnIndices[1] = 7
		c.Manifest.Fragments[1].Files[0].FileSizeBytes = 0 // not recorded
	})
	s = load(t, e, 0)
	err = scanAnew()
	require.ErrorIs(t, err, table.ErrCorrupt)
	require.ErrorContains(t, err, "no column 7")

	tamper(t, m, func(c *manifest.Contents) {
		f := c.Manifest.Fragments[1]
		f.Files[0].ColumnIndices[1] = 1
		f.Files = append(f.Files, f.Files[0])
	})
	s = load(t, e, 0)
	err = scanAnew()
	require.ErrorIs(t, err, table.ErrCorrupt)
	require.ErrorContains(t, err, "both hold field 0")
}

func TestDamagedDeletionFilesAreNamed(t *testing.T) {
	for _, name := range []string{"with_deletions_small", "with_deletions_bitmap"} {
		m := inMemory(t, name)
		s := load(t, openStore(t, m), 0)
		path := s.Fragments[0].Deletion.Path
		data := read(t, m, path)
		for n := 0; n < len(data); n += 1 + len(data)/50 {
			put(t, m, path, data[:n])
			e := openStore(t, m)
			_, err := e.ReadDeletions(ctx, s, s.Fragments[0])
			require.ErrorIs(t, err, table.ErrCorrupt, "%s: %d bytes", name, n)
			require.ErrorContains(t, err, "fragment 0: deletion file "+path)
			_, err = scan(t, e, s)
			require.ErrorIs(t, err, table.ErrCorrupt)
		}
		require.NoError(t, m.Delete(ctx, path))
		_, err := openStore(t, m).ReadDeletions(ctx, s, s.Fragments[0])
		require.ErrorIs(t, err, table.ErrNotFound)
	}
}

// A cached vector is checked against the fragment that asks, too.
func TestCachedVectorsAreCheckedAgain(t *testing.T) {
	e := openStore(t, inMemory(t, "with_deletions_small"))
	s := load(t, e, 0)
	f := s.Fragments[0]
	_, err := e.ReadDeletions(ctx, s, f)
	require.NoError(t, err)
	f.PhysicalRows = 100
	_, err = e.ReadDeletions(ctx, s, f)
	require.ErrorIs(t, err, table.ErrCorrupt)
}

// Old writers did not record how many rows a deletion file holds.
func TestUnrecordedDeletionCountsAreCounted(t *testing.T) {
	m := inMemory(t, "with_deletions_small")
	e := openStore(t, m)
	want := load(t, e, 0)
	tamper(t, m, func(c *manifest.Contents) {
		for _, f := range c.Manifest.GetFragments() {
			f.DeletionFile.NumDeletedRows = 0
		}
	})
	got := load(t, e, 0)
	require.Equal(t, want.Fragments, got.Fragments)
	require.Equal(t, text(t, e, want), text(t, e, got))
}

func TestEveryPatternOfDeletions(t *testing.T) {
	const n = 1500
	for name, dead := range map[string]func(i uint32) bool{
		"the first rows":    func(i uint32) bool { return i < 1000 },
		"the last rows":     func(i uint32) bool { return i >= 1499 },
		"every other":       func(i uint32) bool { return i%2 == 0 },
		"all but one":       func(i uint32) bool { return i != 1234 },
		"long runs":         func(i uint32) bool { return i/700%2 == 1 },
		"around a boundary": func(i uint32) bool { return i > 1020 && i < 1030 },
	} {
		m := store.NewMem()
		e := newTable(t, m, n)
		var gone []table.RowAddr
		var want []table.RowAddr
		for i := range uint32(n) {
			if dead(i) {
				gone = append(gone, table.NewRowAddr(0, i))
			} else {
				want = append(want, table.NewRowAddr(0, i))
			}
		}
		all := strings.Split(text(t, e, load(t, e, 0)), "\n")
		s, err := e.DeleteRows(ctx, gone...)
		require.NoError(t, err, name)
		for _, batchRows := range []int{1, 333, 8192} {
			var addrs []table.RowAddr
			for b, err := range e.Rows(ctx, s, fragmentIDs(s), table.ReadOptions{WithAddrs: true, BatchRows: batchRows}) {
				require.NoError(t, err)
				addrs = append(addrs, b.Addrs...)
			}
			require.Equal(t, want, addrs, name)
		}
		lines := strings.Split(text(t, e, s), "\n")
		for i, a := range want {
			require.Equal(t, all[a.Offset()], lines[i], name)
		}
	}
}

// A table that was cloned without its files reads them where they are.
func TestFilesOfOtherTables(t *testing.T) {
	g := testtable.Get(t, "with_deletions_small")
	root := g.Dir
	clone := t.TempDir()
	local, err := store.NewLocal(clone)
	require.NoError(t, err)
	src, err := store.NewLocal(root)
	require.NoError(t, err)
	latest := "_versions/" + manifest.V2.Name(g.Latest())
	c, err := manifest.Decode(read(t, src, latest))
	require.NoError(t, err)
	c.Manifest.BasePaths = []*tablepb.BasePath{
		{Id: 3, Path: root, IsDatasetRoot: true},
		{Id: 4, Path: filepath.Join(root, "data")},
	}
	manifest.SetFlags(c.Manifest)
	for i, f := range c.Manifest.GetFragments() {
		f.Files[0].BaseId = proto.Uint32(3 + uint32(i)) // one of each kind
		f.DeletionFile.BaseId = proto.Uint32(3)
	}
	data, err := c.Encode()
	require.NoError(t, err)
	require.NoError(t, local.PutIfAbsent(ctx, latest, data))

	e := open(t, clone)
	s := load(t, e, 0)
	require.Equal(t, root, s.Fragments[0].Files[0].Base)
	got, err := scan(t, e, s)
	require.NoError(t, err)
	testtable.RequireRows(t, g.Versions[g.Latest()], got)

	// Its own commits go on naming the other table's files.
	s, err = e.DeleteRows(ctx, table.NewRowAddr(0, 1))
	require.NoError(t, err)
	require.Equal(t, root, s.Fragments[0].Files[0].Base)
	require.Empty(t, s.Fragments[0].Deletion.Base, "the new vector is its own")
	require.Equal(t, root, s.Fragments[1].Deletion.Base)
	got, err = scan(t, e, s)
	require.NoError(t, err)
	require.Len(t, got, int(s.LiveRows()))

	// In memory nobody knows where that is.
	m := store.NewMem()
	put(t, m, latest, data)
	em := openStore(t, m)
	_, err = scan(t, em, load(t, em, 0))
	require.ErrorIs(t, err, table.ErrUnsupported)
}

func TestFilesStayOpenWithinBounds(t *testing.T) {
	m := store.NewMem()
	newTable(t, m, 5, 5, 5, 5, 5, 5)
	e, err := lance.OpenStore(ctx, m, lance.Options{OpenFiles: 2})
	require.NoError(t, err)
	s := load(t, e, 0)
	want := text(t, e, s)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 5 {
				if got := text(t, e, s); got != want {
					t.Error("rows differ")
				}
			}
		})
	}
	wg.Wait()
	// Closing in the middle of a read ends it.
	ended := false
	for _, err := range e.Rows(ctx, s, fragmentIDs(s), table.ReadOptions{BatchRows: 1}) {
		if err != nil {
			require.ErrorContains(t, err, "closed")
			ended = true
			continue
		}
		require.NoError(t, e.Close())
	}
	require.True(t, ended)
}

func TestDeletingRows(t *testing.T) {
	m := store.NewMem()
	e := newTable(t, m, 10, 10)
	s, err := e.DeleteRows(ctx)
	require.NoError(t, err)
	require.EqualValues(t, 3, s.Version, "nothing to do, nothing done")
	s, err = e.DeleteRows(ctx, table.NewRowAddr(0, 1), table.NewRowAddr(0, 1), table.NewRowAddr(1, 9))
	require.NoError(t, err)
	require.EqualValues(t, 18, s.LiveRows())
	again, err := e.DeleteRows(ctx, table.NewRowAddr(0, 1))
	require.NoError(t, err)
	require.Equal(t, s.Version, again.Version)

	_, err = e.DeleteRows(ctx, table.NewRowAddr(0, 10))
	require.ErrorIs(t, err, table.ErrNotFound)
	_, err = e.DeleteRows(ctx, table.NewRowAddr(7, 0))
	require.ErrorIs(t, err, table.ErrConflict)

	var all []table.RowAddr
	for i := range uint32(10) {
		all = append(all, table.NewRowAddr(1, i))
	}
	s, err = e.DeleteRows(ctx, all...)
	require.NoError(t, err)
	require.Len(t, s.Fragments, 1, "a fragment without rows goes")
	since, err := e.TransactionsSince(ctx, s.Version-1, 0)
	require.NoError(t, err)
	require.Equal(t, []table.FragmentID{1}, since[0].Operation.(table.Delete).Removed)
}

// between runs do once, just before the engine's next put-if-absent: another
// writer that is faster.
type between struct {
	store.Store
	do func()
}

func (b *between) PutIfAbsent(c context.Context, name string, data []byte) error {
	if do := b.do; do != nil {
		b.do = nil
		do()
	}
	return b.Store.PutIfAbsent(c, name, data)
}

func TestChangesBesideOthers(t *testing.T) {
	setup := func() (*between, *lance.Engine, *lance.Engine) {
		m := store.NewMem()
		other := newTable(t, m, 10, 10)
		b := &between{Store: m}
		return b, openStore(t, b), other
	}

	// Deletes of the same fragment, even of the same row, merge.
	b, e, other := setup()
	b.do = func() {
		_, err := other.DeleteRows(ctx, table.NewRowAddr(0, 1), table.NewRowAddr(0, 2))
		require.NoError(t, err)
	}
	s, err := e.DeleteRows(ctx, table.NewRowAddr(0, 2), table.NewRowAddr(0, 3))
	require.NoError(t, err)
	require.EqualValues(t, 3, s.Fragments[0].DeletedRows())
	infos, err := b.List(ctx, "_deletions")
	require.NoError(t, err)
	require.Len(t, infos, 2, "the vector of the attempt that lost is gone")

	// A compaction moves the rows: the deletion follows them, and an append does not
	// mind.
	b, e, other = setup()
	moved := table.RowAddr(0)
	b.do = func() {
		s := load(t, other, 0)
		s, err := other.Commit(ctx, rewrite(t, other, s, 0))
		require.NoError(t, err)
		moved = table.NewRowAddr(s.Fragments[1].ID, 2)
	}
	s, err = e.DeleteRows(ctx, table.NewRowAddr(0, 2))
	require.NoError(t, err)
	require.EqualValues(t, 19, s.LiveRows())
	f, ok := s.Fragment(moved.Fragment())
	require.True(t, ok)
	dead, err := e.ReadDeletions(ctx, s, f)
	require.NoError(t, err)
	require.Equal(t, []uint32{moved.Offset()}, slices.Collect(dead.All()))

	b, e, other = setup()
	b.do = func() {
		s := load(t, other, 0)
		_, err := other.Commit(ctx, rewrite(t, other, s, 0))
		require.NoError(t, err)
	}
	s, err = e.Append(ctx, rows(100, 5), table.WriteOptions{})
	require.NoError(t, err)
	require.EqualValues(t, 25, s.LiveRows())
	require.EqualValues(t, 3, s.Fragments[2].ID)

	// Who does not know what the other did does not commit over it.
	b, e, other = setup()
	b.do = func() {
		_, err := other.ReserveFragments(ctx, 1)
		require.NoError(t, err)
		tamper(t, b.Store.(*store.Mem), func(c *manifest.Contents) {
			txn, err := manifest.DecodeTransaction(c.Transaction)
			require.NoError(t, err)
			txn.Operation = &tablepb.Transaction_Restore_{Restore: &tablepb.Transaction_Restore{Version: 1}}
			c.Transaction, err = manifest.EncodeTransaction(txn)
			require.NoError(t, err)
		})
	}
	_, err = e.Append(ctx, rows(100, 5), table.WriteOptions{})
	require.ErrorIs(t, err, table.ErrConflict)
	require.ErrorContains(t, err, "(restore, ")
	infos, err = b.List(ctx, "data")
	require.NoError(t, err)
	require.Len(t, infos, 2, "its data file is gone")
	_, err = e.WriteDeletions(ctx, 0, 1, deletion.Of())
	require.Error(t, err, "an empty vector is no vector")
}
