package dml_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rehome-db/rehome/compaction"
	"github.com/rehome-db/rehome/dml"
	"github.com/rehome-db/rehome/lance"
	"github.com/rehome-db/rehome/lance/store"
	"github.com/rehome-db/rehome/rebase"
	"github.com/rehome-db/rehome/table"
)

// TestTheTableIsMadeAnewMeanwhile: a table is dropped and another one made in its
// place, with as many versions and fragments. What is at an address then is not what a
// change that was computed before is about, and the history of versions does not tell:
// the change is a conflict.
func TestTheTableIsMadeAnewMeanwhile(t *testing.T) {
	m := store.NewMem()
	opts := lance.Options{Session: newSession(t)}
	anew := func() *lance.Engine {
		for _, name := range m.Names() {
			require.NoError(t, m.Delete(t.Context(), name))
		}
		e, err := lance.CreateStore(t.Context(), m, columns().Arrow(), lance.CreateOptions{}, opts)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, e.Close()) })
		for range 2 {
			_, err = dml.Execute(t.Context(), e, dml.Append{Rows: in(10, numbered(10))}, dml.Options{})
			require.NoError(t, err)
		}
		return e
	}
	for name, c := range map[string]change{
		"delete": dml.Delete{Where: where([]string{"n"}, func(r row) bool { return r.N == 3 })},
		"merge":  dml.MergeInsert{On: []string{"k"}, Source: in(5, numbered(3)), WhenMatched: dml.MatchedDelete, WhenNotMatched: dml.NotMatchedSkip},
	} {
		for _, compacted := range []bool{false, true} {
			e := anew()
			u, _, err := dml.Compute(t.Context(), e, snapshot(t, e, 0), c, dml.Options{})
			require.NoError(t, err)
			require.False(t, u.Affected.IsEmpty())
			data, err := json.Marshal(u)
			require.NoError(t, err)

			e = anew()
			if compacted {
				_, err = compaction.Compact(t.Context(), e, compaction.Options{})
				require.NoError(t, err)
			}
			want := values(contents(t, e, 0))
			var back rebase.Uncommitted
			require.NoError(t, json.Unmarshal(data, &back))
			_, err = rebase.Commit(t.Context(), e, back, rebase.Options{})
			require.ErrorIs(t, err, table.ErrConflict, "%s, compacted: %t", name, compacted)
			require.ErrorContains(t, err, "other files than", "%s, compacted: %t", name, compacted)
			require.Equal(t, want, values(contents(t, e, 0)))
		}
	}
}

func newSession(t *testing.T) *lance.Session {
	s, err := lance.NewSession(lance.SessionOptions{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}
