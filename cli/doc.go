// Package cli is rehome's command line, as a library: the binary of a storage engine
// can have rehome's commands for its own tables.
//
//	root := &cobra.Command{Use: "myenginectl"}
//	root.AddCommand(cli.New(cli.Options{
//		Open: func(ctx context.Context, location string) (table.Engine, error) {
//			return myengine.Open(ctx, location)
//		},
//	}))
//
// gives it "myenginectl rehome compact TABLE" and the rest. [Run] is what the rehome
// program does with them: parse, run, print the error, return the exit code. Nothing
// here calls os.Exit, reads os.Args or touches a global: standard input, output and
// error are in [Options], and cancelling the context is Ctrl-C.
//
// The package costs its importers a command-line library and the Lance engine, which
// is the default of [Options.Open] and what the demo runs on. Programs that want the
// work and not the commands import the packages compaction, dml and so on.
//
// # Rules that every command follows
//
//   - Standard output carries the result and nothing else: text for people, or
//     with --json exactly one JSON document (scan: one a row). Logs, warnings and
//     progress go to standard error.
//   - An error is one line that says what failed, where, why and what to do; with
//     --json it is {"error":{"kind","message"}} on standard output. Its kind and
//     its exit code come from [Kind] and [ExitCode], which look at the sentinels
//     of package table and at nothing else.
//   - A command that fails leaves the table as it was.
package cli
