package lance_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rehome-db/rehome/lance/store"
	"github.com/rehome-db/rehome/table"
)

// After a compaction the old files are held by the old versions alone, and no more
// versions are read than asked for.
func TestReport19OldVersionsHoldFiles(t *testing.T) {
	m := store.NewMem()
	e := newTable(t, m, 10, 10)
	s := load(t, e, 0)
	var before uint64
	for _, f := range s.Fragments {
		before += f.Bytes()
	}
	h, err := e.WeighHistory(ctx, s, 100)
	require.NoError(t, err)
	require.Equal(t, h.Versions, h.Read)
	idle := h.HeldBytes // transactions of the versions before

	_, err = e.Commit(ctx, rewrite(t, e, s, 0, 1))
	require.NoError(t, err)
	after := load(t, e, 0)
	h, err = e.WeighHistory(ctx, after, 100)
	require.NoError(t, err)
	require.Equal(t, int(after.Version), h.Versions)
	require.GreaterOrEqual(t, h.HeldBytes, before+idle)

	// What is not committed is nobody's.
	_, err = e.WriteFragments(ctx, after.Schema, rows(100, 5), table.WriteOptions{})
	require.NoError(t, err)
	again, err := e.WeighHistory(ctx, after, 100)
	require.NoError(t, err)
	require.Equal(t, h, again)

	few, err := e.WeighHistory(ctx, after, 1)
	require.NoError(t, err)
	require.Equal(t, 1, few.Read)
	require.Equal(t, h.Versions, few.Versions)
}
