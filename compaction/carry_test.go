package compaction

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"

	"github.com/rehome-db/rehome/deletion"
	"github.com/rehome-db/rehome/fri"
	"github.com/rehome-db/rehome/rebase"
	"github.com/rehome-db/rehome/table"
	"github.com/rehome-db/rehome/table/memengine"
)

// updateRows gives the rows at the addresses the values from first downwards, the
// way a writer does that rewrites rows: deleted where they were, in one commit with a new fragment.
func updateRows(t tester, e *memengine.Engine, first int64, addrs ...table.RowAddr) {
	t.Helper()
	base, err := e.Load(ctx, 0)
	require.NoError(t, err)
	b := array.NewInt64Builder(memory.DefaultAllocator)
	for i := range addrs {
		b.Append(first - int64(i))
	}
	rec := array.NewRecordBatch(base.Schema.Arrow(), []arrow.Array{b.NewArray()}, int64(len(addrs)))
	w, err := e.WriteFragments(ctx, base.Schema, func(yield func(table.Batch, error) bool) { yield(table.Batch{Record: rec}, nil) }, table.WriteOptions{})
	require.NoError(t, err)
	var op table.Update
	change := table.Change{SetDeletion: map[table.FragmentID]*table.DeletionRef{}}
	dead := map[table.FragmentID]*deletion.Vector{}
	for _, a := range addrs {
		dead[a.Fragment()] = dead[a.Fragment()].Union(deletion.Of(a.Offset()))
	}
	for id, v := range dead {
		f, ok := base.Fragment(id)
		require.True(t, ok)
		was, err := e.ReadDeletions(ctx, base, f)
		require.NoError(t, err)
		v = v.Union(was.(*deletion.Vector))
		if v.Cardinality() == f.PhysicalRows {
			op.Removed = append(op.Removed, id)
			continue
		}
		ref, err := e.WriteDeletions(ctx, id, base.Version, v)
		require.NoError(t, err)
		f.Deletion = &ref
		op.Updated = append(op.Updated, f)
		change.SetDeletion[id] = &ref
	}
	change.Remove = op.Removed
	op.New = []table.Fragment{{ID: base.NextFragmentID, PhysicalRows: w.Fragments[0].PhysicalRows, Files: w.Fragments[0].Files}}
	change.Add = op.New
	_, err = e.Commit(ctx, table.Proposal{Base: base, Transaction: table.Transaction{ID: "update", ReadVersion: base.Version, Operation: op}, Change: change})
	require.NoError(t, err)
}

