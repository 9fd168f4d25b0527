package rebase_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/stretchr/testify/require"

	"github.com/rehome-db/rehome/compaction"
	"github.com/rehome-db/rehome/rebase"
	"github.com/rehome-db/rehome/table"
	"github.com/rehome-db/rehome/table/memengine"
)

// remembering is an engine with a session.
type remembering struct {
	*memengine.Engine
	memory rebase.Memory
}

func (e remembering) Memory() rebase.Memory { return e.memory }

// forgetful is an engine with a session that must not read rows.
type forgetful struct {
	unreadable
	memory rebase.Memory
}

func (e forgetful) Memory() rebase.Memory { return e.memory }

// TestCompactThenUpsert starts an upsert without committing it, compacts once or
// twice, and commits the upsert: in the session of the compaction, in another, in
// none. In the same one no row has to be read for it.
func TestCompactThenUpsert(t *testing.T) {
	for _, session := range []string{"same", "other", "none"} {
		for _, compactions := range []int{1, 2} {
			w := newWorld(t)
			w.append("a", "b", "c", "d")
			w.append("e", "f")
			w.append("g")
			w.delete("c")
			u := w.uncommitted(table.Update{}, []string{"b", "f"}, []string{"b'", "f'", "new"})

			compacting := remembering{w.mem, rebase.NewMemory(1 << 20)}
			for range compactions {
				report, err := compaction.Compact(ctx, compacting, compaction.Options{TargetRows: 100, FRI: compaction.FRINever})
				require.NoError(t, err)
				require.Equal(t, 1, report.GroupsPublished)
				w.append("more")
				w.append("more")
			}

			var e table.Engine = w.mem
			blind := forgetful{unreadable{w.mem}, nil}
			switch session {
			case "same":
				blind.memory = compacting.memory
				e = blind
			case "other":
				e = remembering{w.mem, rebase.NewMemory(1 << 20)}
			}
			if session != "same" {
				_, err := rebase.Commit(ctx, blind, withoutObjects(u), rebase.Options{})
				require.ErrorContains(t, err, "rows were read")
			}
			out, err := rebase.Commit(ctx, e, u, rebase.Options{})
			require.NoError(t, err)
			require.EqualValues(t, 2, out.RowsRelocated)
			require.EqualValues(t, 2, out.RowsDeleted)
			var more []string
			for range compactions {
				more = append(more, "more", "more")
			}
			require.Equal(t, append(append([]string{"a", "b'", "d", "e", "f'", "g"}, more...), "new"), w.words())
			require.Empty(t, w.orphans())
		}
	}
}

// withoutObjects is the change without a claim to what was written for it.
func withoutObjects(u rebase.Uncommitted) rebase.Uncommitted {
	u.Objects, u.Groups = nil, slices.Clone(u.Groups)
	for i := range u.Groups {
		u.Groups[i].Objects = nil
	}
	return u
}

// TestRowsThatAreNotThere are no rows to delete.
func TestRowsThatAreNotThere(t *testing.T) {
	w := newWorld(t)
	w.append("a", "b")
	u := w.uncommitted(table.Delete{}, []string{"a"}, nil)
	u.Affected = rebase.Rows(table.NewRowAddr(0, 2))
	_, err := rebase.Commit(ctx, w.e, u, rebase.Options{})
	require.ErrorIs(t, err, table.ErrCorrupt)
	u.Affected = rebase.Rows(table.NewRowAddr(7, 0))
	_, err = rebase.Commit(ctx, w.e, u, rebase.Options{})
	require.ErrorIs(t, err, table.ErrConflict)
	require.ErrorContains(t, err, "fragment 7 is gone: row 7:0")
	require.Equal(t, []string{"a", "b"}, w.words())
}

