package lance_test

import (
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rehome-db/rehome/lance/datafile"
	"github.com/rehome-db/rehome/lance/readat"
	"github.com/rehome-db/rehome/lance/store"
	"github.com/rehome-db/rehome/table"
)

// kindsOf are the kinds of the data files of a version.
func kindsOf(t *testing.T, m *store.Mem, s *table.Snapshot) (out []datafile.Version) {
	for _, f := range s.Fragments {
		for _, d := range f.Files {
			require.Equal(t, "2.3", d.Format)
			out = append(out, dataFile(t, m, d.Path).Version())
		}
	}
	return out
}

// Format 2.3 is two formats of one name: what is written is of the table's.
func TestFormat23KeepsItsKind(t *testing.T) {
	for name, kind := range map[string]datafile.Version{
		"storage_2_3": datafile.V2_3, "nested_2_3_p12": datafile.V2_3, "nested_2_3_p14": datafile.V2_3Planar,
	} {
		t.Run(name, func(t *testing.T) {
			m := inMemory(t, name)
			e := openStore(t, m)
			s := load(t, e, 0)
			for _, v := range kindsOf(t, m, s) {
				require.Equal(t, kind, v)
			}
			want := text(t, e, s)
			next, err := e.Append(t.Context(), e.Rows(t.Context(), s, fragmentIDs(s), table.ReadOptions{}), table.WriteOptions{})
			require.NoError(t, err)
			require.Len(t, next.Fragments, len(s.Fragments)+1)
			next = rewriteAll(t, e, next, table.WriteOptions{}, table.CopyAuto)
			for _, v := range kindsOf(t, m, next) {
				require.Equal(t, kind, v)
			}
			require.Len(t, text(t, e, next), 2*len(want))

			// Nothing is left that says of which kind the table is: its last version is
			// not an engine's.
			empty, err := e.Commit(t.Context(), table.Proposal{
				Base:        next,
				Transaction: table.Transaction{ID: "empty", ReadVersion: next.Version, Operation: table.Delete{Removed: fragmentIDs(next)}},
				Change:      table.Change{Remove: fragmentIDs(next)},
			})
			require.NoError(t, err)
			require.Empty(t, empty.Fragments)
			_, err = e.Append(t.Context(), e.Rows(t.Context(), s, fragmentIDs(s), table.ReadOptions{}), table.WriteOptions{})
			require.ErrorIs(t, err, table.ErrUnsupported)
			require.ErrorContains(t, err, "Lance 14")
		})
	}
}

// Fragments of both kinds in one table, which no stock engine reads, are put together.
func TestFormat23OfBothKinds(t *testing.T) {
	m := inMemory(t, "types_2_3_p14")
	other := inMemory(t, "types_2_3_p12")
	e := openStore(t, m)
	s := load(t, e, 0)
	older := load(t, openStore(t, other), 0)
	f := older.Fragments[0]
	require.NoError(t, m.PutIfAbsent(t.Context(), f.Files[0].Path, bytesOf(t, other, f.Files[0].Path)))
	f.ID, f.Deletion = s.NextFragmentID, nil
	mixed, err := e.Commit(t.Context(), table.Proposal{
		Base:        s,
		Transaction: table.Transaction{ID: "mixed", ReadVersion: s.Version, Operation: table.Append{Fragments: []table.Fragment{f}}},
		Change:      table.Change{Add: []table.Fragment{f}},
	})
	require.NoError(t, err)
	require.Contains(t, kindsOf(t, m, mixed), datafile.V2_3)
	want := text(t, e, mixed)
	next := rewriteAll(t, e, mixed, table.WriteOptions{}, table.CopyAlways)
	require.Equal(t, want, text(t, e, next))
	for _, v := range kindsOf(t, m, next) {
		require.Equal(t, datafile.V2_3Planar, v)
	}
}

func bytesOf(t *testing.T, s store.Store, path string) []byte {
	o, err := s.Open(t.Context(), path)
	require.NoError(t, err)
	raw, err := io.ReadAll(readat.Section(t.Context(), o, 0, uint64(o.Size())))
	require.NoError(t, err)
	require.NoError(t, o.Close())
	return raw
}
