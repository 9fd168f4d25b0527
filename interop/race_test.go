package interop_test

import (
	"context"
	"errors"
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

// during runs `rehome compact` and calls write again and again until it has ended.
// It checks the table, and returns how the compaction ended.
func (r *raced) during(ctx context.Context, t *testing.T, write func(i int64)) error {
	t.Helper()
	done := make(chan error, 1)
	go func() {
		_, err := rehomeCompact(ctx, r.path)
		done <- err
	}()
	err, ended := error(nil), false
	for i := int64(0); !ended; i++ {
		select {
		case err = <-done:
			ended = true
		default:
			write(i)
		}
	}
	for _, e := range engines {
		require.NoError(t, holds(ctx, e, r.path, r.m.schema, r.m.canon))
	}
	require.NoError(t, rehomeVerify(ctx, r.path))
	return err
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

// TestWriterDuringCompaction has a stock writer delete and update rows, one commit
// after the other, while rehome compacts the table. Whether the compaction gets
// through or reports a conflict, no row may come back, be lost or come twice.
func TestWriterDuringCompaction(t *testing.T) {
	raceEach(t, func(ctx context.Context, t *testing.T, r *raced) {
		committed := 0
		for round := range int64(raceRounds) {
			ids := r.m.ids(func(row) bool { return true })
			err := r.during(ctx, t, func(i int64) {
				r.change(ctx, t, ids[(i*293+round*7919)%int64(len(ids))], i%2 == 0, fmt.Sprintf("written %d %d", round, i))
			})
			var lost *refusal
			if errors.As(err, &lost) {
				require.Equal(t, exitConflict, lost.code, lost.message)
			} else {
				require.NoError(t, err)
				committed++
			}
			r.grow(ctx, t, 100)
			r.grow(ctx, t, 100)
		}
		t.Logf("%d of %d compactions committed", committed, raceRounds)
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
			require.NoError(t, r.during(ctx, t, func(int64) { r.grow(ctx, t, 20) }))
		}
	})
}

// change deletes a row, or updates it to have the given text.
func (r *raced) change(ctx context.Context, t *testing.T, id int64, remove bool, text string) {
	t.Helper()
	where := fmt.Sprintf("id = %d", id)
	this := func(x row) bool { return x.id == id }
	if remove {
		_, err := r.writer.Delete(ctx, r.path, where)
		require.NoError(t, err)
		r.m.delete(this)
		return
	}
	_, err := r.writer.Update(ctx, r.path, where, map[string]string{"txt": "'" + text + "'"})
	require.NoError(t, err)
	r.m.update(this, func(x *row) { x.txt = text })
}
