package lance_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rehome-db/rehome/internal/testtable"
	"github.com/rehome-db/rehome/lance"
	"github.com/rehome-db/rehome/lance/manifest"
	"github.com/rehome-db/rehome/lance/store"
	"github.com/rehome-db/rehome/table"
)

var ctx = context.Background()

// v1 copies a golden table and gives its versions the names of the older scheme.
func v1(t *testing.T, name string) *store.Mem {
	m := inMemory(t, name)
	for _, p := range m.Names() {
		if v, _, ok := manifest.ParseName(filepath.Base(p)); ok && strings.HasPrefix(p, "_versions/") {
			move(t, m, p, "_versions/"+manifest.V1.Name(v))
		}
	}
	return m
}

func read(t *testing.T, s store.Store, name string) []byte {
	t.Helper()
	data, err := store.ReadAll(ctx, s, name, 1<<30)
	require.NoError(t, err)
	return data
}

func move(t *testing.T, s store.Store, from, to string) {
	t.Helper()
	require.NoError(t, s.PutIfAbsent(ctx, to, read(t, s, from)))
	require.NoError(t, s.Delete(ctx, from))
}

func put(t *testing.T, s store.Store, name string, data []byte) {
	t.Helper()
	require.NoError(t, s.Put(ctx, name, data, store.WriteOptions{}))
}

func TestVersionsOfTheOlderNamingScheme(t *testing.T) {
	g := testtable.Get(t, "after_compaction")
	m := v1(t, "after_compaction")
	e := openStore(t, m)
	require.Equal(t, g.Latest(), load(t, e, 0).Version, "13 is later than 9")
	for n, v := range g.Versions {
		rows, err := scan(t, e, load(t, e, n))
		require.NoError(t, err)
		testtable.RequireRows(t, v, rows)
	}
	s, err := e.ReserveFragments(ctx, 1)
	require.NoError(t, err)
	require.Contains(t, m.Names(), fmt.Sprintf("_versions/%d.manifest", s.Version), "a table keeps its scheme")
	_, err = e.TransactionsSince(ctx, 0, 0)
	require.NoError(t, err)
}

func TestACommitDoesNotMixNamingSchemes(t *testing.T) {
	m := inMemory(t, "ints_basic")
	e := openStore(t, m)
	base := load(t, e, 0)
	for _, p := range m.Names() { // somebody migrates the names meanwhile
		if v, _, ok := manifest.ParseName(filepath.Base(p)); ok && strings.HasPrefix(p, "_versions/") {
			move(t, m, p, "_versions/"+manifest.V1.Name(v))
		}
	}
	p := table.Proposal{Base: base, Transaction: table.Transaction{Operation: table.ReserveFragments{Count: 1}}, Change: table.Change{Reserve: 1}}
	_, err := e.Commit(ctx, p)
	require.ErrorIs(t, err, table.ErrVersionTaken)
	p.Base = load(t, e, 0)
	_, err = e.Commit(ctx, p)
	require.NoError(t, err)
}

func TestMixedNamingSchemesAreCorrupt(t *testing.T) {
	m := inMemory(t, "ints_basic")
	put(t, m, "_versions/1.manifest", read(t, m, "_versions/"+manifest.V2.Name(1)))
	_, err := lance.OpenStore(ctx, m, lance.Options{})
	require.ErrorIs(t, err, table.ErrCorrupt)
	require.ErrorContains(t, err, "both schemes (1.manifest and 1844674407370955161")
}

func TestWhatIsNoVersionIsIgnored(t *testing.T) {
	m := inMemory(t, "ints_basic")
	for _, name := range []string{
		".tmp_18446744073709551600.manifest_0a1b", "18446744073709551600.manifest-9f8e",
		"d18446744073709551600.manifest", "latest_version_hint.json", "notes.txt", "x.manifest",
	} {
		put(t, m, "_versions/"+name, []byte(`{"version":99}`))
	}
	s := load(t, openStore(t, m), 0)
	require.EqualValues(t, 2, s.Version)
}

func TestVersionsThatDoNotExist(t *testing.T) {
	e := openStore(t, inMemory(t, "ints_basic"))
	_, err := e.Load(ctx, 7)
	require.ErrorIs(t, err, table.ErrNotFound)
	require.ErrorContains(t, err, "no version 7 (it has 2 versions from 1 to 2)")
	_, err = e.TransactionsSince(ctx, 1, 7)
	require.ErrorIs(t, err, table.ErrNotFound)
	since, err := e.TransactionsSince(ctx, 2, 0)
	require.NoError(t, err)
	require.Empty(t, since)
}

