package dml

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"runtime"
	"time"

	"github.com/google/uuid"

	"github.com/rehome-db/rehome/commit"
	"github.com/rehome-db/rehome/rebase"
	"github.com/rehome-db/rehome/table"
)

// Stats counts the rows that a change affects. It is plain data.
type Stats struct {
	// Matched are the rows of the table that the condition or a source row picked.
	Matched uint64 `json:"matched"`
	// Updated, Inserted and Deleted are the rows of the table that were replaced,
	// that are new, and that are gone.
	Updated  uint64 `json:"updated"`
	Inserted uint64 `json:"inserted"`
	Deleted  uint64 `json:"deleted"`
	// SkippedDuplicates are the source rows that were left out because an earlier
	// one has the same key.
	SkippedDuplicates uint64 `json:"skipped_duplicates"`
}

// Options say how to compute and commit a change. The zero value suits most callers.
type Options struct {
	// MaxAttempts bounds how often the change is computed: it is computed again when
	// others changed the same rows meanwhile. The default is 10.
	MaxAttempts int
	// Properties are stored with the transaction, for people and tools. The default
	// is none.
	Properties map[string]string
	// Memory stores the changes of address of compactions. The default is the
	// engine's, if it has one.
	Memory rebase.Memory
	// Threads bounds the fragments in which rows are looked for at a time. The default
	// is GOMAXPROCS.
	Threads int
	// Events tells how far the change is. The default is nobody.
	Events Events

	// sleep waits between attempts.
	sleep func(context.Context, time.Duration) error
}

// EnsureDefaults fills in what was not set.
func (o *Options) EnsureDefaults() {
	if o.MaxAttempts == 0 {
		o.MaxAttempts = 10
	}
	if o.sleep == nil {
		o.sleep = commit.Sleep
	}
	if o.Threads == 0 {
		o.Threads = runtime.GOMAXPROCS(0)
	}
	o.Events.ensureDefaults()
}

// Validate says what is wrong with the options.
func (o *Options) Validate() error {
	switch {
	case o.MaxAttempts < 0:
		return fmt.Errorf("dml: MaxAttempts is %d: want a positive number", o.MaxAttempts)
	case o.Threads < 0:
		return fmt.Errorf("dml: Threads is %d: want a positive number", o.Threads)
	}
	return nil
}

// Result is what a change did. It is plain data but for Snapshot.
type Result struct {
	Stats
	// Committed is false if there was nothing to change: no version was made.
	Committed bool `json:"committed"`
	// Version is the version that holds the change or, if there was nothing to
	// change, a version in which that is so.
	Version uint64 `json:"version"`
	// ReadVersion is the version that the change was computed from in the end.
	ReadVersion uint64 `json:"read_version"`
	// RebasedOver are the versions that others committed in between, over which the
	// change was carried.
	RebasedOver []uint64 `json:"rebased_over"`
	// RowsRelocated is the number of rows that were followed to another address.
	RowsRelocated uint64 `json:"rows_relocated"`
	// Attempts is how often the change was computed.
	Attempts int `json:"attempts"`
	// Leftover are objects of lost attempts that could not be deleted.
	Leftover []table.Object `json:"leftover,omitempty"`
	// Snapshot is the version, nil if it was committed and could not be loaded.
	Snapshot *table.Snapshot `json:"-"`
}

// Change is a change of rows: an [Append], a [Delete], an [Update] or a [MergeInsert].
type Change interface {
	computer() computer
}

// computer computes a change from a version, and again from others.
type computer struct {
	compute func(context.Context, reader) (computed, error)
	// release, if set, frees what was kept from one computation to the next.
	release func()
	// once says that what is changed can be read only once.
	once bool
}

func (c computer) close() {
	if c.release != nil {
		c.release()
	}
}

// computed is a change that was computed and not committed.
type computed struct {
	change rebase.Uncommitted
	stats  Stats
	// clash, if set, compares keys where others inserted rows meanwhile.
	clash rebase.KeysClash
}

