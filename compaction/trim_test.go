package compaction

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rehome-db/rehome/fri"
	"github.com/rehome-db/rehome/table"
	"github.com/rehome-db/rehome/table/memengine"
)

// builtIndex is an index of the tests with what a real one has in its files: the
// address of every row that it covers, by the row's value, as its builder read it.
type builtIndex struct {
	id      table.UUID
	entries []row
}

// buildIndex reads a version, the latest if it is 0, and commits an index over the
// given fragments of it, all if none is given. Like stock engines it refuses to
// commit over a rewrite of what it read.
func buildIndex(t tester, e *memengine.Engine, version uint64, reuse table.ReuseSupport, over ...table.FragmentID) (builtIndex, error) {
	t.Helper()
	s, err := e.Load(ctx, version)
	require.NoError(t, err)
	if over == nil {
		over = fragmentIDs(s.Fragments)
	}
	var b builtIndex
	for _, r := range rowsAt(t, e, s.Version) {
		if slices.Contains(over, r.addr.Fragment()) {
			b.entries = append(b.entries, r)
		}
	}
	since, err := e.TransactionsSince(ctx, s.Version, 0)
	require.NoError(t, err)
	for _, tx := range since {
		if op, ok := tx.Operation.(table.Rewrite); ok {
			for _, g := range op.Groups {
				if slices.ContainsFunc(g.Old, func(f table.Fragment) bool { return slices.Contains(over, f.ID) }) {
					return b, table.ErrConflict
				}
			}
		}
	}
	b.id, err = e.AddIndex(ctx, table.IndexMeta{
		Name: fmt.Sprintf("i%d", s.Version), Kind: "X", DatasetVersion: s.Version, Coverage: over, CoverageKnown: true, Reuse: reuse,
	})
	require.NoError(t, err)
	return b, nil
}

func dropIndex(t tester, e *memengine.Engine, id table.UUID) {
	t.Helper()
	base, err := e.Load(ctx, 0)
	require.NoError(t, err)
	_, err = e.Commit(ctx, table.Proposal{
		Base: base, Change: table.Change{DropIndexes: []table.UUID{id}},
		Transaction: table.Transaction{ID: "drop", Operation: table.CreateIndex{}},
	})
	require.NoError(t, err)
}

// requireResolves: every entry of the index leads to where its row is now, if the
// row is alive.
func requireResolves(t tester, e *memengine.Engine, b builtIndex) {
	t.Helper()
	h := historyOf(t, e)
	now := map[int64]table.RowAddr{}
	for _, r := range rowsAt(t, e, 0) {
		now[r.value] = r.addr
	}
	for _, r := range b.entries {
		if at, alive := now[r.value]; alive {
			to := h.Translate(r.addr)
			require.True(t, to.State != fri.Deleted && to.Addr == at, "the row at %v is at %v, and the index finds %v", r.addr, at, to)
		}
	}
}

func historyOf(t tester, e table.Engine) *fri.History {
	t.Helper()
	s, err := e.Load(ctx, 0)
	require.NoError(t, err)
	h, err := readHistory(ctx, e, s)
	require.NoError(t, err)
	return h
}

