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

// asOldLanceWrote is the history that old releases wrote when they compacted pairs of
// fragments, of 10 rows each, of a table with stable row ids: no survivors, and a
// destination without an id.
func asOldLanceWrote(version uint64, pairs ...[2]uint64) (content []byte) {
	message := func(num protowire.Number, body []byte) []byte {
		return protowire.AppendBytes(protowire.AppendTag(nil, num, protowire.BytesType), body)
	}
	digest := func(id, rows uint64) []byte {
		b := binary.AppendUvarint([]byte{0x08}, id)
		return binary.AppendUvarint(append(b, 0x10), rows)
	}
	body := binary.AppendUvarint([]byte{0x08}, version)
	for _, p := range pairs {
		group := message(1, make([]byte, 8))
		group = append(group, message(2, digest(p[0], 10))...)
		group = append(group, message(2, digest(p[1], 10))...)
		group = append(group, message(3, digest(0, 20))...)
		body = append(body, message(3, group)...)
	}
	return message(1, body)
}

// withDamage gives the newest version of a table a history and indexes: rehome writes
// no such history, so the bytes of the version are changed.
func withDamage(ctx context.Context, t *testing.T, m *store.Mem, e *lance.Engine, history []byte, indexes ...*tablepb.IndexMetadata) *lance.Engine {
	t.Helper()
	name := "_versions/" + manifest.V2.Name(load(t, e, 0).Version)
	data, err := store.ReadAll(ctx, m, name, manifest.MaxSize)
	require.NoError(t, err)
	c, err := manifest.Decode(data)
	require.NoError(t, err)
	details, err := proto.Marshal(&tablepb.FragmentReuseIndexDetails{Content: &tablepb.FragmentReuseIndexDetails_Inline{Inline: history}})
	require.NoError(t, err)
	c.Indexes.Indices = append(indexes, &tablepb.IndexMetadata{
		Uuid: &tablepb.UUID{Uuid: make([]byte, 16)}, Name: "__lance_frag_reuse", DatasetVersion: 3, FragmentBitmap: manifest.CoverageBytes(nil),
		IndexDetails: &anypb.Any{TypeUrl: "/lance.table.FragmentReuseIndexDetails", Value: details},
	})
	data, err = c.Encode()
	require.NoError(t, err)
	require.NoError(t, m.Delete(ctx, name))
	require.NoError(t, m.Put(ctx, name, data, store.WriteOptions{}))
	e, err = lance.OpenStore(ctx, m, lance.Options{})
	require.NoError(t, err)
	return e
}

// tableOfIDs has stable row ids and so many fragments of 10 rows.
func tableOfIDs(ctx context.Context, t *testing.T, fragments int) (*store.Mem, *lance.Engine) {
	t.Helper()
	m := store.NewMem()
	e, err := lance.CreateStore(ctx, m, people, lance.CreateOptions{StableRowIDs: true}, lance.Options{})
	require.NoError(t, err)
	for i := range fragments {
		_, err := e.Append(ctx, rows(int64(10*i), 10), table.WriteOptions{})
		require.NoError(t, err)
	}
	return m, e
}

// A table with stable row ids that carries such a history is compacted, planned and
// trimmed, and the history can be dropped.
func TestReport15StableRowIDs(t *testing.T) {
	ctx := context.Background()
	m, e := tableOfIDs(ctx, t, 2)
	_, err := compaction.Compact(ctx, e, compaction.Options{})
	require.NoError(t, err)
	e = withDamage(ctx, t, m, e, asOldLanceWrote(3, [2]uint64{0, 1}))
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

// indexOf is an index of stable row ids on the first column, with a coverage as old
// releases left it: the fragments as they were.
func indexOf(id byte, name, kind string, version uint64, covers ...table.FragmentID) *tablepb.IndexMetadata {
	return &tablepb.IndexMetadata{
		Uuid: &tablepb.UUID{Uuid: append(make([]byte, 15), id)}, Name: name, Fields: []int32{0}, DatasetVersion: version,
		FragmentBitmap: manifest.CoverageBytes(covers), IndexDetails: &anypb.Any{TypeUrl: "/lance.table." + kind},
	}
}

// What indexes claim of a table whose damage is dropped: those of ids the fragments
// that the rows are in, as the ids are right; those of addresses nothing of them.
func TestReport15IndexesOfStableRowIDs(t *testing.T) {
	ctx := context.Background()
	m, e := tableOfIDs(ctx, t, 2)
	_, err := compaction.Compact(ctx, e, compaction.Options{})
	require.NoError(t, err)
	e = withDamage(ctx, t, m, e, asOldLanceWrote(3, [2]uint64{0, 1}),
		indexOf(1, "by id", "BitmapIndexDetails", 3, 0, 1), indexOf(2, "by address", "ZoneMapIndexDetails", 3, 0, 1))
	trim, err := compaction.Trim(ctx, e, compaction.TrimOptions{})
	require.NoError(t, err)
	require.False(t, trim.Committed)
	require.Equal(t, []string{"by address", "by id"}, trim.Transitions[0].NeededBy)
	trim, err = compaction.Trim(ctx, e, compaction.TrimOptions{DropDamaged: true})
	require.NoError(t, err)
	require.True(t, trim.Committed)
	claims := map[string][]table.FragmentID{}
	s := load(t, e, 0)
	for _, x := range s.Indexes {
		claims[x.Name] = x.Coverage
	}
	require.Equal(t, map[string][]table.FragmentID{"by id": {2}, "by address": {0, 1}}, claims)
	require.Nil(t, s.Reuse)
	require.Len(t, s.Fragments, 1)
}

// A trim that leaves a part of such a history is committed, and so is one that drops
// what is damaged and leaves what is not.
func TestReport15TrimOfAPart(t *testing.T) {
	ctx := context.Background()
	m, e := tableOfIDs(ctx, t, 4)
	_, err := compaction.Compact(ctx, e, compaction.Options{TargetRows: 20})
	require.NoError(t, err)
	require.Len(t, load(t, e, 0).Fragments, 2)
	history := asOldLanceWrote(5, [2]uint64{0, 1}, [2]uint64{2, 3})
	e = withDamage(ctx, t, m, e, history, indexOf(1, "first", "BitmapIndexDetails", 4, 0, 1))
	whole := text(t, e, load(t, e, 0))
	trim, err := compaction.Trim(ctx, e, compaction.TrimOptions{})
	require.NoError(t, err)
	require.True(t, trim.Committed)
	require.Equal(t, []int{1, 1}, []int{trim.Dropped, trim.Kept})
	s := load(t, e, 0)
	content, err := e.ReuseIndex(ctx, s)
	require.NoError(t, err)
	require.Equal(t, asOldLanceWrote(5, [2]uint64{0, 1}), content)

	// Nothing may be put into it.
	for name, up := range map[string][]byte{"another": asOldLanceWrote(5, [2]uint64{2, 3}), "more": history} {
		_, err = e.Commit(ctx, table.Proposal{
			Base: s, Transaction: table.Transaction{ReadVersion: s.Version, Operation: table.CreateIndex{}},
			Change: table.Change{Reuse: &table.ReuseIndexUpdate{Content: up}},
		})
		require.ErrorIs(t, err, table.ErrUnsupported, name)
	}
	require.Equal(t, whole, text(t, e, load(t, e, 0)))
	trim, err = compaction.Trim(ctx, e, compaction.TrimOptions{DropDamaged: true})
	require.ErrorContains(t, err, "the commit mixed rows that it covers with others")
	require.False(t, trim.Committed)
}
