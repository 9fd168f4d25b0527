package cli

import (
	"context"
	"math"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/rehome-db/rehome/compaction"
	"github.com/rehome-db/rehome/table"
)

func (a *app) trimCommand() *cobra.Command {
	var opts compaction.TrimOptions
	var dryRun bool
	cmd := &cobra.Command{
		Use:   "trim TABLE",
		Short: "Drop what nothing needs any more from the fragment reuse index",
		Long: `trim drops the transitions of the fragment reuse index that no index of the table
needs: those that every index is newer than, or never covered anything of. What is
in doubt stays. If nothing is left, the fragment reuse index is removed. Only
metadata is written, and other writers may go on.

Row addresses that somebody outside the table stored cannot be translated across
what was dropped. --retain-versions and --reader-window leave room for that.

A part of it may be damaged: no row can be followed through that, and stock engines
may take its rows for deleted. --drop-damaged drops it. The rows are then scanned
where an index would have been read through it, until that is built again.`,
		Example: `  rehome trim ./t.lance --dry-run
  rehome trim ./t.lance --reader-window 24h`,
		Args: exactly("a TABLE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			report, err := a.trim(cmd.Context(), args[0], opts, dryRun)
			if err != nil {
				return err
			}
			if a.json {
				err = a.printJSON(report)
			} else {
				err = printTrim(&printer{w: a.Stdout}, report, dryRun)
			}
			return afterCommit(err, report.Committed, report.Version)
		},
	}
	cmd.Flags().Var(number(&opts.RetainVersions, 0, math.MaxUint64), "retain-versions", "keep row addresses of the last `N` versions translatable")
	cmd.Flags().Var((*period)(&opts.ReaderWindow), "reader-window", "keep row addresses translatable for so long after they changed, for example 24h or 7d")
	cmd.Flags().Lookup("reader-window").DefValue = ""
	cmd.Flags().BoolVar(&opts.DropDamaged, "drop-damaged", false, "drop also what is damaged, whoever needs it: no row can be followed through it")
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "say what would be dropped and why not, write nothing")
	return cmd
}

func (a *app) trim(ctx context.Context, location string, opts compaction.TrimOptions, dryRun bool) (compaction.TrimReport, error) {
	ss, err := a.load(ctx, location, 0)
	if err != nil {
		return compaction.TrimReport{}, err
	}
	defer ss.close()
	if dryRun {
		return compaction.PlanTrim(ctx, ss.engine, ss.snapshot, opts)
	}
	opts.Events = compaction.LogEvents(a.logger())
	return compaction.Trim(ctx, ss.engine, opts)
}

func printTrim(p *printer, r compaction.TrimReport, dryRun bool) error {
	switch {
	case len(r.Transitions) == 0:
		p.f("Version %d has no fragment reuse index: nothing to trim.\n", r.Version)
		return p.err
	case r.Dropped == 0:
		p.f("Nothing to trim in version %d: %s needed.\n", r.Version, pluralIs(r.Kept, "transition"))
	case dryRun:
		p.f("Would drop %d of %s, %s of %s.\n", r.Dropped, plural(len(r.Transitions), "transition"), size(r.BytesBefore-min(r.BytesAfter, r.BytesBefore)), size(r.BytesBefore))
	case r.Kept == 0:
		p.f("Dropped %s and with that the fragment reuse index (%s), as version %d.\n", plural(r.Dropped, "transition"), size(r.BytesBefore), r.Version)
	default:
		p.f("Dropped %d of %s, as version %d: %s are left of %s.\n", r.Dropped, plural(len(r.Transitions), "transition"), r.Version, size(r.BytesAfter), size(r.BytesBefore))
	}
	p.f("\n")
	var rows [][]string
	damaged := false // and kept
	for i, t := range r.Transitions {
		why := "dropped"
		switch {
		case !t.Dropped:
			why = "kept for " + t.Reason
		case dryRun:
			why = "would be dropped"
		}
		if t.Damage != "" {
			why += ", damaged"
			damaged = damaged || !t.Dropped
		}
		if t.CommitUnknown != "" {
			why += "; " + t.CommitUnknown
		}
		rows = append(rows, []string{strconv.Itoa(i + 1), versionOrNone(t.Committed), idRanges(sorted(t.Sources)), orNothing(idRanges(sorted(t.Destinations))), why})
	}
	p.table([]string{"#", "VERSION", "FRAGMENTS", "BECAME", ""}, rows)
	if damaged {
		p.f("\n--drop-damaged drops what is damaged, too: no row can be followed through it.\n")
	}
	return p.err
}

// pluralIs writes "1 transition is", "2 transitions are".
func pluralIs(n int, noun string) string {
	if n == 1 {
		return plural(n, noun) + " is"
	}
	return "all " + plural(n, noun) + " are"
}

// stockReaderBytes is the memory that an older stock reader (Lance 8) holds at its
// peak for each row that a fragment reuse index moved, as measured: it makes a hash
// map of all of them when it opens an index.
const stockReaderBytes = 104

// heavyReader is what such a reader may need before inspect remarks on it.
const heavyReader = 256 << 20

// trimmable says how many transitions of the version nothing needs. That cannot be
// told of a history that is damaged or not understood, which others report.
func trimmable(ctx context.Context, ss *opened, s *table.Snapshot) int {
	if s.Reuse == nil {
		return 0
	}
	plan, err := compaction.PlanTrim(ctx, ss.engine, s, compaction.TrimOptions{})
	if err != nil {
		return 0
	}
	return plan.Dropped
}
