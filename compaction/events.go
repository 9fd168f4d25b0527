package compaction

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/rehome-db/rehome/internal/events"
	"github.com/rehome-db/rehome/table"
)

// Events are functions that are called as a compaction proceeds; any may be nil.
// They are called synchronously, some from several goroutines at a time, and must
// not block. Log lines, metrics and progress bars are made of them; nothing else
// in this package reports anything.
type Events struct {
	// PlanEnd: the plan is made, or there is none.
	PlanEnd func(PlanInfo)
	// TaskBegin and TaskEnd frame the execution of one task.
	TaskBegin func(TaskInfo)
	TaskEnd   func(TaskInfo)
	// Progress: some bytes or rows more are done.
	Progress func(ProgressInfo)
	// CommitBegin and CommitEnd frame one attempt to commit, from the version
	// that is to be replaced being known.
	CommitBegin func(CommitInfo)
	CommitEnd   func(CommitInfo)
	// Backoff: the attempt lost its race, and the next begins after a pause.
	Backoff func(BackoffInfo)
	// GroupLost: a group will not be published.
	GroupLost func(GroupLostInfo)
	// ObjectsDeleted: what an attempt wrote in vain was removed, or could not be.
	ObjectsDeleted func(ObjectsInfo)
}

// PlanInfo tells of a plan.
type PlanInfo struct {
	Table       string
	ReadVersion uint64
	Tasks       int
	Fragments   int
	Rows, Bytes uint64
	Policy      IndexPolicy
	Err         error
}

func (i PlanInfo) String() string {
	s := fmt.Sprintf("plan of version %d: %s over %s, %d rows, %d bytes, indexes: %s",
		i.ReadVersion, plural(uint64(i.Tasks), "task"), plural(uint64(i.Fragments), "fragment"), i.Rows, i.Bytes, i.Policy)
	return events.WithErr(s, i.Err)
}

// TaskInfo tells of a task; the last three fields are set at its end only.
type TaskInfo struct {
	Sources      []table.FragmentID
	Rows, Bytes  uint64
	Reason       string
	Fragments    int
	BytesWritten uint64
	Err          error
}

func (i TaskInfo) String() string {
	s := fmt.Sprintf("task over fragments %s: %d rows, %d bytes", table.FragmentList(i.Sources), i.Rows, i.Bytes)
	if i.Fragments > 0 || i.BytesWritten > 0 {
		s += fmt.Sprintf(", wrote %s of %d bytes", plural(uint64(i.Fragments), "fragment"), i.BytesWritten)
	}
	return events.WithErr(s, i.Err)
}

// ProgressInfo tells how much is done, over all tasks of a run. Rows of a task
// that the engine rewrites by itself count when the task is done.
type ProgressInfo struct {
	TasksDone, Tasks      int
	RowsDone, RowsTotal   uint64
	BytesDone, BytesTotal uint64
	BytesWritten          uint64
}

func (i ProgressInfo) String() string {
	return fmt.Sprintf("tasks %d/%d, rows %d/%d, bytes %d/%d, %d written",
		i.TasksDone, i.Tasks, i.RowsDone, i.RowsTotal, i.BytesDone, i.BytesTotal, i.BytesWritten)
}

// CommitInfo tells of an attempt to commit; Version and Err are set at its end.
type CommitInfo struct {
	Attempt int
	// Base is the version to be replaced.
	Base   uint64
	Groups int
	// Trim says that the attempt is one of [Trim], and not of a compaction.
	Trim bool
	// PublishFRI says that the attempt carries a fragment reuse index.
	PublishFRI bool
	// RowsCarried counts the rows that others deleted or updated meanwhile.
	RowsCarried uint64
	Version     uint64
	Err         error
}

func (i CommitInfo) String() string {
	s := fmt.Sprintf("commit attempt %d over version %d: ", i.Attempt, i.Base)
	if i.Trim {
		s += "trim of the fragment reuse index"
	} else {
		s += plural(uint64(i.Groups), "group")
	}
	if i.PublishFRI && !i.Trim {
		s += ", with a fragment reuse index"
	}
	if i.RowsCarried > 0 {
		s += fmt.Sprintf(", with %s carried over", plural(i.RowsCarried, "deleted row"))
	}
	if i.Version > 0 {
		s += fmt.Sprintf(", became version %d", i.Version)
	}
	return events.WithErr(s, i.Err)
}

