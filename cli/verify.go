package cli

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/rehome-db/rehome/internal/verify"
)

func (a *app) verifyCommand() *cobra.Command {
	var opts verify.Options
	var noProgress bool
	cmd := &cobra.Command{
		Use:   "verify TABLE",
		Short: "Check files, counts, deletions and the fragment reuse index; --deep reads all data",
		Long: `verify checks what readers and compactions rely on: that every file is there with
its recorded size, that deletion vectors lie within their fragments and count
right, that the metadata of data files and indexes and the fragment reuse index fit
the table. With --deep every value of every row is decoded, too. It lists every
problem it finds, and exits with 4 if there is one. The entries inside index files
are not read.

It also counts the files that no version of the table refers to, and --orphans
lists them. They are no problem: commits that failed have left them, or somebody is
about to commit them. Files in the table's directories that are called like nothing
that writers of such tables put there are counted by themselves, as foreign.`,
		Args: exactly("a TABLE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.verify(cmd.Context(), args[0], opts, !noProgress)
		},
	}
	cmd.Flags().Var(number(&opts.Version, 1, math.MaxUint64), "version", "check version `N` instead of the latest")
	cmd.Flags().BoolVar(&opts.Deep, "deep", false, "read all data")
	cmd.Flags().BoolVar(&opts.ListOrphans, "orphans", false, "list the files that no version refers to")
	cmd.Flags().BoolVar(&noProgress, "no-progress", false, noProgressUsage)
	return cmd
}

func (a *app) verify(ctx context.Context, location string, opts verify.Options, showProgress bool) error {
	engine, err := a.open(ctx, location)
	if err != nil {
		return err
	}
	defer closeEngine(engine)
	var bar *progress
	opts.Progress = func(done, total uint64) {
		if bar == nil {
			bar = a.startProgress("verifying", total, func(n uint64) string { return plural(n, "row") }, showProgress)
		}
		bar.set(done)
	}
	report, err := verify.Table(ctx, engine, opts)
	bar.finish()
	if err != nil {
		return err
	}
	if report.Table == "" {
		report.Table = location
	}
	if a.json {
		err = a.printJSON(report)
	} else {
		err = printVerify(&printer{w: a.Stdout}, report, a.program())
	}
	if err == nil && !report.OK {
		err = &problemsError{len(report.Problems)}
	}
	return err
}

func printVerify(p *printer, r verify.Report, program string) error {
	c := r.Checked
	p.f("Checked %s", r.Table)
	if r.Version != 0 {
		p.f(" version %d", r.Version)
	}
	p.f(": %s, %s of %s, %s", plural(c[verify.Fragments], "fragment"), plural(c[verify.Files], "data file"),
		size(c[verify.FileBytes]), plural(c[verify.DeletionVectors], "deletion vector"))
	if n := c[verify.Indexes]; n > 0 {
		p.f(", %s (not their entries)", plural(n, "index"))
	}
	if n := c[verify.Transitions]; n > 0 {
		p.f(", %s of the fragment reuse index", plural(n, "transition"))
	}
	if r.Deep {
		p.f(", %s read", plural(c[verify.RowsRead], "row"))
	}
	p.f(".\n")
	printOrphans(p, r)
	if r.OK {
		p.f("No problems.\n")
		return p.err
	}
	var rows [][]string
	for i, x := range r.Problems {
		rows = append(rows, []string{strconv.Itoa(i + 1), x.Kind, x.Where, oneLineText(x.Message)})
	}
	p.f("\n")
	p.table([]string{"#", "PROBLEM", "WHERE", "WHAT"}, rows)
	p.f("\nThe table is damaged. Older versions may be whole: %s verify --version N.\n", program)
	return p.err
}

// unfinishedBy says whose a file is that was begun so long ago and not finished. Only
// its age tells a process that is at it from one that was killed.
func unfinishedBy(age time.Duration) string {
	const long = time.Hour // a commit writes such a file within seconds
	if age < long {
		return fmt.Sprintf("unfinished for %s: being written, or of a killed process", max(age, 0).Round(time.Second))
	}
	return fmt.Sprintf("of a killed process: unfinished for %s", age.Round(time.Minute))
}

func printOrphans(p *printer, r verify.Report) {
	files, counted := r.Checked[verify.OrphanFiles]
	switch {
	case r.OrphansUnknown != "":
		p.f("Files that nothing refers to were not counted: %s.\n", oneLineText(r.OrphansUnknown))
	case counted && files > 0:
		p.f("None of the table's %s refers to %s of %s: left behind by commits that failed, or not committed yet.\n",
			plural(r.Checked[verify.Versions], "version"), plural(files, "file"), size(r.Checked[verify.OrphanBytes]))
	}
	if n := r.Checked[verify.ForeignFiles]; n > 0 {
		p.f("%s of %s in the table's directories: called like nothing that writers of such tables leave there. Whoever put them there knows.\n",
			plural(n, "foreign file"), size(r.Checked[verify.ForeignBytes]))
	}
	if len(r.Orphans) == 0 {
		return
	}
	var rows [][]string
	for _, o := range r.Orphans {
		whose := "left behind"
		switch {
		case o.Foreign:
			whose = "foreign"
		case o.Unfinished:
			whose = unfinishedBy(time.Since(o.Modified))
		}
		rows = append(rows, []string{o.Path, size(o.Bytes), o.Modified.UTC().Format(time.RFC3339), whose})
	}
	p.f("\n")
	p.table([]string{"FILE", "SIZE", "WRITTEN", "WHOSE"}, rows)
	p.f("\n")
}
