package lance_test

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/stretchr/testify/require"

	"github.com/rehome-db/rehome/compaction"
	"github.com/rehome-db/rehome/dml"
	"github.com/rehome-db/rehome/fri"
	"github.com/rehome-db/rehome/lance"
	"github.com/rehome-db/rehome/lance/store"
	"github.com/rehome-db/rehome/rebase"
	"github.com/rehome-db/rehome/table"
)

// mute is a wrapper that says nothing of what it wraps, and open one that does.
type (
	mute    struct{ table.Engine }
	telling struct{ table.Engine }
)

func (w telling) Unwrap() table.Engine { return w.Engine }

// countsRewrites counts the calls of RewriteGroup.
type countsRewrites struct {
	*lance.Engine
	n atomic.Int32
}

func (c *countsRewrites) RewriteGroup(ctx context.Context, r table.RewriteRequest) (table.Written, error) {
	c.n.Add(1)
	return c.Engine.RewriteGroup(ctx, r)
}

// nameless is null in every row.
type nameless struct{}

func (nameless) Columns(table.Schema) ([]string, error) { return nil, nil }

func (nameless) Eval(_ context.Context, rec arrow.RecordBatch) (arrow.Array, error) {
	return array.NewNull(int(rec.NumRows())), nil
}

// has says whether an engine is found to have an optional interface.
func has[T any](e table.Engine) bool {
	_, ok := table.As[T](e)
	return ok
}

func TestAWrapperThatSaysWhatItWrapsLosesNoOptionalInterface(t *testing.T) {
	e := newTable(t, store.NewMem(), 5)
	for name, has := range map[string]func(table.Engine) bool{
		"Rewriter": has[table.Rewriter], "RowTaker": has[table.RowTaker], "RowIdentifier": has[table.RowIdentifier],
		"OrphanFinder": has[table.OrphanFinder], "Checker": has[table.Checker], "HistoryWeigher": has[table.HistoryWeigher],
		"ReuseAdviser": has[table.ReuseAdviser], "fri.Cacher": has[fri.Cacher], "fri.PartitionOpener": has[fri.PartitionOpener],
		"rebase.Rememberer": has[rebase.Rememberer],
	} {
		require.True(t, has(e), name)
		require.True(t, has(telling{telling{e}}), name)
		require.False(t, has(mute{e}), "%s: there is nothing to show here", name)
		require.False(t, has(mute{telling{e}}), name)
	}
}

// What asks for the interfaces finds them: rows with stable ids can only be updated by an
// engine that knows their ids, a Lance engine advises against needless reuse indexes, and
// rewrites fragments by itself.
func TestAWrappedEngineDoesWhatTheEngineDoes(t *testing.T) {
	create := func() *lance.Engine {
		e, err := lance.CreateStore(t.Context(), store.NewMem(), people, lance.CreateOptions{StableRowIDs: true}, lance.Options{})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, e.Close()) })
		for i := range int64(3) {
			_, err := e.Append(t.Context(), rows(10*i, 10), table.WriteOptions{})
			require.NoError(t, err)
		}
		return e
	}
	update := dml.Update{Where: everyThird{}, Set: map[string]dml.Expr{"name": nameless{}}}
	_, err := dml.Execute(t.Context(), mute{create()}, update, dml.Options{})
	require.ErrorIs(t, err, table.ErrUnsupported)

	e := create()
	c := &countsRewrites{Engine: e}
	w := telling{c}
	_, err = dml.Execute(t.Context(), w, update, dml.Options{})
	require.NoError(t, err)
	require.Equal(t, table.ReuseWhenRead, table.AdvisedReusePolicy(w))
	report, err := compaction.Compact(t.Context(), w, compaction.Options{})
	require.NoError(t, err)
	require.False(t, report.FRI.Published)
	require.NotZero(t, c.n.Load(), "the engine rewrites by itself")
}
