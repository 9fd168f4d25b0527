package interop_test

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rehome-db/rehome/interop"
)

// raced is a table that somebody writes to while it is compacted.
type raced struct {
	writer *interop.Engine
	path   string
	m      *model
	next   int64
}

// grow appends a fragment, or makes the table.
func (r *raced) grow(ctx context.Context, t *testing.T, rows int64) {
	t.Helper()
	first := r.next == 0
	batch := newRows(r.next, r.next+rows)
	r.next += rows
	r.m.put(batch...)
	rec := record(r.m.schema, batch)
	defer rec.Release()
	var err error
	if first {
		_, err = r.writer.Create(ctx, r.path, rec, interop.CreateOptions{})
	} else {
		_, err = r.writer.Append(ctx, r.path, rec)
	}
	require.NoError(t, err)
}

// during runs `rehome compact`, which must commit, and calls write again and again
// until it has ended. It checks the table.
func (r *raced) during(ctx context.Context, t *testing.T, write func(i int64)) compactReport {
	t.Helper()
	type ending struct {
		compactReport
		err error
	}
	done := make(chan ending, 1)
	go func() {
		c, err := rehomeCompact(ctx, r.path)
		done <- ending{c, err}
	}()
	var end ending
	for i, ended := int64(0), false; !ended; i++ {
		select {
		case end = <-done:
			ended = true
		default:
			write(i)
		}
	}
	require.NoError(t, end.err)
	require.True(t, end.Committed)
	for _, e := range engines {
		require.NoError(t, holds(ctx, e, r.path, r.m.schema, r.m.canon))
	}
	require.NoError(t, rehomeVerify(ctx, r.path))
	return end.compactReport
}

const raceRounds = 3

func raceEach(t *testing.T, race func(ctx context.Context, t *testing.T, r *raced)) {
	ctx := needEngines(t)
	const fragments, perFragment = 20, 250
	for _, writer := range engines {
		t.Run(writer.Name, func(t *testing.T) {
			t.Parallel()
			r := &raced{writer: writer, path: filepath.Join(t.TempDir(), "t.lance"), m: newModel(false)}
			defer forget(ctx, r.path)
			for range fragments {
				r.grow(ctx, t, perFragment)
			}
			race(ctx, t, r)
		})
	}
}

// TestWriterDuringCompaction has a stock writer delete, update and upsert rows, one
// commit after the other, while rehome compacts the table. Every compaction must
// get through, and no row may come back, be lost or come twice.
func TestWriterDuringCompaction(t *testing.T) {
	raceEach(t, func(ctx context.Context, t *testing.T, r *raced) {
		var carried, over int
		for round := range int64(raceRounds) {
			ids := r.m.ids(func(row) bool { return true })
			c := r.during(ctx, t, func(i int64) {
				id := ids[(i*293+round*7919)%int64(len(ids))]
				r.change(ctx, t, id, i%3, fmt.Sprintf("written %d %d", round, i))
			})
			carried += c.RowsCarried
			over += len(c.RebasedOver)
			r.grow(ctx, t, 100)
			r.grow(ctx, t, 100)
		}
		t.Logf("%d compactions were rebased over %d commits and carried %d rows", raceRounds, over, carried)
		require.NotZero(t, carried, "the writer was too slow to be in the way")
		// Nobody writes now.
		compactTable(ctx, t, r.path)
		for _, e := range engines {
			require.NoError(t, holds(ctx, e, r.path, r.m.schema, r.m.canon))
		}
	})
}

// TestAppendDuringCompaction has it append, which never stands in the way.
func TestAppendDuringCompaction(t *testing.T) {
	raceEach(t, func(ctx context.Context, t *testing.T, r *raced) {
		for range raceRounds {
			r.during(ctx, t, func(int64) { r.grow(ctx, t, 20) })
		}
	})
}

// change deletes a row, updates it to have the given text, or upserts it.
func (r *raced) change(ctx context.Context, t *testing.T, id, how int64, text string) {
	t.Helper()
	where := fmt.Sprintf("id = %d", id)
	this := func(x row) bool { return x.id == id }
	var err error
	switch how {
	case 0:
		_, err = r.writer.Delete(ctx, r.path, where)
		r.m.delete(this)
	case 1:
		_, err = r.writer.Update(ctx, r.path, where, map[string]string{"txt": "'" + text + "'"})
		r.m.update(this, func(x *row) { x.txt = text })
	default:
		batch := newRows(id, id+1)
		batch[0].txt = text
		rec := record(r.m.schema, batch)
		defer rec.Release()
		_, err = r.writer.Merge(ctx, r.path, "id", rec)
		r.m.put(batch...)
	}
	require.NoError(t, err)
}

// withRehomeRaced is withRehome while by deletes, updates and upserts rows. What it
// did and what rehome made of it is checked together, by all that follows.
func (s scenario) withRehomeRaced(t *testing.T, flags ...string) compactor {
	return func(ctx context.Context, stage string, by *interop.Engine, path string, m *model) (out []finding) {
		r := &raced{writer: by, path: path, m: m}
		ids := m.ids(func(row) bool { return true })
		type ending struct {
			compactReport
			err error
		}
		done := make(chan ending, 1)
		go func() {
			c, err := rehomeCompact(ctx, path, flags...)
			done <- ending{c, err}
		}()
		var end ending
		for i, ended := int64(0), false; !ended; i++ {
			select {
			case end = <-done:
				ended = true
			default:
				r.change(ctx, t, ids[i*293%int64(len(ids))], i%3, fmt.Sprintf("alpha written %d", i))
			}
		}
		add := func(what string, err error) {
			if err != nil {
				out = append(out, finding{stage, "rehome", what, err.Error()})
			}
		}
		if end.err != nil {
			add("verify", end.err)
			return out
		}
		t.Logf("%s: rebased over %d commits, carried %d rows", stage, len(end.RebasedOver), end.RowsCarried)
		add("verify", s.checkReport(end.compactReport, stage == firstCompaction))
		add("scan", rehomeScanEquals(ctx, path, m))
		add("verify", rehomeVerify(ctx, path))
		return out
	}
}

// TestWriterDuringCompactionOfAnIndexedTable does the same to tables with indexes,
// left alone and read through a fragment reuse index, and has every engine query
// and go on using them.
func TestWriterDuringCompactionOfAnIndexedTable(t *testing.T) {
	ctx := needEngines(t)
	for _, writer := range engines {
		for policy, s := range map[string]scenario{
			"leave":   {writer: writer, keyed: true, kinds: kinds(interop.FTS, interop.Bitmap, interop.IVFPQ)},
			"through": {writer: writer, keyed: true, through: true, kinds: kinds(interop.FTS, interop.Bitmap, interop.IVFPQ)},
		} {
			t.Run(writer.Name+"/"+policy, func(t *testing.T) {
				t.Parallel()
				template, m := s.template(ctx, t)
				s.judge(ctx, t, template, m, s.withRehomeRaced(t, "--index-policy", policy))
			})
		}
	}
}
