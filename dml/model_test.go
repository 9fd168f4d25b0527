package dml_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/rehome-db/rehome/dml"
	"github.com/rehome-db/rehome/rebase"
	"github.com/rehome-db/rehome/table"
	"github.com/rehome-db/rehome/table/memengine"
)

// The model: a table is a list of rows, and a change a function over it that looks at
// every row. Rows that a change replaces or leaves keep their id, new ones have none.

// modelMerge says what a merge makes of rows; ok is false if it has to fail.
func modelMerge(rows []stored, m merge) (out []stored, stats dml.Stats, ok bool) {
	source := m.source
	if m.firstOnly {
		source = nil
		for _, s := range m.source {
			if s.K != nil && slices.ContainsFunc(source, func(earlier row) bool { return sameKey(s, earlier, m.on) && earlier.K != nil }) {
				stats.SkippedDuplicates++
				continue
			}
			source = append(source, s)
		}
	}
	matched := make([]bool, len(source))
	for _, r := range rows {
		var by []row
		any := false
		for i, s := range source {
			if sameKey(r.row, s, m.on) {
				any, matched[i] = true, true
				if m.updateIf == nil || m.updateIf(s, r.row) {
					by = append(by, s)
				}
			}
		}
		if any {
			stats.Matched++
		}
		switch {
		case !any:
			if m.bySource == dml.BySourceDelete && (m.deleteIf == nil || m.deleteIf(r.row)) {
				stats.Deleted++
				continue
			}
		case m.matched == dml.MatchedFail:
			return nil, stats, false
		case m.matched == dml.MatchedUpdate && len(by) > 1, m.matched == dml.MatchedDelete && len(by) > 1:
			return nil, stats, false
		case m.matched == dml.MatchedDelete:
			stats.Deleted++
			continue
		case m.matched == dml.MatchedUpdate && len(by) == 1:
			stats.Updated++
			r.row = m.over(by[0], r.row)
		}
		out = append(out, r)
	}
	for i, s := range source {
		if !matched[i] && m.notMatched == dml.NotMatchedInsert {
			stats.Inserted++
			out = append(out, stored{row: m.over(s, row{})})
		}
	}
	return out, stats, true
}

// sameKey is equality as a merge has it: null is equal to nothing.
func sameKey(a, b row, on []string) bool {
	for _, name := range on {
		switch name {
		case "k":
			if a.K == nil || b.K == nil || *a.K != *b.K {
				return false
			}
		case "s":
			if a.S == nil || b.S == nil || *a.S != *b.S {
				return false
			}
		}
	}
	return true
}

// merge is a drawn merge, in the model's terms.
type merge struct {
	source     []row
	columns    []string // of the source
	on         []string
	matched    dml.WhenMatched
	notMatched dml.WhenNotMatched
	bySource   dml.WhenNotMatchedBySource
	updateIf   func(source, target row) bool
	deleteIf   func(row) bool
	firstOnly  bool
}

// over is the target with the columns of the source.
func (m merge) over(source, target row) row {
	for _, c := range m.columns {
		switch c {
		case "k":
			target.K = source.K
		case "s":
			target.S = source.S
		case "f":
			target.F = source.F
		case "n":
			target.N = source.N
		}
	}
	return target
}

func drawRow(t *rapid.T) row {
	r := row{N: int64(rapid.IntRange(0, 9).Draw(t, "n"))}
	if rapid.IntRange(0, 7).Draw(t, "k is null") > 0 {
		r.K = ptr(int64(rapid.IntRange(0, 15).Draw(t, "k")))
	}
	if rapid.IntRange(0, 5).Draw(t, "s is null") > 0 {
		r.S = ptr(rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "s"))
	}
	if rapid.IntRange(0, 3).Draw(t, "f is null") > 0 {
		r.F = ptr(float64(rapid.IntRange(-3, 3).Draw(t, "f")) / 2)
	}
	return r
}

func drawRows(t *rapid.T, most int) []row {
	return rapid.SliceOfN(rapid.Custom(drawRow), 0, most).Draw(t, "rows")
}

// drawPredicate is a condition and the columns that it looks at.
func drawPredicate(t *rapid.T) ([]string, func(row) bool) {
	limit := int64(rapid.IntRange(-1, 16).Draw(t, "limit"))
	switch rapid.IntRange(0, 4).Draw(t, "predicate") {
	case 0:
		return []string{"k"}, func(r row) bool { return r.K != nil && *r.K < limit }
	case 1:
		return []string{"s", "k"}, func(r row) bool { return r.S == nil || r.K != nil && *r.K > limit }
	case 2:
		return []string{"n"}, func(r row) bool { return r.N == limit }
	case 3:
		return nil, func(row) bool { return limit > 12 }
	default:
		return []string{"f", "s"}, func(r row) bool { return r.F != nil && *r.F > 0 && r.S != nil && *r.S == "a" }
	}
}

