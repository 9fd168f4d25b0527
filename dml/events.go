package dml

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/rehome-db/rehome/commit"
	"github.com/rehome-db/rehome/internal/events"
)

// Events are functions that are called as a change proceeds; any may be nil. They are
// called synchronously, Progress from several goroutines at a time, and must not
// block. Log lines and progress bars are made of them; nothing else in this package
// reports anything.
type Events struct {
	// ComputeBegin and ComputeEnd frame the computation of the change from a version:
	// one attempt, if others can make more of them necessary.
	ComputeBegin func(ComputeInfo)
	ComputeEnd   func(ComputeInfo)
	// Progress: some rows more are done.
	Progress func(ProgressInfo)
	// CommitBegin and CommitEnd frame one attempt to commit.
	CommitBegin func(CommitInfo)
	CommitEnd   func(CommitInfo)
	// Backoff: others changed the same rows, or were faster, and the next attempt
	// begins after a pause.
	Backoff func(BackoffInfo)
}

// ComputeInfo tells of the computation of a change; Stats and Err are set at its end.
type ComputeInfo struct {
	Table       string
	ReadVersion uint64
	Fragments   int
	// Rows are the live rows of the version.
	Rows  uint64
	Stats Stats
	Err   error
}

// String is the line of a log.
func (i ComputeInfo) String() string {
	s := fmt.Sprintf("change of version %d of %d fragments, %d rows: %d matched, %d updated, %d inserted, %d deleted",
		i.ReadVersion, i.Fragments, i.Rows, i.Stats.Matched, i.Stats.Updated, i.Stats.Inserted, i.Stats.Deleted)
	return events.WithErr(s, i.Err)
}

// Step is what a change is busy with.
type Step int

// The steps of a change. A delete only looks for rows, an append only writes.
const (
	// Matching: the table's rows are looked at.
	Matching Step = iota
	// Writing: new rows are written, or only computed in a dry run.
	Writing
)

// String names the step.
func (s Step) String() string {
	if s == Writing {
		return "writing rows"
	}
	return "looking for rows"
}

// ProgressInfo tells how far a step is. A new attempt begins again at 0.
type ProgressInfo struct {
	Step Step
	// Rows of Total rows are done. Total is 0 if it is not known, as in an append.
	Rows, Total uint64
}

// String is the line of a log.
func (i ProgressInfo) String() string { return fmt.Sprintf("%s: %d/%d", i.Step, i.Rows, i.Total) }

// CommitInfo tells of an attempt to commit; Version and Err are set at its end.
type CommitInfo struct {
	Attempt int
	// Base is the version to be replaced.
	Base    uint64
	Version uint64
	Err     error
}

// String is the line of a log.
func (i CommitInfo) String() string {
	s := fmt.Sprintf("commit attempt %d over version %d", i.Attempt, i.Base)
	if i.Version > 0 {
		s += fmt.Sprintf(", became version %d", i.Version)
	}
	return events.WithErr(s, i.Err)
}

// BackoffInfo tells of a pause between attempts.
type BackoffInfo struct {
	Attempt int
	Pause   time.Duration
	// Err is why the change is computed again; nil if it is only committed again.
	Err error
}

// String is the line of a log.
func (i BackoffInfo) String() string {
	return events.WithErr(fmt.Sprintf("pause of %v after attempt %d", i.Pause, i.Attempt), i.Err)
}

// ensureDefaults sets every nil handler to one that does nothing.
func (e *Events) ensureDefaults() {
	events.OrNothing(&e.ComputeBegin)
	events.OrNothing(&e.ComputeEnd)
	events.OrNothing(&e.Progress)
	events.OrNothing(&e.CommitBegin)
	events.OrNothing(&e.CommitEnd)
	events.OrNothing(&e.Backoff)
}

// TeeEvents returns Events that call the handlers of all the given ones, in order.
func TeeEvents(all ...Events) Events {
	for i := range all {
		all[i].ensureDefaults()
	}
	return Events{
		ComputeBegin: events.Tee(all, func(e Events) func(ComputeInfo) { return e.ComputeBegin }),
		ComputeEnd:   events.Tee(all, func(e Events) func(ComputeInfo) { return e.ComputeEnd }),
		Progress:     events.Tee(all, func(e Events) func(ProgressInfo) { return e.Progress }),
		CommitBegin:  events.Tee(all, func(e Events) func(CommitInfo) { return e.CommitBegin }),
		CommitEnd:    events.Tee(all, func(e Events) func(CommitInfo) { return e.CommitEnd }),
		Backoff:      events.Tee(all, func(e Events) func(BackoffInfo) { return e.Backoff }),
	}
}

// LogEvents returns Events that write to l: attempts as information, what failed as
// warnings, the rest, except progress, as debug lines.
func LogEvents(l *slog.Logger) Events {
	log := func(level slog.Level, info fmt.Stringer, err error) {
		if err != nil {
			level = slog.LevelWarn
		}
		l.Log(context.Background(), level, "row change: "+info.String())
	}
	return Events{
		ComputeEnd:  func(i ComputeInfo) { log(slog.LevelInfo, i, i.Err) },
		CommitBegin: func(i CommitInfo) { log(slog.LevelDebug, i, nil) },
		CommitEnd:   func(i CommitInfo) { log(slog.LevelInfo, i, i.Err) },
		Backoff:     func(i BackoffInfo) { log(slog.LevelDebug, i, i.Err) },
	}
}

// hooks tells of the commit loop's attempts.
func (e *Events) hooks() commit.Hooks {
	return commit.Hooks{
		Begin: func(i commit.Info) { e.CommitBegin(CommitInfo{Attempt: i.Attempt, Base: i.Proposal.Base.Version}) },
		End: func(i commit.Info) {
			e.CommitEnd(CommitInfo{Attempt: i.Attempt, Base: i.Proposal.Base.Version, Version: i.Version, Err: i.Err})
		},
		Pause: func(attempt int, d time.Duration) { e.Backoff(BackoffInfo{Attempt: attempt, Pause: d}) },
	}
}

// meter counts the rows of a step. It is safe for concurrent use.
type meter struct {
	tell  func(ProgressInfo)
	step  Step
	total uint64
	done  atomic.Uint64
}

func (r reader) meter(step Step, total uint64) *meter {
	return &meter{tell: r.events.Progress, step: step, total: total}
}

func (m *meter) add(rows int64) {
	m.tell(ProgressInfo{Step: m.step, Rows: m.done.Add(uint64(rows)), Total: m.total})
}
