package compaction

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"

	"github.com/google/uuid"

	"github.com/rehome-db/rehome/commit"
	"github.com/rehome-db/rehome/deletion"
	"github.com/rehome-db/rehome/rebase"
	"github.com/rehome-db/rehome/table"
)

// Result is what executing a task made: new fragments that no version refers to
// yet. It is plain data, like [Task], and all that [Publish] needs to know.
type Result struct {
	// ID identifies this execution. Transactions are named after the executions that
	// they publish, so that a second publication of the same results finds the first.
	ID   string `json:"id"`
	Task Task   `json:"task"`
	// Deleted has, for each of the task's sources, the rows that were dead when
	// the task read it: a portable Roaring bitmap of offsets, nil if none. It is a
	// copy because Publish computes the change of address from these rows, and the
	// stored vector may be gone by then.
	Deleted [][]byte `json:"deleted"`
	// Fragments are the new fragments, in the order of their rows.
	Fragments []table.NewFragment `json:"fragments"`
	// Objects names everything that was written.
	Objects []table.Object `json:"objects"`
	// BytesRead and BytesWritten are sizes of stored data.
	BytesRead    uint64 `json:"bytes_read"`
	BytesWritten uint64 `json:"bytes_written"`
}

// Execute rewrites the task's fragments and commits nothing. Until the result is
// published or discarded the objects that it names belong to the caller; see
// [Discard]. If Execute fails or ctx ends, it deletes what it wrote; [commit.Leftovers]
// of the error lists what it could not delete.
//
// A task whose version is gone, or shows other fragments than the task names, is
// [table.ErrTerminal]: plan again. A task with data that the engine cannot
// rewrite is [table.ErrUnsupported], before anything is written.
//
// It uses only the Events of opts: the task holds all other options.
func Execute(ctx context.Context, e table.Engine, t Task, opts Options) (Result, error) {
	opts.EnsureDefaults()
	if err := t.validate(); err != nil {
		return Result{}, err
	}
	s, err := e.Load(ctx, t.ReadVersion)
	if errors.Is(err, table.ErrNotFound) {
		return Result{}, fmt.Errorf("compaction: the version that the task was planned for is gone: %w: %w", table.ErrTerminal, err)
	}
	if err != nil {
		return Result{}, fmt.Errorf("compaction: load version %d: %w", t.ReadVersion, err)
	}
	return execute(ctx, e, s, t, opts.Events, newMeter(opts.Events, []Task{t}))
}

// Discard deletes the objects of a result that will not be published. The caller must
// not publish the result afterwards. It uses only the Events of opts.
func Discard(ctx context.Context, e table.Engine, r Result, opts Options) error {
	opts.EnsureDefaults()
	return discard(ctx, e, r.Objects, opts.Events)
}

func execute(ctx context.Context, e table.Engine, s *table.Snapshot, t Task, ev Events, m *meter) (r Result, err error) {
	info := TaskInfo{Sources: t.SourceIDs(), Rows: t.Rows, Bytes: t.Bytes, Reason: t.Reason}
	ev.TaskBegin(info)
	defer func() {
		info.Fragments, info.BytesWritten, info.Err = len(r.Fragments), r.BytesWritten, err
		ev.TaskEnd(info)
	}()
	if err := errors.Join(s.CheckSuccessor(), s.CheckNewFragments()); err != nil {
		return Result{}, fmt.Errorf("compaction: %w", err)
	}
	for _, f := range t.Sources {
		if now, ok := s.Fragment(f.ID); !ok || !now.Same(f) {
			return Result{}, fmt.Errorf("compaction: table %s version %d: fragment %d is not as the task describes it: %w", t.Table, t.ReadVersion, f.ID, table.ErrTerminal)
		}
	}
	deleted, err := readDeleted(ctx, e, s, t)
	if err != nil {
		return Result{}, err
	}
	w, err := write(ctx, e, s, t, m)
	if err == nil {
		err = checkWritten(t, w)
	}
	if err != nil {
		err = fmt.Errorf("compaction: table %s version %d: rewrite of fragments %s: %w", t.Table, t.ReadVersion, table.FragmentList(info.Sources), err)
		return Result{}, errors.Join(err, discard(ctx, e, w.Objects, ev))
	}
	return Result{
		ID: uuid.NewString(), Task: t, Deleted: deleted,
		Fragments: w.Fragments, Objects: w.Objects, BytesRead: w.BytesRead, BytesWritten: w.BytesWritten,
	}, nil
}

// readDeleted reads the deletion vectors of the task's sources.
func readDeleted(ctx context.Context, e table.Engine, s *table.Snapshot, t Task) ([][]byte, error) {
	out := make([][]byte, len(t.Sources))
	for i, f := range t.Sources {
		if f.DeletedRows() == 0 {
			continue
		}
		set, err := e.ReadDeletions(ctx, s, f)
		if err != nil {
			return nil, fmt.Errorf("compaction: table %s version %d: deletion vector of fragment %d: %w", t.Table, t.ReadVersion, f.ID, err)
		}
		v := commit.VectorOf(set)
		if err := v.Validate(f.PhysicalRows, f.DeletedRows()); err != nil {
			return nil, table.Corruptf("compaction: table %s version %d: fragment %d: %w", t.Table, t.ReadVersion, f.ID, err)
		}
		out[i] = deletion.EncodeRuns(v)
	}
	return out, nil
}