// TestPlanAndExecuteThenUpdateOneRowDeleteOneRowThenCommit is the scenario by which
// a compaction over row changes is judged.
func TestPlanAndExecuteThenUpdateOneRowDeleteOneRowThenCommit(t *testing.T) {
	e := newTable(t, 10, 10, 10)
	require.NoError(t, e.DeleteRows(ctx, table.NewRowAddr(0, 1), table.NewRowAddr(2, 9)))
	before := rowsAt(t, e, 0)
	updated, deleted := before[3], before[15]
	require.Equal(t, table.NewRowAddr(0, 4), updated.addr)
	require.Equal(t, table.NewRowAddr(1, 6), deleted.addr)

	// 1. Run the compaction without committing.
	results := executed(t, e, Options{})
	require.Len(t, results, 1)
	// 2. Update one row.
	updateRows(t, e, -1, updated.addr)
	// 3. Delete one row.
	require.NoError(t, e.DeleteRows(ctx, deleted.addr))
	// 4. Commit the compaction.
	out, err := Publish(ctx, e, results, Options{})
	require.NoError(t, err)

	require.Equal(t, []uint64{6, 7}, out.RebasedOver)
	require.EqualValues(t, 2, out.RowsRelocated)
	require.Equal(t, []rebase.PublishedGroup{{Sources: ids(t, "0-2"), Destinations: ids(t, "4"), RowsCarried: 2}}, out.Published)
	after := valuesOf(rowsAt(t, e, 0))
	// 5. The row that was deleted is gone.
	require.NotContains(t, after, deleted.value)
	// 6. The row that was updated has its new value and not the old one.
	require.NotContains(t, after, updated.value)
	require.Contains(t, after, int64(-1))
	// And nothing else changed: no row was lost, none came back, none came twice.
	want := []int64{-1} // fragment 3 comes before the compacted one
	for _, r := range before {
		if r != updated && r != deleted {
			want = append(want, r.value)
		}
	}
	require.Equal(t, want, after)
	require.Empty(t, orphans(t, e))

	// What is committed is what readers and writers of the format rely on.
	s, err := e.Load(ctx, 0)
	require.NoError(t, err)
	f, ok := s.Fragment(4)
	require.True(t, ok)
	require.EqualValues(t, 28, f.PhysicalRows)
	require.EqualValues(t, 2, f.Deletion.Rows)
	v, err := e.ReadDeletions(ctx, s, f)
	require.NoError(t, err)
	require.Equal(t, "2 deleted 3 15", v.(*deletion.Vector).String())
	txs, err := e.TransactionsSince(ctx, 7, 8)
	require.NoError(t, err)
	require.EqualValues(t, 5, txs[0].ReadVersion)
	g := txs[0].Operation.(table.Rewrite).Groups[0]
	require.Equal(t, results[0].Task.Sources, g.Old, "as they were read, so that survivors and new rows pair up")
	require.Equal(t, []table.Fragment{f}, g.New, "as published")
	h, err := readHistory(ctx, e, s)
	require.NoError(t, err)
	require.EqualValues(t, 28, h.At(0).MovedRows(), "what survived when it was read")
	require.Equal(t, fri.Translation{State: fri.Moved, Addr: table.NewRowAddr(4, 15)}, h.Translate(deleted.addr))
}

