package cli

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// usageError marks an error in the command line itself.
type usageError struct{ err error }

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

func usagef(format string, args ...any) error { return &usageError{fmt.Errorf(format, args...)} }

// flagError puts what the parser of flags found wrong into plain words.
func flagError(cmd *cobra.Command, err error) error {
	// "cleanup --older-than 7d": where there is no such command its flags are not
	// what is wrong.
	if args := cmd.Flags().Args(); cmd.HasSubCommands() && len(args) > 0 {
		return unknownCommand(cmd, args)
	}
	var unknown *pflag.NotExistError
	var invalid *pflag.InvalidValueError
	switch {
	case errors.As(err, &unknown):
		hint := ""
		if near := nearFlags(cmd, unknown.GetSpecifiedName()); len(near) > 0 {
			hint = ", did you mean " + strings.Join(near, " or ") + "?"
		}
		return usagef("%w%s (see %s --help)", err, hint, cmd.CommandPath())
	case errors.As(err, &invalid):
		return usagef("--%s: %s (see %s --help)", invalid.GetFlag().Name, invalidValue(invalid), cmd.CommandPath())
	default:
		return usagef("%w (see %s --help)", err, cmd.CommandPath())
	}
}

// invalidValue says what is wrong with the value of a flag.
func invalidValue(e *pflag.InvalidValueError) string {
	var number *strconv.NumError
	switch kind := e.GetFlag().Value.Type(); {
	case kind == "bool":
		return fmt.Sprintf("%q is neither true nor false", e.GetValue())
	case errors.As(e.Unwrap(), &number):
		return fmt.Sprintf("%q is no %s", e.GetValue(), kind)
	default:
		return e.Unwrap().Error()
	}
}

// nearFlags are the flags of the command whose names are like the one that it does not have.
func nearFlags(cmd *cobra.Command, name string) (near []string) {
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden && len(name) > 1 && similar(name, f.Name) {
			near = append(near, "--"+f.Name)
		}
	})
	return near
}

func unknownCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	var near []string
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() && (similar(args[0], c.Name()) || slices.Contains(c.SuggestFor, strings.ToLower(args[0]))) {
			near = append(near, c.Name())
		}
	}
	hint := ""
	if len(near) > 0 {
		hint = fmt.Sprintf(", did you mean %s?", strings.Join(near, " or "))
	}
	return usagef("unknown command %q%s (see %s --help)", args[0], hint, cmd.CommandPath())
}

// similar says whether typed may be a slip of the fingers for name, or its beginning.
func similar(typed, name string) bool {
	typed, name = strings.ToLower(typed), strings.ToLower(name)
	if len(typed) > 1 && strings.HasPrefix(name, typed) {
		return true
	}
	return editDistance(typed, name) <= max(1, len(name)/3)
}

// editDistance counts the letters to insert, drop, change or swap with the next.
func editDistance(a, b string) int {
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		before, last, row = last, row, before
		row[0] = i
		for j := 1; j <= len(b); j++ {
			change := 1
			if a[i-1] == b[j-1] {
				change = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+change)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
	}
	return row[len(b)]
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

// checkedCompletion adds cobra's command that writes completion scripts, which by
// itself takes a shell that it does not know for a wish for help.
func checkedCompletion(root *cobra.Command) {
	root.InitDefaultCompletionCmd()
	for _, cmd := range root.Commands() {
		if cmd.Name() != "completion" {
			continue
		}
		cmd.Args = unknownShell
		cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
		for _, shell := range cmd.Commands() {
			shell.Args = exactly()
		}
	}
}

func unknownShell(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	var shells []string
	for _, c := range cmd.Commands() {
		shells = append(shells, c.Name())
	}
	return usagef("completion: %q is none of the shells %s", args[0], strings.Join(shells, ", "))
}

// helpCommand is cobra's, and fails for a command that there is not.
func helpCommand(root *cobra.Command) *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND]",
		Short: "Help about a command",
		RunE: func(_ *cobra.Command, args []string) error {
			about, rest, err := root.Find(args)
			if err != nil || about == nil || (about == root && len(rest) > 0) {
				return unknownCommand(root, args)
			}
			about.InitDefaultHelpFlag()
			return about.Help()
		},
	}
}
