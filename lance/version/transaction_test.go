package version

import (
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	filepb "github.com/rehome-db/rehome/lance/internal/pb/file"
	tablepb "github.com/rehome-db/rehome/lance/internal/pb/table"
	"github.com/rehome-db/rehome/lance/manifest"
	"github.com/rehome-db/rehome/table"
)

// someFragment is what a fragment of a table can have, by id.
func someFragment(id table.FragmentID, deleted uint64) table.Fragment {
	f := table.Fragment{ID: id, PhysicalRows: 10, Files: []table.DataFile{
		{Path: "data/a.lance", Fields: []int32{0, 2}, Columns: []int32{0, 1}, Format: "2.1", Bytes: 99},
		{Path: "data/b.lance", Fields: []int32{1}, Columns: []int32{0}, Format: "2.1", Base: "/other"},
	}}
	if deleted > 0 {
		f.Deletion = &table.DeletionRef{Path: "_deletions/7-3-18446744073709551615.bin", Rows: deleted}
	}
	return f
}

func TestOperationsAreKept(t *testing.T) {
	m := &tablepb.Manifest{Version: 8, BasePaths: []*tablepb.BasePath{{Id: 5, Path: "/other", IsDatasetRoot: true}}}
	base := &Version{Contents: &manifest.Contents{Manifest: m, Indexes: &tablepb.IndexSection{}}, Bases: basesOf(m)}
	f, g := someFragment(7, 3), someFragment(8, 0)
	for _, op := range []table.Operation{
		table.Append{Fragments: []table.Fragment{f, g}},
		table.Delete{Updated: []table.Fragment{f}, Removed: []table.FragmentID{1, 2}},
		table.Update{Updated: []table.Fragment{f}, New: []table.Fragment{g}, Removed: []table.FragmentID{3}, InPlace: true, ModifiedFields: []int32{1}},
		table.Update{Updated: []table.Fragment{f}, New: []table.Fragment{}, Removed: []table.FragmentID{}, InPlace: true},
		table.Rewrite{Groups: []table.RewriteGroup{{Old: []table.Fragment{f}, New: []table.Fragment{g}}, {Old: []table.Fragment{g}, New: []table.Fragment{}}}},
		table.ReserveFragments{Count: 9},
	} {
		in := table.Transaction{ID: "u", ReadVersion: 7, Version: 8, Operation: op, Properties: map[string]string{"why": "test"}}
		msg, err := TransactionMessage(in, base, nil, nil)
		require.NoError(t, err)
		encoded, err := manifest.EncodeTransaction(msg)
		require.NoError(t, err)
		decoded, err := manifest.DecodeTransaction(encoded)
		require.NoError(t, err)
		out, err := transactionFrom(decoded, m)
		require.NoError(t, err)
		require.Equal(t, in, out)
	}

	ix := table.IndexMeta{UUID: table.UUID{1}, Name: "i", Kind: "unknown", Fields: []int32{4}, DatasetVersion: 3, Coverage: []table.FragmentID{1}, CoverageKnown: true, ByAddress: true}
	msg, err := TransactionMessage(table.Transaction{Operation: table.CreateIndex{New: []table.IndexMeta{ix}}}, base, nil, nil)
	require.NoError(t, err)
	out, err := transactionFrom(msg, m)
	require.NoError(t, err)
	got := out.Operation.(table.CreateIndex).New[0]
	got.Handle = nil
	require.Equal(t, ix, got)
}

func TestOperationsOfOthers(t *testing.T) {
	m := &tablepb.Manifest{Version: 8}
	kind := func(txn *tablepb.Transaction) string {
		out, err := transactionFrom(txn, m)
		require.NoError(t, err)
		_, unknown := out.Operation.(table.Unknown)
		require.True(t, unknown)
		return out.Operation.Kind()
	}
	require.Equal(t, "composite_operation", kind(&tablepb.Transaction{Operation: &tablepb.Transaction_CompositeOperation_{}}))
	require.Equal(t, "no operation", kind(&tablepb.Transaction{}))
	newer := &tablepb.Transaction{}
	newer.ProtoReflect().SetUnknown(protowire.AppendBytes(protowire.AppendTag(nil, 130, protowire.BytesType), []byte{1}))
	require.Equal(t, "operation 130", kind(newer))
	envelope := &tablepb.Transaction{}
	envelope.ProtoReflect().SetUnknown(protowire.AppendVarint(protowire.AppendTag(nil, 5, protowire.VarintType), 1))
	require.Equal(t, "no operation", kind(envelope))

	old := &tablepb.Transaction{Operation: &tablepb.Transaction_Rewrite_{Rewrite: &tablepb.Transaction_Rewrite{
		OldFragments: []*tablepb.DataFragment{{Id: 1}, {Id: 2}}, NewFragments: []*tablepb.DataFragment{{Id: 3}},
	}}}
	out, err := transactionFrom(old, m)
	require.NoError(t, err)
	groups := out.Operation.(table.Rewrite).Groups
	require.Len(t, groups, 1, "the form before there were groups")
	require.Len(t, groups[0].Old, 2)
}