func drawMerge(t *rapid.T) merge {
	m := merge{
		source:    drawRows(t, 12),
		columns:   rapid.SampledFrom([][]string{{"k", "s", "f", "n"}, {"n", "f", "s", "k"}, {"s", "n", "k"}, {"k", "n"}, {"f", "k"}, {"k"}}).Draw(t, "columns"),
		on:        []string{"k"},
		firstOnly: rapid.Bool().Draw(t, "first only"),
		matched:   rapid.SampledFrom([]dml.WhenMatched{dml.MatchedUpdate, dml.MatchedUpdate, dml.MatchedKeep, dml.MatchedDelete, dml.MatchedFail}).Draw(t, "matched"),
		bySource:  rapid.SampledFrom([]dml.WhenNotMatchedBySource{dml.BySourceKeep, dml.BySourceKeep, dml.BySourceDelete}).Draw(t, "by source"),
	}
	if rapid.IntRange(0, 3).Draw(t, "unique") > 0 { // duplicates are for some
		seen := map[int64]bool{}
		m.source = slices.DeleteFunc(m.source, func(r row) bool {
			again := r.K != nil && seen[*r.K]
			if r.K != nil {
				seen[*r.K] = true
			}
			return again
		})
	}
	m.notMatched = rapid.SampledFrom([]dml.WhenNotMatched{dml.NotMatchedInsert, dml.NotMatchedSkip}).Draw(t, "not matched")
	if !slices.Contains(m.columns, "n") && len(m.source) > 0 { // it must not be null
		m.notMatched = dml.NotMatchedSkip
	}
	if m.matched == dml.MatchedKeep && m.notMatched == dml.NotMatchedSkip && m.bySource == dml.BySourceKeep {
		m.bySource = dml.BySourceDelete
	}
	if m.matched == dml.MatchedUpdate && slices.Contains(m.columns, "n") && rapid.Bool().Draw(t, "update if") {
		m.updateIf = func(source, target row) bool { return source.N > target.N }
	}
	if m.bySource == dml.BySourceDelete && rapid.Bool().Draw(t, "delete if") {
		m.deleteIf = func(target row) bool { return target.S != nil && *target.S == "a" }
	}
	return m
}

// change is the drawn merge as the package has it.
func (m merge) change(t *rapid.T) dml.MergeInsert {
	out := dml.MergeInsert{
		On: m.on, WhenMatched: m.matched, WhenNotMatched: m.notMatched, WhenNotMatchedBySource: m.bySource,
		Source: in(rapid.IntRange(1, 5).Draw(t, "batch rows"), m.source, m.columns...),
		Write:  table.WriteOptions{MaxRows: uint64(rapid.IntRange(1, 6).Draw(t, "fragment rows"))},
	}
	if m.firstOnly {
		out.Duplicates = dml.DuplicatesFirst
	}
	if m.updateIf != nil {
		out.UpdateIf = pairs([]string{"source.n", "target.n"}, m.updateIf)
	}
	if m.deleteIf != nil {
		out.DeleteIf = where([]string{"s"}, m.deleteIf)
	}
	return out
}

// change is any change.
type change = dml.Change

// run makes a change, in one step or in two, and returns the version that has it.
func run(t *rapid.T, e table.Engine, c change) (dml.Stats, bool, error) {
	ctx := context.Background()
	if rapid.Bool().Draw(t, "one step") {
		out, err := dml.Execute(ctx, e, c, dml.Options{})
		return out.Stats, out.Committed, err
	}
	s, err := e.Load(ctx, 0)
	require.NoError(t, err)
	u, stats, err := dml.Compute(ctx, e, s, c, dml.Options{})
	if err != nil {
		return stats, false, err
	}
	done, err := rebase.Commit(ctx, e, u, rebase.Options{})
	return stats, !done.Nothing, err
}

// TestChangesDoWhatTheModelDoes: any sequence of changes leaves the rows that the
// naive model leaves, each with the id that it had, and commits only if it changes
// something; a change that fails leaves nothing behind.
func TestChangesDoWhatTheModelDoes(t *testing.T) {
	for name, wrap := range map[string]func(*memengine.Engine) table.Engine{
		"engine":          func(e *memengine.Engine) table.Engine { return e },
		"with row taking": func(e *memengine.Engine) table.Engine { return taking{e} },
		"with row ids":    func(e *memengine.Engine) table.Engine { return newNaming(e) },
	} {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				mem := memengine.New("t", columns())
				e := wrap(mem)
				// Fragments large enough for single rows to be taken out of them.
				first := rapid.SliceOfN(rapid.Custom(drawRow), 0, 60).Draw(t, "first rows")
				_, err := dml.Execute(context.Background(), e, dml.Append{Rows: in(100, first), Write: table.WriteOptions{MaxRows: 40}}, dml.Options{})
				require.NoError(t, err)
				for range rapid.IntRange(1, 6).Draw(t, "changes") {
					step(t, e, mem)
				}
			})
		})
	}
}

