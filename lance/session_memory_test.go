package lance_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rehome-db/rehome/compaction"
	"github.com/rehome-db/rehome/deletion"
	"github.com/rehome-db/rehome/fri"
	"github.com/rehome-db/rehome/lance"
	"github.com/rehome-db/rehome/lance/store"
	"github.com/rehome-db/rehome/rebase"
	"github.com/rehome-db/rehome/table"
)

func TestChangesOfAddressInASession(t *testing.T) {
	session := newSession(t, lance.SessionOptions{})
	m := store.NewMem()
	newTable(t, m, 10)
	other := store.NewMem()
	newTable(t, other, 10)
	change, err := rebase.NewChangeOfAddress(nil, nil)
	require.NoError(t, err)
	key := rebase.MemoryKey{Table: "as its snapshots name it", Transaction: "x"}

	one, two := openIn(t, session, m), openIn(t, session, m)
	require.Nil(t, one.Memory().Get(key))
	one.Memory().Put(key, change)
	require.Same(t, change, two.Memory().Get(key))
	require.Nil(t, two.Memory().Get(rebase.MemoryKey{Table: key.Table, Transaction: "y"}))
	require.Nil(t, openIn(t, session, other).Memory().Get(key), "all stores in memory have one name, and are not one")
	require.Nil(t, openIn(t, newSession(t, lance.SessionOptions{}), m).Memory().Get(key))
	require.Nil(t, openStore(t, m).Memory())
	require.NoError(t, session.Close())
	require.Nil(t, one.Memory().Get(key))
	one.Memory().Put(key, change)
	require.Nil(t, one.Memory().Get(key))
}

// A compaction leaves in the session where the rows went, for whoever has it.
func TestACompactionIsRemembered(t *testing.T) {
	session := newSession(t, lance.SessionOptions{})
	m := store.NewMem()
	e := newTable(t, m, 10, 10, 10)
	_, err := e.DeleteRows(ctx, table.NewRowAddr(0, 3))
	require.NoError(t, err)
	read := load(t, e, 0)
	_, err = compaction.Compact(ctx, openIn(t, session, m), compaction.Options{})
	require.NoError(t, err)
	since, err := e.TransactionsSince(ctx, read.Version, 0)
	require.NoError(t, err)
	last := since[len(since)-1]
	require.Equal(t, "rewrite", last.Operation.Kind())

	key := rebase.MemoryKey{Table: read.Table, Transaction: last.ID}
	require.Nil(t, openIn(t, newSession(t, lance.SessionOptions{}), m).Memory().Get(key))
	change := openIn(t, session, m).Memory().Get(key)
	require.NotNil(t, change)
	moved, dead, err := change.Relocate(rebase.RowSet{1: deletion.Of(0, 9)})
	require.NoError(t, err)
	require.True(t, dead.IsEmpty())
	now := load(t, e, 0)
	require.Equal(t, []table.FragmentID{now.Fragments[0].ID}, moved.Fragments())
	require.True(t, deletion.Of(9, 18).Equal(moved[now.Fragments[0].ID]), "%v", moved)
}

func TestSegmentsInASession(t *testing.T) {
	session := newSession(t, lance.SessionOptions{})
	m := inMemory(t, "fri_handmade_stacked")
	alone := openStore(t, m)
	s := load(t, alone, 0)
	want, err := fri.Load(ctx, alone, s)
	require.NoError(t, err)
	// What is cached is there a little later.
	for deadline := time.Now().Add(10 * time.Second); session.Metrics().Reuse.Hits == 0; {
		require.True(t, time.Now().Before(deadline), "no segment was found again")
		h, err := fri.Load(ctx, openIn(t, session, m), s)
		require.NoError(t, err)
		tr := h.Translator()
		for id := range s.NextFragmentID {
			for o := range uint32(50) {
				a := table.NewRowAddr(id, o)
				got, err := tr.Translate(a)
				require.NoError(t, err)
				require.Equal(t, want.Translate(a), got)
			}
		}
	}
	require.Positive(t, session.Metrics().Reuse.Misses)
}
