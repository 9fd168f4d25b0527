package dml_test

import (
	"context"
	"errors"
	"iter"
	"sync/atomic"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/stretchr/testify/require"

	"github.com/rehome-db/rehome/dml"
	"github.com/rehome-db/rehome/table"
	"github.com/rehome-db/rehome/table/memengine"
)

// failing is an engine on which one call fails, the one with the given number; batches
// that are read count as calls. Objects can always be deleted.
type failing struct {
	*memengine.Engine
	calls atomic.Int64
	at    int64
	fail  func() error
}

func (f *failing) call() error {
	if f.calls.Add(1) == f.at {
		return f.fail()
	}
	return nil
}

func (f *failing) Load(ctx context.Context, version uint64) (*table.Snapshot, error) {
	if err := f.call(); err != nil {
		return nil, err
	}
	return f.Engine.Load(ctx, version)
}

func (f *failing) TransactionsSince(ctx context.Context, after, upTo uint64) ([]table.Transaction, error) {
	if err := f.call(); err != nil {
		return nil, err
	}
	return f.Engine.TransactionsSince(ctx, after, upTo)
}

func (f *failing) Rows(ctx context.Context, s *table.Snapshot, ids []table.FragmentID, opts table.ReadOptions) iter.Seq2[table.Batch, error] {
	return func(yield func(table.Batch, error) bool) {
		for b, err := range f.Engine.Rows(ctx, s, ids, opts) {
			if err == nil {
				err = f.call()
			}
			if !yield(b, err) || err != nil {
				return
			}
		}
	}
}

func (f *failing) WriteFragments(ctx context.Context, s table.Schema, rows iter.Seq2[table.Batch, error], opts table.WriteOptions) (table.Written, error) {
	if err := f.call(); err != nil {
		return table.Written{}, err
	}
	out, err := f.Engine.WriteFragments(ctx, s, rows, opts)
	if err == nil {
		err = f.call()
	}
	return out, err
}

func (f *failing) ReadDeletions(ctx context.Context, s *table.Snapshot, g table.Fragment) (table.OffsetSet, error) {
	if err := f.call(); err != nil {
		return nil, err
	}
	return f.Engine.ReadDeletions(ctx, s, g)
}

func (f *failing) WriteDeletions(ctx context.Context, id table.FragmentID, readVersion uint64, deleted table.OffsetSet) (table.DeletionRef, error) {
	if err := f.call(); err != nil {
		return table.DeletionRef{}, err
	}
	return f.Engine.WriteDeletions(ctx, id, readVersion, deleted)
}

func (f *failing) Commit(ctx context.Context, p table.Proposal) (*table.Snapshot, error) {
	if err := f.call(); err != nil {
		return nil, err
	}
	return f.Engine.Commit(ctx, p)
}

// theChanges are one of every sort, each of which changes the table of numbered rows.
// A condition or source that is asked calls ask first.
func theChanges(ask func() error) map[string]func() change {
	third := func(r row) bool { return r.N%3 == 0 }
	asked := func(rows []row, n int) iter.Seq2[arrow.RecordBatch, error] {
		return func(yield func(arrow.RecordBatch, error) bool) {
			for rec := range in(n, rows) {
				if !yield(rec, ask()) {
					return
				}
			}
		}
	}
	small := table.WriteOptions{MaxRows: 4}
	var source []row
	for i := range 10 {
		source = append(source, row{K: ptr(int64(i * 4)), S: ptr("new"), N: 100})
	}
	return map[string]func() change{
		"append":     func() change { return dml.Append{Rows: asked(numbered(10), 3), Write: small} },
		"delete":     func() change { return dml.Delete{Where: where([]string{"n"}, third)} },
		"delete all": func() change { return dml.Delete{Where: dml.All()} },
		"update": func() change {
			return dml.Update{Where: where([]string{"n"}, third), Set: map[string]dml.Expr{"n": plusOne()}, Write: small}
		},
		"upsert": func() change {
			return dml.MergeInsert{On: []string{"k"}, Source: asked(source, 4), WhenMatched: dml.MatchedUpdate, Write: small}
		},
		"upsert of some columns, delete": func() change {
			return dml.MergeInsert{On: []string{"k"}, Source: in(4, source, "k", "s"), WhenMatched: dml.MatchedUpdate,
				WhenNotMatched: dml.NotMatchedSkip, WhenNotMatchedBySource: dml.BySourceDelete, DeleteIf: where([]string{"n"}, third), Write: small}
		},
	}
}

// TestAFailureLeavesNothingBehind: whatever call fails, and whenever the caller gives
// up, the change is made or nothing of it is left.
func TestAFailureLeavesNothingBehind(t *testing.T) {
	broken := errors.New("the disk is full")
	for name, make := range theChanges(func() error { return nil }) {
		for kind, fail := range map[string]func(cancel func()) error{
			"failure":      func(func()) error { return broken },
			"cancellation": func(cancel func()) error { cancel(); return nil },
		} {
			t.Run(name+", "+kind, func(t *testing.T) {
				for at := int64(1); ; at++ {
					mem := newTable(t, 7, numbered(30)...)
					before, objects := contents(t, mem, 0), mustObjects(t, mem)
					version := snapshot(t, mem, 0).Version
					ctx, cancel := context.WithCancel(t.Context())
					e := &failing{Engine: mem, at: at, fail: func() error { return fail(cancel) }}
					out, err := dml.Execute(ctx, e, make(), dml.Options{})
					cancel()
					if err == nil {
						require.True(t, out.Committed)
						require.Equal(t, version+1, snapshot(t, mem, 0).Version)
						require.NotEqual(t, before, contents(t, mem, 0))
						if e.calls.Load() < at {
							return // that call is never made
						}
						continue // too late to stop it
					}
					require.True(t, errors.Is(err, broken) || errors.Is(err, context.Canceled), "call %d: %v", at, err)
					require.Equal(t, version, snapshot(t, mem, 0).Version, "call %d: %v", at, err)
					require.Equal(t, objects, mustObjects(t, mem), "call %d: %v", at, err)
				}
			})
		}
	}
}

// TestASourceThatFails: the error is the source's own.
func TestASourceThatFails(t *testing.T) {
	broken := errors.New("the socket is closed")
	n := 0
	for name, make := range theChanges(func() error {
		if n++; n == 2 {
			return broken
		}
		return nil
	}) {
		if name != "append" && name != "upsert" {
			continue
		}
		n = 0
		mem := newTable(t, 7, numbered(30)...)
		objects := mustObjects(t, mem)
		_, err := dml.Execute(t.Context(), mem, make(), dml.Options{})
		require.ErrorIs(t, err, broken, name)
		require.NotContains(t, err.Error(), "memengine")
		require.Equal(t, objects, mustObjects(t, mem))
	}
}

func mustObjects(t *testing.T, e *memengine.Engine) []table.Object {
	t.Helper()
	out, err := e.Objects(t.Context())
	require.NoError(t, err)
	return out
}
