// Package cli is rehome's command line for other programs: the binary of a storage
// engine can have rehome's commands for its own tables.
//
//	root := &cobra.Command{Use: "myenginectl"}
//	root.AddCommand(cli.New(cli.Options{
//		Open: func(ctx context.Context, location string) (table.Engine, error) {
//			return myengine.Open(ctx, location)
//		},
//	}))
//
// gives it "myenginectl rehome compact TABLE" and the rest. A program that has no
// commands of its own is [Run] and nothing else. Both print results to Stdout and
// nothing else there, and everything else to Stderr; neither calls os.Exit nor reads
// os.Args.
//
// This package costs its importers a command-line library and the Lance engine, which
// is the default of [Options.Open] and what the demo runs on. Programs that want the
// work and not the commands import the packages compaction, dml and so on.
package cli

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	"github.com/rehome-db/rehome/internal/cli"
	"github.com/rehome-db/rehome/table"
)

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

// New returns the command "rehome" with all commands below it, to be added to another
// program's or executed. Errors are returned and not printed, except that a command
// with --json prints its error document on Stdout, as the standalone program does; see
// [Reported]. [ExitCode] makes an exit code of them. With Open set there is no
// command demo, which makes a Lance table. Cancelling the context that it is executed
// with stops the command and leaves the table as it was.
func New(opts Options) *cobra.Command { return cli.New(cli.Options(opts)) }

// Run runs the command line args (without the program's name), prints the error if
// there is one, as JSON on Stdout if the command line has --json, and returns the exit
// code.
func Run(ctx context.Context, opts Options, args []string) int {
	return cli.Run(ctx, cli.Options(opts), args)
}

// Reported says whether the user has been told of an error by the command itself: by
// the JSON document, or by the report of verify. It need not be printed then.
func Reported(err error) bool { return cli.Reported(err) }

// Report tells the user of an error that executing a command line ended with, as Run
// does: as JSON on Stdout if args have --json, as one line on Stderr otherwise, and not
// again if it was [Reported].
func Report(opts Options, err error, args []string) { cli.Report(cli.Options(opts), err, args) }

// NotifyContext returns a context to execute commands with, that ends when the process is
// asked to stop: by Ctrl-C, SIGTERM, SIGHUP, or a broken pipe at standard output or
// standard error, which would kill the process and leave what a command wrote. stop
// gives the signals back. A program that handles signals itself does not need it.
func NotifyContext(parent context.Context) (ctx context.Context, stop func()) {
	return cli.NotifyContext(parent)
}

// ExitCode is the exit code for an error of a command that [New] returned: 0 done, 1
// failed, 2 the command line is wrong, 3 a conflict that running the command again
// can solve, 4 the table is damaged or not supported, or verify found a problem.
func ExitCode(err error) int { return cli.ExitCode(err) }

// Kind names what went wrong in one stable word, for programs: "conflict", "corrupt"
// and so on, as in the commands' JSON.
func Kind(err error) string { return cli.Kind(err) }