func (c computed) nothing() bool { return c.change.Affected.IsEmpty() && len(c.change.New) == 0 }

// Execute computes a change from the newest version and commits it, in one commit. If
// others changed the same rows meanwhile, it does both again. If there is nothing to
// change it commits nothing. On an error it deletes what it wrote, except after a
// [table.ErrAmbiguousCommit] or a [*commit.LostError].
func Execute(ctx context.Context, e table.Engine, c Change, opts Options) (Result, error) {
	opts.EnsureDefaults()
	if err := opts.Validate(); err != nil {
		return Result{}, err
	}
	cc := c.computer()
	defer cc.close()
	for n := 1; ; n++ {
		start := time.Now()
		out, err := attempt(ctx, e, opts, cc)
		out.Attempts = n
		if err == nil {
			return out, nil
		}
		if n >= opts.MaxAttempts || cc.once || !again(err) {
			return Result{}, err
		}
		wait := backoff.Pause(n, time.Since(start))
		opts.Events.Backoff(BackoffInfo{Attempt: n, Pause: wait, Err: err})
		if slept := opts.sleep(ctx, wait); slept != nil {
			return Result{}, errors.Join(slept, err)
		}
	}
}

// backoff grows with every attempt: what was computed was in vain, which costs more
// than a lost commit.
var backoff = commit.Backoff{Every: 1, Most: 16}

// Compute computes a change from s, writes the new rows, and returns the change for
// [rebase.Commit]. If there is nothing to change it writes nothing and the change is
// empty. On an error it deletes what it wrote. Of opts it uses Threads and Events.
func Compute(ctx context.Context, e table.Engine, s *table.Snapshot, c Change, opts Options) (rebase.Uncommitted, Stats, error) {
	out, err := computeFrom(ctx, reader{engine: e, snapshot: s}, c, opts)
	return out.change, out.stats, err
}

// DryRun computes what a change would do to s, and writes nothing at all: it works on a
// table that can only be read. Values that cannot be stored are an error, as when they
// are written. Of opts it uses Threads and Events.
func DryRun(ctx context.Context, e table.Engine, s *table.Snapshot, c Change, opts Options) (Stats, error) {
	out, err := computeFrom(ctx, reader{engine: e, snapshot: s, dry: true}, c, opts)
	return out.stats, err
}

func computeFrom(ctx context.Context, r reader, c Change, opts Options) (computed, error) {
	opts.EnsureDefaults()
	if err := opts.Validate(); err != nil {
		return computed{}, err
	}
	cc := c.computer()
	defer cc.close()
	return computeOnce(ctx, r, opts, cc)
}

// again says whether computing the change anew can help. It cannot after a terminal
// conflict: the change refers to something that no longer exists.
func again(err error) bool {
	return table.Classify(err) == table.OutcomeRetryable && !errors.Is(err, table.ErrTerminal) && !errors.Is(err, table.ErrAmbiguousCommit)
}

func attempt(ctx context.Context, e table.Engine, opts Options, cc computer) (Result, error) {
	s, err := e.Load(ctx, 0)
	if err != nil {
		return Result{}, fmt.Errorf("dml: load the latest version: %w", err)
	}
	if err := s.CheckSuccessor(); err != nil {
		return Result{}, fmt.Errorf("dml: %w", err)
	}
	c, err := computeOnce(ctx, reader{engine: e, snapshot: s}, opts, cc)
	if err != nil {
		return Result{}, removedMeanwhile(ctx, e, s, err)
	}
	if c.nothing() {
		return Result{Stats: c.stats, Version: s.Version, ReadVersion: s.Version, Snapshot: s}, nil
	}
	c.change.Transaction.Properties = opts.Properties
	// The id was made for this attempt, so nobody can have committed under it: an
	// attempt that never sent anything was not committed, whatever is gone by now.
	done, err := rebase.Commit(ctx, e, c.change, rebase.Options{Memory: opts.Memory, KeysClash: c.clash, Fresh: true, Hooks: opts.Events.hooks()})
	if err != nil {
		return Result{}, fmt.Errorf("dml: %s computed from version %d: %w", c.change.Transaction.Operation.Kind(), s.Version, err)
	}
	return Result{
		Stats: c.stats, Committed: !done.Nothing, Version: done.Version, ReadVersion: done.ReadVersion,
		RebasedOver: done.RebasedOver, RowsRelocated: done.RowsRelocated, Leftover: done.Leftover, Snapshot: done.Snapshot,
	}, nil
}

