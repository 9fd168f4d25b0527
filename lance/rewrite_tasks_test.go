package lance_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rehome-db/rehome/lance"
	"github.com/rehome-db/rehome/lance/store"
	"github.com/rehome-db/rehome/lance/store/fault"
	"github.com/rehome-db/rehome/table"
)

// With more small sources than metadata is kept of, columns are written side by side, so
// that a source is opened once for all of them, unless the limit of memory is too low for
// that.
func TestRewriteOpensManySourcesOnce(t *testing.T) {
	const fragments = 300
	s := fault.New(store.NewMem(), nil)
	// Of so few open files none are opened ahead: each is opened when it is needed.
	e, err := lance.CreateStore(t.Context(), s, people, lance.CreateOptions{}, lance.Options{OpenFiles: 2, CacheBytes: 200_000})
	require.NoError(t, err)
	defer e.Close()
	_, err = e.Append(t.Context(), rows(0, 2*fragments), table.WriteOptions{MaxRows: 2})
	require.NoError(t, err)
	base := load(t, e, 0)
	require.Len(t, base.Fragments, fragments)
	before, err := scan(t, e, base)
	require.NoError(t, err)

	opened := func() (n int) {
		for _, op := range s.Log() {
			if op.Kind == fault.Open {
				n++
			}
		}
		return n
	}
	rewriteAll := func(limit uint64) (table.Written, int) {
		already := opened()
		out, err := e.RewriteGroup(context.Background(), table.RewriteRequest{Snapshot: base, Sources: fragmentIDs(base), MemoryLimit: limit})
		require.NoError(t, err)
		return out, opened() - already
	}
	// Once to check them, and once for each column or for both.
	_, apart := rewriteAll(1)
	require.Equal(t, 3*fragments, apart)
	out, together := rewriteAll(0)
	require.Equal(t, 2*fragments, together)

	after, err := scan(t, e, replace(t, e, base, out))
	require.NoError(t, err)
	require.Equal(t, before, after)
}
