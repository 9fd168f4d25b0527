package rebase_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/rehome-db/rehome/compaction"
	"github.com/rehome-db/rehome/rebase"
	"github.com/rehome-db/rehome/table"
)

// model is what a table should hold: words, and what became of those that are gone.
type model struct {
	*world
	alive   map[string]bool
	updated map[string]bool // gone because it was updated
	made    int
	waiting []stale
	shared  rebase.Memory
}

// stale is a change that somebody computed and has not committed yet.
type stale struct {
	u         rebase.Uncommitted
	old, news []string
}

// TestModel has several actors change a table at random, most of them from versions
// that are long gone when they commit. They delete, update, append and compact, and
// so do others who know nothing of this package, in every order. After each step the
// table holds exactly the words of the model, and the model knows who has to fail.
func TestModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := &model{world: newWorld(t), alive: map[string]bool{}, updated: map[string]bool{}, shared: rebase.NewMemory(1 << 20)}
		if rapid.Bool().Draw(t, "takes rows") {
			m.e = takingEngine{m.mem}
		}
		for range rapid.IntRange(1, 4).Draw(t, "fragments") {
			m.others(t, "append")
		}
		for range rapid.IntRange(1, 25).Draw(t, "steps") {
			switch who := rapid.IntRange(0, 4).Draw(t, "who"); {
			case who < 2:
				m.prepare(t, rapid.SampledFrom([]string{"delete", "delete", "update", "append", "compact"}).Draw(t, "change"))
			case who == 2 || len(m.waiting) == 0:
				m.others(t, rapid.SampledFrom([]string{"append", "delete", "delete fragment", "update", "compact", "compact", "package"}).Draw(t, "others"))
			default:
				m.commitOne(t, rapid.IntRange(0, len(m.waiting)-1).Draw(t, "which"))
			}
			require.Equal(t, m.expected(), m.words())
		}
		for len(m.waiting) > 0 {
			m.commitOne(t, 0)
			require.Equal(t, m.expected(), m.words())
		}
		require.Empty(t, m.orphans())
	})
}

func (m *model) expected() (out []string) {
	for x := range m.alive {
		out = append(out, x)
	}
	slices.Sort(out)
	return out
}

func (m *model) fresh(n int) (out []string) {
	for range n {
		m.made++
		out = append(out, fmt.Sprint("w", m.made))
	}
	return out
}

// some draws some live words.
func (m *model) some(t *rapid.T) (out []string) {
	share := rapid.SampledFrom([]int{1, 3, 9}).Draw(t, "share")
	for _, x := range m.expected() {
		if rapid.IntRange(0, 9).Draw(t, "take") < share {
			out = append(out, x)
		}
	}
	return out
}

func (m *model) replace(old, news []string, update bool) {
	for _, x := range old {
		if m.alive[x] && update {
			m.updated[x] = true
		}
		delete(m.alive, x)
	}
	for _, x := range news {
		m.alive[x] = true
	}
}

// fragments draws fragments of the newest version, in table order.
func (m *model) fragments(t *rapid.T) (ids []table.FragmentID) {
	for _, f := range m.head().Fragments {
		if rapid.Bool().Draw(t, "fragment") {
			ids = append(ids, f.ID)
		}
	}
	return ids
}

func drawSizes(t *rapid.T) []int {
	return rapid.SliceOfN(rapid.IntRange(1, 20), 1, 3).Draw(t, "sizes")
}

// prepare computes a change without committing it.
func (m *model) prepare(t *rapid.T, kind string) {
	var s stale
	switch kind {
	case "append":
		s.news = m.fresh(rapid.IntRange(1, 8).Draw(t, "rows"))
		s.u = m.uncommitted(table.Append{}, nil, s.news)
	case "compact":
		ids := m.fragments(t)
		if len(ids) == 0 || len(m.rowsOf(m.head(), ids)) == 0 {
			return
		}
		s.u = m.uncommittedRewrite(ids, drawSizes(t))
	default:
		s.old = m.some(t)
		op := table.Operation(table.Delete{})
		if kind == "update" {
			op, s.news = table.Update{}, primed(s.old)
		}
		s.u = m.uncommitted(op, s.old, s.news)
	}
	m.waiting = append(m.waiting, s)
}