// removedMeanwhile judges the error of a computation that found an object missing. If a
// clean-up removed the version that was read, the object went with it: the table is not
// damaged, and computing the change from the newest version can succeed.
func removedMeanwhile(ctx context.Context, e table.Engine, s *table.Snapshot, err error) error {
	if !errors.Is(err, table.ErrCorrupt) && !errors.Is(err, table.ErrNotFound) {
		return err
	}
	latest, failed := e.Load(ctx, 0)
	if failed != nil || latest.Version == s.Version {
		return err
	}
	if _, failed = e.Load(ctx, s.Version); !errors.Is(failed, table.ErrNotFound) {
		return err
	}
	// What the error asked for is told and not wrapped.
	conflict := table.Conflictf("dml: table %s: version %d was removed while it was read; run again: %v", s.Table, s.Version, err)
	if left := commit.Leftovers(err); len(left) > 0 {
		return errors.Join(conflict, &commit.LeftoverError{By: "dml", Objects: left, Err: errors.New("their deletion failed")})
	}
	return conflict
}

// computeOnce computes a change from a version, and tells of it.
func computeOnce(ctx context.Context, r reader, opts Options, cc computer) (computed, error) {
	r.events, r.threads = opts.Events, opts.Threads
	info := ComputeInfo{Table: r.snapshot.Table, ReadVersion: r.snapshot.Version, Fragments: len(r.snapshot.Fragments), Rows: r.snapshot.LiveRows()}
	r.events.ComputeBegin(info)
	c, err := cc.compute(ctx, r)
	info.Stats, info.Err = c.stats, err
	r.events.ComputeEnd(info)
	return c, err
}

// uncommitted begins a change computed from s.
func uncommitted(s *table.Snapshot, op table.Operation) rebase.Uncommitted {
	return rebase.Uncommitted{
		Table: s.Table, Shape: rebase.ShapeOf(s.Schema),
		Transaction: table.Transaction{ID: uuid.NewString(), ReadVersion: s.Version, Operation: op},
	}
}

// write writes the rows of a change into new fragments. If that fails nothing of
// them is left. In a dry run the rows are computed and not written: the fragment that
// is returned has their number and no files. total is their number, 0 if it is not
// known.
func (r reader) write(ctx context.Context, rows iter.Seq2[table.Batch, error], total uint64, opts table.WriteOptions) (table.Written, error) {
	if err := r.snapshot.CheckNewFragments(); err != nil {
		return table.Written{}, fmt.Errorf("dml: %w", err)
	}
	var cause error // what was wrong with the rows, which the engine only passes on
	m := r.meter(Writing, total)
	watched := func(yield func(table.Batch, error) bool) {
		for b, err := range rows {
			cause = err
			var n int64
			if err == nil {
				n = b.Record.NumRows()
			}
			if !yield(b, err) {
				return
			}
			m.add(n)
		}
	}
	if r.dry {
		for _, err := range watched {
			if err != nil {
				return table.Written{}, err
			}
		}
		return table.Written{Fragments: []table.NewFragment{{PhysicalRows: m.done.Load()}}}, nil
	}
	out, err := r.engine.WriteFragments(ctx, r.snapshot.Schema, watched, opts)
	if err == nil {
		return out, nil
	}
	if cause == nil {
		cause = r.errorf("%w", err)
	}
	_, err = commit.Discard(ctx, r.engine, "dml", out.Objects)
	return table.Written{}, errors.Join(cause, err)
}