func TestTrim(t *testing.T) {
	e := newTable(t, 10, 10)
	old, err := buildIndex(t, e, 0, table.ReuseThrough)
	require.NoError(t, err)
	_, err = Compact(ctx, e, Options{})
	require.NoError(t, err)

	// The index holds the old addresses: its stored coverage says 2 by now, its
	// files do not.
	report, err := Trim(ctx, e, TrimOptions{})
	require.NoError(t, err)
	require.False(t, report.Committed)
	require.EqualValues(t, 5, report.Version)
	require.Equal(t, 1, report.Kept)
	require.Equal(t, []TrimTransition{{
		Sources: ids(t, "0-1"), Destinations: ids(t, "2"), Committed: 5, NeededBy: []string{"i3"}, Reason: "index i3",
	}}, report.Transitions)
	requireResolves(t, e, old)

	// A new one does not, and the old one goes.
	built, err := buildIndex(t, e, 0, table.ReuseThrough)
	require.NoError(t, err)
	dropIndex(t, e, old.id)
	before := rowsAt(t, e, 0)
	s, err := e.Load(ctx, 0)
	require.NoError(t, err)
	plan, err := PlanTrim(ctx, e, s, TrimOptions{})
	require.NoError(t, err)
	require.Equal(t, 1, plan.Dropped)
	require.False(t, plan.Committed)

	var said []string
	report, err = Trim(ctx, e, TrimOptions{Events: Events{CommitEnd: func(i CommitInfo) { said = append(said, i.String()) }}})
	require.NoError(t, err)
	require.Equal(t, []string{"commit attempt 1 over version 7: trim of the fragment reuse index, became version 8"}, said)
	require.True(t, report.Committed)
	require.EqualValues(t, 8, report.Version)
	require.Equal(t, []int{1, 0}, []int{report.Dropped, report.Kept})
	require.NotZero(t, report.BytesBefore)
	require.Zero(t, report.BytesAfter)
	require.Equal(t, before, rowsAt(t, e, 0))
	requireResolves(t, e, built)
	s, err = e.Load(ctx, 0)
	require.NoError(t, err)
	require.Nil(t, s.Reuse)
	txs, err := e.TransactionsSince(ctx, 7, 0)
	require.NoError(t, err)
	require.Equal(t, "create_index", txs[0].Operation.Kind())
	require.EqualValues(t, 7, txs[0].ReadVersion)

	// The versions before are as they were, and there is nothing left to do.
	s, err = e.Load(ctx, 7)
	require.NoError(t, err)
	require.NotNil(t, s.Reuse)
	report, err = Trim(ctx, e, TrimOptions{})
	require.NoError(t, err)
	require.False(t, report.Committed)
	require.EqualValues(t, 8, report.Version)
	require.Empty(t, report.Transitions)
}

// A trim leaves what readers of old versions may ask for, by number of versions or
// by time.
func TestTrimLeavesReadersTheirWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newTable(t, 10, 10) // version 3
		compact := func(appended ...int) {
			for _, n := range appended {
				appendRows(t, e, n)
			}
			_, err := Compact(ctx, e, Options{TargetRows: 20})
			require.NoError(t, err)
			time.Sleep(time.Hour)
		}
		compact()       // version 4
		compact(10, 10) // version 7
		compact(10, 10) // version 10
		require.Equal(t, 3, historyOf(t, e).Len())
		s, err := e.Load(ctx, 0)
		require.NoError(t, err)
		require.EqualValues(t, 10, s.Version)
		for _, c := range []struct {
			opts TrimOptions
			kept int
		}{
			{TrimOptions{RetainVersions: 1}, 1},
			{TrimOptions{RetainVersions: 3}, 1},
			{TrimOptions{RetainVersions: 4}, 2},
			{TrimOptions{RetainVersions: 1 << 40}, 3},
			{TrimOptions{ReaderWindow: time.Minute}, 0},
			{TrimOptions{ReaderWindow: 90 * time.Minute}, 1},
			{TrimOptions{ReaderWindow: 150 * time.Minute}, 2},
			{TrimOptions{ReaderWindow: 24 * time.Hour}, 3},
			{TrimOptions{ReaderWindow: time.Minute, RetainVersions: 4}, 2},
			{TrimOptions{}, 0},
		} {
			plan, err := PlanTrim(ctx, e, s, c.opts)
			require.NoError(t, err)
			require.Equal(t, c.kept, plan.Kept, "%+v", c.opts)
		}
		report, err := Trim(ctx, e, TrimOptions{RetainVersions: 1})
		require.NoError(t, err)
		require.Equal(t, 2, report.Dropped)
		require.Equal(t, 1, historyOf(t, e).Len())
		require.Less(t, report.BytesAfter, report.BytesBefore)
		_, err = Trim(ctx, e, TrimOptions{ReaderWindow: -1})
		require.ErrorContains(t, err, "ReaderWindow")
	})
}

