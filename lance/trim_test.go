package lance_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rehome-db/rehome/compaction"
	"github.com/rehome-db/rehome/internal/testtable"
	"github.com/rehome-db/rehome/lance/manifest"
	"github.com/rehome-db/rehome/lance/store"
	"github.com/rehome-db/rehome/table"
)

// storedIndexChange returns the names of the index entries that the version's
// transaction adds and removes, as stored.
func storedIndexChange(t *testing.T, s store.Store, version uint64) (added, removed []string) {
	t.Helper()
	data, err := store.ReadAll(context.Background(), s, "_versions/"+manifest.V2.Name(version), manifest.MaxSize)
	require.NoError(t, err)
	c, err := manifest.Decode(data)
	require.NoError(t, err)
	tx, err := manifest.DecodeTransaction(c.Transaction)
	require.NoError(t, err)
	require.NotNil(t, tx.GetCreateIndex(), "%v", tx)
	for _, ix := range tx.GetCreateIndex().GetNewIndices() {
		added = append(added, ix.GetName())
	}
	for _, ix := range tx.GetCreateIndex().GetRemovedIndices() {
		removed = append(removed, ix.GetName())
	}
	return added, removed
}

// A trim is stored as stock engines store theirs: the history's entry replaced or,
// when nothing is left, removed. The file of a history that is not in use any more
// stays for the versions that are.
func TestTrim(t *testing.T) {
	const entry = "__lance_frag_reuse"
	ctx := context.Background()
	m := store.NewMem()
	e := newTable(t, m, 10, 10)
	compact := func() {
		t.Helper()
		report, err := compaction.Compact(ctx, e, compaction.Options{FRI: compaction.FRIAlways, TargetRows: 20})
		require.NoError(t, err)
		require.True(t, report.FRI.Published)
	}
	compact()
	for range 2 {
		_, err := e.Append(ctx, rows(20, 10), table.WriteOptions{})
		require.NoError(t, err)
	}
	compact()
	before := text(t, e, load(t, e, 0))

	report, err := compaction.Trim(ctx, e, compaction.TrimOptions{RetainVersions: 1})
	require.NoError(t, err)
	require.Equal(t, []int{1, 1}, []int{report.Dropped, report.Kept})
	added, removed := storedIndexChange(t, m, report.Version)
	require.Equal(t, []string{entry}, added)
	require.Equal(t, []string{entry}, removed)

	report, err = compaction.Trim(ctx, e, compaction.TrimOptions{})
	require.NoError(t, err)
	require.Equal(t, []int{1, 0}, []int{report.Dropped, report.Kept})
	added, removed = storedIndexChange(t, m, report.Version)
	require.Empty(t, added)
	require.Equal(t, []string{entry}, removed)
	s := load(t, e, 0)
	require.Nil(t, s.Reuse)
	require.Empty(t, s.Indexes)
	require.Equal(t, before, text(t, e, s))

	// A golden table: what stock engines wrote, and indexes of theirs that hold on.
	for _, name := range []string{"fri_handmade", "fri_handmade_stacked", "fri_handmade_v39"} {
		e := open(t, testtable.Get(t, name).Dir)
		plan, err := compaction.PlanTrim(ctx, e, load(t, e, 0), compaction.TrimOptions{})
		require.NoError(t, err)
		require.Zero(t, plan.Dropped, name)
		for _, x := range plan.Transitions {
			require.NotEmpty(t, x.NeededBy)
		}
	}
}

func TestTrimLeavesTheOldFile(t *testing.T) {
	ctx := context.Background()
	m := store.NewMem()
	e := newTable(t, m, 10)
	base := load(t, e, 0)
	content := arbitraryHistory(t, 300<<10)
	with, err := e.Commit(ctx, table.Proposal{
		Base: base, Transaction: table.Transaction{ID: "a", ReadVersion: base.Version, Operation: table.CreateIndex{}},
		Change: table.Change{Reuse: &table.ReuseIndexUpdate{Content: content}},
	})
	require.NoError(t, err)
	require.True(t, with.Reuse.External)
	without, err := e.Commit(ctx, table.Proposal{
		Base: with, Transaction: table.Transaction{ID: "b", ReadVersion: with.Version, Operation: table.CreateIndex{}},
		Change: table.Change{DropReuse: true},
	})
	require.NoError(t, err)
	require.Nil(t, without.Reuse)
	again, err := e.ReuseIndex(ctx, load(t, e, with.Version))
	require.NoError(t, err)
	require.Equal(t, content, again)
}

// arbitraryHistory stands in for a history: the engine does not look into one.
func arbitraryHistory(t *testing.T, size int) []byte {
	t.Helper()
	out := make([]byte, size)
	for i := range out {
		out[i] = byte(i)
	}
	return out
}
