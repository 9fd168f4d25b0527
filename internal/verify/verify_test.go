package verify_test

import (
	"context"
	"errors"
	"iter"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"

	"github.com/rehome-db/rehome/compaction"
	"github.com/rehome-db/rehome/deletion"
	"github.com/rehome-db/rehome/internal/verify"
	"github.com/rehome-db/rehome/table"
	"github.com/rehome-db/rehome/table/memengine"
)

// newTable makes a table of three fragments with some rows deleted and an index,
// compacted once, with a fragment reuse index, and written to since.
func newTable(t *testing.T) *memengine.Engine {
	t.Helper()
	ctx := t.Context()
	schema := table.Schema{Fields: []table.Field{{ID: 0, Name: "n", Type: arrow.PrimitiveTypes.Int64}}}
	e := memengine.New("t", schema)
	appendRows := func(numbers string) {
		rec, _, err := array.RecordFromJSON(memory.DefaultAllocator, schema.Arrow(), strings.NewReader(numbers))
		require.NoError(t, err)
		defer rec.Release()
		require.NoError(t, e.Append(ctx, rec))
	}
	appendRows(`[{"n":1},{"n":2},{"n":3},{"n":4}]`)
	appendRows(`[{"n":5},{"n":6},{"n":7}]`)
	require.NoError(t, e.DeleteRows(ctx, table.NewRowAddr(0, 1), table.NewRowAddr(1, 2)))
	_, err := e.AddIndex(ctx, table.IndexMeta{
		Name: "n_idx", Kind: "Bitmap", Fields: []int32{0}, Coverage: []table.FragmentID{0, 1}, CoverageKnown: true, Reuse: table.ReuseThrough,
	})
	require.NoError(t, err)
	r, err := compaction.Compact(ctx, e, compaction.Options{FRI: compaction.FRIAlways})
	require.NoError(t, err)
	require.True(t, r.Committed)
	appendRows(`[{"n":8},{"n":9}]`)
	require.NoError(t, e.DeleteRows(ctx, table.NewRowAddr(2, 0)))
	return e
}

func TestASoundTableHasNoProblems(t *testing.T) {
	e := newTable(t)
	rows := uint64(0)
	r, err := verify.Table(t.Context(), e, verify.Options{Deep: true, Progress: func(done, total uint64) {
		require.LessOrEqual(t, done, total)
		rows = done
	}})
	require.NoError(t, err)
	require.True(t, r.OK, "%v", r.Problems)
	require.Equal(t, verify.Checked{
		verify.Fragments: 2, verify.Files: 2, verify.FileBytes: r.Checked[verify.FileBytes], verify.DeletionVectors: 1,
		verify.DeletedRows: 1, verify.Indexes: 1, verify.Transitions: 1, verify.RowsRead: 6,
	}, r.Checked)
	require.Equal(t, uint64(6), rows)

	old, err := verify.Table(t.Context(), e, verify.Options{Version: 3})
	require.NoError(t, err)
	require.True(t, old.OK)
	require.Zero(t, old.Checked[verify.RowsRead], "only a deep check reads data")
}

// broken is an engine with one thing wrong.
type broken struct {
	*memengine.Engine
	load  func(*table.Snapshot)
	stat  func() (uint64, error)
	dead  func() (table.OffsetSet, error)
	reuse func([]byte) []byte
	rows  func(table.FragmentID) error
	err   error
}

func (b *broken) Load(ctx context.Context, v uint64) (*table.Snapshot, error) {
	if b.err != nil {
		return nil, b.err
	}
	s, err := b.Engine.Load(ctx, v)
	if err == nil && b.load != nil {
		c := *s
		c.Fragments = append([]table.Fragment{}, s.Fragments...)
		c.Indexes = append([]table.IndexMeta{}, s.Indexes...)
		b.load(&c)
		s = &c
	}
	return s, err
}

func (b *broken) Stat(ctx context.Context, o table.Object) (uint64, error) {
	if b.stat != nil {
		return b.stat()
	}
	return b.Engine.Stat(ctx, o)
}