// Stock writers record the version that they held. An index built on that version
// is older than the rewrite all the same.
func TestTrimGoesByTheCommit(t *testing.T) {
	e := newTable(t, 10, 10)
	built, err := buildIndex(t, e, 0, table.ReuseThrough) // on version 3
	require.NoError(t, err)
	_, err = Compact(ctx, recordsReadVersion{e, 1}, Options{})
	require.NoError(t, err)
	require.EqualValues(t, 4, historyOf(t, e).At(0).DatasetVersion())
	late, err := buildIndex(t, e, 0, table.ReuseThrough)
	require.NoError(t, err)
	dropIndex(t, e, built.id)
	report, err := Trim(ctx, e, TrimOptions{})
	require.NoError(t, err)
	require.Equal(t, 1, report.Dropped, "built on the commit itself")
	requireResolves(t, e, late)

	// The same, but the index was built on the version that is recorded.
	e = newTable(t, 10, 10)
	appendRows(t, e, 10) // 4
	early, err := buildIndex(t, e, 4, table.ReuseThrough)
	require.NoError(t, err) // 5
	_, err = Compact(ctx, recordsReadVersion{e, 2}, Options{})
	require.NoError(t, err) // 6, recorded as 4
	h := historyOf(t, e)
	require.EqualValues(t, 4, h.At(0).DatasetVersion())
	s, err := e.Load(ctx, 0)
	require.NoError(t, err)
	require.EqualValues(t, 4, s.Indexes[0].DatasetVersion)
	report, err = Trim(ctx, e, TrimOptions{})
	require.NoError(t, err)
	require.Zero(t, report.Dropped)
	require.EqualValues(t, 6, report.Transitions[0].Committed)
	requireResolves(t, e, early)
}

// recordsReadVersion is an engine of a writer that dates transitions so many
// versions before the commit.
type recordsReadVersion struct {
	*memengine.Engine
	back uint64
}

func (r recordsReadVersion) Commit(ctx context.Context, p table.Proposal) (*table.Snapshot, error) {
	if p.Change.Reuse != nil {
		h, err := fri.Decode(p.Change.Reuse.Content, 0)
		if err != nil {
			return nil, err
		}
		dated := &fri.History{}
		for _, t := range h.All() {
			if dated, err = dated.Append(t.DatasetVersion()-r.back, t); err != nil {
				return nil, err
			}
		}
		up := *p.Change.Reuse
		up.Content = dated.Encode()
		p.Change.Reuse = &up
	}
	return r.Engine.Commit(ctx, p)
}

// forgetful has lost the versions before a certain one.
type forgetful struct {
	*memengine.Engine
	oldest uint64
}

func (f forgetful) Load(ctx context.Context, v uint64) (*table.Snapshot, error) {
	if v > 0 && v < f.oldest {
		return nil, table.ErrNotFound
	}
	return f.Engine.Load(ctx, v)
}

// With old versions removed, when a transition was committed is known less well,
// and what indexes covered before not at all. Both only keep more.
func TestTrimAfterVersionsWereRemoved(t *testing.T) {
	e := newTable(t, 10, 10) // 3
	_, err := Compact(ctx, e, Options{})
	require.NoError(t, err) // 4
	appendRows(t, e, 10)    // 5
	_, err = buildIndex(t, e, 5, table.ReuseThrough)
	require.NoError(t, err) // 6
	appendRows(t, e, 10)    // 7
	_, err = buildIndex(t, e, 7, table.ReuseThrough)
	require.NoError(t, err) // 8
	s, err := e.Load(ctx, 0)
	require.NoError(t, err)
	for _, c := range []struct {
		oldest, committed uint64
		neededBy          []string
	}{
		{0, 4, []string{}},
		{3, 4, []string{}},
		{4, 0, []string{}},
		{5, 0, []string{}},
		{6, 0, []string{"i5"}},
		{7, 0, []string{"i5"}},
		{8, 0, []string{"i5", "i7"}},
	} {
		plan, err := PlanTrim(ctx, forgetful{e, c.oldest}, s, TrimOptions{})
		require.NoError(t, err)
		require.Equal(t, c.committed, plan.Transitions[0].Committed, "oldest %d", c.oldest)
		require.Equal(t, c.neededBy, plan.Transitions[0].NeededBy, "oldest %d", c.oldest)
		if c.committed == 0 {
			require.Equal(t, "commit version unknown: cleaned up", plan.Transitions[0].CommitUnknown)
		}
	}
}

