package interop_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rehome-db/rehome/interop"
)

// scenario is a table that a stock engine wrote, with the indexes that it built.
type scenario struct {
	writer *interop.Engine
	kinds  []interop.IndexKind
	opts   interop.CreateOptions
	// keyed adds a BTree on the id: what deletes, updates and merges find their rows
	// by then goes through an index, too.
	keyed bool
	// uniform leaves out the fragment that no index covers.
	uniform bool

	// through says that the first compaction publishes a fragment reuse index.
	through bool
	// actions are what rehome must report of indexes, by name; nil asks for nothing.
	actions map[string]string
	// excused says that a finding is known to have nothing to do with rehome; nil
	// excuses nothing.
	excused func(finding) bool
}

func (s scenario) columns() []string {
	var out []string
	for _, i := range s.indexes() {
		out = append(out, i.column)
	}
	return out
}

// builtIndex is an index of the scenario's table.
type builtIndex struct {
	kind   interop.IndexKind
	column string
}

func (s scenario) indexes() []builtIndex {
	var out []builtIndex
	if s.keyed {
		out = append(out, builtIndex{interop.BTree, "id"})
	}
	for _, k := range s.kinds {
		out = append(out, builtIndex{k, columnOf(k)})
	}
	return out
}

// vectorKind is the scenario's vector index; a table without one is searched
// exactly, which is what IVFFlat stands for.
func (s scenario) vectorKind() interop.IndexKind {
	for _, k := range s.kinds {
		if columnOf(k) == "vec" {
			return k
		}
	}
	return interop.IVFFlat
}

