package workload

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/rehome-db/rehome/interop"
)

// History is a table and what happens to it. With nothing but a table it is the writing
// of the fragments, and one delete if the table has any.
type History struct {
	Table
	// StableRowIDs gives the rows ids that they keep. The default is false.
	StableRowIDs bool
	// Indexes are built when three quarters of the fragments are there. The default is
	// none.
	Indexes []Index
	// Clustered deletes runs of rows, half of every fourth fragment, too. The default is
	// false.
	Clustered bool
	// Evolve updates rows, adds, renames, retypes and drops columns, and then appends
	// the last quarter of the fragments. The default is false.
	Evolve bool
}

// Index is an index to be built.
type Index struct {
	Column string
	Kind   interop.IndexKind
}

// Columns that a history that evolves has beside its own.
const (
	touched = "touched" // is updated in some rows and renamed in the end
	narrow  = "narrow"  // gets a wider type
	dropped = "dropped" // is dropped
)

func evolving() []Column {
	return []Column{
		number(touched, arrow.PrimitiveTypes.Int64, 10, func(rng *rand.Rand, _ int) int64 { return rng.Int64N(1000) }),
		number(narrow, arrow.PrimitiveTypes.Int32, 10, func(rng *rand.Rand, _ int) int64 { return rng.Int64N(1<<32) - 1<<31 }),
		text(dropped, true, sentence(6)),
	}
}

// Make writes the table at path, which ends in "/t.lance", and returns what its versions
// hold.
func (h History) Make(ctx context.Context, e *interop.Engine, path string) (Made, error) {
	states, err := h.write(ctx, e, path)
	if err != nil {
		return Made{}, err
	}
	return h.made(ctx, e.Name, states)
}

// Write is Make without computing what the versions hold.
func (h History) Write(ctx context.Context, e *interop.Engine, path string) error {
	_, err := h.write(ctx, e, path)
	return err
}

// writer is a history under way.
type writer struct {
	History
	engine *interop.Engine
	path   string
	now    *state
	states []*state
}

func (h History) write(ctx context.Context, e *interop.Engine, path string) ([]*state, error) {
	if h.perFragment() == 0 {
		return nil, fmt.Errorf("workload: %d rows do not fill %d fragments", h.Rows, h.Fragments)
	}
	h.PerCommit = max(h.PerCommit, 1)
	w := &writer{History: h, engine: e, path: path}
	if h.Evolve {
		w.Table.Columns = slices.Concat(h.Columns, evolving())
	}
	w.now = newState(w.Table)
	if err := w.run(ctx); err != nil {
		return nil, fmt.Errorf("workload: table %s: %w", h.Name, err)
	}
	return w.states, e.Forget(ctx, path)
}

func (w *writer) run(ctx context.Context) error {
	early := w.Fragments
	if w.Evolve {
		early -= w.Fragments / 4
	}
	if err := w.fragments(ctx, early); err != nil {
		return err
	}
	for _, i := range w.Indexes {
		err := w.step(fmt.Sprintf("index %s %s", i.Column, i.Kind), func() (uint64, error) {
			return w.engine.CreateIndex(ctx, w.path, i.Column, i.Kind)
		})
		if err != nil {
			return err
		}
	}
	if w.DeletePercent > 0 {
		percent := int64(w.DeletePercent)
		err := w.delete(ctx, fmt.Sprintf("(id * 7919) %% 100 < %d", percent), func(id int64) bool { return id*7919%100 < percent })
		if err != nil {
			return err
		}
	}
	if w.Evolve {
		if err := w.evolve(ctx); err != nil {
			return err
		}
		if err := w.fragments(ctx, w.Fragments); err != nil {
			return err
		}
	}
	if !w.Clustered {
		return nil
	}
	per := int64(w.perFragment())
	return w.delete(ctx, fmt.Sprintf("id %% %d < %d", 4*per, per/2), func(id int64) bool { return id%(4*per) < per/2 })
}

// step makes a change and notes the version that it made.
func (w *writer) step(name string, change func() (uint64, error)) error {
	version, err := change()
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	s := w.now.clone()
	s.version, s.step = version, name
	w.states = append(w.states, s)
	return nil
}

// fragments writes fragments until there are so many.
func (w *writer) fragments(ctx context.Context, until int) error {
	per := w.perFragment()
	for have := w.now.rows / per; have < until; have = w.now.rows / per {
		n := min(w.PerCommit, until-have)
		err := w.step("append", func() (version uint64, err error) {
			rec := w.now.record(w.now.rows, n*per)
			defer rec.Release()
			switch {
			case have == 0:
				o := interop.CreateOptions{DataFormat: w.DataFormat, StableRowIDs: w.StableRowIDs}
				if n > 1 {
					o.RowsPerFragment = per
				}
				version, err = w.engine.Create(ctx, w.path, rec, o)
			case n > 1:
				version, err = w.engine.AppendFragments(ctx, w.path, rec, per)
			default:
				version, err = w.engine.Append(ctx, w.path, rec)
			}
			w.now.rows += n * per
			return version, err
		})
		if err != nil {
			return fmt.Errorf("fragment %d: %w", have, err)
		}
	}
	return nil
}

