package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/rehome-db/rehome/compaction"
	"github.com/rehome-db/rehome/table"
)

func (a *app) compactCommand() *cobra.Command {
	var f compactFlags
	var dryRun, noProgress bool
	cmd := &cobra.Command{
		Use:        "compact TABLE",
		SuggestFor: []string{"optimize", "optimise", "compaction", "merge", "defragment"},
		Short:      "Merge small fragments and drop deleted rows, in one commit",
		Long: `compact merges neighbouring fragments that are smaller than the target, rewrites
fragments with many deleted rows, and publishes the result as one new version.
Others may read and write the table meanwhile. If it fails, or is interrupted
with Ctrl-C, the table is as it was.

Indexes are left alone unless it is known to be right in every stock engine to do
more; see --index-policy, and docs/operations.md for what the policies mean.`,
		Example: `  rehome compact ./t.lance
  rehome compact ./t.lance --dry-run
  rehome compact ./t.lance --deletion-threshold 0 --max-source-bytes 4GiB`,
		Args: exactly("a TABLE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			opts, err := f.options()
			if err != nil {
				return err
			}
			if dryRun {
				return a.plan(cmd.Context(), args[0], &f, opts)
			}
			return a.compact(cmd.Context(), args[0], &f, opts, !noProgress)
		},
	}
	f.register(cmd)
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "do what plan does: say what would be done, write nothing")
	cmd.Flags().BoolVar(&noProgress, "no-progress", false, noProgressUsage)
	return cmd
}

func (a *app) compact(ctx context.Context, location string, f *compactFlags, opts compaction.Options, showProgress bool) error {
	engine, err := a.openToCompact(ctx, location, f)
	if err != nil {
		return err
	}
	defer closeEngine(engine)
	report, err := a.runCompaction(ctx, engine, opts, showProgress)
	if err != nil {
		return err
	}
	doc := compactDoc{Report: report, Behind: []behind{}}
	if report.Committed {
		doc.Behind = behindAt(ctx, engine, report.Version)
	}
	if a.json {
		err = a.printJSON(doc)
	} else {
		p := &printer{w: a.Stdout}
		_ = printReport(p, report)
		a.printBehind(p, doc.Behind)
		err = p.err
	}
	return afterCommit(err, report.Committed, report.Version)
}

// openToCompact opens a table and checks the flags against it.
func (a *app) openToCompact(ctx context.Context, location string, f *compactFlags) (table.Engine, error) {
	if len(f.exclude) == 0 {
		return a.open(ctx, location)
	}
	ss, err := a.load(ctx, location, 0)
	if err != nil {
		return nil, err
	}
	if err := f.checkExcluded(ss.snapshot); err != nil {
		return nil, errors.Join(err, ss.close())
	}
	return ss.engine, nil
}

// afterCommit says of an error in printing a report that the table was changed
// all the same.
func afterCommit(err error, committed bool, version uint64) error {
	if err == nil || !committed {
		return err
	}
	return fmt.Errorf("version %d was committed, but the report could not be written: %w", version, err)
}

// runCompaction compacts and shows its events as progress and log lines.
func (a *app) runCompaction(ctx context.Context, engine table.Engine, opts compaction.Options, showProgress bool) (compaction.Report, error) {
	var bar *progress
	opts.Events = compaction.Tee(compaction.LogEvents(a.logger()), compaction.Events{
		PlanEnd: func(i compaction.PlanInfo) {
			if i.Err == nil {
				bar = a.startProgress("compacting", i.Bytes, size, showProgress)
			}
		},
		Progress: func(i compaction.ProgressInfo) { bar.set(i.BytesDone) },
	})
	report, err := compaction.Compact(ctx, engine, opts)
	bar.finish()
	if report.Indexes == nil {
		report.Indexes = []compaction.IndexDecision{}
	}
	return report, err
}

func printReport(p *printer, r compaction.Report) error {
	if !r.Committed {
		p.f("Nothing to compact in version %d.\n", r.Version)
		return p.err
	}
	p.f("Compacted %s into %d, as version %d: %s, %s read, %s written, in %s.\n",
		plural(r.FragmentsRemoved, "fragment"), r.FragmentsAdded, r.Version, plural(r.RowsWritten, "row"),
		size(r.BytesRead), size(r.BytesWritten), elapsed(r.ElapsedMS))
	if n := len(r.RebasedOver); n > 0 {
		p.f("Carried over %s that others committed meanwhile", plural(n, "version"))
		if r.RowsCarried > 0 {
			p.f(", with %s deleted or updated in the fragments that were compacted", plural(r.RowsCarried, "row"))
		}
		p.f(".\n")
	}
	if r.GroupsLost > 0 {
		p.f("%s not published, because of what others committed; run again for what is left:\n", plural(r.GroupsLost, "group"))
		for _, l := range r.Lost {
			p.f("  fragments %s: %s\n", idRanges(l.Sources), l.Reason)
		}
	}
	if !r.KeepsOrder {
		p.f("%s\n", orderChanges)
	}
	if r.FRI.Published {
		p.f("Published a fragment reuse index: %s added.\n", plural(r.FRI.TransitionsAdded, "transition"))
	}
	if r.Trim != nil && r.Trim.Committed {
		p.f("Trimmed it by %s that nothing needs, as version %d.\n", plural(r.Trim.Dropped, "transition"), r.Trim.Version)
	}
	if r.TrimError != "" {
		p.f("The fragment reuse index was not trimmed: %s\n", r.TrimError)
	}
	if len(r.Indexes) > 0 {
		p.f("Indexes: policy %s, because %s.\n", r.Policy, r.Reason)
		for _, x := range r.Indexes {
			p.f("  %s (%s): %s, %s\n", x.Name, x.Kind, x.Action, x.Reason)
		}
	}
	printLeftover(p, r.Leftover)
	return p.err
}

func printLeftover(p *printer, objects []table.Object) {
	if len(objects) == 0 {
		return
	}
	paths := make([]string, len(objects))
	for i, o := range objects {
		paths[i] = o.Path
	}
	p.f("%s could not be deleted and no version refers to them: %s\n", plural(len(objects), "object"), strings.Join(paths, ", "))
}

func elapsed(ms int64) string {
	d := time.Duration(ms) * time.Millisecond
	if d < 10*time.Second {
		return d.String()
	}
	return fmt.Sprint(d.Round(100 * time.Millisecond))
}