// build makes the table: eight fragments of 200 rows, one of them deleted whole,
// one in the greater part, three here and there, half of the others not at all;
// then the indexes; then deletes that the indexes have not heard of, and a
// fragment that they do not cover.
func (s scenario) build(ctx context.Context, path string) (*model, error) {
	m := newModel(slices.Contains(s.kinds, interop.LabelList))
	add := func(from, to int64, make func(rows []row) error) error {
		rows := newRows(from, to)
		m.put(rows...)
		return make(rows)
	}
	for k := range int64(8) {
		err := add(k*200, (k+1)*200, func(rows []row) error {
			rec := record(m.schema, rows)
			defer rec.Release()
			if k == 0 {
				_, err := s.writer.Create(ctx, path, rec, s.opts)
				return err
			}
			_, err := s.writer.Append(ctx, path, rec)
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	remove := func(sql string, match func(row) bool) error {
		m.delete(match)
		_, err := s.writer.Delete(ctx, path, sql)
		return err
	}
	if err := remove("id >= 200 AND id < 800 AND id % 10 = 3", func(r row) bool { return r.id >= 200 && r.id < 800 && r.id%10 == 3 }); err != nil {
		return nil, err
	}
	if err := remove("id >= 1000 AND id < 1320", func(r row) bool { return r.id >= 1000 && r.id < 1320 }); err != nil {
		return nil, err
	}
	for _, i := range s.indexes() {
		if _, err := s.writer.CreateIndex(ctx, path, i.column, i.kind); err != nil {
			return nil, fmt.Errorf("index %s: %w", i.kind, err)
		}
	}
	if err := remove("id < 600 AND id % 40 = 7", func(r row) bool { return r.id < 600 && r.id%40 == 7 }); err != nil {
		return nil, err
	}
	if s.uniform {
		return m, nil
	}
	return m, add(1600, 1700, func(rows []row) error {
		rec := record(m.schema, rows)
		defer rec.Release()
		_, err := s.writer.Append(ctx, path, rec)
		return err
	})
}

// finding is something that was not as the model says.
type finding struct {
	stage, engine string
	// what is a question's name, "scan", "count", "order" or "step".
	what, problem string
}

func (f finding) key() string { return f.stage + " / " + f.engine + " / " + f.what }

func (f finding) String() string { return f.key() + ": " + f.problem }

// aboutRows says whether the finding is about the table's rows, which nothing
// excuses, rather than about an answer through an index or an engine's own step.
func (f finding) aboutRows() bool {
	return slices.Contains([]string{"scan", "count", "order", "verify"}, f.what)
}

// check asks e everything about the table at path. It returns what was wrong, and
// which questions were answered with the help of an index.
func (s scenario) check(ctx context.Context, stage string, e *interop.Engine, path string, m *model) (out []finding, byIndex map[string]bool) {
	add := func(what, problem string) {
		if problem != "" {
			out = append(out, finding{stage, e.Name, what, problem})
		}
	}
	byIndex = map[string]bool{}
	qs := append(questions(m, s.columns()), vectorQuestions(m, s.vectorKind())...)
	for _, q := range qs {
		problem, used := ask(ctx, e, path, m, q)
		add(q.name, problem)
		byIndex[q.column] = byIndex[q.column] || used
	}
	if n, err := e.Count(ctx, path, ""); err != nil {
		add("count", err.Error())
	} else if n != len(m.rows) {
		add("count", fmt.Sprintf("%d rows, want %d", n, len(m.rows)))
	}
	return out, byIndex
}

// compactor compacts the table at path, which holds m; by is the engine whose turn
// it is.
type compactor func(ctx context.Context, stage string, by *interop.Engine, path string, m *model) []finding

// The controls take rehome's place: the engine's own maintenance, and nothing.
func stockOptimize(ctx context.Context, stage string, by *interop.Engine, path string, _ *model) []finding {
	if _, err := by.Optimize(ctx, path); err != nil {
		return []finding{{stage, by.Name, "step", err.Error()}}
	}
	return nil
}

func noCompaction(context.Context, string, *interop.Engine, string, *model) []finding { return nil }

// step is what an engine does to the table after the compaction.
type step struct {
	name string
	do   func(ctx context.Context, e *interop.Engine, path string, m *model) error
}

const reindex = "reindex"

func (s scenario) steps() []step {
	steps := []step{
		{"append", func(ctx context.Context, e *interop.Engine, path string, m *model) error {
			rows := newRows(5000, 5060)
			m.put(rows...)
			rec := record(m.schema, rows)
			defer rec.Release()
			_, err := e.Append(ctx, path, rec)
			return err
		}},
		{"delete", func(ctx context.Context, e *interop.Engine, path string, m *model) error {
			m.delete(func(r row) bool { return r.id%17 == 5 })
			_, err := e.Delete(ctx, path, "id % 17 = 5")
			return err
		}},
		{"delete by value", func(ctx context.Context, e *interop.Engine, path string, m *model) error {
			m.delete(func(r row) bool {
				return r.id < 900 && r.cat != nil && *r.cat == "c5" || r.n != nil && *r.n >= 2000 && *r.n < 2100
			})
			_, err := e.Delete(ctx, path, "(id < 900 AND cat = 'c5') OR (n >= 2000 AND n < 2100)")
			return err
		}},
		{"update", func(ctx context.Context, e *interop.Engine, path string, m *model) error {
			m.update(func(r row) bool { return r.id%13 == 2 }, func(r *row) {
				r.n, r.cat, r.txt = ptr(r.id+1000), ptr("upd"), "kilo alpha updated"
			})
			_, err := e.Update(ctx, path, "id % 13 = 2", map[string]string{"n": "id + 1000", "cat": "'upd'", "txt": "'kilo alpha updated'"})
			return err
		}},
		{"merge", func(ctx context.Context, e *interop.Engine, path string, m *model) error {
			var rows []row
			for _, id := range append(sample(m.ids(func(r row) bool { return r.id < 1700 }), 20), 6000, 6001, 6002) {
				r := newRow(id)
				r.cat, r.sub = ptr("c3"), r.sub+"-merged"
				rows = append(rows, r)
			}
			m.put(rows...)
			rec := record(m.schema, rows)
			defer rec.Release()
			_, err := e.Merge(ctx, path, "id", rec)
			return err
		}},
		{"optimize", optimizeStep},
		{"delete again", func(ctx context.Context, e *interop.Engine, path string, m *model) error {
			m.delete(func(r row) bool { return r.id%5 == 1 })
			_, err := e.Delete(ctx, path, "id % 5 = 1")
			return err
		}},
		{"optimize again", optimizeStep},
	}
	if len(s.indexes()) > 0 {
		steps = append(steps, step{reindex, func(ctx context.Context, e *interop.Engine, path string, m *model) error {
			for _, i := range s.indexes() {
				if !e.Builds(i.kind) {
					continue
				}
				if _, err := e.CreateIndex(ctx, path, i.column, i.kind); err != nil {
					return err
				}
			}
			return nil
		}})
	}
	return append(steps, step{"append again", func(ctx context.Context, e *interop.Engine, path string, m *model) error {
		// Something for the second compaction to do.
		for _, from := range []int64{7000, 7040} {
			rows := newRows(from, from+40)
			m.put(rows...)
			rec := record(m.schema, rows)
			_, err := e.Append(ctx, path, rec)
			rec.Release()
			if err != nil {
				return err
			}
		}
		m.delete(func(r row) bool { return r.id%9 == 4 })
		_, err := e.Delete(ctx, path, "id % 9 = 4")
		return err
	}})
}

func optimizeStep(ctx context.Context, e *interop.Engine, path string, _ *model) error {
	_, err := e.Optimize(ctx, path)
	return err
}

// before is the stage at which rehome has not touched the table yet. What is wrong
// there is this package's own mistake, or an index that an engine cannot read.
const before = "before"

// firstCompaction is the stage of the compaction that all engines' journeys share.
const firstCompaction = "compact"

// journey takes copies of the table at from through a compaction and what each
// actor does afterwards, checking after every step.
func (s scenario) journey(ctx context.Context, t *testing.T, from string, m *model, compact compactor, actors []*interop.Engine) []finding {
	path := copyTable(t, from)
	defer forget(ctx, path)
	var out []finding
	// Every engine has the table open, and its caches are warm, when it is
	// compacted.
	usedBefore := map[*interop.Engine]map[string]bool{}
	for _, e := range engines {
		found, used := s.check(ctx, before, e, path, m)
		out, usedBefore[e] = append(out, found...), used
	}
	out = append(out, compact(ctx, firstCompaction, s.writer, path, m)...)
	for _, e := range engines {
		found, used := s.check(ctx, "compacted", e, path, m)
		out = append(out, found...)
		for _, i := range s.indexes() {
			if s.through && bears(i.kind) && usedBefore[e][i.column] && !used[i.column] {
				out = append(out, finding{"compacted", e.Name, "index on " + i.column, "not used any more"})
			}
		}
	}
	for _, e := range actors {
		out = append(out, s.act(ctx, t, path, m.clone(), compact, e)...)
	}
	return out
}

// act lets one engine go on with its own copy of the compacted table.
func (s scenario) act(ctx context.Context, t *testing.T, from string, m *model, compact compactor, e *interop.Engine) []finding {
	path := copyTable(t, from)
	defer forget(ctx, path)
	var out []finding
	for _, st := range s.steps() {
		stage := e.Name + ": " + st.name
		if err := st.do(ctx, e, path, m); err != nil {
			return append(out, finding{stage, e.Name, "step", err.Error()})
		}
		found, used := s.check(ctx, stage, e, path, m)
		out = append(out, found...)
		for _, i := range s.indexes() {
			if st.name == reindex && e.Builds(i.kind) && !used[i.column] {
				out = append(out, finding{stage, e.Name, "index on " + i.column, "not used although it was built anew"})
			}
		}
	}
	look := func(stage string, by *interop.Engine) {
		found, _ := s.check(ctx, stage, by, path, m)
		out = append(out, found...)
	}
	for _, other := range engines {
		if other != e {
			look(e.Name+": all done", other)
		}
	}
	out = append(out, compact(ctx, e.Name+": compact again", e, path, m)...)
	for _, other := range engines {
		look(e.Name+": compacted again", other)
	}
	return out
}

// run builds the table, sends it through `rehome compact` with the given flags, and
// judges what was found.
func (s scenario) run(ctx context.Context, t *testing.T, flags ...string) {
	t.Helper()
	template, m := s.template(ctx, t)
	s.judge(ctx, t, template, m, s.withRehome(flags...))
}

// template builds the table in a place of its own, and makes sure that the indexes
// take part in the answers that are about them.
func (s scenario) template(ctx context.Context, t *testing.T) (string, *model) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "t.lance")
	m, err := s.build(ctx, path)
	require.NoError(t, err)
	found, used := s.check(ctx, before, s.writer, path, m)
	require.Empty(t, found)
	for _, i := range s.indexes() {
		require.True(t, used[i.column], "%s answers without its index on %s", s.writer.Name, i.column)
	}
	forget(ctx, path)
	return path, m
}

// judge sends copies of the table through rehome and fails the test for what was
// wrong, unless a control shows that rehome has no part in it.
func (s scenario) judge(ctx context.Context, t *testing.T, template string, m *model, compact compactor) {
	t.Helper()
	found := s.journey(ctx, t, template, m.clone(), compact, engines)
	if s.excused != nil {
		found = slices.DeleteFunc(found, s.excused)
	}
	if len(found) == 0 {
		return
	}
	stock := map[string]string{}
	for _, control := range []compactor{stockOptimize, noCompaction} {
		for _, f := range s.journey(ctx, t, template, m.clone(), control, actorsOf(found)) {
			stock[f.key()] = f.problem
		}
	}
	for _, f := range found {
		problem, same := stock[f.key()]
		switch {
		case f.aboutRows() || f.stage == before || !same:
			t.Errorf("%s", f)
		default:
			t.Logf("stock fault, the same without rehome: %s: %s", f.key(), firstLine(problem))
		}
	}
}

// actorsOf returns the engines whose own steps the findings are about.
func actorsOf(found []finding) []*interop.Engine {
	var out []*interop.Engine
	for _, e := range engines {
		if slices.ContainsFunc(found, func(f finding) bool { return strings.HasPrefix(f.stage, e.Name) }) {
			out = append(out, e)
		}
	}
	return out
}

// copyTable copies a table into a directory of its own.
func copyTable(t *testing.T, from string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "t.lance")
	require.NoError(t, os.CopyFS(to, os.DirFS(from)))
	return to
}

// forget closes every engine's handle of the table. An engine that died has none.
func forget(ctx context.Context, path string) {
	for _, e := range engines {
		_ = e.Forget(ctx, path)
	}
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}
