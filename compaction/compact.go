package compaction

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/rehome-db/rehome/commit"
	"github.com/rehome-db/rehome/rebase"
	"github.com/rehome-db/rehome/table"
)

// Report is what [Compact] did. It is plain data.
type Report struct {
	Table string `json:"table"`
	// Committed is false if there was nothing to do.
	Committed bool `json:"committed"`
	// Version is the version that holds the compaction, or the one that needed none.
	Version     uint64   `json:"version"`
	ReadVersion uint64   `json:"read_version"`
	RebasedOver []uint64 `json:"rebased_over"`

	GroupsPublished  int                `json:"groups_published"`
	GroupsLost       int                `json:"groups_lost"`
	Lost             []rebase.LostGroup `json:"lost,omitempty"`
	FragmentsRemoved int                `json:"fragments_removed"`
	FragmentsAdded   int                `json:"fragments_added"`

	RowsWritten uint64 `json:"rows_written"`
	// RowsCarried is the number of rows that others deleted or updated meanwhile
	// and whose deletion was carried to the new fragments.
	RowsCarried  uint64 `json:"rows_carried"`
	BytesRead    uint64 `json:"bytes_read"`
	BytesWritten uint64 `json:"bytes_written"`

	// Trim is the trim that Options.MaxTransitions caused; nil if there was none.
	Trim *TrimReport `json:"trim,omitempty"`
	// TrimError says why the trim failed. The compaction is committed all the same.
	TrimError string `json:"trim_error,omitempty"`

	// KeepsOrder says that a scan reads the rows in the same order as in the version
	// that was read, if no group was lost and nobody appended meanwhile.
	KeepsOrder bool `json:"keeps_order"`

	FRI      FRIReport       `json:"fri"`
	Policy   IndexPolicy     `json:"index_policy"`
	Reason   string          `json:"index_policy_reason"`
	Forced   bool            `json:"forced,omitempty"`
	Indexes  []IndexDecision `json:"indexes"`
	Attempts int             `json:"attempts"`
	// Leftover are objects of lost groups that could not be deleted.
	Leftover  []table.Object `json:"leftover,omitempty"`
	ElapsedMS int64          `json:"elapsed_ms"`
}

// FRIReport is the part of a Report about the fragment reuse index.
type FRIReport struct {
	Published        bool `json:"published"`
	TransitionsAdded int  `json:"transitions_added"`
}

// PlanLatest plans the newest version as [Compact] does.
func PlanLatest(ctx context.Context, e table.Engine, opts Options) (Planned, error) {
	s, err := loadLatest(ctx, e)
	if err != nil {
		return Planned{}, err
	}
	return PlanSnapshot(ctx, e, s, opts)
}

// PlanSnapshot is [Plan] with what only the engine knows: its advice, and the
// coverage that readers of the version's fragment reuse index, if it has one, see.
// It is how [Compact] plans.
func PlanSnapshot(ctx context.Context, e table.Engine, s *table.Snapshot, opts Options) (Planned, error) {
	v, err := viewIndexes(ctx, e, s)
	if err != nil {
		return Planned{}, err
	}
	opts.Advice = table.AdvisedReusePolicy(e)
	return plan(s, v, opts)
}

func loadLatest(ctx context.Context, e table.Engine) (*table.Snapshot, error) {
	s, err := e.Load(ctx, 0)
	if err != nil {
		return nil, fmt.Errorf("compaction: load the latest version: %w", err)
	}
	return s, nil
}

// Compact plans the newest version, executes the tasks, several at a time, and
// publishes the results. It either commits once or leaves the table as it was. It
// deletes the objects that it did not commit; [commit.Leftovers] of the error lists
// those that it could not delete. Nothing to do is no error. After a
// [table.ErrConflict], call Compact again. With a [*commit.LostError] the compaction is
// committed, as the report says, and some of its objects are gone.
func Compact(ctx context.Context, e table.Engine, opts Options) (Report, error) {
	start := time.Now()
	opts.EnsureDefaults()
	s, err := loadLatest(ctx, e)
	if err != nil {
		return Report{}, err
	}
	plan, err := PlanSnapshot(ctx, e, s, opts)
	info := PlanInfo{Table: s.Table, ReadVersion: s.Version, Tasks: len(plan.Tasks), Policy: plan.Decision.Policy, Err: err}
	for _, t := range plan.Tasks {
		info.Fragments += len(t.Sources)
		info.Rows += t.Rows
		info.Bytes += t.Bytes
	}
	opts.Events.PlanEnd(info)
	if err != nil {
		return Report{}, err
	}
	report := Report{
		Table: plan.Table, Version: plan.ReadVersion, ReadVersion: plan.ReadVersion, RebasedOver: []uint64{}, KeepsOrder: plan.KeepsOrder,
		Policy: plan.Decision.Policy, Reason: plan.Decision.Reason, Forced: plan.Decision.Forced, Indexes: plan.Decision.Indexes,
	}
	if len(plan.Tasks) > 0 {
		results, err := executeAll(ctx, e, s, plan.Tasks, opts)
		if err != nil {
			return Report{}, cleanedUp(ctx, e, plan.Tasks, err)
		}
		out, err := publish(ctx, e, results, opts, true)
		if errors.Is(err, table.ErrTerminal) && !errors.Is(err, table.ErrAmbiguousCommit) {
			err = startAgain(err)
		}
		if lost := (*commit.LostError)(nil); errors.As(err, &lost) {
			report.add(out, results)
			return report, err
		}
		if err != nil {
			return Report{}, err
		}
		report.add(out, results)
		report.trim(ctx, e, opts)
	}
	report.ElapsedMS = time.Since(start).Milliseconds()
	return report, nil
}

