package compaction

import (
	"context"
	"math/rand"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/rehome-db/rehome/fri"
	"github.com/rehome-db/rehome/rebase"
	"github.com/rehome-db/rehome/table"
	"github.com/rehome-db/rehome/table/memengine"
)

// model is what a table should hold, kept in the plainest way: rows in order, each
// with the fragment it is in.
type model struct {
	e    *memengine.Engine
	rows []row // addr: only its fragment means anything
	seen []row // every row that was ever alive, at every address it had
}

// check compares the table with the model: same rows, same order, and every
// address that a row ever had translates to where it is now.
func (m *model) check(t *rapid.T, recorded bool) {
	now := rowsAt(t, m.e, 0)
	require.Equal(t, valuesOf(m.rows), valuesOf(now))
	require.Empty(t, orphans(t, m.e))
	m.seen = append(m.seen, now...)
	if !recorded {
		return
	}
	s, err := m.e.Load(ctx, 0)
	require.NoError(t, err)
	h, err := readHistory(ctx, m.e, s)
	require.NoError(t, err)
	requireTranslated(t, h, m.seen, now)
}

// write does something that another writer might do.
func (m *model) write(t *rapid.T) {
	switch op := rapid.SampledFrom([]string{"append", "append", "delete", "delete", "delete all", "update", "index"}).Draw(t, "op"); {
	case op == "append":
		before := len(rowsAt(t, m.e, 0))
		appendRows(t, m.e, rapid.IntRange(1, 40).Draw(t, "rows"))
		m.rows = append(m.rows, rowsAt(t, m.e, 0)[before:]...)
	case op == "index":
		s, err := m.e.Load(ctx, 0)
		require.NoError(t, err)
		meta := table.IndexMeta{Name: "x", Kind: "X", CoverageKnown: true, DatasetVersion: s.Version}
		meta.Reuse = rapid.SampledFrom([]table.ReuseSupport{table.ReuseThrough, table.ReuseMasked}).Draw(t, "kind")
		for _, f := range s.Fragments {
			if rapid.Bool().Draw(t, "covered") {
				meta.Coverage = append(meta.Coverage, f.ID)
			}
		}
		_, err = m.e.AddIndex(ctx, meta)
		require.NoError(t, err)
	case len(m.rows) > 0:
		now := rowsAt(t, m.e, 0)
		m.seen = append(m.seen, now...)
		dead := map[int]bool{}
		if op == "delete all" { // of one fragment
			id := rapid.SampledFrom(now).Draw(t, "row").addr.Fragment()
			for i, r := range now {
				dead[i] = r.addr.Fragment() == id
			}
		} else {
			r := rand.New(rand.NewSource(int64(rapid.Uint32().Draw(t, "seed"))))
			share := rapid.SampledFrom([]float64{0.02, 0.3, 0.9}).Draw(t, "share")
			for i := range now {
				dead[i] = r.Float64() < share
			}
		}
		var addrs []table.RowAddr
		var left []row
		for i, r := range m.rows {
			if dead[i] {
				addrs = append(addrs, now[i].addr)
			} else {
				left = append(left, r)
			}
		}
		switch {
		case len(addrs) == 0:
		case op == "update":
			s, err := m.e.Load(ctx, 0)
			require.NoError(t, err)
			first := -int64(s.Version) << 32 // no two rows are alike
			updateRows(t, m.e, first, addrs...)
			for i := range addrs {
				left = append(left, row{value: first - int64(i)})
			}
		default:
			require.NoError(t, m.e.DeleteRows(ctx, addrs...))
		}
		m.rows = left
	}
}

// published moves the rows of published groups to the end, as the order of rows
// promises.
func (m *model) published(out Publication) {
	for _, g := range out.Published {
		var stay, move []row
		for _, r := range m.rows {
			if slices.Contains(g.Sources, r.addr.Fragment()) {
				move = append(move, r)
			} else {
				stay = append(stay, r)
			}
		}
		for i := range move { // which of several new fragments does not matter here
			move[i].addr = table.NewRowAddr(g.Destinations[0], 0)
		}
		m.rows = append(stay, move...)
	}
}

// refresh takes over which fragment each row is in.
func (m *model) refresh(t *rapid.T) {
	for i, r := range rowsAt(t, m.e, 0) {
		m.rows[i].addr = r.addr
	}
}

