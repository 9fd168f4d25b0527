package verify

import (
	"context"
	"errors"
	"fmt"

	"github.com/rehome-db/rehome/table"
)

// orphans counts the files that no version refers to. It comes last, so that what
// is committed while the rest is checked has become part of a version.
func (r *run) orphans(ctx context.Context) error {
	finder, ok := table.As[table.OrphanFinder](r.engine)
	if !ok {
		return nil
	}
	var list []table.Orphan
	var bytes, foreign, foreignBytes uint64
	versions, err := finder.Orphans(ctx, func(o table.Orphan) {
		list = append(list, o)
		if o.Foreign {
			foreign++
			foreignBytes += o.Bytes
			return
		}
		bytes += o.Bytes
	})
	switch {
	case errors.Is(err, table.ErrCorrupt), errors.Is(err, table.ErrUnsupported):
		// Of another version, perhaps: it does not make this one unsound.
		r.report.OrphansUnknown = err.Error()
		return nil
	case err != nil:
		return fmt.Errorf("verify: %w", err)
	}
	r.report.Checked[Versions] = uint64(versions)
	r.report.Checked[OrphanFiles] = uint64(len(list)) - foreign
	r.report.Checked[OrphanBytes] = bytes
	r.report.Checked[ForeignFiles] = foreign
	r.report.Checked[ForeignBytes] = foreignBytes
	if r.opts.ListOrphans {
		r.report.Orphans = append([]table.Orphan{}, list...)
	}
	return nil
}