// An index that has nothing to do with a transition holds it no longer when the
// versions that would prove it are gone. It claims the sources from then on, so that
// readers drop what its files may hold of them.
func TestReport17IndexElsewhereDoesNotPin(t *testing.T) {
	e := newTable(t, 10, 10, 10) // 0 to 2
	_, err := buildIndex(t, e, 0, table.ReuseThrough, 2)
	require.NoError(t, err)
	_, err = Compact(ctx, e, Options{ExcludeFragments: ids(t, "2"), FRI: FRIAlways})
	require.NoError(t, err)
	appendRows(t, e, 10)
	s, err := e.Load(ctx, 0)
	require.NoError(t, err)
	cleaned := forgetful{e, s.Version}
	plan, err := PlanTrim(ctx, cleaned, s, TrimOptions{})
	require.NoError(t, err)
	require.Equal(t, "commit version unknown: cleaned up", plan.Transitions[0].CommitUnknown)
	require.Zero(t, plan.Transitions[0].Committed)
	report, err := Trim(ctx, cleaned, TrimOptions{})
	require.NoError(t, err)
	require.True(t, report.Committed)
	require.Equal(t, 1, report.Dropped)
	s, err = e.Load(ctx, 0)
	require.NoError(t, err)
	require.Nil(t, s.Reuse)
	require.Equal(t, ids(t, "0-2"), s.Indexes[0].Coverage)

	// Known to be innocent, it claims nothing.
	e = newTable(t, 10, 10, 10)
	_, err = buildIndex(t, e, 0, table.ReuseThrough, 2)
	require.NoError(t, err)
	_, err = Compact(ctx, e, Options{ExcludeFragments: ids(t, "2"), FRI: FRIAlways})
	require.NoError(t, err)
	_, err = Trim(ctx, e, TrimOptions{})
	require.NoError(t, err)
	s, err = e.Load(ctx, 0)
	require.NoError(t, err)
	require.Nil(t, s.Reuse)
	require.Equal(t, ids(t, "2"), s.Indexes[0].Coverage)
}

// A trim whose answer is lost is recognised, and one that nobody can tell about says
// so.
func TestTrimAmbiguousCommit(t *testing.T) {
	for name, answer := range map[string]func(*table.Snapshot, error) (*table.Snapshot, error){
		"unknown": func(*table.Snapshot, error) (*table.Snapshot, error) { return nil, table.ErrAmbiguousCommit },
		"taken":   func(*table.Snapshot, error) (*table.Snapshot, error) { return nil, table.ErrVersionTaken },
		"failed":  func(*table.Snapshot, error) (*table.Snapshot, error) { return nil, errInjected },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := newTable(t, 10, 10)
				_, err := Compact(ctx, e, Options{})
				require.NoError(t, err)
				report, err := Trim(ctx, &probe{Engine: e, afterCommit: answer}, TrimOptions{})
				require.NoError(t, err)
				require.True(t, report.Committed)
				require.EqualValues(t, 5, report.Version)
				require.Equal(t, 1, report.Dropped)
				s, err := e.Load(ctx, 0)
				require.NoError(t, err)
				require.EqualValues(t, 5, s.Version)
			})
		})
	}
	t.Run("never to be known", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			e := newTable(t, 10, 10)
			_, err := Compact(ctx, e, Options{})
			require.NoError(t, err)
			p := &probe{Engine: e, hold: func(table.Proposal) error { return table.ErrAmbiguousCommit }}
			_, err = Trim(ctx, p, TrimOptions{MaxAttempts: 2})
			require.ErrorIs(t, err, table.ErrAmbiguousCommit)
			require.ErrorContains(t, err, "to trim again does no harm")
		})
	})
	t.Run("failed before it began", func(t *testing.T) {
		p := &probe{Engine: newTable(t, 10), before: func(string) error { return errInjected }}
		_, err := Trim(ctx, p, TrimOptions{})
		require.ErrorIs(t, err, errInjected)
		require.False(t, errors.Is(err, table.ErrAmbiguousCommit))
	})
	t.Run("always overtaken", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			e := newTable(t, 10, 10)
			_, err := Compact(ctx, e, Options{})
			require.NoError(t, err)
			p := &probe{Engine: e, hold: func(table.Proposal) error { return table.ErrVersionTaken }}
			_, err = Trim(ctx, p, TrimOptions{MaxAttempts: 3})
			require.Equal(t, table.OutcomeRetryable, table.Classify(err))
			require.Equal(t, 1, historyOf(t, e).Len())
		})
	})
}

