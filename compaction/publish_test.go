package compaction

import (
	"encoding/json"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/rehome-db/rehome/deletion"
	"github.com/rehome-db/rehome/fri"
	"github.com/rehome-db/rehome/rebase"
	"github.com/rehome-db/rehome/table"
	"github.com/rehome-db/rehome/table/memengine"
)

func TestPublishOverAnAppend(t *testing.T) {
	e := newTable(t, 10, 10)
	results := executed(t, e, Options{})
	appendRows(t, e, 5)
	want := rowsAt(t, e, 0)

	out, err := Publish(ctx, e, results, Options{})
	require.NoError(t, err)
	require.EqualValues(t, 5, out.Version)
	require.EqualValues(t, 3, out.ReadVersion)
	require.Equal(t, []uint64{4}, out.RebasedOver)
	// Fragment 2 is the appended one; the new fragment is numbered after it.
	require.Equal(t, []rebase.PublishedGroup{{Sources: ids(t, "0-1"), Destinations: ids(t, "3")}}, out.Published)
	require.ElementsMatch(t, valuesOf(want), valuesOf(rowsAt(t, e, 0)))

	s, err := e.Load(ctx, 0)
	require.NoError(t, err)
	txs, err := e.TransactionsSince(ctx, 4, 0)
	require.NoError(t, err)
	require.EqualValues(t, 3, txs[0].ReadVersion, "the version that the tasks read, not the one replaced")
	old := txs[0].Operation.(table.Rewrite).Groups[0].Old
	require.Equal(t, results[0].Task.Sources, old)
	h, err := readHistory(ctx, e, s)
	require.NoError(t, err)
	require.EqualValues(t, 5, h.At(0).DatasetVersion(), "dated with the version of the commit")
}

func TestPublishLosesGroupsWhoseFragmentsChanged(t *testing.T) {
	for name, change := range map[string]func(t *testing.T, e table.Engine, p *probe) string{
		"every row deleted": func(t *testing.T, _ table.Engine, p *probe) string {
			require.NoError(t, p.DeleteRows(ctx, rowsOf(0, 0, 10)...))
			require.NoError(t, p.DeleteRows(ctx, rowsOf(1, 0, 10)...))
			return "no row of it is left"
		},
		"compacted by somebody else": func(t *testing.T, e table.Engine, _ *probe) string {
			_, err := Compact(ctx, e, Options{ExcludeFragments: ids(t, "2-3")})
			require.NoError(t, err)
			return "version 8: rewrite replaces the row addresses of fragment 0, which rewrite replaced"
		},
	} {
		t.Run(name, func(t *testing.T) {
			e := newTable(t, 10, 10, 10, 10)
			// An index keeps the fragments in two groups.
			_, err := e.AddIndex(ctx, table.IndexMeta{Name: "i", Coverage: ids(t, "2-3"), CoverageKnown: true, Reuse: table.ReuseThrough})
			require.NoError(t, err)
			require.NoError(t, e.DeleteRows(ctx, table.NewRowAddr(1, 9)))
			p := &probe{Engine: e}
			results := executed(t, p, Options{})
			require.Len(t, results, 2)
			reason := change(t, e, p)
			want := sortedValues(rowsAt(t, e, 0))
			lost := results[0].Objects

			var infos []GroupLostInfo
			out, err := Publish(ctx, p, results, Options{Events: Events{GroupLost: func(i GroupLostInfo) { infos = append(infos, i) }}})
			require.NoError(t, err)
			require.Equal(t, []rebase.LostGroup{{Sources: ids(t, "0-1"), Reason: reason}}, out.Lost)
			require.Equal(t, []GroupLostInfo{{Sources: ids(t, "0-1"), Reason: reason}}, infos)
			require.Len(t, out.Published, 1)
			require.Equal(t, ids(t, "2-3"), out.Published[0].Sources)
			require.Equal(t, want, sortedValues(rowsAt(t, e, 0)))
			for _, o := range lost {
				_, err := e.Stat(ctx, o)
				require.ErrorIs(t, err, table.ErrNotFound)
			}
			require.Empty(t, orphans(t, e))
		})
	}
}

