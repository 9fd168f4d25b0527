package lance

import (
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

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
	base := &version{contents: &manifest.Contents{Manifest: m, Indexes: &tablepb.IndexSection{}}, bases: basesOf(m)}
	f, g := someFragment(7, 3), someFragment(8, 0)
	for _, op := range []table.Operation{
		table.Append{Fragments: []table.Fragment{f, g}},
		table.Delete{Updated: []table.Fragment{f}, Removed: []table.FragmentID{1, 2}},
		table.Update{Updated: []table.Fragment{f}, New: []table.Fragment{g}, Removed: []table.FragmentID{3}, ModifiedFields: []int32{1}},
		table.Update{Updated: []table.Fragment{f}, New: []table.Fragment{}, Removed: []table.FragmentID{}, InPlace: true},
		table.Rewrite{Groups: []table.RewriteGroup{{Old: []table.Fragment{f}, New: []table.Fragment{g}}, {Old: []table.Fragment{g}, New: []table.Fragment{}}}},
		table.ReserveFragments{Count: 9},
	} {
		in := table.Transaction{ID: "u", ReadVersion: 7, Version: 8, Operation: op, Properties: map[string]string{"why": "test"}}
		msg, err := transactionMessage(in, base, nil, nil)
		require.NoError(t, err)
		encoded, err := manifest.EncodeTransaction(msg)
		require.NoError(t, err)
		decoded, err := manifest.DecodeTransaction(encoded)
		require.NoError(t, err)
		out, err := transactionFrom(decoded, m)
		require.NoError(t, err)
		require.Equal(t, in, out)
	}

	ix := table.IndexMeta{UUID: table.UUID{1}, Name: "i", Kind: "unknown", Fields: []int32{4}, DatasetVersion: 3, Coverage: []table.FragmentID{1}, CoverageKnown: true}
	msg, err := transactionMessage(table.Transaction{Operation: table.CreateIndex{New: []table.IndexMeta{ix}}}, base, nil, nil)
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
	require.Equal(t, "restore", kind(&tablepb.Transaction{Operation: &tablepb.Transaction_Restore_{}}))
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

func TestHostileTransactions(t *testing.T) {
	m := &tablepb.Manifest{Version: 8}
	for _, txn := range []*tablepb.Transaction{
		{Operation: &tablepb.Transaction_Append_{Append: &tablepb.Transaction_Append{Fragments: []*tablepb.DataFragment{{Id: 1 << 40}}}}},
		{Operation: &tablepb.Transaction_Delete_{Delete: &tablepb.Transaction_Delete{DeletedFragmentIds: []uint64{1 << 32}}}},
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
	base := &version{contents: &manifest.Contents{Manifest: &tablepb.Manifest{}, Indexes: &tablepb.IndexSection{}}}
	for _, op := range []table.Operation{
		table.Append{Fragments: []table.Fragment{{ID: 1, PhysicalRows: 3, Files: []table.DataFile{{Path: "data/a", Fields: []int32{0}, Columns: []int32{0}, Format: "2.1"}}}}},
		table.Delete{Removed: []table.FragmentID{1}}, table.ReserveFragments{Count: 1},
	} {
		msg, err := transactionMessage(table.Transaction{ID: "u", Operation: op}, base, nil, nil)
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
