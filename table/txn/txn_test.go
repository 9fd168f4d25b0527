package txn_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rehome-db/rehome/table"
	"github.com/rehome-db/rehome/table/txn"
)

// examples has every operation, with all that it can say.
func examples() []table.Operation {
	f := table.Fragment{
		ID: 7, PhysicalRows: 1 << 32, Files: []table.DataFile{{Path: "data/x", Fields: []int32{0, -2}, Columns: []int32{0, -1}, Format: "2.1", Bytes: 1<<64 - 1, Base: "b"}},
		Deletion: &table.DeletionRef{Path: "d", Rows: 3, Base: "b"}, Kept: []table.RowIdentity{{}},
	}
	bare := table.Fragment{ID: 0, PhysicalRows: 1}
	index := table.IndexMeta{
		UUID: table.UUID{1, 255}, Name: "i", Kind: "BTree", Fields: []int32{1}, DatasetVersion: 4, Coverage: []table.FragmentID{0, 9},
		CoverageKnown: true, System: true, Reuse: table.ReuseThrough, ByAddress: true,
	}
	settings := table.SettingsUpdate{Set: []string{"a"}, Unset: []string{"b"}, Replace: true}
	return []table.Operation{
		table.Append{Fragments: []table.Fragment{f, bare}},
		table.Delete{Updated: []table.Fragment{f}, Removed: []table.FragmentID{0, 1<<32 - 1}},
		table.Update{Removed: []table.FragmentID{1}, Updated: []table.Fragment{f}, New: []table.Fragment{bare}, InPlace: true, ModifiedFields: []int32{2}, UniqueKeys: []int32{0}},
		table.Rewrite{Groups: []table.RewriteGroup{{Old: []table.Fragment{f}, New: []table.Fragment{bare}}}},
		table.CreateIndex{New: []table.IndexMeta{index}, Removed: []table.IndexMeta{{Name: "old"}}},
		table.ReserveFragments{Count: 5}, table.Merge{Fragments: []table.Fragment{f}}, table.Project{}, table.Restore{Target: 3},
		table.Overwrite{Fragments: []table.Fragment{bare}, Config: []string{"k"}},
		table.UpdateConfig{Config: settings, TableMetadata: settings, SchemaMetadata: settings, FieldMetadata: map[int32]table.SettingsUpdate{-1: settings}},
		table.DataReplacement{Replaced: []table.FragmentFields{{Fragment: 2, Fields: []int32{3}}}},
		table.DataOverlay{}, table.UpdateMemWALState{}, table.UpdateBases{Bases: []table.Base{{ID: 1, Name: "n", Path: "p"}}}, table.Clone{},
		table.Unknown{Name: "compress"},
	}
}

func TestReport23EveryOperationSurvives(t *testing.T) {
	for _, op := range examples() {
		want := table.Transaction{ID: "t-" + op.Kind(), ReadVersion: 1<<64 - 1, Version: 12, Operation: op, Properties: map[string]string{"a": "é"}}
		data, err := txn.Marshal(want)
		require.NoError(t, err)
		got, err := txn.Unmarshal(data)
		require.NoError(t, err, "%s", data)
		require.Equal(t, want, got)
	}
	withHandle := table.Transaction{ID: "h", Operation: table.CreateIndex{New: []table.IndexMeta{{Name: "i", Handle: func() {}}}}}
	data, err := txn.Marshal(withHandle)
	require.NoError(t, err, "a handle is the engine's own and is not kept")
	got, err := txn.Unmarshal(data)
	require.NoError(t, err)
	require.Nil(t, got.Operation.(table.CreateIndex).New[0].Handle)
	_, err = txn.Marshal(table.Transaction{ID: "x"})
	require.ErrorContains(t, err, "no operation")
}

// The form on disk: what is written today is read for ever.
func TestReport23TheFormIsVersioned(t *testing.T) {
	got, err := txn.Unmarshal([]byte(`{"format":1,"id":"a","read_version":2,"version":3,"kind":"delete","operation":{"Updated":null,"Removed":[4]}}`))
	require.NoError(t, err)
	require.Equal(t, table.Transaction{ID: "a", ReadVersion: 2, Version: 3, Operation: table.Delete{Removed: []table.FragmentID{4}}}, got)
	got, err = txn.Unmarshal([]byte(`{"format":1,"id":"a","kind":"teleport","operation":{"where":"away"}}`))
	require.NoError(t, err)
	require.Equal(t, table.Unknown{Name: "teleport"}, got.Operation)
	_, err = txn.Unmarshal([]byte(`{"format":2,"id":"a","kind":"delete"}`))
	require.ErrorIs(t, err, table.ErrUnsupported)
	for _, bad := range []string{``, `[]`, `{}`, `{"format":1}`, `{"format":1,"kind":"delete","operation":{"Removed":["x"]}}`, `{"format":1,"kind":"project"} {}`} {
		_, err := txn.Unmarshal([]byte(bad))
		require.ErrorIs(t, err, table.ErrCorrupt, "%s", bad)
	}
}

func FuzzUnmarshal(f *testing.F) {
	for _, op := range examples() {
		data, err := txn.Marshal(table.Transaction{ID: "x", Operation: op})
		require.NoError(f, err)
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if got, err := txn.Unmarshal(data); err == nil {
			again, err := txn.Marshal(got)
			require.NoError(t, err)
			back, err := txn.Unmarshal(again)
			require.NoError(t, err)
			require.Equal(t, got.Operation.Kind(), back.Operation.Kind())
		}
	})
}
