package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rehome-db/rehome/internal/recovered"
	"github.com/rehome-db/rehome/table"
)

// standalone is the name of the program that is these commands and nothing else.
const standalone = "rehome"

// Options are what the commands need of their surroundings. The zero value is good.
type Options struct {
	// Stdin, Stdout and Stderr default to those of the process.
	Stdin  io.Reader
	Stdout io.Writer
	Stderr io.Writer
	// Open opens the table at a location, which is what the user has typed. If the
	// engine is an io.Closer it is closed when the command is done. The default opens
	// Lance tables.
	Open func(ctx context.Context, location string) (table.Engine, error)
	// Version is what --version prints. The default is that of the build.
	Version string
	// Name is the name of the command that New returns, which the messages use, below
	// that of the command that it is added to. The default is "rehome".
	Name string
	// Tables is what the help calls the tables: "Parquet directories". The default is
	// "Lance tables", and "tables" if Open is set. Where they are Lance's the commands
	// also tell what stock readers make of them.
	Tables string
	// Location is a location of a table, for the examples of the help. The default is
	// "./t.lance", and "TABLE" if Open is set.
	Location string
}

func (o *Options) ensureDefaults() {
	if o.Stdin == nil {
		o.Stdin = os.Stdin
	}
	if o.Stdout == nil {
		o.Stdout = os.Stdout
	}
	if o.Stderr == nil {
		o.Stderr = os.Stderr
	}
	tables, location := "tables", "TABLE"
	if o.Open == nil {
		tables, location = "Lance tables", "./t.lance"
	}
	o.Tables, o.Location = cmp.Or(o.Tables, tables), cmp.Or(o.Location, location)
	o.Name = cmp.Or(o.Name, standalone)
	if o.Version == "" {
		o.Version = buildVersion()
	}
}

// app is what the commands share: the surroundings and the global flags.
type app struct {
	Options
	// lance says that the tables are Lance's, about whose readers the commands know
	// something.
	lance   bool
	root    *cobra.Command
	json    bool
	verbose bool
}

func newApp(opts Options) *app {
	opts.ensureDefaults()
	a := &app{Options: opts, lance: strings.Contains(opts.Tables, "Lance")}
	if opts.Open == nil {
		a.Open = openLance
	}
	return a
}

// New returns the command "rehome" with all commands below it, to be added to another
// program's or executed. Errors are returned and not printed, except that a command
// with --json prints its error document on Stdout, as the standalone program does; see
// [Reported]. [ExitCode] makes an exit code of them. With Open set there is no
// command demo, which makes a Lance table. Cancelling the context that it is executed
// with stops the command and leaves the table as it was.
func New(opts Options) *cobra.Command {
	a := newApp(opts)
	root := &cobra.Command{
		Use:   a.Name,
		Short: "Compact Lance tables without losing a compaction or a concurrent write",
		Long: `rehome compacts Lance tables: it merges small fragments and drops deleted rows,
in one commit, while other writers go on. It also deletes, updates and upserts rows,
while compactions go on. Start with

  rehome demo                   see it work on a small table of its own
  rehome inspect ./t.lance      what a table looks like and what compacting it gains
  rehome compact ./t.lance      do it

Exit codes: 0 done, 1 failed (nothing changed), 2 bad usage, 3 conflict (run it
again), 4 the table is damaged or not supported.`,
		Version: a.Version,
		Args:    unknownCommand,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	a.root = root
	root.SetIn(a.Stdin)
	root.SetOut(a.Stdout)
	root.SetErr(a.Stderr)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error { return a.reported(flagError(cmd, err)) })
	root.CompletionOptions.HiddenDefaultCmd = true
	root.PersistentFlags().BoolVar(&a.json, "json", false, "print one JSON document instead of text")
	root.PersistentFlags().BoolVarP(&a.verbose, "verbose", "v", false, "log what is done to standard error")
	if opts.Open == nil {
		root.AddCommand(a.demoCommand()) // which makes a Lance table
	} else {
		root.Long = strings.Replace(root.Long, demoLine, "", 1)
	}
	root.AddCommand(
		a.inspectCommand(), a.planCommand(), a.compactCommand(), a.verifyCommand(),
		a.scanCommand(), a.deleteCommand(), a.updateCommand(), a.upsertCommand(),
		a.friCommand(), a.translateCommand(), a.trimCommand(),
	)
	help := helpCommand(root)
	root.SetHelpCommand(help)
	root.AddCommand(help) // where the commands are mounted cobra would not
	checkedCompletion(root)
	a.localise(root)
	a.quiet(root)
	return root
}

const demoLine = "  rehome demo                   see it work on a small table of its own\n"

// Run runs the command line args (without the program's name), prints the error
// if there is one, and returns the exit code. Cancelling ctx stops the command
// and leaves the table as it was.
func Run(ctx context.Context, opts Options, args []string) int {
	root := New(opts)
	root.SetArgs(args)
	err := executeSafely(ctx, root)
	if !errors.Is(context.Cause(ctx), errOutputClosed) { // else nobody would read it
		Report(opts, err, args)
	}
	var stopped *recovered.Error
	if errors.As(err, &stopped) && (slices.Contains(args, "-v") || slices.Contains(args, "--verbose")) {
		opts.ensureDefaults()
		fmt.Fprintf(opts.Stderr, "%s\n", stopped.Stack)
	}
	return ExitCode(err)
}

// executeSafely runs the command, and makes an error of a panic.
func executeSafely(ctx context.Context, root *cobra.Command) (err error) {
	defer recovered.Into(&err)
	return root.ExecuteContext(ctx)
}

// wantsJSON looks for --json by itself, because a command line that does not
// parse must be answered in the right form too.
func wantsJSON(args []string) bool {
	want := false
	for _, arg := range args {
		switch arg {
		case "--":
			return want
		case "--json", "--json=true", "--json=1":
			want = true
		case "--json=false", "--json=0":
			want = false
		}
	}
	return want
}

// logger logs to standard error with --verbose. Without it the commands themselves
// say what matters: an event that ends in an error is logged and returned.
func (a *app) logger() *slog.Logger {
	level := slog.LevelError
	if a.verbose {
		level = slog.LevelDebug
	}
	return slog.New(slog.NewTextHandler(a.Stderr, &slog.HandlerOptions{
		Level: level,
		// A person reads this beside the clock on the wall; the date only takes room.
		ReplaceAttr: func(groups []string, attr slog.Attr) slog.Attr {
			if len(groups) == 0 && attr.Key == slog.TimeKey {
				return slog.String(slog.TimeKey, attr.Value.Time().Format("15:04:05.000"))
			}
			return attr
		},
	}))
}

// buildVersion is the module's version, or the commit for a build from a work tree.
func buildVersion() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	version := info.Main.Version
	if version == "" || version == "(devel)" {
		version = "devel"
		if i := slices.IndexFunc(info.Settings, func(s debug.BuildSetting) bool { return s.Key == "vcs.revision" }); i >= 0 {
			version += " " + info.Settings[i].Value[:min(12, len(info.Settings[i].Value))]
		}
	}
	return version
}