func (b *broken) ReadDeletions(ctx context.Context, s *table.Snapshot, f table.Fragment) (table.OffsetSet, error) {
	if b.dead != nil {
		return b.dead()
	}
	return b.Engine.ReadDeletions(ctx, s, f)
}

func (b *broken) ReuseIndex(ctx context.Context, s *table.Snapshot) ([]byte, error) {
	c, err := b.Engine.ReuseIndex(ctx, s)
	if b.reuse != nil {
		c = b.reuse(c)
	}
	return c, err
}

func (b *broken) Rows(ctx context.Context, s *table.Snapshot, ids []table.FragmentID, o table.ReadOptions) iter.Seq2[table.Batch, error] {
	if b.rows != nil {
		if err := b.rows(ids[0]); err != nil {
			return func(yield func(table.Batch, error) bool) { yield(table.Batch{}, err) }
		}
	}
	return b.Engine.Rows(ctx, s, ids, o)
}

func TestEachProblemIsFoundAndPlaced(t *testing.T) {
	deletion1 := func(offsets ...uint32) func() (table.OffsetSet, error) {
		return func() (table.OffsetSet, error) { return deletion.Of(offsets...), nil }
	}
	for name, c := range map[string]struct {
		broken               broken
		kind, where, message string
	}{
		"a manifest that cannot be read": {
			broken{err: table.Corruptf("manifest: truncated")}, "manifest", "latest version", "truncated",
		},
		"two fragments with one id": {
			broken{load: func(s *table.Snapshot) { s.Fragments = append(s.Fragments, s.Fragments[0]) }},
			"fragment", "fragment 2", "used by two fragments",
		},
		"an id that will be used again": {
			broken{load: func(s *table.Snapshot) { s.NextFragmentID = 3 }}, "fragment", "fragment 3", "next free id 3",
		},
		"more rows deleted than there are": {
			broken{load: func(s *table.Snapshot) { s.Fragments[0].Deletion = &table.DeletionRef{Path: "x", Rows: 99} }},
			"fragment", "fragment 2", "99 of 5 rows",
		},
		"a field in two files": {
			broken{load: func(s *table.Snapshot) {
				f := s.Fragments[1].Files[0]
				f.Path = "other"
				s.Fragments[1].Files = append(s.Fragments[1].Files, f)
			}},
			"fragment", "fragment 3", "both hold field 0",
		},
		"a missing file": {
			broken{stat: func() (uint64, error) { return 0, table.ErrNotFound }}, "file", "fragment 2 file", "does not exist",
		},
		"a file of the wrong size": {
			broken{stat: func() (uint64, error) { return 1 << 40, nil }}, "file", "fragment 2 file", "the file has 1099511627776 bytes",
		},
		"a deletion vector that cannot be read": {
			broken{dead: func() (table.OffsetSet, error) { return nil, table.Corruptf("bad container") }},
			"deletion", "fragment 2 deletion vector", "bad container",
		},
		"a deletion outside the fragment": {
			broken{dead: deletion1(5)}, "deletion", "fragment 2 deletion vector", "offset 5 is outside the fragment's 5 rows",
		},
		"deletions that count wrong": {
			broken{dead: deletion1(0, 1)}, "deletion", "fragment 2 deletion vector", "holds 2 rows, the version records 1",
		},
		"an index on a column that is not there": {
			broken{load: func(s *table.Snapshot) { s.Indexes[0].Fields = []int32{7} }}, "index", "index n_idx", "field 7 is not in the schema",
		},
		"two index segments with one id": {
			broken{load: func(s *table.Snapshot) { s.Indexes = append(s.Indexes, s.Indexes[0]) }}, "index", "index n_idx", "a segment with the same id",
		},
		"an index over fragments to come": {
			broken{load: func(s *table.Snapshot) { s.Indexes[0].Coverage = []table.FragmentID{50} }}, "index", "index n_idx", "claims fragment 50",
		},
		"a reuse index that is cut off": {
			broken{reuse: func(b []byte) []byte { return b[:len(b)-1] }}, "fri", "fragment reuse index", "fri:",
		},
		"a reuse index with stable row ids": {
			broken{load: func(s *table.Snapshot) { s.StableRowIDs = true }}, "fri", "fragment reuse index", "stable row ids",
		},
		"a fragment that was rewritten and is there": {
			broken{load: func(s *table.Snapshot) {
				f := s.Fragments[1]
				f.ID = 1
				s.Fragments = append(s.Fragments, f)
			}},
			"fri", "transition 0", "fragment 1 is said to be rewritten and is in the table",
		},
		"a destination of another size": {
			broken{load: func(s *table.Snapshot) { s.Fragments[0].PhysicalRows = 4 }}, "fri", "transition 0", "said to have 5 rows and has 4",
		},
		"data that cannot be decoded": {
			broken{rows: func(id table.FragmentID) error {
				if id == 3 {
					return table.Corruptf("column n page 0: bad width")
				}
				return nil
			}},
			"data", "fragment 3", "bad width",
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := c.broken
			b.Engine = newTable(t)
			r, err := verify.Table(t.Context(), &b, verify.Options{Deep: b.rows != nil})
			require.NoError(t, err)
			require.False(t, r.OK)
			found := false
			for _, p := range r.Problems {
				found = found || p.Kind == c.kind && strings.Contains(p.Where, c.where) && strings.Contains(p.Message, c.message)
			}
			require.True(t, found, "%v", r.Problems)
		})
	}
}

