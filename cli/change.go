package cli

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/rehome-db/rehome/dml"
	"github.com/rehome-db/rehome/dml/sqlexpr"
	"github.com/rehome-db/rehome/table"
)

// changeDoc is the document of delete, update and upsert.
type changeDoc struct {
	Table string `json:"table"`
	// Committed is false if there was nothing to change, and in a dry run.
	Committed bool `json:"committed"`
	DryRun    bool `json:"dry_run,omitempty"`
	// Version is the version that holds the change or, if nothing was committed, the
	// one that it was computed from.
	Version     uint64 `json:"version"`
	ReadVersion uint64 `json:"read_version"`
	// Rows are those that were changed, in whatever way: the sum of the three below.
	Rows         uint64 `json:"rows"`
	RowsUpdated  uint64 `json:"rows_updated"`
	RowsInserted uint64 `json:"rows_inserted"`
	RowsDeleted  uint64 `json:"rows_deleted"`
	// RowsMatched are the rows of the table that the condition, or a row of the file,
	// picked; RowsSkipped are rows of the file that came again.
	RowsMatched uint64 `json:"rows_matched"`
	RowsSkipped uint64 `json:"rows_skipped"`
	// RebasedOver are the versions that others committed meanwhile, and RowsRelocated
	// the rows that a compaction among them moved.
	RebasedOver   []uint64 `json:"rebased_over"`
	RowsRelocated uint64   `json:"rows_relocated"`
	// Attempts is how often the change was computed.
	Attempts  int            `json:"attempts"`
	Leftover  []table.Object `json:"leftover,omitempty"`
	ElapsedMS int64          `json:"elapsed_ms"`
}

// changeFlags are the flags that the three have in common.
type changeFlags struct {
	dryRun     bool
	noProgress bool
}

func (f *changeFlags) register(cmd *cobra.Command) {
	cmd.Flags().SortFlags = false
	cmd.Flags().BoolVar(&f.dryRun, "dry-run", false, "say how many rows would change, and write nothing at all")
	cmd.Flags().BoolVar(&f.noProgress, "no-progress", false, noProgressUsage)
}

// runChange executes a change of the table, which prepare makes for its columns, and
// prints what it did.
func (a *app) runChange(ctx context.Context, location string, f changeFlags, prepare func(table.Schema) (dml.Change, error)) error {
	start := time.Now()
	ss, err := a.load(ctx, location, 0)
	if err != nil {
		return err
	}
	defer ss.close()
	steps := a.steps(!f.noProgress)
	defer steps.finish()
	c, err := prepare(ss.snapshot.Schema)
	if err != nil {
		return err
	}
	opts := dml.Options{Events: dml.TeeEvents(dml.LogEvents(a.logger()), steps.events())}
	doc := changeDoc{Table: ss.snapshot.Table, DryRun: f.dryRun, RebasedOver: []uint64{}}
	var stats dml.Stats
	if f.dryRun {
		if stats, err = dml.DryRun(ctx, ss.engine, ss.snapshot, c, opts); err != nil {
			return err
		}
		doc.Version, doc.ReadVersion, doc.Attempts = ss.snapshot.Version, ss.snapshot.Version, 1
	} else {
		r, err := dml.Execute(ctx, ss.engine, c, opts)
		if err != nil {
			return err
		}
		stats = r.Stats
		doc.Committed, doc.Version, doc.ReadVersion = r.Committed, r.Version, r.ReadVersion
		doc.RebasedOver = append(doc.RebasedOver, r.RebasedOver...)
		doc.RowsRelocated, doc.Attempts, doc.Leftover = r.RowsRelocated, r.Attempts, r.Leftover
	}
	steps.finish()
	doc.RowsUpdated, doc.RowsInserted, doc.RowsDeleted = stats.Updated, stats.Inserted, stats.Deleted
	doc.Rows = stats.Updated + stats.Inserted + stats.Deleted
	doc.RowsMatched, doc.RowsSkipped = stats.Matched, stats.SkippedDuplicates
	doc.ElapsedMS = time.Since(start).Milliseconds()
	if a.json {
		err = a.printJSON(doc)
	} else {
		err = printChange(&printer{w: a.Stdout}, doc)
	}
	return afterCommit(err, doc.Committed, doc.Version)
}

func printChange(p *printer, d changeDoc) error {
	var did []string
	for _, part := range []struct {
		n    uint64
		verb string
	}{{d.RowsUpdated, "updated"}, {d.RowsInserted, "inserted"}, {d.RowsDeleted, "deleted"}} {
		if part.n > 0 {
			did = append(did, count(part.n)+" "+part.verb)
		}
	}
	switch {
	case len(did) == 0:
		p.f("Nothing to change in version %d.\n", d.Version)
	case d.DryRun:
		p.f("Would change %s of version %d: %s.\n", plural(d.Rows, "row"), d.Version, strings.Join(did, ", "))
	case !d.Committed:
		// Others have deleted every one of the rows since.
		p.f("Nothing is left to change in version %d: others deleted the rows.\n", d.Version)
	default:
		p.f("Changed %s, as version %d: %s, in %s.\n", plural(d.Rows, "row"), d.Version, strings.Join(did, ", "), elapsed(d.ElapsedMS))
	}
	if d.RowsSkipped > 0 {
		p.f("Left out %s of the file, whose key comes before.\n", plural(d.RowsSkipped, "row"))
	}
	if n := len(d.RebasedOver); n > 0 {
		p.f("Carried over %s that others committed meanwhile", plural(n, "version"))
		if d.RowsRelocated > 0 {
			p.f(", which moved %s of these", plural(d.RowsRelocated, "row"))
		}
		p.f(".\n")
	}
	if d.Attempts > 1 {
		p.f("Computed %d times, because others changed the same rows.\n", d.Attempts)
	}
	printLeftover(p, d.Leftover)
	return p.err
}

// predicate parses a condition and checks it against the columns of the table.
func predicate(flag, text string, schema table.Schema, options ...sqlexpr.Option) (dml.Predicate, error) {
	p, err := sqlexpr.ParsePredicate(text, options...)
	if err == nil {
		_, err = p.Columns(schema)
	}
	if err != nil {
		return nil, usagef("%s: %w", flag, err)
	}
	return p, nil
}

// checkColumns refuses names that are no columns of the table. As in SQL their case
// does not matter.
func checkColumns(flag string, names []string, schema table.Schema) error {
	for i, name := range names {
		if !slices.ContainsFunc(schema.Fields, func(f table.Field) bool { return strings.EqualFold(f.Name, name) }) {
			return usagef("%s: the table has no column %q, it has %s", flag, name, strings.Join(columnNames(schema), ", "))
		}
		if slices.Contains(names[:i], name) {
			return usagef("%s: column %q is named twice", flag, name)
		}
	}
	return nil
}

func columnNames(schema table.Schema) []string {
	names := make([]string, len(schema.Fields))
	for i, f := range schema.Fields {
		names[i] = f.Name
	}
	return names
}