func TestPublishWithNothingLeftIsAConflict(t *testing.T) {
	e := newTable(t, 10, 10)
	results := executed(t, e, Options{})
	appendRows(t, e, 5)
	_, err := Compact(ctx, e, Options{})
	require.NoError(t, err)
	want := rowsAt(t, e, 0)

	_, err = Publish(ctx, e, results, Options{})
	require.ErrorIs(t, err, table.ErrConflict)
	require.Equal(t, table.OutcomeRetryable, table.Classify(err))
	var conflict *rebase.ConflictError
	require.ErrorAs(t, err, &conflict)
	require.Equal(t, []rebase.LostGroup{{Sources: ids(t, "0-1"), Reason: "version 5: rewrite replaces the row addresses of fragment 0, which rewrite replaced"}}, conflict.Lost)
	require.Equal(t, want, rowsAt(t, e, 0))
	require.Empty(t, orphans(t, e))

	// Doing it again works.
	appendRows(t, e, 5)
	want = rowsAt(t, e, 0)
	report, err := Compact(ctx, e, Options{})
	require.NoError(t, err)
	require.True(t, report.Committed)
	require.Equal(t, valuesOf(want), valuesOf(rowsAt(t, e, 0)))
}

// TestIndexBuiltBeforeTheCommit: a group was planned while no index
// covered it, and one that covers half of it was built in the meantime.
func TestIndexBuiltBeforeTheCommit(t *testing.T) {
	publish := func(t *testing.T, opts Options, covers string, reuse table.ReuseSupport) (*memengine.Engine, Publication, error) {
		e := newTable(t, 10, 10)
		p := &probe{Engine: e}
		results := executed(t, p, opts)
		_, err := p.AddIndex(ctx, table.IndexMeta{Name: "new", Kind: "X", Coverage: ids(t, covers), CoverageKnown: true, Reuse: reuse})
		require.NoError(t, err)
		out, err := Publish(ctx, p, results, Options{})
		return e, out, err
	}
	t.Run("half covered and read through", func(t *testing.T) {
		e, _, err := publish(t, Options{}, "0", table.ReuseThrough)
		require.ErrorIs(t, err, table.ErrConflict)
		require.ErrorContains(t, err, `index "new" covers 1 of its 2 fragments`)
		require.Empty(t, orphans(t, e))
	})
	t.Run("covered and read through", func(t *testing.T) {
		e, out, err := publish(t, Options{}, "0-1", table.ReuseThrough)
		require.NoError(t, err)
		require.Equal(t, ActionThrough, out.Decision.Indexes[0].Action)
		s, err := e.Load(ctx, 0)
		require.NoError(t, err)
		require.Equal(t, ids(t, "2"), s.Indexes[0].Coverage)
		require.Equal(t, 1, out.Transitions)
	})
	t.Run("half covered and masked", func(t *testing.T) {
		e, out, err := publish(t, Options{}, "0", table.ReuseMasked)
		require.NoError(t, err)
		require.Equal(t, ActionMasked, out.Decision.Indexes[0].Action)
		s, err := e.Load(ctx, 0)
		require.NoError(t, err)
		require.True(t, s.Indexes[0].CoverageKnown)
		require.Empty(t, s.Indexes[0].Coverage)
	})
	t.Run("of a kind that refuses", func(t *testing.T) {
		e, out, err := publish(t, Options{}, "0-1", table.ReuseRefuses)
		require.NoError(t, err)
		require.Equal(t, ActionLeft, out.Decision.Indexes[0].Action)
		require.Zero(t, out.Transitions)
		s, err := e.Load(ctx, 0)
		require.NoError(t, err)
		require.Nil(t, s.Reuse)
		require.Equal(t, ids(t, "0-1"), s.Indexes[0].Coverage, "untouched")
	})
	t.Run("of a kind that refuses where a fragment reuse index was demanded", func(t *testing.T) {
		e, _, err := publish(t, Options{FRI: FRIAlways}, "0-1", table.ReuseRefuses)
		require.ErrorIs(t, err, table.ErrUnsupported)
		require.Empty(t, orphans(t, e))
	})
}

// TestTwoCompactionsOfDisjointFragmentsKeepEachOthersHistory: both read the
// same version; the second merges into what the first published.
func TestTwoCompactionsOfDisjointFragmentsKeepEachOthersHistory(t *testing.T) {
	e := newTable(t, 10, 10, 10, 10)
	before := rowsAt(t, e, 0)
	first := executed(t, e, Options{ExcludeFragments: ids(t, "2-3")})
	second := executed(t, e, Options{ExcludeFragments: ids(t, "0-1")})
	_, err := Publish(ctx, e, first, Options{})
	require.NoError(t, err)
	out, err := Publish(ctx, e, second, Options{})
	require.NoError(t, err)
	require.Empty(t, out.Lost)

	s, err := e.Load(ctx, 0)
	require.NoError(t, err)
	h, err := readHistory(ctx, e, s)
	require.NoError(t, err)
	require.Equal(t, 2, h.Len())
	requireTranslated(t, h, before, rowsAt(t, e, 0))
	require.Empty(t, orphans(t, e))
}

