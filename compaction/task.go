package compaction

import (
	"fmt"
	"slices"

	"github.com/rehome-db/rehome/rebase"
	"github.com/rehome-db/rehome/table"
)

// Task is one group of fragments to be rewritten together. It is plain data: JSON
// carries it to another machine and back without loss. It holds what its plan was
// made from, so that whoever executes or publishes it can tell whether the table
// is still the one that was planned for.
type Task struct {
	// Table is where the table lives, for messages.
	Table string `json:"table"`
	// ReadVersion is the version that was planned and that [Task.Execute] reads.
	ReadVersion uint64 `json:"read_version"`
	// Sources are the fragments to rewrite, in order, as they are in ReadVersion.
	Sources []table.Fragment `json:"sources"`
	// Fields are the columns that are written.
	Fields rebase.Shape `json:"fields"`
	// Rows is the number of live rows, Bytes the recorded size of all files.
	Rows  uint64 `json:"rows"`
	Bytes uint64 `json:"bytes"`
	// Files is the number of new fragments that the planner expects.
	Files uint64 `json:"files"`
	// Reason says in words why the group is worth rewriting.
	Reason string `json:"reason"`
	// Writing and Publishing are the caller's options as they were at planning.
	Writing    Writing    `json:"writing"`
	Publishing Publishing `json:"publishing"`
}

// Writing is the part of [Options] that decides how a task is executed.
type Writing struct {
	// MaxRows closes a new fragment exactly, MaxBytes roughly.
	MaxRows     uint64 `json:"max_rows"`
	MaxBytes    uint64 `json:"max_bytes"`
	Mode        Mode   `json:"mode"`
	NoSync      bool   `json:"no_sync,omitempty"`
	KeepCached  bool   `json:"keep_cached,omitempty"`
	Threads     int    `json:"threads"`
	MemoryLimit uint64 `json:"memory_limit,omitempty"`
}

// SourceIDs are the ids of the sources, in order.
func (t Task) SourceIDs() []table.FragmentID {
	ids := make([]table.FragmentID, len(t.Sources))
	for i, f := range t.Sources {
		ids[i] = f.ID
	}
	return ids
}

// validate rejects what no planner makes; tasks come from outside, too.
func (t Task) validate() error {
	var rows uint64
	for i, f := range t.Sources {
		if i > 0 && f.ID <= t.Sources[i-1].ID {
			return fmt.Errorf("compaction: task on table %s: fragment %d after fragment %d: sources must ascend", t.Table, f.ID, t.Sources[i-1].ID)
		}
		if f.DeletedRows() > f.PhysicalRows {
			return table.Corruptf("compaction: task on table %s: fragment %d has %d rows and %d of them deleted", t.Table, f.ID, f.PhysicalRows, f.DeletedRows())
		}
		rows += f.LiveRows()
	}
	switch {
	case len(t.Sources) == 0:
		return fmt.Errorf("compaction: task on table %s has no sources", t.Table)
	case t.ReadVersion == 0:
		return fmt.Errorf("compaction: task on table %s has no read version", t.Table)
	case rows != t.Rows:
		return fmt.Errorf("compaction: task on table %s: %d live rows in the sources, %d in the task", t.Table, rows, t.Rows)
	case t.Writing.MaxRows == 0:
		return fmt.Errorf("compaction: task on table %s has no bound on the rows of a fragment", t.Table)
	case !slices.Contains(modes, t.Writing.Mode):
		return fmt.Errorf("compaction: task on table %s: mode %q is none of %s", t.Table, t.Writing.Mode, modeNames)
	}
	return t.Publishing.validate()
}