// Group is what the execution rewrote.
func (r Result) Group() (rebase.Group, error) {
	g := rebase.Group{
		ReadVersion: r.Task.ReadVersion, Old: r.Task.Sources, Deleted: rebase.RowSet{},
		New: r.Fragments, Shape: r.Task.Fields, Objects: r.Objects,
	}
	for i, f := range r.Task.Sources {
		if i >= len(r.Deleted) || r.Deleted[i] == nil {
			continue // rebase compares the number of rows with the fragment's
		}
		v, err := deletion.DecodeBitmap(r.Deleted[i], f.PhysicalRows)
		if err != nil {
			return g, table.Corruptf("compaction: result %s: deleted rows of fragment %d: %w", r.ID, f.ID, err)
		}
		g.Deleted.Add(f.ID, v)
	}
	return g, nil
}

// write writes the new fragments, by the engine's [table.Rewriter] if it has one.
func write(ctx context.Context, e table.Engine, s *table.Snapshot, t Task, m *meter) (table.Written, error) {
	progress := m.task(t)
	opts := table.WriteOptions{
		MaxRows: t.Writing.MaxRows, MaxBytes: t.Writing.MaxBytes, NoSync: t.Writing.NoSync, KeepCached: t.Writing.KeepCached,
	}
	if rw, ok := table.As[table.Rewriter](e); ok {
		w, err := rw.RewriteGroup(ctx, table.RewriteRequest{
			Snapshot: s, Sources: t.SourceIDs(), Options: opts, Copy: t.Writing.Mode.pageCopy(),
			Threads: max(t.Writing.Threads, 1), MemoryLimit: t.Writing.MemoryLimit,
			Progress: progress.bytes,
		})
		progress.end(err)
		return w, err
	}
	if t.Writing.Mode == ModeCopy {
		err := table.Unsupportedf("the engine has no pages to copy: use mode %q", ModeAuto)
		progress.end(err)
		return table.Written{}, err
	}
	rows := e.Rows(ctx, s, t.SourceIDs(), table.ReadOptions{})
	w, err := e.WriteFragments(ctx, s.Schema, counted(rows, progress), opts)
	w.BytesRead = t.Bytes
	progress.end(err)
	return w, err
}

// counted reports the rows that pass by.
func counted(rows iter.Seq2[table.Batch, error], p *taskMeter) iter.Seq2[table.Batch, error] {
	return func(yield func(table.Batch, error) bool) {
		for b, err := range rows {
			if !yield(b, err) || err != nil {
				return
			}
			p.rows(uint64(b.Record.NumRows()))
		}
	}
}

// checkWritten checks, before anything is published, that the engine wrote as many rows
// as it read and named the files that it wrote.
func checkWritten(t Task, w table.Written) error {
	named := map[string]bool{}
	for _, o := range w.Objects {
		named[o.Path] = true
	}
	var rows uint64
	for i, f := range w.Fragments {
		if f.PhysicalRows == 0 || len(f.Files) == 0 {
			return fmt.Errorf("new fragment %d has %d rows in %d files", i, f.PhysicalRows, len(f.Files))
		}
		for _, d := range f.Files {
			if !named[d.Path] {
				return fmt.Errorf("new fragment %d is in file %s, which is not among the objects written", i, d.Path)
			}
		}
		rows += f.PhysicalRows
	}
	if rows != t.Rows {
		return fmt.Errorf("%d rows were written, %d were live", rows, t.Rows)
	}
	return nil
}

// meter adds up the progress of a run's tasks.
type meter struct {
	mu     sync.Mutex
	info   ProgressInfo
	notify func(ProgressInfo)
}

func newMeter(ev Events, tasks []Task) *meter {
	m := &meter{notify: ev.Progress, info: ProgressInfo{Tasks: len(tasks)}}
	for _, t := range tasks {
		m.info.RowsTotal += t.Rows
		m.info.BytesTotal += t.Bytes
	}
	return m
}

// taskMeter is one task's part. What engines report is what they read, which may
// be more or less than the recorded size: the task counts as its size at the end.
type taskMeter struct {
	*meter
	total, done struct{ rows, bytes uint64 }
}

func (m *meter) task(t Task) *taskMeter {
	tm := &taskMeter{meter: m}
	tm.total.rows, tm.total.bytes = t.Rows, t.Bytes
	return tm
}

// rows counts rows that the executor itself handed on.
func (m *taskMeter) rows(n uint64) {
	if m.total.rows == 0 {
		return
	}
	share := float64(n) / float64(m.total.rows)
	m.add(n, uint64(share*float64(m.total.bytes)), 0, 0)
}

// bytes counts what a rewriting engine reports.
func (m *taskMeter) bytes(read, written uint64) { m.add(0, read, written, 0) }

// end counts what is missing, if the task succeeded.
func (m *taskMeter) end(err error) {
	if err == nil {
		m.add(m.total.rows, m.total.bytes, 0, 1)
	}
}

func (m *taskMeter) add(rows, read, written uint64, tasks int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	rows = min(rows, m.total.rows-m.done.rows)
	read = min(read, m.total.bytes-m.done.bytes)
	m.done.rows += rows
	m.done.bytes += read
	m.info.RowsDone += rows
	m.info.BytesDone += read
	m.info.BytesWritten += written
	m.info.TasksDone += tasks
	// Inside the lock, so that what is reported never goes back.
	m.notify(m.info)
}
