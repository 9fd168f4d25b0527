package cli

import (
	"context"

	"github.com/rehome-db/rehome/compaction"
	"github.com/rehome-db/rehome/table"
)

// behind is an index that does not cover all of a version's rows.
type behind struct {
	Name string `json:"name"`
	Kind string `json:"kind"`
	// RowsToScan are the live rows that a query scans, of Rows.
	RowsToScan uint64 `json:"rows_to_scan"`
	Rows       uint64 `json:"rows"`
}

// indexesBehind lists the indexes of a version, as its readers see them, that queries
// cannot answer from alone.
func indexesBehind(s *table.Snapshot) []behind {
	out := []behind{}
	for _, x := range indexesOf(s, compaction.Planned{}, nil) {
		covered, rows := coveredRows(s, x.CoveredFragments), s.LiveRows()
		if x.CoveredFragments != nil && covered < rows {
			out = append(out, behind{x.Name, x.Kind, rows - covered, rows})
		}
	}
	return out
}

func coveredRows(s *table.Snapshot, ids []table.FragmentID) (n uint64) {
	for _, id := range ids {
		f, _ := s.Fragment(id)
		n += f.LiveRows()
	}
	return n
}

// compactDoc is the document of compact.
type compactDoc struct {
	compaction.Report
	// Behind are the indexes that queries scan rows beside, in the version committed.
	Behind []behind `json:"indexes_behind"`
}

// behindAt reads what the version left its indexes with. It is told beside the result
// of a commit that is done, so that it could not be read is no failure.
func behindAt(ctx context.Context, engine table.Engine, version uint64) []behind {
	s, err := engine.Load(ctx, version)
	if err != nil {
		return []behind{}
	}
	seen, _, err := asReadersSee(ctx, &opened{engine: engine, snapshot: s})
	if err != nil {
		return []behind{}
	}
	return indexesBehind(seen)
}

// printBehind says what an index that was left behind costs, and what to do.
func (a *app) printBehind(p *printer, list []behind) {
	for _, x := range list {
		p.f("! Queries through %s scan %s of %s (%s) until it is brought up to date.\n",
			x.Name, count(x.RowsToScan), plural(x.Rows, "row"), percent(x.RowsToScan, x.Rows))
	}
	switch {
	case len(list) == 0:
	case a.lance:
		p.f("  To do that: table.optimize() in LanceDB, dataset.optimize.optimize_indices()\n  in pylance.\n")
	default:
		p.f("  To do that, build it again or extend it with the engine's own means.\n")
	}
}