// requireTranslated: every row that was alive then and is now is found by its old
// address, and a row that is not alive is not found where another row is.
func requireTranslated(t tester, h *fri.History, then, now []row) {
	t.Helper()
	at := map[int64]table.RowAddr{}
	occupied := map[table.RowAddr]bool{}
	for _, r := range now {
		at[r.value] = r.addr
		occupied[r.addr] = true
	}
	for _, r := range then {
		got := h.Translate(r.addr)
		addr, alive := at[r.value]
		switch {
		case alive:
			require.NotEqual(t, fri.Deleted, got.State, "row %d of %v is alive", r.value, r.addr)
			require.Equal(t, addr, got.Addr, "row %d of %v", r.value, r.addr)
			require.Equal(t, addr == r.addr, got.State == fri.Unaffected)
		case got.State != fri.Deleted:
			require.False(t, occupied[got.Addr], "row %d of %v is dead, and is taken for the one at %v", r.value, r.addr, got.Addr)
		}
	}
}

func TestPublishChecksThatFilesAreStillThere(t *testing.T) {
	e := newTable(t, 10, 10)
	before := rowsAt(t, e, 0)
	results := executed(t, e, Options{})
	require.NoError(t, e.Delete(ctx, results[0].Objects[0]))
	_, err := Publish(ctx, e, results, Options{})
	require.ErrorIs(t, err, table.ErrConflict)
	require.ErrorContains(t, err, results[0].Objects[0].Path+" was removed before it could be committed")
	require.Equal(t, before, rowsAt(t, e, 0))

	results = executed(t, e, Options{})
	results[0].Objects[0].Bytes++
	_, err = Publish(ctx, e, results, Options{})
	require.ErrorIs(t, err, table.ErrCorrupt)
	require.ErrorContains(t, err, "has 160 bytes, 161 were written")
	require.Equal(t, before, rowsAt(t, e, 0))
	require.Empty(t, orphans(t, e))
}

func TestPublishOfAResultThatTravelled(t *testing.T) {
	e := newTable(t, 10, 10, 10)
	require.NoError(t, e.DeleteRows(ctx, table.NewRowAddr(0, 0), table.NewRowAddr(2, 9)))
	before := rowsAt(t, e, 0)
	var results []Result
	data, err := json.Marshal(executed(t, e, Options{}))
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(data, &results))
	_, err = Publish(ctx, e, results, Options{})
	require.NoError(t, err)
	s, err := e.Load(ctx, 0)
	require.NoError(t, err)
	h, err := readHistory(ctx, e, s)
	require.NoError(t, err)
	require.Equal(t, "0(10-1) 1(10) 2(10-1) -> 3(28)", h.At(0).String())
	requireTranslated(t, h, before, rowsAt(t, e, 0))
	require.Equal(t, fri.Deleted, h.Translate(table.NewRowAddr(0, 0)).State)
}

func TestPublishRefusesResultsThatDoNotBelongTogether(t *testing.T) {
	e := newTable(t, 10, 10)
	results := executed(t, e, Options{})
	for name, spoil := range map[string]func(rs []Result) []Result{
		"none":              func([]Result) []Result { return nil },
		"one twice":         func(rs []Result) []Result { return append(rs, rs[0]) },
		"without an id":     func(rs []Result) []Result { rs[0].ID = ""; return rs },
		"rows do not add":   func(rs []Result) []Result { rs[0].Task.Rows++; return rs },
		"no sources":        func(rs []Result) []Result { rs[0].Task.Sources = nil; return rs },
		"policy of its own": func(rs []Result) []Result { rs[0].Task.Publishing.IndexPolicy = IndexRemap; return rs },
		"different options": func(rs []Result) []Result {
			other := rs[0]
			other.ID, other.Task.Publishing.FRI = "other", FRINever
			return append(rs, other)
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Publish(ctx, e, spoil(append([]Result(nil), results...)), Options{})
			require.Error(t, err)
		})
	}
	// They were refused and not taken: they can still be published.
	_, err := Publish(ctx, e, results, Options{})
	require.NoError(t, err)
}