// TestCarry is that scenario with more to it.
func TestCarry(t *testing.T) {
	all := func(id table.FragmentID) []table.RowAddr { return rowsOf(id, 0, 10) }
	for _, c := range []struct {
		name  string
		opts  Options
		index string // covered by an index that is read through
		// prepare and meanwhile are what happens before the plan and before the
		// commit.
		prepare, meanwhile func(t *testing.T, e *memengine.Engine)
		carried            uint64
		emptied            string
		check              func(t *testing.T, e *memengine.Engine, s *table.Snapshot)
	}{
		{
			name: "nothing", meanwhile: func(*testing.T, *memengine.Engine) {},
			check: func(t *testing.T, _ *memengine.Engine, s *table.Snapshot) {
				for _, f := range s.Fragments {
					require.Nil(t, f.Deletion)
				}
			},
		},
		{
			name: "several deletes of one fragment", carried: 4,
			meanwhile: func(t *testing.T, e *memengine.Engine) {
				for o := range uint32(4) {
					require.NoError(t, e.DeleteRows(ctx, table.NewRowAddr(1, 2*o)))
				}
			},
		},
		{
			name: "the same row twice, and one that was dead before", carried: 1,
			prepare: func(t *testing.T, e *memengine.Engine) {
				require.NoError(t, e.DeleteRows(ctx, table.NewRowAddr(0, 0)))
			},
			meanwhile: func(t *testing.T, e *memengine.Engine) {
				require.NoError(t, e.DeleteRows(ctx, table.NewRowAddr(0, 0), table.NewRowAddr(0, 1)))
				require.NoError(t, e.DeleteRows(ctx, table.NewRowAddr(0, 1)))
			},
		},
		{
			name: "a whole fragment deleted", carried: 9,
			prepare: func(t *testing.T, e *memengine.Engine) {
				require.NoError(t, e.DeleteRows(ctx, table.NewRowAddr(1, 5)))
			},
			meanwhile: func(t *testing.T, e *memengine.Engine) { require.NoError(t, e.DeleteRows(ctx, all(1)...)) },
			check: func(t *testing.T, e *memengine.Engine, s *table.Snapshot) {
				h, err := readHistory(ctx, e, s)
				require.NoError(t, err)
				require.Len(t, h.At(0).Sources(), 4, "the one that is gone is among them")
			},
		},
		{
			name: "a whole fragment updated", carried: 10,
			meanwhile: func(t *testing.T, e *memengine.Engine) { updateRows(t, e, -7, all(2)...) },
		},
		{
			name: "deleted bit by bit until it was gone", carried: 10,
			meanwhile: func(t *testing.T, e *memengine.Engine) {
				require.NoError(t, e.DeleteRows(ctx, rowsOf(3, 0, 6)...))
				require.NoError(t, e.DeleteRows(ctx, rowsOf(3, 6, 10)...))
			},
		},
		{
			name: "a row that was updated is updated again and deleted", carried: 1,
			meanwhile: func(t *testing.T, e *memengine.Engine) {
				updateRows(t, e, -1, table.NewRowAddr(0, 5))
				updateRows(t, e, -2, table.NewRowAddr(4, 0))
				require.NoError(t, e.DeleteRows(ctx, table.NewRowAddr(5, 0)))
			},
		},
		{
			name: "several new fragments, one of them emptied", opts: Options{TargetRows: 12}, carried: 12, emptied: "4",
			prepare: func(t *testing.T, e *memengine.Engine) {
				for id := range table.FragmentID(4) {
					require.NoError(t, e.DeleteRows(ctx, table.NewRowAddr(id, 9)))
				}
			},
			meanwhile: func(t *testing.T, e *memengine.Engine) {
				require.NoError(t, e.DeleteRows(ctx, append(rowsOf(0, 0, 9), rowsOf(1, 0, 3)...)...))
			},
		},
		{
			name: "an index that is read through", index: "0-3", opts: Options{TargetRows: 12}, carried: 12, emptied: "4",
			prepare: func(t *testing.T, e *memengine.Engine) {
				for id := range table.FragmentID(4) {
					require.NoError(t, e.DeleteRows(ctx, table.NewRowAddr(id, 9)))
				}
			},
			meanwhile: func(t *testing.T, e *memengine.Engine) {
				require.NoError(t, e.DeleteRows(ctx, append(rowsOf(0, 0, 9), rowsOf(1, 0, 3)...)...))
			},
			check: func(t *testing.T, e *memengine.Engine, s *table.Snapshot) {
				require.NotNil(t, s.Reuse)
				require.Equal(t, ids(t, "4-6"), s.Indexes[0].Coverage, "the emptied one is covered like the others")
			},
		},
		{
			name: "an index that is built after a fragment died", carried: 11,
			meanwhile: func(t *testing.T, e *memengine.Engine) {
				require.NoError(t, e.DeleteRows(ctx, all(1)...))
				_, err := e.AddIndex(ctx, table.IndexMeta{Name: "new", Coverage: ids(t, "0,2-3"), CoverageKnown: true, Reuse: table.ReuseThrough})
				require.NoError(t, err)
				require.NoError(t, e.DeleteRows(ctx, table.NewRowAddr(3, 3)))
			},
			check: func(t *testing.T, e *memengine.Engine, s *table.Snapshot) {
				require.Equal(t, ids(t, "4"), s.Indexes[0].Coverage)
			},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := newTable(t, 10, 10, 10, 10)
			if c.index != "" {
				_, err := e.AddIndex(ctx, table.IndexMeta{Name: "i", Coverage: ids(t, c.index), CoverageKnown: true, Reuse: table.ReuseThrough})
				require.NoError(t, err)
			}
			if c.prepare != nil {
				c.prepare(t, e)
			}
			results := executed(t, e, c.opts)
			c.meanwhile(t, e)
			want := rowsAt(t, e, 0)
			out, err := Publish(ctx, e, results, c.opts)
			require.NoError(t, err)
			require.Empty(t, out.Lost)
			require.Equal(t, c.carried, out.RowsRelocated)
			var emptied []table.FragmentID
			for _, g := range out.Published {
				emptied = append(emptied, g.Emptied...)
			}
			require.Equal(t, c.emptied, table.FragmentList(emptied))
			require.Equal(t, sortedValues(want), sortedValues(rowsAt(t, e, 0)))
			require.Empty(t, orphans(t, e))
			s, err := e.Load(ctx, 0)
			require.NoError(t, err)
			if c.check != nil {
				c.check(t, e, s)
			}
			// And again: what was carried is compacted away like anything else.
			_, err = Compact(ctx, e, Options{AnyDeletion: true})
			require.NoError(t, err)
			require.Equal(t, sortedValues(want), sortedValues(rowsAt(t, e, 0)))
		})
	}
}