// trim keeps the history within the bound. Nothing of the compaction depends on it.
func (r *Report) trim(ctx context.Context, e table.Engine, opts Options) {
	if !r.FRI.Published || opts.MaxTransitions < 0 {
		return
	}
	fail := func(err error) { r.TrimError = err.Error() }
	s, err := loadLatest(ctx, e)
	if err != nil {
		fail(err)
		return
	}
	h, err := readHistory(ctx, e, s)
	if err != nil {
		fail(err)
		return
	}
	if h.Len() <= opts.MaxTransitions {
		return
	}
	report, err := Trim(ctx, e, TrimOptions{KeepTransitions: opts.MaxTransitions, MaxAttempts: opts.MaxAttempts, Events: opts.Events, sleep: opts.sleep})
	if err != nil {
		fail(err)
		return
	}
	r.Trim = &report
}

// cleanedUp judges the error of a task that found an object missing. If the newest
// version no longer has what the tasks read, a clean-up deleted the object with the
// version that was read, and the table is whole.
func cleanedUp(ctx context.Context, e table.Engine, tasks []Task, err error) error {
	if !errors.Is(err, table.ErrNotFound) || ctx.Err() != nil {
		return err
	}
	s, lerr := e.Load(ctx, 0)
	if lerr != nil {
		return err
	}
	for _, t := range tasks {
		for _, then := range t.Sources {
			if now, ok := s.Fragment(then.ID); !ok || !now.Same(then) {
				return startAgain(err)
			}
		}
	}
	return err
}

// startAgain turns an error into a conflict, if others removed the version that was
// read or one since. The conflict quotes the error and does not wrap it.
func startAgain(err error) error {
	conflict := table.Conflictf("old versions were cleaned up meanwhile; run again: %v", err)
	if left := commit.Leftovers(err); len(left) > 0 {
		return errors.Join(conflict, &commit.LeftoverError{By: "compaction", Objects: left, Err: errors.New("their deletion failed")})
	}
	return conflict
}

// add fills in what was published.
func (r *Report) add(out Publication, results []Result) {
	r.Committed = true
	r.Version, r.RebasedOver, r.Attempts = out.Version, out.RebasedOver, out.Attempts
	r.GroupsPublished, r.GroupsLost, r.Lost, r.Leftover = len(out.Published), len(out.Lost), out.Lost, out.Leftover
	r.RowsCarried = out.RowsRelocated
	r.FRI = FRIReport{Published: out.Transitions > 0, TransitionsAdded: out.Transitions}
	r.Policy, r.Reason, r.Forced, r.Indexes = out.Decision.Policy, out.Decision.Reason, out.Decision.Forced, out.Decision.Indexes
	written := map[table.FragmentID]Result{}
	for _, res := range results {
		written[res.Task.Sources[0].ID] = res
		r.BytesRead += res.BytesRead
		r.BytesWritten += res.BytesWritten
	}
	for _, g := range out.Published {
		r.FragmentsRemoved += len(g.Sources)
		r.FragmentsAdded += len(g.Destinations)
		r.RowsWritten += written[g.Sources[0]].Task.Rows
	}
}

// executeAll executes all tasks. If one fails, it deletes what the others wrote.
func executeAll(ctx context.Context, e table.Engine, s *table.Snapshot, tasks []Task, opts Options) ([]Result, error) {
	// All are asked about before any of them writes.
	if rw, ok := table.As[table.Rewriter](e); ok {
		for _, t := range tasks {
			if err := rw.CanRewrite(ctx, s, t.SourceIDs()); err != nil {
				return nil, fmt.Errorf("compaction: table %s version %d: fragments %s: %w", t.Table, t.ReadVersion, table.FragmentList(t.SourceIDs()), err)
			}
		}
	}
	parallel := min(opts.Threads, len(tasks))
	m := newMeter(opts.Events, tasks)
	results := make([]Result, len(tasks))
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(parallel)
	for i, t := range tasks {
		t.Writing.Threads = max(opts.Threads/parallel, 1)
		t.Writing.MemoryLimit = opts.MemoryLimit / uint64(parallel)
		g.Go(func() (err error) {
			if err = gctx.Err(); err == nil {
				results[i], err = execute(gctx, e, s, t, opts.Events, m)
			}
			return err
		})
	}
	err := g.Wait()
	if err == nil {
		return results, nil
	}
	var objects []table.Object
	for _, r := range results {
		objects = append(objects, r.Objects...)
	}
	return nil, errors.Join(err, discard(ctx, e, objects, opts.Events))
}