// checking is an engine that checks something of its own.
type checking struct {
	*memengine.Engine
	where string
	err   error
}

func (c *checking) Check(_ context.Context, _ *table.Snapshot, found func(table.Finding)) (map[string]int, error) {
	found(table.Finding{Kind: "file", Where: c.where, Err: table.Corruptf("odd footer")})
	return map[string]int{"footers": 2, "fragments": 99}, c.err
}

func TestTheEngineAddsItsOwnChecks(t *testing.T) {
	e := &checking{Engine: newTable(t), where: "fragment 2 footer"}
	r, err := verify.Table(t.Context(), e, verify.Options{})
	require.NoError(t, err)
	require.Equal(t, []verify.Problem{{Kind: "file", Where: "fragment 2 footer", Message: "odd footer"}}, r.Problems)
	require.Equal(t, uint64(2), r.Checked["footers"])
	require.Equal(t, uint64(2), r.Checked[verify.Fragments], "what was counted here stays")

	e.err = errors.New("disk")
	_, err = verify.Table(t.Context(), e, verify.Options{})
	require.ErrorContains(t, err, "disk")
}

// A file that may not be read is a problem like others, and the check goes on.
func TestReport11AFileThatMayNotBeReadIsAProblem(t *testing.T) {
	e := newTable(t)
	r, err := verify.Table(t.Context(), &broken{Engine: e, stat: func() (uint64, error) { return 0, errors.New("disk") }}, verify.Options{})
	require.NoError(t, err)
	require.False(t, r.OK)
	require.Len(t, r.Problems, int(r.Checked[verify.Files]))
	require.Contains(t, r.Problems[0].Message, "disk")
}

func TestWhatMakesCheckingImpossibleIsAnError(t *testing.T) {
	e := newTable(t)
	_, err := verify.Table(t.Context(), e, verify.Options{Version: 99})
	require.ErrorIs(t, err, table.ErrNotFound)

	_, err = verify.Table(t.Context(), &broken{Engine: e, err: table.Unsupportedf("flag 64")}, verify.Options{})
	require.ErrorIs(t, err, table.ErrUnsupported)

	_, err = verify.Table(t.Context(), &broken{Engine: e, rows: func(table.FragmentID) error { return table.Unsupportedf("lists") }}, verify.Options{Deep: true})
	require.ErrorIs(t, err, table.ErrUnsupported, "a table that cannot be read was not found to be sound")

	_, err = verify.Table(t.Context(), &broken{Engine: e, stat: func() (uint64, error) { return 0, context.DeadlineExceeded }}, verify.Options{})
	require.ErrorIs(t, err, context.DeadlineExceeded)

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = verify.Table(ctx, e, verify.Options{})
	require.ErrorIs(t, err, context.Canceled)
}