// TestIndexOverAPartOfWhatIsLeft: an index built after one fragment died covers
// one of two that are left, and would claim rows that it does not hold.
func TestIndexOverAPartOfWhatIsLeft(t *testing.T) {
	e := newTable(t, 10, 10, 10)
	results := executed(t, e, Options{})
	require.NoError(t, e.DeleteRows(ctx, rowsOf(1, 0, 10)...))
	_, err := e.AddIndex(ctx, table.IndexMeta{Name: "new", Coverage: ids(t, "0-1"), CoverageKnown: true, Reuse: table.ReuseThrough})
	require.NoError(t, err)
	_, err = Publish(ctx, e, results, Options{})
	require.ErrorIs(t, err, table.ErrConflict)
	require.ErrorContains(t, err, `index "new" covers 1 of its 2 fragments`)
	require.Empty(t, orphans(t, e))
}

// TestEveryCallFailsOnceWhileCarrying: see TestEveryCallFailsOnce, over a delete.
func TestEveryCallFailsOnceWhileCarrying(t *testing.T) {
	calls := 0
	for n, more := 1, true; more; n++ {
		synctest.Test(t, func(t *testing.T) {
			p := faultyTable(t)
			results := executed(t, p, Options{})
			require.NoError(t, p.DeleteRows(ctx, append(rowsOf(2, 1, 4), rowsOf(6, 0, 10)...)...))
			before := rowsAt(t, p.Engine, 0)
			was, err := p.Engine.Load(ctx, 0)
			require.NoError(t, err)
			seen, at, committed := 0, "", false
			p.before = func(op string) error {
				if committed {
					return nil // a look that fails right after the commit fails nothing
				}
				if seen++; seen == n {
					at = op
					return errInjected
				}
				committed = strings.HasPrefix(op, "commit ")
				return nil
			}
			_, err = Publish(ctx, p, results, Options{Threads: 1})
			p.before = nil
			if more = at != ""; !more {
				require.NoError(t, err)
				return
			}
			calls++
			require.ErrorIs(t, err, errInjected, at)
			now, err2 := p.Engine.Load(ctx, 0)
			require.NoError(t, err2)
			require.Equal(t, was.Version, now.Version, at)
			require.Equal(t, before, rowsAt(t, p.Engine, 0), at)
			require.Empty(t, orphans(t, p.Engine), at)
		})
	}
	require.Greater(t, calls, 8)
}

