package lance_test

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rehome-db/rehome/internal/rowjson"
	"github.com/rehome-db/rehome/internal/testtable"
	"github.com/rehome-db/rehome/internal/verify"
	"github.com/rehome-db/rehome/lance"
	"github.com/rehome-db/rehome/lance/datafile"
	"github.com/rehome-db/rehome/lance/manifest"
	"github.com/rehome-db/rehome/lance/store"
	"github.com/rehome-db/rehome/lance/store/fault"
	"github.com/rehome-db/rehome/table"
)

const releasesDir = "../testdata/releases"

// ofRelease is a copy of a table that an earlier release of pylance wrote, and its rows.
func ofRelease(t testing.TB, name string) (*store.Mem, []string) {
	m := store.NewMem()
	dir := os.DirFS(releasesDir + "/" + name)
	require.NoError(t, fs.WalkDir(dir, "t.lance", func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := fs.ReadFile(dir, p)
		require.NoError(t, err)
		return m.PutIfAbsent(context.Background(), strings.TrimPrefix(p, "t.lance/"), data)
	}))
	lines, err := fs.ReadFile(dir, "rows.jsonl")
	require.NoError(t, err)
	return m, strings.Split(strings.TrimSpace(string(lines)), "\n")
}

// requireLines checks the rows of a version, in order.
func requireLines(t testing.TB, e table.Engine, s *table.Snapshot, want []string) {
	t.Helper()
	var got []string
	for batch, err := range e.Rows(t.Context(), s, fragmentIDs(s), table.ReadOptions{}) {
		require.NoError(t, err)
		enc, err := rowjson.New(batch.Record.Schema(), rowjson.Plain)
		require.NoError(t, err)
		for i := range int(batch.Record.NumRows()) {
			row, err := enc.AppendRow(nil, batch.Record, i, nil)
			require.NoError(t, err)
			got = append(got, string(row))
		}
	}
	require.Len(t, got, len(want))
	for i := range want {
		require.JSONEq(t, want[i], got[i])
	}
}

// pageKinds are the kinds of format 2.2 that the files of a version are of, each file
// that tells.
func pageKinds(t *testing.T, m store.Store, s *table.Snapshot) (out []datafile.Version) {
	for _, f := range s.Fragments {
		for _, d := range f.Files {
			require.Equal(t, "2.2", d.Format)
			if kind, tells := dataFile(t, m, d.Path).Kind(); tells {
				out = append(out, kind)
			}
		}
	}
	return out
}

// Files of format 2.2 from before it was finished: rows that are appended and
// compactions of every mode are of the kind that the table is of, so that the release
// that wrote it reads the result.
func TestReport25DraftsOf22KeepTheirKind(t *testing.T) {
	for name, kind := range map[string]datafile.Version{"p1_0_4": datafile.V2_2Narrow, "p2_0_1": datafile.V2_2Plain} {
		t.Run(name, func(t *testing.T) {
			m, want := ofRelease(t, name)
			e := openStore(t, m)
			s := load(t, e, 0)
			requireLines(t, e, s, want)
			require.Equal(t, []datafile.Version{kind, kind}, pageKinds(t, m, s))

			next, err := e.Append(t.Context(), e.Rows(t.Context(), s, fragmentIDs(s), table.ReadOptions{}), table.WriteOptions{})
			require.NoError(t, err)
			want = append(want, want...)
			for _, pages := range []table.PageCopy{table.CopyAlways, table.CopyNever, table.CopyAuto} {
				requireLines(t, e, next, want)
				for _, k := range pageKinds(t, m, next) {
					require.Equal(t, kind, k)
				}
				next = rewriteAll(t, e, next, table.WriteOptions{MaxRows: 100}, pages)
			}
		})
	}
}

// A finished table is written as such: pages of one value, runs of levels.
func TestReport25FinishedTablesOf22StayFinished(t *testing.T) {
	for _, name := range []string{"storage_2_2", "constant_columns_v39"} {
		t.Run(name, func(t *testing.T) {
			m := inMemory(t, name)
			e := openStore(t, m)
			s := load(t, e, 0)
			want := text(t, e, s)
			next := rewriteAll(t, e, s, table.WriteOptions{}, table.CopyNever)
			require.Equal(t, want, text(t, e, next))
			require.NotContains(t, pageKinds(t, m, next), datafile.V2_2Narrow)
		})
	}
}

