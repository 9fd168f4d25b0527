package verify

import (
	"context"
	"errors"
	"fmt"

	"github.com/rehome-db/rehome/internal/arrowcheck"
	"github.com/rehome-db/rehome/table"
)

// data reads every live row of every fragment, one fragment at a time so that a
// problem can be pinned to one.
func (r *run) data(ctx context.Context) error {
	if !r.opts.Deep {
		return nil
	}
	total := r.snapshot.LiveRows()
	for _, f := range r.snapshot.Fragments {
		var rows uint64
		var failed error
		wrong := map[string]bool{} // columns with a value that was reported
		for batch, err := range r.engine.Rows(ctx, r.snapshot, []table.FragmentID{f.ID}, table.ReadOptions{WithAddrs: true}) {
			if err != nil {
				failed = err
				break
			}
			r.values(f, batch, wrong)
			n := uint64(batch.Record.NumRows())
			rows += n
			r.report.Checked[RowsRead] += n
			if r.opts.Progress != nil {
				r.opts.Progress(r.report.Checked[RowsRead], total)
			}
		}
		switch {
		case failed != nil && stop(failed):
			return failed
		case errors.Is(failed, table.ErrUnsupported):
			// Not damage: the check cannot be made, and saying "ok" would lie.
			return failed
		case failed != nil:
			r.problem("data", inFragment(f.ID), failed)
		case rows != f.LiveRows():
			r.problemf("data", inFragment(f.ID), "read %d live rows, the version records %d", rows, f.LiveRows())
		}
	}
	return nil
}

// values looks for values that other engines cannot read, and reports the first of each
// column of a fragment.
func (r *run) values(f table.Fragment, batch table.Batch, reported map[string]bool) {
	for i, c := range batch.Record.Columns() {
		name := batch.Record.ColumnName(i)
		if reported[name] {
			continue
		}
		err := arrowcheck.Column(name, c)
		if err == nil {
			continue
		}
		reported[name] = true
		var wrong *arrowcheck.Error
		if !errors.As(err, &wrong) || wrong.Row < 0 || wrong.Row >= len(batch.Addrs) {
			r.problem("data", inFragment(f.ID), err)
			continue
		}
		where := fmt.Sprintf("%s row %d column %s", inFragment(f.ID), batch.Addrs[wrong.Row].Offset(), wrong.Column)
		r.problemf("data", where, "%s, so that other engines cannot read it, or cannot show it: delete the row, or update it", wrong.Reason)
	}
}