// TestAmbiguousCommitWhileCarrying: vectors of attempts whose outcome is unknown
// are kept until it is known, and then those that are referred to.
func TestAmbiguousCommitWhileCarrying(t *testing.T) {
	setUp := func(t *testing.T) (*probe, []Result, []int64) {
		p := &probe{Engine: newTable(t, 10, 10)}
		results := executed(t, p, Options{})
		require.NoError(t, p.DeleteRows(ctx, table.NewRowAddr(0, 3)))
		return p, results, valuesOf(rowsAt(t, p.Engine, 0))
	}
	t.Run("published and unknown", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			p, results, want := setUp(t)
			p.afterCommit = func(*table.Snapshot, error) (*table.Snapshot, error) { return nil, table.ErrAmbiguousCommit }
			out, err := Publish(ctx, p, results, Options{})
			require.NoError(t, err)
			require.EqualValues(t, 5, out.Version)
			require.Equal(t, []rebase.PublishedGroup{{Sources: ids(t, "0-1"), Destinations: ids(t, "2"), RowsCarried: 1}}, out.Published)
			require.Equal(t, want, valuesOf(rowsAt(t, p.Engine, 0)))
			require.Empty(t, orphans(t, p.Engine))
		})
	})
	t.Run("sent twice, and the first arrives late", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			p, results, want := setUp(t)
			var sent []table.Proposal
			p.hold = func(proposal table.Proposal) error {
				sent = append(sent, proposal)
				if len(sent) == 2 {
					p.hold = nil
					_, err := p.Engine.Commit(ctx, sent[0])
					require.NoError(t, err)
				}
				return table.ErrAmbiguousCommit
			}
			out, err := Publish(ctx, p, results, Options{})
			require.NoError(t, err)
			require.EqualValues(t, 5, out.Version)
			require.EqualValues(t, 1, out.RowsRelocated)
			require.Len(t, sent, 2)
			require.Equal(t, want, valuesOf(rowsAt(t, p.Engine, 0)))
			require.Empty(t, orphans(t, p.Engine), "the vector of the second")
		})
	})
	t.Run("unknown for good, then published again", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			p, results, want := setUp(t)
			cctx, cancel := context.WithCancel(ctx)
			down := false
			p.before = func(op string) error {
				if down && op == "load the latest version" {
					return errInjected
				}
				return nil
			}
			p.afterCommit = func(*table.Snapshot, error) (*table.Snapshot, error) {
				cancel()
				down = true
				return nil, table.ErrAmbiguousCommit
			}
			_, err := Publish(cctx, p, results, Options{})
			require.ErrorIs(t, err, table.ErrAmbiguousCommit)
			require.ErrorContains(t, err, "2 objects written for it were kept")
			p.before, p.afterCommit = nil, nil
			out, err := Publish(ctx, p, results, Options{})
			require.NoError(t, err)
			require.EqualValues(t, 1, out.RowsRelocated)
			require.Equal(t, want, valuesOf(rowsAt(t, p.Engine, 0)))
			require.Empty(t, orphans(t, p.Engine))
		})
	})
}

// TestCompactWhileAWriterIsFaster: a row is deleted before each of many attempts.
// None is lost, whoever wins in the end.
func TestCompactWhileAWriterIsFaster(t *testing.T) {
	e := newTable(t, 100, 100)
	p := &probe{Engine: e}
	n := uint32(0)
	p.before = func(op string) error {
		if strings.HasPrefix(op, "commit") && n < 15 {
			require.NoError(t, e.DeleteRows(ctx, table.NewRowAddr(table.FragmentID(n%2), n)))
			n++
		}
		return nil
	}
	report, err := Compact(ctx, p, Options{sleep: func(context.Context, time.Duration) error { return nil }})
	require.NoError(t, err)
	require.Equal(t, 16, report.Attempts)
	require.EqualValues(t, 15, report.RowsCarried)
	require.Len(t, report.RebasedOver, 15)
	require.Len(t, rowsAt(t, e, 0), 185)
	require.Empty(t, orphans(t, e))
}

// TestTasksOfDifferentVersions: what was committed before a task read the table is
// in what it wrote, however old the other tasks are.
func TestTasksOfDifferentVersions(t *testing.T) {
	e := newTable(t, 10, 10, 10, 10)
	first := executed(t, e, Options{ExcludeFragments: ids(t, "2-3")})
	base, err := e.Load(ctx, 0)
	require.NoError(t, err)
	_, err = e.Commit(ctx, table.Proposal{Base: base, Transaction: table.Transaction{ID: "m", ReadVersion: base.Version, Operation: table.Merge{Fragments: base.Fragments}}})
	require.NoError(t, err)
	require.NoError(t, e.DeleteRows(ctx, table.NewRowAddr(3, 3)))
	second := executed(t, e, Options{ExcludeFragments: ids(t, "0-1")})
	require.NoError(t, e.DeleteRows(ctx, table.NewRowAddr(2, 2)))
	want := sortedValues(rowsAt(t, e, 0))

	out, err := Publish(ctx, e, append(first, second...), Options{})
	require.NoError(t, err)
	require.Equal(t, []rebase.PublishedGroup{{Sources: ids(t, "2-3"), Destinations: ids(t, "4"), RowsCarried: 1}}, out.Published)
	require.Equal(t, []rebase.LostGroup{{
		Sources: ids(t, "0-1"),
		Reason:  "version 6: rewrite relies on the deletion vector of fragment 0, and merge replaced the deletion vector of every fragment",
	}}, out.Lost)
	require.Equal(t, want, sortedValues(rowsAt(t, e, 0)))
	require.Empty(t, orphans(t, e))
}
