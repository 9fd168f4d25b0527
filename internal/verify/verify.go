package verify

import (
	"context"
	"errors"
	"fmt"

	"github.com/rehome-db/rehome/table"
)

// Options says what to check.
type Options struct {
	// Version is the version to check, 0 for the latest. The default is 0.
	Version uint64
	// Deep reads all data. The default is false.
	Deep bool
	// ListOrphans lists the files that no version refers to, instead of only
	// counting them. The default is false.
	ListOrphans bool
	// Progress, if set, is told of the rows read by a deep check, out of total.
	Progress func(done, total uint64)
}

// Report is what a check found.
type Report struct {
	OK       bool      `json:"ok"`
	Table    string    `json:"table"`
	Version  uint64    `json:"version"`
	Deep     bool      `json:"deep"`
	Checked  Checked   `json:"checked"`
	Problems []Problem `json:"problems"`
	// Orphans are the files that no version of the table refers to, if they were
	// asked for. They harm nobody, and are no problem.
	Orphans []table.Orphan `json:"orphans,omitzero"`
	// OrphansUnknown says why they could not be told, empty if they could. Checked
	// has no count of them then.
	OrphansUnknown string `json:"orphans_unknown,omitempty"`
}

// Checked counts what was looked at, by sort. The sorts below are always there; an
// engine that checks more ([table.Checker]) adds its own.
type Checked map[string]uint64

// The sorts of things that every check looks at.
const (
	Fragments       = "fragments"
	Files           = "files"
	FileBytes       = "file_bytes"
	DeletionVectors = "deletion_vectors"
	DeletedRows     = "deleted_rows"
	Indexes         = "indexes"
	Transitions     = "transitions"
	RowsRead        = "rows_read" // live rows that a deep check decoded
)

// What is counted of the table as a whole, by engines that can
// ([table.OrphanFinder]): files that none of its versions refers to.
const (
	Versions    = "versions"
	OrphanFiles = "orphan_files"
	OrphanBytes = "orphan_bytes"
	// ForeignFiles are files in the table's directories that no writer of such tables
	// has put there; they are not among the orphans.
	ForeignFiles = "foreign_files"
	ForeignBytes = "foreign_bytes"
)

// Problem is one thing that is wrong.
type Problem struct {
	// Kind is a stable word: manifest, fragment, file, deletion, index, fri, data.
	Kind string `json:"kind"`
	// Where names the place: "fragment 3 file data/x.lance".
	Where   string `json:"where"`
	Message string `json:"message"`
}

// run is a check under way.
type run struct {
	engine   table.Engine
	snapshot *table.Snapshot
	opts     Options
	report   Report
}

// Table checks one version of the engine's table.
func Table(ctx context.Context, engine table.Engine, opts Options) (Report, error) {
	r := &run{engine: engine, opts: opts}
	r.report = Report{Version: opts.Version, Deep: opts.Deep, Checked: Checked{}, Problems: []Problem{}}
	for _, sort := range []string{Fragments, Files, FileBytes, DeletionVectors, DeletedRows, Indexes, Transitions, RowsRead} {
		r.report.Checked[sort] = 0
	}
	s, err := engine.Load(ctx, opts.Version)
	switch {
	case errors.Is(err, table.ErrCorrupt):
		where := "latest version"
		if opts.Version != 0 {
			where = fmt.Sprintf("version %d", opts.Version)
		}
		r.problem("manifest", where, err)
		return r.report, nil
	case err != nil:
		return r.report, err
	}
	r.snapshot = s
	r.report.Table, r.report.Version = s.Table, s.Version
	for _, check := range []func(context.Context) error{
		r.fragments, r.files, r.deletions, r.indexes, r.reuse, r.engineChecks, r.data, r.orphans,
	} {
		if err := check(ctx); err != nil {
			return r.report, err
		}
		if err := ctx.Err(); err != nil {
			return r.report, fmt.Errorf("verify: table %s version %d: %w", s.Table, s.Version, err)
		}
	}
	r.report.OK = len(r.report.Problems) == 0
	return r.report, nil
}

func (r *run) problem(kind, where string, err error) {
	r.report.Problems = append(r.report.Problems, Problem{Kind: kind, Where: where, Message: err.Error()})
}

func (r *run) problemf(kind, where, format string, args ...any) {
	r.problem(kind, where, fmt.Errorf(format, args...))
}

