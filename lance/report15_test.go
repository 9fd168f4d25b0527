package lance_test

import (
	"context"
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/rehome-db/rehome/compaction"
	"github.com/rehome-db/rehome/lance"
	tablepb "github.com/rehome-db/rehome/lance/internal/pb/table"
	"github.com/rehome-db/rehome/lance/manifest"
	"github.com/rehome-db/rehome/lance/store"
	"github.com/rehome-db/rehome/table"
)

// asOldLanceWrote is the history that old releases wrote when they compacted fragments
// 0 and 1, of 10 rows each, of a table with stable row ids: no survivors, and a
// destination without an id.
func asOldLanceWrote() []byte {
	message := func(num protowire.Number, body []byte) []byte {
		return protowire.AppendBytes(protowire.AppendTag(nil, num, protowire.BytesType), body)
	}
	digest := func(id, rows uint64) []byte {
		b := binary.AppendUvarint([]byte{0x08}, id)
		return binary.AppendUvarint(append(b, 0x10), rows)
	}
	group := message(1, make([]byte, 8))
	group = append(group, message(2, digest(0, 10))...)
	group = append(group, message(2, digest(1, 10))...)
	group = append(group, message(3, digest(0, 20))...)
	version := append([]byte{0x08, 3}, message(3, group)...)
	return message(1, version)
}

// A table with stable row ids that carries such a history is compacted, planned and
// trimmed, and the history can be dropped.
func TestReport15StableRowIDs(t *testing.T) {
	ctx := context.Background()
	m := store.NewMem()
	e, err := lance.CreateStore(ctx, m, people, lance.CreateOptions{StableRowIDs: true}, lance.Options{})
	require.NoError(t, err)
	for i := range 2 {
		_, err := e.Append(ctx, rows(int64(10*i), 10), table.WriteOptions{})
		require.NoError(t, err)
	}
	_, err = compaction.Compact(ctx, e, compaction.Options{})
	require.NoError(t, err)
	// rehome does not write such an entry, so the bytes of the version are changed.
	name := "_versions/" + manifest.V2.Name(load(t, e, 0).Version)
	data, err := store.ReadAll(ctx, m, name, manifest.MaxSize)
	require.NoError(t, err)
	c, err := manifest.Decode(data)
	require.NoError(t, err)
	details, err := proto.Marshal(&tablepb.FragmentReuseIndexDetails{Content: &tablepb.FragmentReuseIndexDetails_Inline{Inline: asOldLanceWrote()}})
	require.NoError(t, err)
	c.Indexes.Indices = append(c.Indexes.Indices, &tablepb.IndexMetadata{
		Uuid: &tablepb.UUID{Uuid: make([]byte, 16)}, Name: "__lance_frag_reuse", DatasetVersion: 3, FragmentBitmap: manifest.CoverageBytes(nil),
		IndexDetails: &anypb.Any{TypeUrl: "/lance.table.FragmentReuseIndexDetails", Value: details},
	})
	data, err = c.Encode()
	require.NoError(t, err)
	require.NoError(t, m.Delete(ctx, name))
	require.NoError(t, m.Put(ctx, name, data, store.WriteOptions{}))
	e, err = lance.OpenStore(ctx, m, lance.Options{})
	require.NoError(t, err)
	before := text(t, e, load(t, e, 0))

	_, err = e.Append(ctx, rows(20, 10), table.WriteOptions{})
	require.NoError(t, err)
	plan, err := compaction.PlanLatest(ctx, e, compaction.Options{FRI: compaction.FRINever})
	require.NoError(t, err)
	require.Len(t, plan.Tasks, 1)
	whole := text(t, e, load(t, e, 0))
	require.NotEqual(t, before, whole)
	report, err := compaction.Compact(ctx, e, compaction.Options{})
	require.NoError(t, err)
	require.True(t, report.Committed)
	require.False(t, report.FRI.Published)
	require.Equal(t, whole, text(t, e, load(t, e, 0)))

	trim, err := compaction.Trim(ctx, e, compaction.TrimOptions{RetainVersions: 100})
	require.NoError(t, err)
	require.False(t, trim.Committed)
	require.Contains(t, trim.Transitions[0].Damage, "fragment 0 occurs twice")
	trim, err = compaction.Trim(ctx, e, compaction.TrimOptions{RetainVersions: 100, DropDamaged: true})
	require.NoError(t, err)
	require.True(t, trim.Committed)
	s := load(t, e, 0)
	require.Nil(t, s.Reuse)
	require.Equal(t, whole, text(t, e, s))
}