func (w *writer) delete(ctx context.Context, where string, dead func(id int64) bool) error {
	return w.step("delete "+where, func() (uint64, error) {
		// Rows that come later are not meant.
		limit := int64(w.now.rows)
		w.now.dead = append(w.now.dead, func(id int64) bool { return id < limit && dead(id) })
		return w.engine.Delete(ctx, w.path, where)
	})
}

// evolve changes columns in every way that there is.
func (w *writer) evolve(ctx context.Context) error {
	e, s := w.engine, w.now
	limit := s.rows // rows that the changes are about
	drawn := func(c Column) func(first, n int) arrow.Array {
		t := w.Table
		t.Columns = []Column{c}
		t.Seed += 1 << 60
		return func(first, n int) arrow.Array { return t.values(0, first, n) }
	}
	computed := number("computed", arrow.PrimitiveTypes.Int64, 0, func(rng *rand.Rand, _ int) int64 { return rng.Int64N(1 << 50) })
	late := text("late", true, sentence(4))
	steps := []struct {
		name string
		do   func() (uint64, error)
		// the step is left out unless the engine is pylance, or if it reads with a filter
		// and the table cannot be read so
		pylance, filters bool
	}{
		{"update " + touched, func() (uint64, error) {
			s.replace(touched, touched, func(old arrow.Array, first int) arrow.Array {
				return mapInt64(old, func(i int, v int64, ok bool) (int64, bool) {
					if id := first + i; id < limit && id%50 == 7 {
						return int64(id) + 1_000_000, true
					}
					return v, ok
				})
			})
			return e.Update(ctx, w.path, "id % 50 = 7", map[string]string{touched: "id + 1000000"})
		}, false, true},
		{"add computed", func() (uint64, error) {
			base := drawn(computed)
			s.columns = append(s.columns, &shape{field: computed.field(), at: func(first, n int) arrow.Array {
				if first >= limit {
					return base(first, n)
				}
				return mapInt64(ids(first, n), func(_ int, id int64, _ bool) (int64, bool) { return id*3 + 1, true })
			}})
			return e.AddComputed(ctx, w.path, computed.Name, "id * 3 + 1")
		}, false, false},
		{"add late, null", func() (uint64, error) {
			base := drawn(late)
			s.columns = append(s.columns, &shape{field: late.field(), at: func(first, n int) arrow.Array {
				if first >= limit {
					return base(first, n)
				}
				return nulls(late.Type, n)
			}})
			return e.AddNull(ctx, w.path, late.field())
		}, true, false},
		{"add again", func() (uint64, error) { return w.addAgain(ctx, drawn) }, true, false},
		{"retype " + narrow, func() (uint64, error) {
			to := arrow.PrimitiveTypes.Int64
			s.replace(narrow, narrow, func(old arrow.Array, _ int) arrow.Array { return widen(old.(*array.Int32)) })
			return e.Retype(ctx, w.path, narrow, to)
		}, true, false},
		{"rename " + touched, func() (uint64, error) {
			s.replace(touched, "renamed", nil)
			return e.Rename(ctx, w.path, touched, "renamed")
		}, false, false},
		{"drop " + dropped, func() (uint64, error) {
			s.columns = slices.DeleteFunc(s.columns, func(c *shape) bool { return c.field.Name == dropped })
			return e.DropColumn(ctx, w.path, dropped)
		}, false, false},
	}
	for _, step := range steps {
		if step.pylance && e.Name != interop.PyLance14.Name || step.filters && w.Unfiltered {
			continue
		}
		if err := w.step(step.name, step.do); err != nil {
			return err
		}
	}
	return nil
}

// addAgain adds a column of the type of the table's first one, with other values.
func (w *writer) addAgain(ctx context.Context, drawn func(Column) func(first, n int) arrow.Array) (uint64, error) {
	c := w.Columns[0]
	c.Name, c.Nullable = "again", true
	s := &shape{field: c.field(), at: drawn(c), shown: c.Shown, blob: c.Blob}
	rows := state{columns: []*shape{w.now.columns[0], s}}
	rec := rows.record(0, w.now.rows)
	defer rec.Release()
	w.now.columns = append(w.now.columns, s)
	return w.engine.AddValues(ctx, w.path, "id", rec)
}