func TestOtherWritersAreFaster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newTable(t, 10, 10)
		races := 3
		p := &probe{Engine: e}
		p.before = func(op string) error {
			if races > 0 && len(op) > 6 && op[:6] == "commit" {
				races--
				appendRows(t, e, 1)
			}
			return nil
		}
		var pauses int
		report, err := Compact(ctx, p, Options{Events: Events{Backoff: func(i BackoffInfo) {
			pauses++
			require.Positive(t, i.Pause)
		}}})
		require.NoError(t, err)
		require.Equal(t, 3, pauses)
		require.Equal(t, 4, report.Attempts)
		require.Equal(t, []uint64{4, 5, 6}, report.RebasedOver)
		require.EqualValues(t, 7, report.Version)
		require.Empty(t, orphans(t, e))

		// For ever.
		appendRows(t, e, 10)
		races = 1000
		before := sortedValues(rowsAt(t, e, 0))
		_, err = Compact(ctx, p, Options{MaxAttempts: 5})
		require.ErrorIs(t, err, table.ErrConflict)
		require.ErrorContains(t, err, "other writers were faster 5 times")
		require.Equal(t, 995, races)
		require.Subset(t, sortedValues(rowsAt(t, e, 0)), before)
		require.Empty(t, orphans(t, e))
	})
}

// TestReadVersionIsTheOldest: results of tasks that read different versions
// are published together.
func TestReadVersionIsTheOldest(t *testing.T) {
	e := newTable(t, 10, 10)
	results := executed(t, e, Options{})
	appendRows(t, e, 10)
	appendRows(t, e, 10)
	results = append(executed(t, e, Options{ExcludeFragments: ids(t, "0-1")}), results...)
	out, err := Publish(ctx, e, results, Options{})
	require.NoError(t, err)
	require.EqualValues(t, 3, out.ReadVersion)
	require.Equal(t, []uint64{4, 5}, out.RebasedOver)
	txs, err := e.TransactionsSince(ctx, 5, 0)
	require.NoError(t, err)
	require.EqualValues(t, 3, txs[0].ReadVersion)
	require.Len(t, out.Published, 2)
	require.Equal(t, ids(t, "0-1"), out.Published[0].Sources)
	require.Equal(t, 2, out.Transitions)
}

// TestGroupWithoutALiveRow: nothing is written, the fragments go, and no change of
// address is recorded. (The engine removes such fragments when the last row is
// deleted; others do not.)
func TestGroupWithoutALiveRow(t *testing.T) {
	e := newTable(t, 4, 5)
	index, err := e.AddIndex(ctx, table.IndexMeta{Name: "i", Coverage: ids(t, "0-1"), CoverageKnown: true, Reuse: table.ReuseThrough})
	require.NoError(t, err)
	base, err := e.Load(ctx, 0)
	require.NoError(t, err)
	change := table.Change{SetDeletion: map[table.FragmentID]*table.DeletionRef{}}
	for _, f := range base.Fragments {
		ref, err := e.WriteDeletions(ctx, f.ID, base.Version, deletion.Range(0, f.PhysicalRows))
		require.NoError(t, err)
		change.SetDeletion[f.ID] = &ref
	}
	_, err = e.Commit(ctx, table.Proposal{Base: base, Transaction: table.Transaction{ID: "x", Operation: table.Delete{}}, Change: change})
	require.NoError(t, err)

	for _, target := range []uint64{3, 100} {
		plan, err := PlanLatest(ctx, e, Options{TargetRows: target})
		require.NoError(t, err)
		require.Len(t, plan.Tasks, 1)
		require.Equal(t, "no live row is left", plan.Tasks[0].Reason[len(plan.Tasks[0].Reason)-19:])
	}
	report, err := Compact(ctx, e, Options{})
	require.NoError(t, err)
	require.True(t, report.Committed)
	require.Equal(t, 2, report.FragmentsRemoved)
	require.Zero(t, report.FragmentsAdded)
	require.Equal(t, FRIReport{}, report.FRI)
	s, err := e.Load(ctx, 0)
	require.NoError(t, err)
	require.Empty(t, s.Fragments)
	require.Nil(t, s.Reuse)
	require.Equal(t, index, s.Indexes[0].UUID)
	require.Equal(t, ids(t, "0-1"), s.Indexes[0].Coverage, "the claim is what keeps stale addresses from being followed")
}
