package fri

import (
	"iter"

	"github.com/rehome-db/rehome/table"
)

// Run is rows of one fragment that lay one after the other and still do, or that
// were all deleted.
type Run struct {
	// From is the address of the first row and Len the number of rows, at least 1.
	From table.RowAddr
	Len  uint64
	// To is where the first row is now. Meaningless if Deleted.
	To table.RowAddr
	// Deleted says that the rows were deleted before one of the rewrites.
	Deleted bool
}

// Runs yields what became of a fragment's rows, deleted ones included, by ascending
// address: every physical row is in exactly one run, and runs are as long as they
// can be. A fragment that nothing rewrote yields nothing.
//
// The runs of all rewrites that the rows went through are composed as they are
// yielded: one pass, whatever the number of rewrites, and no memory for what lies
// between. If a bitmap on the way turns out to be damaged, the last pair has the
// error, which names transition and fragment. Bitmaps that it needs are decoded and
// held for the time of the loop; several fragments with a common history are walked
// with a [Translator].
func (h *History) Runs(id table.FragmentID) iter.Seq2[Run, error] {
	return h.Translator().Runs(id)
}

func runs(t *Translator, id table.FragmentID, yield func(Run, error) bool) {
	i, ok := t.h.hopOf.find(id)
	if !ok {
		return
	}
	w := walker{t: t}
	from := uint64(table.NewRowAddr(id, 0))
	end := from + t.h.hops[i].physical
	var run Run // not yielded yet
	for next := from; next < end; {
		step := w.seek(table.RowAddr(next))
		if err := step.err; err != nil {
			if run.Len == 0 || yield(run, nil) {
				yield(Run{}, err)
			}
			return
		}
		last := min(step.last, end-1)
		to, deleted := table.RowAddr(next+step.delta), step.state == Deleted
		switch {
		case run.Len > 0 && deleted && run.Deleted, run.Len > 0 && !deleted && !run.Deleted && run.To+table.RowAddr(run.Len) == to:
			run.Len += last + 1 - next
		default:
			if run.Len > 0 && !yield(run, nil) {
				return
			}
			run = Run{From: table.RowAddr(next), Len: last + 1 - next, Deleted: deleted}
			if !deleted {
				run.To = to
			}
		}
		next = last + 1
	}
	if run.Len > 0 {
		yield(run, nil)
	}
}