// others do something at once, without this package or, "package", by package
// compaction.
func (m *model) others(t *rapid.T, kind string) {
	switch kind {
	case "append":
		words := m.fresh(rapid.IntRange(1, 12).Draw(t, "rows"))
		m.append(words...)
		m.replace(nil, words, false)
	case "delete", "delete fragment":
		words := m.some(t)
		if kind == "delete fragment" {
			ids := m.fragments(t)
			words = nil
			for _, r := range m.rowsOf(m.head(), ids[:min(1, len(ids))]) {
				words = append(words, r.word)
			}
		}
		if len(words) > 0 {
			m.delete(words...)
			m.replace(words, nil, false)
		}
	case "update":
		if words := m.some(t); len(words) > 0 {
			m.update(words...)
			m.replace(words, primed(words), true)
		}
	case "compact":
		if ids := m.fragments(t); len(ids) > 0 && len(m.rowsOf(m.head(), ids)) > 0 {
			m.compact(ids, drawSizes(t), how{recorded: rapid.Bool().Draw(t, "recorded")})
		}
	case "package":
		opts := compaction.Options{TargetRows: rapid.Uint64Range(5, 40).Draw(t, "target"), AnyDeletion: true}
		_, err := compaction.Compact(ctx, m.mem, opts)
		require.NoError(t, err)
	}
}

// commitOne commits a change that waits, and knows whether that has to fail.
func (m *model) commitOne(t *rapid.T, i int) {
	s := m.waiting[i]
	m.waiting = slices.Delete(m.waiting, i, i+1)
	var opts rebase.Options
	switch rapid.SampledFrom([]string{"none", "shared", "separate"}).Draw(t, "memory") {
	case "shared":
		opts.Memory = m.shared
	case "separate":
		opts.Memory = rebase.NewMemory(1 << 20)
	}
	fails, why := m.fails(s)
	out, err := rebase.Commit(ctx, m.e, s.u, opts)
	if errors.Is(err, table.ErrUnsupported) { // a rewrite, where there is a history
		require.NotNil(t, m.head().Reuse)
		return
	}
	if fails {
		require.ErrorIs(t, err, table.ErrConflict, why)
		var c *rebase.ConflictError
		require.ErrorAs(t, err, &c)
		require.True(t, c.Retryable())
		return
	}
	require.NoError(t, err)
	deleted := 0
	for _, x := range s.old {
		if m.alive[x] {
			deleted++
		}
	}
	_, rewrite := s.u.Transaction.Operation.(table.Rewrite)
	require.Equal(t, !rewrite && deleted+len(s.news) == 0, out.Nothing)
	require.EqualValues(t, deleted, out.RowsDeleted)
	require.EqualValues(t, len(s.old)-deleted, out.RowsMerged)
	_, update := s.u.Transaction.Operation.(table.Update)
	m.replace(s.old, s.news, update)
}

// fails says whether a change cannot be committed any more, by what became of the
// rows and fragments that it is about.
func (m *model) fails(s stale) (bool, string) {
	switch s.u.Transaction.Operation.(type) {
	case table.Delete:
		for _, x := range s.old {
			if m.updated[x] {
				return true, x + " was updated"
			}
		}
	case table.Update:
		for _, x := range s.old {
			if !m.alive[x] {
				return true, x + " is gone"
			}
		}
	case table.Rewrite:
		left := 0
		for _, f := range s.u.Groups[0].Old {
			if _, ok := m.head().Fragment(f.ID); ok {
				left++
			}
		}
		if left == 0 {
			return true, "all fragments are gone"
		}
		for _, tx := range m.since(s.u.Transaction.ReadVersion) {
			theirs, ok := tx.Operation.(table.Rewrite)
			for _, g := range theirs.Groups {
				for _, f := range g.Old {
					if ok && slices.ContainsFunc(s.u.Groups[0].Old, func(o table.Fragment) bool { return o.ID == f.ID }) {
						return true, fmt.Sprintf("fragment %d was rewritten", f.ID)
					}
				}
			}
		}
	}
	return false, ""
}

func (m *model) since(version uint64) []table.Transaction {
	txs, err := m.mem.TransactionsSince(context.Background(), version, 0)
	require.NoError(m.t, err)
	return txs
}