func TestPlacesThatHoldNoTable(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	for name, path := range map[string]string{
		"an empty directory": dir,
		"no directory":       filepath.Join(dir, "nowhere"),
		"no path":            "",
		"a file":             file,
	} {
		_, err := lance.Open(ctx, path, lance.Options{})
		require.ErrorIs(t, err, table.ErrNotTable, name)
	}
	_, err := lance.Open(ctx, "s3://bucket/t.lance", lance.Options{})
	require.ErrorIs(t, err, table.ErrUnsupported)

	_, err = lance.Open(ctx, "file://elsewhere/t.lance", lance.Options{})
	require.ErrorIs(t, err, table.ErrUnsupported)
	spaced := filepath.Join(dir, "a b.lance")
	require.NoError(t, os.CopyFS(spaced, os.DirFS(testtable.Get(t, "ints_basic").Dir)))
	for _, uri := range []string{"file://" + dir + "/a%20b.lance", "file://localhost" + dir + "/a%20b.lance"} {
		e, err := lance.Open(ctx, uri, lance.Options{})
		require.NoError(t, err, uri)
		require.NoError(t, e.Close())
	}

	e, err := lance.Open(ctx, "file://"+testtable.Get(t, "ints_basic").Dir, lance.Options{})
	require.NoError(t, err)
	require.NoError(t, e.Close())
	_, err = e.Load(ctx, 0)
	require.ErrorContains(t, err, "closed")
}

func latestName(t *testing.T, m *store.Mem) string {
	s := load(t, openStore(t, m), 0)
	return "_versions/" + manifest.V2.Name(s.Version)
}

func TestDamagedManifestsAreCorruptAndNamed(t *testing.T) {
	m := inMemory(t, "with_ivf_pq_v39")
	name := latestName(t, m)
	data := read(t, m, name)
	for n := 0; n < len(data); n += 7 {
		put(t, m, name, data[:n])
		_, err := openStore(t, m).Load(ctx, 0)
		require.ErrorIs(t, err, table.ErrCorrupt, "%d bytes", n)
		require.ErrorContains(t, err, filepath.Base(name))
	}
	put(t, m, name, read(t, m, "_versions/"+manifest.V2.Name(2)))
	_, err := openStore(t, m).Load(ctx, 0)
	require.ErrorIs(t, err, table.ErrCorrupt)
	require.ErrorContains(t, err, "says that it is version 2, its name says 5")

	_, err = openStore(t, m).Load(ctx, 3)
	require.NoError(t, err, "other versions are as they were")
}

// A flipped bit that no check can see may change what a table holds, but must not
// bring down whoever looks.
func TestFlippedBitsInAManifest(t *testing.T) {
	m := inMemory(t, "fri_handmade_stacked")
	name := latestName(t, m)
	data := read(t, m, name)
	e := openStore(t, m)
	for i := 0; i < len(data); i += 3 {
		bad := append([]byte{}, data...)
		bad[i] ^= 1 << (i % 8)
		put(t, m, name, bad)
		s, err := e.Load(ctx, 0)
		if err != nil {
			require.NotErrorIs(t, err, table.ErrNotFound)
			continue
		}
		_, _ = e.ReuseIndex(ctx, s)
		_, _ = e.TransactionsSince(ctx, s.Version-1, 0)
		_, _ = scan(t, e, s, "id")
	}
}

func TestTransactionsFromFiles(t *testing.T) {
	m := inMemory(t, "with_deletions_small")
	e := openStore(t, m)
	want, err := e.TransactionsSince(ctx, 0, 0)
	require.NoError(t, err)
	require.Len(t, want, 4)

	// Older writers do not write them inline.
	for v := uint64(1); v <= 4; v++ {
		name := "_versions/" + manifest.V2.Name(v)
		c, err := manifest.Decode(read(t, m, name))
		require.NoError(t, err)
		c.Transaction = nil
		data, err := c.Encode()
		require.NoError(t, err)
		put(t, m, name, data)
	}
	got, err := e.TransactionsSince(ctx, 0, 0)
	require.NoError(t, err)
	require.Equal(t, want, got)

	for _, name := range m.Names() {
		if strings.HasPrefix(name, "_transactions/3-") {
			require.NoError(t, m.Delete(ctx, name))
		}
	}
	_, err = e.TransactionsSince(ctx, 2, 0)
	require.NoError(t, err, "it is known")
	e = openStore(t, m)
	_, err = e.TransactionsSince(ctx, 2, 0)
	require.ErrorIs(t, err, table.ErrNotFound)
	require.ErrorContains(t, err, "version 4: the version's transaction")
	load(t, e, 4) // the rows do not depend on it
	_, err = e.TransactionsSince(ctx, 0, 3)
	require.NoError(t, err)
}

// A writer that cannot see what happened must not commit over it.
func TestTransactionsOfVersionsThatAreGone(t *testing.T) {
	m := inMemory(t, "with_deletions_small")
	require.NoError(t, m.Delete(ctx, "_versions/"+manifest.V2.Name(3)))
	e := openStore(t, m)
	_, err := e.TransactionsSince(ctx, 2, 0)
	require.ErrorIs(t, err, table.ErrTerminal)
	require.ErrorContains(t, err, "version 3 is gone")
	_, err = e.TransactionsSince(ctx, 3, 0)
	require.NoError(t, err)
}