// BackoffInfo tells of a pause between attempts.
type BackoffInfo struct {
	Attempt int
	Pause   time.Duration
}

func (i BackoffInfo) String() string {
	return fmt.Sprintf("pause of %v after attempt %d", i.Pause, i.Attempt)
}

// GroupLostInfo tells of a group that others made impossible.
type GroupLostInfo struct {
	Sources []table.FragmentID
	Reason  string
}

func (i GroupLostInfo) String() string {
	return fmt.Sprintf("group of fragments %s is lost: %s", table.FragmentList(i.Sources), i.Reason)
}

// ObjectsInfo tells of objects that were deleted, and of those that were not.
type ObjectsInfo struct {
	Deleted []table.Object
	Left    []table.Object
	Err     error
}

func (i ObjectsInfo) String() string {
	s := "deleted " + plural(uint64(len(i.Deleted)), "object")
	if len(i.Left) > 0 {
		s += fmt.Sprintf(", left %d", len(i.Left))
	}
	return events.WithErr(s, i.Err)
}

// EnsureDefaults sets every nil handler to one that does nothing.
func (e *Events) EnsureDefaults() {
	events.OrNothing(&e.PlanEnd)
	events.OrNothing(&e.TaskBegin)
	events.OrNothing(&e.TaskEnd)
	events.OrNothing(&e.Progress)
	events.OrNothing(&e.CommitBegin)
	events.OrNothing(&e.CommitEnd)
	events.OrNothing(&e.Backoff)
	events.OrNothing(&e.GroupLost)
	events.OrNothing(&e.ObjectsDeleted)
}

// Tee returns Events that call the handlers of all the given ones, in order.
func Tee(all ...Events) Events {
	for i := range all {
		all[i].EnsureDefaults()
	}
	return Events{
		PlanEnd:        events.Tee(all, func(e Events) func(PlanInfo) { return e.PlanEnd }),
		TaskBegin:      events.Tee(all, func(e Events) func(TaskInfo) { return e.TaskBegin }),
		TaskEnd:        events.Tee(all, func(e Events) func(TaskInfo) { return e.TaskEnd }),
		Progress:       events.Tee(all, func(e Events) func(ProgressInfo) { return e.Progress }),
		CommitBegin:    events.Tee(all, func(e Events) func(CommitInfo) { return e.CommitBegin }),
		CommitEnd:      events.Tee(all, func(e Events) func(CommitInfo) { return e.CommitEnd }),
		Backoff:        events.Tee(all, func(e Events) func(BackoffInfo) { return e.Backoff }),
		GroupLost:      events.Tee(all, func(e Events) func(GroupLostInfo) { return e.GroupLost }),
		ObjectsDeleted: events.Tee(all, func(e Events) func(ObjectsInfo) { return e.ObjectsDeleted }),
	}
}

// LogEvents returns Events that write to l: what went wrong as warnings, what
// frames the work as information, the rest, except progress, as debug lines.
func LogEvents(l *slog.Logger) Events {
	log := func(level slog.Level, info fmt.Stringer, err error) {
		if err != nil {
			level = slog.LevelWarn
		}
		l.Log(context.Background(), level, "compaction: "+info.String())
	}
	return Events{
		PlanEnd:        func(i PlanInfo) { log(slog.LevelInfo, i, i.Err) },
		TaskBegin:      func(i TaskInfo) { log(slog.LevelDebug, i, nil) },
		TaskEnd:        func(i TaskInfo) { log(slog.LevelInfo, i, i.Err) },
		CommitBegin:    func(i CommitInfo) { log(slog.LevelDebug, i, nil) },
		CommitEnd:      func(i CommitInfo) { log(slog.LevelInfo, i, i.Err) },
		Backoff:        func(i BackoffInfo) { log(slog.LevelDebug, i, nil) },
		GroupLost:      func(i GroupLostInfo) { log(slog.LevelWarn, i, nil) },
		ObjectsDeleted: func(i ObjectsInfo) { log(slog.LevelDebug, i, i.Err) },
	}
}
