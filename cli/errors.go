package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/rehome-db/rehome/commit"
	"github.com/rehome-db/rehome/lance"
	"github.com/rehome-db/rehome/table"
)

// The exit codes.
const (
	ExitDone     = 0 // done; also when there was nothing to do
	ExitFailed   = 1 // failed; nothing changed, or the message says what was left
	ExitUsage    = 2 // the command line is wrong
	ExitConflict = 3 // another writer was first; running the command again can succeed
	ExitDamaged  = 4 // the table is damaged, is none, or uses what rehome does not support
)

// problemsError says that verify found something. Its report is the result and
// was printed; the error only carries the exit code.
type problemsError struct{ count int }

func (e *problemsError) Error() string {
	return fmt.Sprintf("verify: found %s", plural(e.count, "problem"))
}

// Kind names what went wrong in one stable word, for programs: the "kind" of the
// JSON error document.
func Kind(err error) string {
	var usage *usageError
	switch {
	case errors.As(err, &usage):
		return "usage"
	case errors.Is(err, table.ErrAmbiguousCommit):
		// Before whatever made the outcome unknown: a caller must not be told
		// that nothing happened.
		return "ambiguous_commit"
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return "interrupted"
	case errors.Is(err, table.ErrCorrupt):
		return "corrupt"
	case errors.Is(err, table.ErrUnsupported):
		return "unsupported"
	case errors.Is(err, table.ErrNotTable):
		return "not_a_table"
	case errors.Is(err, table.ErrConflict):
		return "conflict"
	case errors.Is(err, table.ErrTerminal):
		return "terminal"
	case errors.Is(err, table.ErrNotFound):
		return "not_found"
	default:
		return "failed"
	}
}

// ExitCode is the exit code for an error of a command made by [New].
func ExitCode(err error) int {
	var usage *usageError
	var problems *problemsError
	switch {
	case err == nil:
		return ExitDone
	case errors.As(err, &usage):
		return ExitUsage
	case errors.As(err, &problems):
		return ExitDamaged
	case errors.Is(err, table.ErrAmbiguousCommit):
		return ExitFailed
	}
	switch table.Classify(err) {
	case table.OutcomeRetryable:
		return ExitConflict
	case table.OutcomeDamaged:
		return ExitDamaged
	default:
		return ExitFailed
	}
}

// describe is the one line that a person reads: the error itself, which says what,
// where and why, and what to do where the error cannot know that.
func (a *app) describe(err error) string {
	advice := ""
	switch Kind(err) {
	case "interrupted":
		// Where exactly the interrupt hit does not matter to who sent it.
		message := "interrupted; the table is as it was"
		var left *commit.LeftoverError
		if errors.As(err, &left) {
			// Every task that was interrupted has its own.
			message += "; " + oneLine(&commit.LeftoverError{Objects: commit.Leftovers(err), Err: left.Err})
		}
		return message
	case "conflict":
		advice = "run the command again: it starts from the table's current version"
	case "ambiguous_commit":
		advice = "look at the table with inspect before running the command again"
	case "corrupt":
		if lost := (*commit.LostError)(nil); errors.As(err, &lost) {
			break // it says what to do
		}
		advice = "the table was not changed; verify lists everything that is wrong"
		if latest := (*lance.DamagedLatestError)(nil); errors.As(err, &latest) && latest.Before != 0 {
			advice = "the table was not changed"
		}
	case "not_a_table":
		var elsewhere *elsewhereError
		if !a.lance || errors.As(err, &elsewhere) {
			break
		}
		advice = "give the directory that holds _versions, for example ./db/items.lance"
	}
	if advice == "" {
		return oneLine(err)
	}
	return oneLine(err) + "; " + advice
}

// oneLine folds an error's text into one line: some causes span several.
func oneLine(err error) string { return oneLineText(err.Error()) }

func oneLineText(s string) string {
	return strings.Join(strings.FieldsFunc(s, func(r rune) bool { return r == '\n' || r == '\r' }), "; ")
}
