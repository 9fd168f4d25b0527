package compaction

import (
	"fmt"

	"github.com/rehome-db/rehome/rebase"
	"github.com/rehome-db/rehome/table"
)

// window is what others committed while a compaction was under way: the newest
// version and the transactions that led to it.
type window struct {
	base *table.Snapshot
	// transactions are those that were not looked at before.
	transactions []table.Transaction
	// footprints are what they touched, in the same order.
	footprints []*rebase.Footprint
	// died are the fragments of which every row was deleted since the compaction's
	// tasks read them, in all windows so far.
	died map[table.FragmentID]bool
	view indexView // of base
}

// verdict is what becomes of one group in a window.
type verdict struct {
	keep   bool
	reason string // why not
}

func lose(format string, args ...any) verdict {
	return verdict{reason: fmt.Sprintf(format, args...)}
}

// judge decides whether what was made of a group can still replace it. It can
// unless somebody's change is in the way of a rewrite, by the rule of package
// rebase; rows that were deleted or updated since are not, because they are known
// and their deletions are carried along.
//
// What the transactions say is believed where it is a reason to lose the group and
// checked where it is one to keep it: the fragments that are there must have the
// files that were read, and one that is gone must have died, not moved.
func (w window) judge(t Task) verdict {
	mine := rebase.FootprintOf(table.Rewrite{Groups: []table.RewriteGroup{{Old: t.Sources}}})
	for i, tx := range w.transactions {
		if tx.Version <= t.ReadVersion {
			continue // the task has read what it did; another task has not
		}
		if c := rebase.Compare(mine, w.footprints[i]); c.Verdict > rebase.Relocate {
			return lose("version %d: %s", tx.Version, c.Reason)
		}
	}
	left := 0
	for _, then := range t.Sources {
		now, ok := w.base.Fragment(then.ID)
		switch {
		case !ok && then.LiveRows() > 0 && !w.died[then.ID]:
			return lose("fragment %d is gone", then.ID)
		case !ok:
			continue
		case !now.SameData(then):
			return lose("the files of fragment %d changed", then.ID)
		}
		left++
	}
	if left == 0 {
		return lose("no row of it is left")
	}
	if reason := t.retyped(w.base.Schema); reason != "" {
		return lose("the schema changed: %s", reason)
	}
	return verdict{keep: true}
}

func footprintsOf(transactions []table.Transaction) []*rebase.Footprint {
	out := make([]*rebase.Footprint, len(transactions))
	for i, tx := range transactions {
		out[i] = rebase.FootprintOf(tx.Operation)
	}
	return out
}

// fragmentsThatDied adds the fragments that lost their last row by the given
// transactions. Writers leave such a fragment out at once or some commits later.
func fragmentsThatDied(died map[table.FragmentID]bool, transactions []table.Transaction) {
	for _, tx := range transactions {
		var removed []table.FragmentID
		var updated []table.Fragment
		switch op := tx.Operation.(type) {
		case table.Delete:
			removed, updated = op.Removed, op.Updated
		case table.Update:
			removed = op.Removed
			if !op.InPlace {
				updated = op.Updated
			}
		}
		for _, id := range removed {
			died[id] = true
		}
		for _, f := range updated {
			if f.PhysicalRows > 0 && f.LiveRows() == 0 {
				died[f.ID] = true
			}
		}
	}
}

// present are the sources of the task that are still there.
func (w window) present(t Task) []table.FragmentID {
	var ids []table.FragmentID
	for _, f := range t.Sources {
		if _, ok := w.base.Fragment(f.ID); ok {
			ids = append(ids, f.ID)
		}
	}
	return ids
}