// TestOperationsAreRead: operations that only others commit, from the format's own
// messages.
func TestOperationsAreRead(t *testing.T) {
	str := proto.String
	file := func(fields ...int32) *tablepb.DataFile { return &tablepb.DataFile{Path: "x.lance", Fields: fields} }
	for _, c := range []struct {
		name string
		in   *tablepb.Transaction
		want table.Operation
	}{
		{"merge", &tablepb.Transaction{Operation: &tablepb.Transaction_Merge_{Merge: &tablepb.Transaction_Merge{
			Fragments: []*tablepb.DataFragment{{Id: 3, PhysicalRows: 9}}, Schema: []*filepb.Field{{Name: "n"}},
		}}}, table.Merge{Fragments: []table.Fragment{{ID: 3, PhysicalRows: 9}}}},
		{"project", &tablepb.Transaction{Operation: &tablepb.Transaction_Project_{Project: &tablepb.Transaction_Project{}}}, table.Project{}},
		{"restore", &tablepb.Transaction{Operation: &tablepb.Transaction_Restore_{Restore: &tablepb.Transaction_Restore{Version: 4}}}, table.Restore{Target: 4}},
		{"overwrite", &tablepb.Transaction{Operation: &tablepb.Transaction_Overwrite_{Overwrite: &tablepb.Transaction_Overwrite{
			ConfigUpsertValues: map[string]string{"b": "1", "a": "2"},
		}}}, table.Overwrite{Fragments: []table.Fragment{}, Config: []string{"a", "b"}}},
		{"update_config", &tablepb.Transaction{Operation: &tablepb.Transaction_UpdateConfig_{UpdateConfig: &tablepb.Transaction_UpdateConfig{
			ConfigUpdates:         &tablepb.Transaction_UpdateMap{UpdateEntries: []*tablepb.Transaction_UpdateMapEntry{{Key: "k", Value: str("v")}, {Key: "gone"}}},
			TableMetadataUpdates:  &tablepb.Transaction_UpdateMap{Replace: true},
			SchemaMetadataUpdates: &tablepb.Transaction_UpdateMap{UpdateEntries: []*tablepb.Transaction_UpdateMapEntry{{Key: "s", Value: str("")}}},
			FieldMetadataUpdates:  map[int32]*tablepb.Transaction_UpdateMap{2: {UpdateEntries: []*tablepb.Transaction_UpdateMapEntry{{Key: "f"}}}},
		}}}, table.UpdateConfig{
			Config:         table.SettingsUpdate{Set: []string{"k"}, Unset: []string{"gone"}},
			TableMetadata:  table.SettingsUpdate{Replace: true},
			SchemaMetadata: table.SettingsUpdate{Set: []string{"s"}},
			FieldMetadata:  map[int32]table.SettingsUpdate{2: {Unset: []string{"f"}}},
		}},
		{"update_config", &tablepb.Transaction{Operation: &tablepb.Transaction_UpdateConfig_{UpdateConfig: &tablepb.Transaction_UpdateConfig{
			UpsertValues: map[string]string{"k": "v"}, DeleteKeys: []string{"gone"}, SchemaMetadata: map[string]string{"s": ""},
		}}}, table.UpdateConfig{
			Config:         table.SettingsUpdate{Set: []string{"k"}, Unset: []string{"gone"}},
			SchemaMetadata: table.SettingsUpdate{Set: []string{"s"}},
		}},
		{"data_replacement", &tablepb.Transaction{Operation: &tablepb.Transaction_DataReplacement_{DataReplacement: &tablepb.Transaction_DataReplacement{
			Replacements: []*tablepb.Transaction_DataReplacementGroup{{FragmentId: 4, NewFile: file(1, 2)}, {FragmentId: 5, NewFile: file(1)}},
		}}}, table.DataReplacement{Replaced: []table.FragmentFields{{Fragment: 4, Fields: []int32{1, 2}}, {Fragment: 5, Fields: []int32{1}}}}},
		{"data_overlay", &tablepb.Transaction{Operation: &tablepb.Transaction_DataOverlay_{}}, table.DataOverlay{}},
		{"update_mem_wal_state", &tablepb.Transaction{Operation: &tablepb.Transaction_UpdateMemWalState_{}}, table.UpdateMemWALState{}},
		{"update_bases", &tablepb.Transaction{Operation: &tablepb.Transaction_UpdateBases_{UpdateBases: &tablepb.Transaction_UpdateBases{
			NewBases: []*tablepb.BasePath{{Id: 2, Name: str("cold"), Path: "/cold"}},
		}}}, table.UpdateBases{Bases: []table.Base{{ID: 2, Name: "cold", Path: "/cold"}}}},
		{"clone", &tablepb.Transaction{Operation: &tablepb.Transaction_Clone_{}}, table.Clone{}},
		{"update", &tablepb.Transaction{Operation: &tablepb.Transaction_Update_{Update: &tablepb.Transaction_Update{
			InsertedRows: &tablepb.Transaction_KeyExistenceFilter{FieldIds: []int32{7}},
		}}}, table.Update{Updated: []table.Fragment{}, New: []table.Fragment{}, Removed: []table.FragmentID{}, UniqueKeys: []int32{7}}},
		{"update", &tablepb.Transaction{Operation: &tablepb.Transaction_Update_{Update: &tablepb.Transaction_Update{
			InsertedRows: &tablepb.Transaction_KeyExistenceFilter{},
		}}}, table.Update{Updated: []table.Fragment{}, New: []table.Fragment{}, Removed: []table.FragmentID{}, UniqueKeys: []int32{-1}}},
	} {
		encoded, err := manifest.EncodeTransaction(c.in)
		require.NoError(t, err)
		decoded, err := manifest.DecodeTransaction(encoded)
		require.NoError(t, err)
		out, err := transactionFrom(decoded, &tablepb.Manifest{Version: 8})
		require.NoError(t, err)
		require.Equal(t, c.want, out.Operation)
		require.Equal(t, c.name, out.Operation.Kind())
		require.Equal(t, c.name, operationName(decoded), "the name that the format gives it")
	}
}

