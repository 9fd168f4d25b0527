package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rehome-db/rehome/internal/recovered"
)

// ReportedError is an error that the command has already told of on standard output:
// as the JSON document, or as the report of verify. Whoever executed the command takes
// the exit code from it and prints nothing.
type ReportedError struct{ Err error }

func (e *ReportedError) Error() string { return e.Err.Error() }

// Unwrap returns the error that was reported.
func (e *ReportedError) Unwrap() error { return e.Err }

// Reported says whether the user has been told of an error.
func Reported(err error) bool {
	var reported *ReportedError
	var problems *problemsError
	return errors.As(err, &reported) || errors.As(err, &problems)
}

// quiet makes a command and all below it leave their errors to whoever executes them,
// also when that is a program that they are mounted in, except that they print the
// JSON document where one was asked for.
func (a *app) quiet(cmd *cobra.Command) {
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	if check := cmd.Args; check != nil {
		cmd.Args = func(cmd *cobra.Command, args []string) error { return a.reported(check(cmd, args)) }
	}
	if run := cmd.RunE; run != nil {
		cmd.RunE = func(cmd *cobra.Command, args []string) error {
			return a.reported(func() (err error) {
				defer recovered.Into(&err)
				return run(cmd, args)
			}())
		}
	}
	for _, child := range cmd.Commands() {
		a.quiet(child)
	}
}

// reported prints an error as JSON if --json was given.
func (a *app) reported(err error) error {
	if err == nil || !a.json || Reported(err) || !a.printError(err) {
		return err
	}
	return &ReportedError{err}
}

// printError prints the JSON document of an error.
func (a *app) printError(err error) bool {
	enc := json.NewEncoder(a.Stdout)
	enc.SetEscapeHTML(false)
	doc := map[string]any{"error": map[string]string{"kind": Kind(err), "message": a.describe(err)}}
	return enc.Encode(doc) == nil
}

// Report tells the user of an error that the command line args ended with, as [Run]
// does: as JSON on Stdout if they have --json, in one line on Stderr otherwise, and not
// at all if the command has told of it already.
func Report(opts Options, err error, args []string) {
	if err == nil || Reported(err) {
		return
	}
	a := newApp(opts)
	if wantsJSON(args) && a.printError(err) {
		return
	}
	fmt.Fprintf(a.Stderr, "%s: %s\n", a.Name, a.describe(err))
}

// program is what a user types before the name of a command: "rehome", or
// "myenginectl rehome" where the commands are mounted.
func (a *app) program() string {
	if a.root == nil {
		return a.Name
	}
	return a.root.CommandPath()
}

// localise makes the help of the commands speak of the program that they are mounted in
// and of its tables.
func (a *app) localise(root *cobra.Command) {
	help := root.HelpFunc()
	root.SetHelpFunc(func(cmd *cobra.Command, args []string) {
		long, example, short := cmd.Long, cmd.Example, cmd.Short
		defer func() { cmd.Long, cmd.Example, cmd.Short = long, example, short }()
		cmd.Long, cmd.Example, cmd.Short = a.local(long), a.local(example), a.local(short)
		help(cmd, args)
	})
}

// local replaces the names in a text of help by those of the program.
func (a *app) local(text string) string {
	if a.lance && a.program() == standalone {
		return text
	}
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		line = strings.ReplaceAll(line, standalone+" ", a.program()+" ")
		if !a.lance {
			for from, to := range map[string]string{
				"./t.lance": a.Location, "./a.lance": a.Location, "./b.lance": a.Location,
				"Lance tables": a.Tables, "; see --index-policy, and docs/operations.md for what the policies mean": "; see --index-policy",
				"every stock engine": "every reader",
			} {
				line = strings.ReplaceAll(line, from, to)
			}
		}
		lines[i] = line
	}
	return strings.Join(lines, "\n")
}