// TestRewriteReadsOnlyWhatChanged: what was dead when the rewrite read the fragments
// comes with it.
func TestRewriteReadsOnlyWhatChanged(t *testing.T) {
	w := newWorld(t)
	w.append("a", "b", "c", "d")
	w.delete("b")
	u := w.uncommittedRewrite([]table.FragmentID{0}, []int{2})
	w.delete("d")
	p := &probe{Engine: w.mem}
	read := 0
	p.before = func(op string) error {
		if op == "read deletions" {
			read++
		}
		return nil
	}
	memory := rebase.NewMemory(1 << 20)
	out, err := rebase.Commit(ctx, p, u, rebase.Options{Memory: memory})
	require.NoError(t, err)
	require.Equal(t, 1, read) // what is dead now
	require.EqualValues(t, 1, out.RowsRelocated)
	require.Equal(t, "1: a c\n2: .\n", w.String())
	require.True(t, memory.Get(rebase.MemoryKey{Table: "t", Transaction: u.Transaction.ID}).Covers(0))
}

// TestRewriteBesideIndexes: what this package cannot keep right it does not commit.
func TestRewriteBesideIndexes(t *testing.T) {
	w := newWorld(t)
	w.append("a", "b")
	u := w.uncommittedRewrite([]table.FragmentID{0}, []int{2})
	_, err := w.mem.AddIndex(ctx, table.IndexMeta{Name: "i"})
	require.NoError(t, err)
	_, err = rebase.Commit(ctx, identifying{w.mem}, withoutObjects(u), rebase.Options{})
	require.ErrorIs(t, err, table.ErrUnsupported)
	require.ErrorContains(t, err, `index "i"`)
	_, err = rebase.Commit(ctx, w.mem, u, rebase.Options{})
	require.NoError(t, err)
	require.Empty(t, w.orphans())
}

// TestLongWindow: who deleted a row is found out by a few of the vectors that others
// left behind, however many there are, and by none if it makes no difference.
func TestLongWindow(t *testing.T) {
	w := newWorld(t)
	var words []string
	for i := range 200 {
		words = append(words, fmt.Sprintf("w%03d", i))
	}
	w.append(words...)
	merged := w.uncommitted(table.Delete{}, []string{"w010", "w199"}, nil)
	for i := range 60 {
		w.delete(words[i])
	}
	lost := w.uncommitted(table.Delete{}, []string{"w110", "w199"}, nil)
	for i := range 60 {
		if i == 10 {
			w.update(words[100+i])
		} else {
			w.delete(words[100+i])
		}
	}
	p := &probe{Engine: w.mem}
	read := 0
	p.before = func(op string) error {
		if op == "read deletions" {
			read++
		}
		return nil
	}
	_, err := rebase.Commit(ctx, p, lost, rebase.Options{})
	require.ErrorContains(t, err, "it updated what this change deletes: row 0:110")
	require.LessOrEqual(t, read, 2+6)
	read = 0
	out, err := rebase.Commit(ctx, p, merged, rebase.Options{})
	require.NoError(t, err)
	require.EqualValues(t, 1, out.RowsMerged)
	require.LessOrEqual(t, read, 2+7)
}

// TestColumnsChanged: rows that were written in a type that the column no longer has
// are of no use.
func TestColumnsChanged(t *testing.T) {
	w := newWorld(t)
	w.append("a", "b")
	del := w.uncommitted(table.Delete{}, []string{"a"}, nil)
	upd := w.uncommitted(table.Update{}, []string{"b"}, []string{"b'"})
	w.commit(table.Project{}, table.Change{})
	e := retyped{w.mem, w.head().Version}
	_, err := rebase.Commit(ctx, e, upd, rebase.Options{})
	require.ErrorIs(t, err, table.ErrConflict)
	require.ErrorContains(t, err, `column "word", field 0, was utf8 not null and is large_utf8 not null`)
	require.Empty(t, w.orphans())
	_, err = rebase.Commit(ctx, e, del, rebase.Options{})
	require.NoError(t, err)
}

// retyped is an engine whose column has another type since a version.
type retyped struct {
	*memengine.Engine
	since uint64
}

func (e retyped) Load(ctx context.Context, v uint64) (*table.Snapshot, error) {
	s, err := e.Engine.Load(ctx, v)
	if err != nil || s.Version < e.since {
		return s, err
	}
	changed := *s
	changed.Schema.Fields = []table.Field{{ID: 0, Name: "word", Type: arrow.BinaryTypes.LargeString}}
	return &changed, nil
}