// TestModel runs random tables through compactions that others interfere with, at
// every point where they can: between planning, executing and publishing, and
// just before the commit.
func TestModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := &model{e: newTable(t)}
		p := &probe{Engine: m.e}
		var e table.Engine = p
		if rapid.Bool().Draw(t, "rewriter") {
			e = newRewriter(p)
		}
		interfere := func(most int) {
			for range rapid.IntRange(0, most).Draw(t, "interferences") {
				m.write(t)
			}
			m.refresh(t)
		}
		never := rapid.IntRange(0, 3).Draw(t, "without history") == 0
		opts := Options{
			TargetRows:  rapid.Uint64Range(1, 100).Draw(t, "target"),
			AnyDeletion: rapid.IntRange(0, 3).Draw(t, "any deletion") == 0, DeletionThreshold: rapid.SampledFrom([]float64{0.1, 1}).Draw(t, "threshold"),
			Threads: 2,
			sleep:   func(context.Context, time.Duration) error { return nil },
		}
		if never {
			opts.FRI = FRINever
		}
		for range rapid.IntRange(1, 5).Draw(t, "compactions") {
			interfere(6)
			m.check(t, !never)
			plan, err := PlanLatest(ctx, e, opts)
			require.NoError(t, err)
			if len(plan.Tasks) == 0 {
				continue
			}
			interfere(1)
			var results []Result
			for _, task := range plan.Tasks {
				r, err := Execute(ctx, e, task, Options{})
				require.NoError(t, err)
				results = append(results, r)
			}
			interfere(1)
			races := rapid.IntRange(0, 2).Draw(t, "races")
			p.before = func(op string) error {
				if races > 0 && strings.HasPrefix(op, "commit") {
					races--
					interfere(1)
				}
				return nil
			}
			// Whatever others do to rows, a group is lost only if nothing of it is
			// left, or over an index that covers a part of it.
			opts.Events = Events{GroupLost: func(i GroupLostInfo) {
				require.Regexp(t, `^no row of it is left|^index "x" covers \d+ of its \d+ fragments`, i.Reason)
			}}
			out, err := Publish(ctx, e, results, opts)
			p.before = nil
			if err != nil {
				require.ErrorIs(t, err, table.ErrConflict)
				require.ErrorAs(t, err, new(*rebase.ConflictError))
			} else {
				require.Len(t, append(out.Published, make([]rebase.PublishedGroup, len(out.Lost))...), len(results))
				m.checkUniform(t, out)
				m.published(out)
			}
			m.refresh(t)
			m.check(t, !never)
			m.checkCoverage(t)
		}
	})
}

// checkUniform: no index that readers take through the history covered a part of a
// group in the version that was replaced. Some readers fail over such a group.
func (m *model) checkUniform(t *rapid.T, out Publication) {
	if out.Transitions == 0 {
		return
	}
	s, err := m.e.Load(ctx, out.Version-1)
	require.NoError(t, err)
	v, err := viewIndexes(ctx, m.e, s)
	require.NoError(t, err)
	for _, g := range out.Published {
		var present []table.FragmentID // of a fragment that died no row is anywhere
		for _, id := range g.Sources {
			if _, ok := s.Fragment(id); ok {
				present = append(present, id)
			}
		}
		for _, x := range v.indexes {
			if n := covered(x, present); x.Reuse == table.ReuseThrough {
				require.True(t, n == 0 || n == len(present), "%d of %d sources are covered", n, len(present))
			}
		}
	}
}

// checkCoverage: an index that is read through the history claims fragments that
// exist only if it held, when it was built, rows that are all of theirs.
func (m *model) checkCoverage(t *rapid.T) {
	s, err := m.e.Load(ctx, 0)
	require.NoError(t, err)
	h, err := readHistory(ctx, m.e, s)
	require.NoError(t, err)
	for _, x := range s.Indexes {
		built, err := m.e.Load(ctx, x.DatasetVersion+1) // the version that added it
		require.NoError(t, err)
		var original table.IndexMeta
		for _, y := range built.Indexes {
			if y.UUID == x.UUID {
				original = y
			}
		}
		held := map[table.RowAddr]bool{} // where the rows that it held are now
		for _, r := range rowsAt(t, m.e, built.Version) {
			if original.Covers(r.addr.Fragment()) {
				if to := h.Translate(r.addr); to.State != fri.Deleted {
					held[to.Addr] = true
				}
			}
		}
		for _, r := range rowsAt(t, m.e, 0) {
			if x.Covers(r.addr.Fragment()) {
				require.True(t, held[r.addr], "index built at version %d claims the row at %v and does not hold it", x.DatasetVersion, r.addr)
			}
		}
	}
}
