package cli

import (
	"context"
	"encoding/json"
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

// Options are what the commands need of their surroundings.
type Options struct {
	// Stdin, Stdout and Stderr default to those of the process.
	Stdin  io.Reader
	Stdout io.Writer
	Stderr io.Writer
	// Open opens the table at a location. The default opens Lance tables.
	Open func(ctx context.Context, location string) (table.Engine, error)
	// Version is what --version prints. The default is that of the build.
	Version string
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
	if o.Open == nil {
		o.Open = openLance
	}
	if o.Version == "" {
		o.Version = buildVersion()
	}
}

// app is what the commands share: the surroundings and the global flags.
type app struct {
	Options
	json    bool
	verbose bool
}

// New returns the root command with all commands below it. It can be executed,
// or added to another program's commands.
func New(opts Options) *cobra.Command {
	opts.ensureDefaults()
	a := &app{Options: opts}
	root := &cobra.Command{
		Use:   "rehome",
		Short: "Compact Lance tables without losing a compaction or a concurrent write",
		Long: `rehome compacts Lance tables: it merges small fragments and drops deleted rows,
in one commit, while other writers go on. It also deletes, updates and upserts rows,
while compactions go on. Start with

  rehome demo                   see it work on a small table of its own
  rehome inspect ./t.lance      what a table looks like and what compacting it gains
  rehome compact ./t.lance      do it

Exit codes: 0 done, 1 failed (nothing changed), 2 bad usage, 3 conflict (run it
again), 4 the table is damaged or not supported.`,
		Version:       opts.Version,
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          unknownCommand,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetIn(opts.Stdin)
	root.SetOut(opts.Stdout)
	root.SetErr(opts.Stderr)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usagef("%w (see %s --help)", err, cmd.CommandPath())
	})
	root.CompletionOptions.HiddenDefaultCmd = true
	root.PersistentFlags().BoolVar(&a.json, "json", false, "print one JSON document instead of text")
	root.PersistentFlags().BoolVarP(&a.verbose, "verbose", "v", false, "log what is done to standard error")
	root.AddCommand(
		a.demoCommand(), a.inspectCommand(), a.planCommand(), a.compactCommand(), a.verifyCommand(),
		a.scanCommand(), a.deleteCommand(), a.updateCommand(), a.upsertCommand(),
		a.friCommand(), a.translateCommand(), a.trimCommand(),
	)
	return root
}

// Run runs the command line args (without the program's name), prints the error
// if there is one, and returns the exit code. Cancelling ctx stops the command
// and leaves the table as it was.
func Run(ctx context.Context, opts Options, args []string) int {
	opts.ensureDefaults()
	root := New(opts)
	root.SetArgs(args)
	err := executeSafely(ctx, root)
	if err != nil {
		report(opts, err, wantsJSON(args))
	}
	var stopped *recovered.Error
	if errors.As(err, &stopped) && (slices.Contains(args, "-v") || slices.Contains(args, "--verbose")) {
		fmt.Fprintf(opts.Stderr, "%s\n", stopped.Stack)
	}
	return ExitCode(err)
}

// executeSafely runs the command, and makes an error of a panic.
func executeSafely(ctx context.Context, root *cobra.Command) (err error) {
	defer recovered.Into(&err)
	return root.ExecuteContext(ctx)
}

// report prints an error the way that the caller asked for.
func report(opts Options, err error, asJSON bool) {
	var problems *problemsError
	if errors.As(err, &problems) {
		return // the report that was printed says it all
	}
	message := describe(err)
	if asJSON {
		enc := json.NewEncoder(opts.Stdout)
		enc.SetEscapeHTML(false)
		doc := map[string]any{"error": map[string]string{"kind": Kind(err), "message": message}}
		if enc.Encode(doc) == nil {
			return
		}
	}
	fmt.Fprintf(opts.Stderr, "rehome: %s\n", message)
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

func unknownCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	hint := ""
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		hint = fmt.Sprintf(", did you mean %s?", strings.Join(near, " or "))
	}
	return usagef("unknown command %q%s (see %s --help)", args[0], hint, cmd.CommandPath())
}

// exactly and atLeast are cobra's argument checks as usage errors that say what
// the arguments are.
func exactly(names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) != len(names) {
			return usagef("%s takes %s, got %s (see %s --help)",
				cmd.Name(), strings.Join(names, " and "), plural(len(args), "argument"), cmd.CommandPath())
		}
		return nil
	}
}

func atLeast(n int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) < n {
			return usagef("%s takes %s (see %s --help)", cmd.Name(), what, cmd.CommandPath())
		}
		return nil
	}
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