func step(t *rapid.T, e table.Engine, mem *memengine.Engine) {
	ctx := context.Background()
	before := contents(t, e, 0)
	objects, err := mem.Objects(ctx)
	require.NoError(t, err)
	var c change
	want, ok := slices.Clone(before), true
	var stats dml.Stats
	switch rapid.IntRange(0, 5).Draw(t, "change") {
	case 0:
		rows := drawRows(t, 8)
		c = dml.Append{Rows: in(3, rows, "n", "k", "f", "s"), Write: table.WriteOptions{MaxRows: uint64(rapid.IntRange(1, 10).Draw(t, "max rows"))}}
		for _, r := range rows {
			want = append(want, stored{row: r})
		}
		stats.Inserted = uint64(len(rows))
	case 1:
		names, hit := drawPredicate(t)
		c = dml.Delete{Where: where(names, hit)}
		want = slices.DeleteFunc(want, func(s stored) bool { return hit(s.row) })
		stats.Deleted = uint64(len(before) - len(want))
		stats.Matched = stats.Deleted
	case 2:
		names, hit := drawPredicate(t)
		c = dml.Update{Where: where(names, hit), Set: map[string]dml.Expr{"s": text("u"), "n": plusOne(), "f": intsOfK()}}
		for i, s := range want {
			if hit(s.row) {
				stats.Updated++
				want[i].S, want[i].N, want[i].F = ptr("u"), s.N+1, nil
				if s.K != nil {
					want[i].F = ptr(float64(*s.K))
				}
			}
		}
		stats.Matched = stats.Updated
	default:
		m := drawMerge(t)
		c = m.change(t)
		want, stats, ok = modelMerge(before, m)
	}
	got, committed, err := run(t, e, c)
	if !ok {
		require.Error(t, err)
		require.Equal(t, before, contents(t, e, 0))
		left, err := mem.Objects(ctx)
		require.NoError(t, err)
		require.Equal(t, objects, left)
		return
	}
	require.NoError(t, err)
	require.Equal(t, stats, got)
	require.Equal(t, stats.Updated+stats.Inserted+stats.Deleted > 0, committed)
	checkRows(t, want, contents(t, e, 0), before)
}

// checkRows compares values, and ids: rows of the model without one must have a new
// one.
func checkRows(t *rapid.T, want, got, before []stored) {
	known := map[table.RowID]bool{}
	for _, r := range before {
		known[r.id] = true
	}
	lines := func(rows []stored, isNew func(stored) bool) []string {
		var out []string
		for _, r := range rows {
			id := fmt.Sprint(r.id)
			if isNew(r) {
				id = "new"
			}
			out = append(out, fmt.Sprint(id, " ", r.row))
		}
		slices.Sort(out)
		return out
	}
	stable := slices.ContainsFunc(got, func(r stored) bool { return r.id > 0 })
	require.Equal(t,
		lines(want, func(r stored) bool { return stable && r.id == 0 }),
		lines(got, func(r stored) bool { return stable && !known[r.id] }))
}

// The expressions of the model's updates.

func text(v string) dml.Expr {
	return dml.ExprFunc(nil, func(_ context.Context, rec arrow.RecordBatch) (arrow.Array, error) {
		b := array.NewLargeStringBuilder(memory.DefaultAllocator) // to be cast
		for range rec.NumRows() {
			b.Append(v)
		}
		return b.NewArray(), nil
	})
}

func plusOne() dml.Expr {
	return dml.ExprFunc([]string{"n"}, func(_ context.Context, rec arrow.RecordBatch) (arrow.Array, error) {
		b := array.NewInt64Builder(memory.DefaultAllocator)
		for i := range int(rec.NumRows()) {
			b.Append(rowAt(rec, "", i).N + 1)
		}
		return b.NewArray(), nil
	})
}

// intsOfK is the column k, of whole numbers, for a column of floating point ones.
func intsOfK() dml.Expr {
	return dml.ExprFunc([]string{"k"}, func(_ context.Context, rec arrow.RecordBatch) (arrow.Array, error) {
		c := rec.Column(rec.Schema().FieldIndices("k")[0])
		c.Retain()
		return c, nil
	})
}

// TestManySourceBatchesAndRowsOfOneKey: rows of the table may share a source row, and
// the source may be cut in any way.
func TestManySourceBatchesAndRowsOfOneKey(t *testing.T) {
	var rows, source []row
	for i := range 20000 {
		rows = append(rows, row{K: ptr(int64(i % 7)), N: int64(i)})
	}
	for i := range 7 {
		source = append(source, row{K: ptr(int64(i)), S: ptr(fmt.Sprint("new", i))})
	}
	for _, batches := range []int{1, 3, 7} {
		e := newTable(t, 9000, rows...)
		out, err := dml.Execute(
			t.Context(), e, dml.MergeInsert{On: []string{"k"}, Source: in(batches, source, "s", "k"), WhenMatched: dml.MatchedUpdate, WhenNotMatched: dml.NotMatchedSkip}, dml.Options{})

		require.NoError(t, err)
		require.Equal(t, dml.Stats{Matched: 20000, Updated: 20000}, out.Stats)
		seen := map[int64]bool{}
		for _, r := range contents(t, e, 0) {
			require.Equal(t, fmt.Sprint("new", r.N%7), *r.S)
			seen[r.N] = true
		}
		require.Len(t, seen, 20000)
	}
}