func TestHostileTransactions(t *testing.T) {
	m := &tablepb.Manifest{Version: 8}
	for _, txn := range []*tablepb.Transaction{
		{Operation: &tablepb.Transaction_Append_{Append: &tablepb.Transaction_Append{Fragments: []*tablepb.DataFragment{{Id: 1 << 40}}}}},
		{Operation: &tablepb.Transaction_Delete_{Delete: &tablepb.Transaction_Delete{DeletedFragmentIds: []uint64{1 << 32}}}},
		{Operation: &tablepb.Transaction_DataReplacement_{DataReplacement: &tablepb.Transaction_DataReplacement{Replacements: []*tablepb.Transaction_DataReplacementGroup{{FragmentId: 1 << 40}}}}},
		{Operation: &tablepb.Transaction_CreateIndex_{CreateIndex: &tablepb.Transaction_CreateIndex{NewIndices: []*tablepb.IndexMetadata{{FragmentBitmap: []byte{1}}}}}},
	} {
		_, err := transactionFrom(txn, m)
		require.ErrorIs(t, err, table.ErrCorrupt)
		require.ErrorContains(t, err, "the transaction of version 8")
	}
	// A base that the manifest does not list (any more).
	out, err := transactionFrom(&tablepb.Transaction{Operation: &tablepb.Transaction_Append_{Append: &tablepb.Transaction_Append{
		Fragments: []*tablepb.DataFragment{{Files: []*tablepb.DataFile{{Path: "x", BaseId: proto.Uint32(3)}}}},
	}}}, m)
	require.NoError(t, err)
	require.Equal(t, "unlisted base 3", out.Operation.(table.Append).Fragments[0].Files[0].Base)
}

func FuzzOperations(f *testing.F) {
	base := &Version{Contents: &manifest.Contents{Manifest: &tablepb.Manifest{}, Indexes: &tablepb.IndexSection{}}}
	for _, op := range []table.Operation{
		table.Append{Fragments: []table.Fragment{{ID: 1, PhysicalRows: 3, Files: []table.DataFile{{Path: "data/a", Fields: []int32{0}, Columns: []int32{0}, Format: "2.1"}}}}},
		table.Delete{Removed: []table.FragmentID{1}}, table.ReserveFragments{Count: 1},
	} {
		msg, err := TransactionMessage(table.Transaction{ID: "u", Operation: op}, base, nil, nil)
		require.NoError(f, err)
		b, err := manifest.EncodeTransaction(msg)
		require.NoError(f, err)
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		txn, err := manifest.DecodeTransaction(data)
		if err != nil {
			return
		}
		out, err := transactionFrom(txn, &tablepb.Manifest{})
		if err != nil {
			require.Equal(t, table.OutcomeDamaged, table.Classify(err), "%v", err)
			return
		}
		require.NotEmpty(t, out.Operation.Kind())
	})
}
