package dml_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/scalar"
	"github.com/stretchr/testify/require"

	"github.com/rehome-db/rehome/commit"
	"github.com/rehome-db/rehome/compaction"
	"github.com/rehome-db/rehome/dml"
	"github.com/rehome-db/rehome/lance"
	"github.com/rehome-db/rehome/lance/store"
	"github.com/rehome-db/rehome/table"
)

// meeting is an engine of which others come in between, once, after the latest version
// was loaded for a change and before it is looked for again.
type meeting struct {
	*lance.Engine
	loads  int
	others func()
}

func (m *meeting) Load(ctx context.Context, version uint64) (*table.Snapshot, error) {
	if version == 0 {
		if m.loads++; m.loads == 2 {
			m.others()
		}
	}
	return m.Engine.Load(ctx, version)
}

// removeOldVersions does what a scheduled clean-up does: only the latest version stays,
// and what it refers to.
func removeOldVersions(t *testing.T, m *store.Mem, e *lance.Engine) {
	latest := snapshot(t, e, 0).Version
	var manifests []string
	for _, name := range m.Names() {
		if strings.HasPrefix(name, "_versions/") && strings.HasSuffix(name, ".manifest") {
			manifests = append(manifests, name)
		}
	}
	require.EqualValues(t, latest, len(manifests))
	// Newer versions have names that sort first.
	for _, name := range manifests[1:] {
		require.NoError(t, m.Delete(t.Context(), name))
	}
	for _, path := range orphans(t, e) {
		require.NoError(t, m.Delete(t.Context(), path))
	}
	require.Equal(t, latest, snapshot(t, e, 0).Version)
}

func orphans(t *testing.T, e *lance.Engine) (paths []string) {
	_, err := e.Orphans(t.Context(), func(o table.Orphan) { paths = append(paths, o.Path) })
	require.NoError(t, err)
	return paths
}

// TestReport06CompactionAndCleanUpMeanwhile: others compact the table and remove the
// versions in between, as a scheduled optimize does. Nothing of the change was sent by
// then, so its outcome is not unknown: it is computed again, or is a conflict, and no
// file of it is left.
func TestReport06CompactionAndCleanUpMeanwhile(t *testing.T) {
	third := where([]string{"n"}, func(r row) bool { return r.N%3 == 0 })
	for name, c := range map[string]struct {
		change change
		want   int  // rows in the end
		once   bool // the change cannot be computed a second time
	}{
		"delete": {change: dml.Delete{Where: third}, want: 13},
		"update": {change: dml.Update{Where: third, Set: map[string]dml.Expr{"f": dml.Constant(scalar.MakeScalar(0.5))}}, want: 20},
		"merge":  {change: dml.MergeInsert{On: []string{"k"}, Source: in(5, numbered(25)), WhenMatched: dml.MatchedUpdate}, want: 25},
		"append": {change: dml.Append{Rows: in(5, numbered(3))}, want: 20, once: true},
	} {
		t.Run(name, func(t *testing.T) {
			m := store.NewMem()
			e, err := lance.CreateStore(t.Context(), m, columns().Arrow(), lance.CreateOptions{}, lance.Options{})
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, e.Close()) })
			for part := range slices.Chunk(numbered(20), 10) {
				_, err = dml.Execute(t.Context(), e, dml.Append{Rows: in(10, part)}, dml.Options{})
				require.NoError(t, err)
			}
			busy := &meeting{Engine: e, others: func() {
				for range 2 {
					_, err := e.ReserveFragments(t.Context(), 1)
					require.NoError(t, err)
				}
				_, err := compaction.Compact(t.Context(), e, compaction.Options{})
				require.NoError(t, err)
				removeOldVersions(t, m, e)
			}}
			done, err := dml.Execute(t.Context(), busy, c.change, dml.Options{})
			require.GreaterOrEqual(t, busy.loads, 2)
			if c.once {
				require.Equal(t, table.OutcomeRetryable, table.Classify(err), "%v", err)
				require.NotErrorIs(t, err, table.ErrAmbiguousCommit)
			} else {
				require.NoError(t, err)
				require.Equal(t, 2, done.Attempts)
			}
			require.Len(t, contents(t, e, 0), c.want)
			require.Empty(t, orphans(t, e))
		})
	}
}

// TestReport06TheVersionIsRemovedWhileItIsRead: a file that went with the version which
// a change reads is no damage. The change is computed again.
func TestReport06TheVersionIsRemovedWhileItIsRead(t *testing.T) {
	m := store.NewMem()
	e, err := lance.CreateStore(t.Context(), m, columns().Arrow(), lance.CreateOptions{}, lance.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, e.Close()) })
	for part := range slices.Chunk(numbered(20), 10) {
		_, err = dml.Execute(t.Context(), e, dml.Append{Rows: in(10, part)}, dml.Options{})
		require.NoError(t, err)
	}
	// An engine of its own, which has no file open yet.
	reader, err := lance.OpenStore(t.Context(), m, lance.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, reader.Close()) })
	met := false
	where := dml.RowFunc([]string{"n"}, func(rec arrow.RecordBatch, i int) bool {
		if !met {
			met = true
			_, err := compaction.Compact(t.Context(), e, compaction.Options{})
			require.NoError(t, err)
			removeOldVersions(t, m, e)
		}
		return rowAt(rec, "", i).N%3 == 0
	})
	done, err := dml.Execute(t.Context(), reader, dml.Update{Where: where, Set: map[string]dml.Expr{"f": dml.Constant(scalar.MakeScalar(0.5))}}, dml.Options{Threads: 1})
	require.NoError(t, err)
	require.Equal(t, 2, done.Attempts)
	require.EqualValues(t, 7, done.Updated)
	require.Len(t, contents(t, e, 0), 20)
	require.Empty(t, orphans(t, e))
}

// robbed is an engine of which a clean-up takes the data files that nothing refers to
// yet, right before a commit.
type robbed struct {
	*lance.Engine
	m *store.Mem
	t *testing.T
}

func (r *robbed) Commit(ctx context.Context, p table.Proposal) (*table.Snapshot, error) {
	s, err := r.Engine.Commit(ctx, p)
	for _, f := range p.Change.Add {
		require.NoError(r.t, r.m.Delete(ctx, f.Files[0].Path))
	}
	return s, err
}

// TestReport14ChangesLookAgain: every change says at once that a clean-up took its files,
// and is not run again by itself.
func TestReport14ChangesLookAgain(t *testing.T) {
	m := store.NewMem()
	e, err := lance.CreateStore(t.Context(), m, columns().Arrow(), lance.CreateOptions{}, lance.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, e.Close()) })
	for part := range slices.Chunk(numbered(20), 10) {
		_, err = dml.Execute(t.Context(), e, dml.Append{Rows: in(10, part)}, dml.Options{})
		require.NoError(t, err)
	}
	before := snapshot(t, e, 0).Version
	r := &robbed{Engine: e, m: m, t: t}
	_, err = dml.Execute(t.Context(), r, dml.Append{Rows: in(10, numbered(3))}, dml.Options{})
	var lost *commit.LostError
	require.ErrorAs(t, err, &lost)
	require.Equal(t, before+1, lost.Version)
	require.Len(t, lost.Objects, 1)
	require.Equal(t, before+1, snapshot(t, e, 0).Version)
}