// stop says whether an error ends the check instead of being a finding.
func stop(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

func inFragment(id table.FragmentID) string { return fmt.Sprintf("fragment %d", id) }

func (r *run) fragments(context.Context) error {
	seen := map[table.FragmentID]bool{}
	for _, f := range r.snapshot.Fragments {
		r.report.Checked[Fragments]++
		where := inFragment(f.ID)
		if seen[f.ID] {
			r.problemf("fragment", where, "the id is used by two fragments, so an address in it names two rows")
		}
		seen[f.ID] = true
		if f.ID >= r.snapshot.NextFragmentID {
			r.problemf("fragment", where, "the id is not below the next free id %d, so the next writer would use it again", r.snapshot.NextFragmentID)
		}
		if f.PhysicalRows > 1<<32 {
			r.problemf("fragment", where, "%d rows, and an offset has 32 bits", f.PhysicalRows)
		}
		if f.DeletedRows() > f.PhysicalRows {
			r.problemf("fragment", where, "%d of %d rows are recorded as deleted", f.DeletedRows(), f.PhysicalRows)
		}
		owner := map[int32]string{}
		for _, file := range f.Files {
			for _, id := range file.Fields {
				if id < 0 {
					continue // a column that a newer file replaced
				}
				if other, taken := owner[id]; taken && other != file.Path {
					r.problemf("fragment", where, "files %s and %s both hold field %d", other, file.Path, id)
				}
				owner[id] = file.Path
			}
		}
	}
	return nil
}

func (r *run) files(ctx context.Context) error {
	for _, f := range r.snapshot.Fragments {
		for _, file := range f.Files {
			r.report.Checked[Files]++
			where := fmt.Sprintf("%s file %s", inFragment(f.ID), file.Path)
			if file.Base != "" {
				// It belongs to the table that this one was cloned from, and
				// that table's own check covers it.
				continue
			}
			n, err := r.engine.Stat(ctx, table.Object{Kind: table.ObjectData, Path: file.Path, Bytes: file.Bytes})
			switch {
			case errors.Is(err, table.ErrNotFound):
				r.problemf("file", where, "the file does not exist")
			case err != nil && stop(err):
				return fmt.Errorf("verify: %s: %w", where, err)
			case err != nil:
				r.problem("file", where, err) // it may not be read
			case file.Bytes != 0 && n != file.Bytes:
				r.problemf("file", where, "the file has %d bytes, the version records %d", n, file.Bytes)
			}
			r.report.Checked[FileBytes] += n
		}
	}
	return nil
}

func (r *run) deletions(ctx context.Context) error {
	for _, f := range r.snapshot.Fragments {
		if f.Deletion == nil {
			continue
		}
		r.report.Checked[DeletionVectors]++
		where := fmt.Sprintf("%s deletion vector %s", inFragment(f.ID), f.Deletion.Path)
		set, err := r.engine.ReadDeletions(ctx, r.snapshot, f)
		if err != nil {
			if stop(err) {
				return err
			}
			r.problem("deletion", where, err)
			continue
		}
		// The engine checks both; a second look costs nothing beside the read.
		if n := set.Cardinality(); n != f.Deletion.Rows {
			r.problemf("deletion", where, "holds %d rows, the version records %d", n, f.Deletion.Rows)
		}
		for offset := range set.All() {
			if uint64(offset) >= f.PhysicalRows {
				r.problemf("deletion", where, "offset %d is outside the fragment's %d rows", offset, f.PhysicalRows)
				break
			}
		}
		r.report.Checked[DeletedRows] += set.Cardinality()
	}
	return nil
}

func (r *run) indexes(context.Context) error {
	fields := map[int32]bool{}
	var walk func([]table.Field)
	walk = func(list []table.Field) {
		for _, f := range list {
			fields[f.ID] = true
			walk(f.Children)
		}
	}
	walk(r.snapshot.Schema.Fields)
	seen := map[table.UUID]string{}
	for _, m := range r.snapshot.Indexes {
		if m.System {
			continue
		}
		r.report.Checked[Indexes]++
		where := fmt.Sprintf("index %s segment %s", m.Name, m.UUID)
		if other, taken := seen[m.UUID]; taken {
			r.problemf("index", where, "index %s has a segment with the same id", other)
		}
		seen[m.UUID] = m.Name
		for _, id := range m.Fields {
			if !fields[id] {
				r.problemf("index", where, "field %d is not in the schema", id)
			}
		}
		if m.CoverageKnown {
			for _, id := range m.Coverage {
				if id >= r.snapshot.NextFragmentID {
					r.problemf("index", where, "claims fragment %d, and no fragment had an id from %d up yet", id, r.snapshot.NextFragmentID)
				}
			}
		}
	}
	return nil
}

// engineChecks lets the engine look at what its format demands beside all that. A
// place where something was found wrong already is not reported twice.
func (r *run) engineChecks(ctx context.Context) error {
	c, ok := table.As[table.Checker](r.engine)
	if !ok {
		return nil
	}
	known := map[[2]string]bool{}
	for _, p := range r.report.Problems {
		known[[2]string{p.Kind, p.Where}] = true
	}
	checked, err := c.Check(ctx, r.snapshot, func(f table.Finding) {
		if !known[[2]string{f.Kind, f.Where}] {
			r.problem(f.Kind, f.Where, f.Err)
		}
	})
	for sort, n := range checked {
		if _, counted := r.report.Checked[sort]; !counted {
			r.report.Checked[sort] = uint64(n)
		}
	}
	return err
}