// Files of the first kind beside others, as Lance 2 makes them by an append: no release
// before it reads the table any more, so a compaction of any of it writes what later
// releases read, and copies no page of the first kind.
func TestReport25KindsOf22AreNotMixed(t *testing.T) {
	m, want := ofRelease(t, "p1_0_4")
	other, more := ofRelease(t, "p2_0_1")
	e := openStore(t, m)
	s := load(t, e, 0)
	f := load(t, openStore(t, other), 0).Fragments[0]
	require.NoError(t, m.PutIfAbsent(t.Context(), f.Files[0].Path, bytesOf(t, other, f.Files[0].Path)))
	f.ID = s.NextFragmentID
	mixed, err := e.Commit(t.Context(), table.Proposal{
		Base:        s,
		Transaction: table.Transaction{ID: "mixed", ReadVersion: s.Version, Operation: table.Append{Fragments: []table.Fragment{f}}},
		Change:      table.Change{Add: []table.Fragment{f}},
	})
	require.NoError(t, err)
	want = append(want, more[:f.PhysicalRows]...)
	requireLines(t, e, mixed, want)

	// First the old fragments by themselves, then all.
	out, err := e.RewriteGroup(t.Context(), table.RewriteRequest{Snapshot: mixed, Sources: fragmentIDs(s), Threads: 2, Copy: table.CopyAlways})
	require.NoError(t, err)
	for _, o := range out.Objects {
		if o.Kind == table.ObjectData {
			kind, tells := dataFile(t, m, o.Path).Kind()
			require.True(t, tells)
			require.Equal(t, datafile.V2_2Plain, kind)
		}
	}
	next := rewriteAll(t, e, mixed, table.WriteOptions{}, table.CopyAlways)
	requireLines(t, e, next, want)
	require.Equal(t, []datafile.Version{datafile.V2_2Plain}, pageKinds(t, m, next))

	// Rows that are added follow.
	next, err = e.Append(t.Context(), e.Rows(t.Context(), s, fragmentIDs(s), table.ReadOptions{}), table.WriteOptions{})
	require.NoError(t, err)
	require.NotContains(t, pageKinds(t, m, next), datafile.V2_2Narrow)
}

// Tables of Lance up to 0.39 say of each field how its rows are stored, in a field of
// their manifests that later ones do not have. It names no files.
func TestReport26UnreferencedFilesOfEarlyReleases(t *testing.T) {
	for _, name := range []string{"p0_19_2", "p0_32_1"} {
		t.Run(name, func(t *testing.T) {
			m, want := ofRelease(t, name)
			e := openStore(t, m)
			requireLines(t, e, load(t, e, 0), want)
			require.NoError(t, m.PutIfAbsent(t.Context(), "data/left.lance", []byte("left")))
			var found []string
			versions, err := e.Orphans(t.Context(), func(o table.Orphan) { found = append(found, o.Path) })
			require.NoError(t, err)
			require.Equal(t, 2, versions)
			require.Equal(t, []string{"data/left.lance"}, found)
		})
	}
}

// A file that may not be read is a problem of its own, and the check goes on to the
// next.
func TestReport11VerifyGoesOnPastWhatItMayNotRead(t *testing.T) {
	m := inMemory(t, "many_small_fragments")
	s := load(t, openStore(t, m), 0)
	bad := map[string]bool{s.Fragments[0].Files[0].Path: true, s.Fragments[2].Files[0].Path: true}
	e := openStore(t, fault.New(m, func(o fault.Op) fault.Action {
		if bad[o.Name] && (o.Kind == fault.Open || o.Kind == fault.Stat) {
			return fault.Before
		}
		return fault.Pass
	}))
	report, err := verify.Table(t.Context(), e, verify.Options{})
	require.NoError(t, err)
	require.False(t, report.OK)
	require.Len(t, report.Problems, 2)
	require.Equal(t, uint64(len(s.Fragments)), report.Checked[verify.Files])
}

// A directory under the next version's name ends a commit at once, and says so.
func TestReport11NextVersionsNameIsTaken(t *testing.T) {
	dir := testtable.Get(t, "ints_basic").Copy(t)
	e, err := lance.Open(t.Context(), dir, lance.Options{})
	require.NoError(t, err)
	defer e.Close()
	s := load(t, e, 0)
	taken := filepath.Join(dir, "_versions", manifest.V2.Name(s.Version+1))
	require.NoError(t, os.Mkdir(taken, 0o755))
	_, err = e.ReserveFragments(t.Context(), 1)
	require.ErrorContains(t, err, "a directory")
	require.ErrorContains(t, err, filepath.Base(taken))
	require.Equal(t, s.Version, load(t, e, 0).Version)
}
