// Package cli is rehome's command line, as a library.
//
// [New] returns the commands as one cobra command, so that a storage engine can
// mount them in its own binary with its own [Options.Open] (other modules do so
// through the package cli at the root); [Run] is what the rehome binary does with
// them: parse, run, print the error, return the exit code. Nothing here calls
// os.Exit, reads os.Args or touches a global: standard input, output and error are in
// [Options], and cancelling the context is Ctrl-C.
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
//
// # Example
//
//	root := cli.New(cli.Options{
//		Open: func(ctx context.Context, location string) (table.Engine, error) {
//			return myengine.Open(ctx, location)
//		},
//	})
//	myRoot.AddCommand(root)
package cli
