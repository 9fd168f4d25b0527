package compaction

import (
	"fmt"

	"github.com/rehome-db/rehome/table"
)

// window is what others committed while a compaction was under way: the newest
// version and the transactions that led to it.
type window struct {
	base         *table.Snapshot
	transactions []table.Transaction
	view         indexView // of base
}

// verdict is what becomes of one group in a window.
type verdict struct {
	keep   bool
	reason string // why not
}

func lose(format string, args ...any) verdict {
	return verdict{reason: fmt.Sprintf(format, args...)}
}

// judge decides whether what was made of a group can still replace it. The rule
// here is that nothing may have happened to the group: each source is there, with
// the same files and the same deletion vector, and no column has another type.
// Everything that others do to other fragments is compatible, and so are columns
// that were renamed, dropped, or added without data: the new files hold the
// columns that the old ones held. What is compared is the state, not what the
// transactions say they did, except for those that replace the state as a whole.
func (w window) judge(t Task) verdict {
	for _, tx := range w.transactions {
		if u, ok := tx.Operation.(table.Unknown); ok && !stateTells[u.Name] {
			return lose("version %d is the result of %q, over which nothing can be carried", tx.Version, u.Name)
		}
	}
	for _, then := range t.Sources {
		now, ok := w.base.Fragment(then.ID)
		switch {
		case !ok:
			return lose("fragment %d is gone", then.ID)
		case !now.SameData(then):
			return lose("the files of fragment %d changed", then.ID)
		case !now.Deletion.Same(then.Deletion):
			return lose("rows of fragment %d were deleted or updated", then.ID)
		}
	}
	if reason := t.retyped(w.base.Schema); reason != "" {
		return lose("the schema changed: %s", reason)
	}
	return verdict{keep: true}
}

// stateTells lists the operations, among those that package table has no type for,
// whose effect on a group shows in its fragments and the schema. Any other may
// mean something that does not.
var stateTells = map[string]bool{
	"project":              true,
	"merge":                true,
	"update_config":        true,
	"data_replacement":     true,
	"update_mem_wal_state": true,
	"update_bases":         true,
	"clone":                true,
}