// Finding out when a rewrite was committed takes few versions, however many there
// are: two if the record says it, a number that grows with the logarithm if not.
func TestTrimReadsFewVersions(t *testing.T) {
	for back, most := range map[uint64]int{0: 2, 1: 3, 40: 14} {
		e := newTable(t, 10, 10)
		for range 300 {
			require.NoError(t, e.DeleteRows(ctx)) // a version that changes nothing
		}
		_, err := Compact(ctx, recordsReadVersion{e, back}, Options{})
		require.NoError(t, err)
		for range 300 {
			require.NoError(t, e.DeleteRows(ctx))
		}
		s, err := e.Load(ctx, 0)
		require.NoError(t, err)
		loads := 0
		p := &probe{Engine: e, before: func(op string) error {
			if strings.HasPrefix(op, "load") {
				loads++
			}
			return nil
		}}
		plan, err := PlanTrim(ctx, p, s, TrimOptions{})
		require.NoError(t, err)
		require.EqualValues(t, 304, plan.Transitions[0].Committed)
		require.LessOrEqual(t, loads, most, "recorded %d versions before", back)
	}
}

// A compaction keeps the history within its bound, of what nothing needs and of the
// oldest alone.
func TestReport23CompactionTrimsBeyondABound(t *testing.T) {
	e := newTable(t, 10)
	first := rowsAt(t, e, 0)
	var last Report
	var recent []row
	for i := range 6 {
		appendRows(t, e, 3)
		if i == 4 {
			recent = rowsAt(t, e, 0)
		}
		var err error
		last, err = Compact(ctx, e, Options{FRI: FRIAlways, MaxTransitions: 3})
		require.NoError(t, err)
		require.Empty(t, last.TrimError)
		require.LessOrEqual(t, historyOf(t, e).Len(), 3)
	}
	require.True(t, last.Trim.Committed)
	require.Equal(t, 1, last.Trim.Dropped)
	h := historyOf(t, e)
	require.Equal(t, 3, h.Len())
	require.Equal(t, fri.Unaffected, h.Translate(first[0].addr).State, "forgotten")
	require.Equal(t, fri.Moved, h.Translate(recent[0].addr).State)

	// What an index needs stays, and without a bound all does.
	e = newTable(t, 10)
	built, err := buildIndex(t, e, 0, table.ReuseThrough)
	require.NoError(t, err)
	for range 4 {
		appendRows(t, e, 3)
		_, err := buildIndex(t, e, 0, table.ReuseThrough)
		require.NoError(t, err)
		s, err := e.Load(ctx, 0)
		require.NoError(t, err)
		_, err = Compact(ctx, e, Options{FRI: FRIAlways, AnyDeletion: true, MaxTransitions: 1, TargetRows: s.LiveRows() + 1})
		require.NoError(t, err)
	}
	requireResolves(t, e, built)
}
