package table

import (
	"context"
	"errors"
	"fmt"
)

// The sentinels. Test for them with errors.Is; messages name the table, the
// version, and the fragment, column or file.
var (
	// ErrConflict: another's commit rules this one out; the same work, done again
	// from the current version, can succeed.
	ErrConflict = errors.New("conflict")
	// ErrVersionTaken is returned by Committer.Commit when another writer
	// published the version number first. Nothing was published; load the
	// new version, rebase, and try again. It is a kind of ErrConflict.
	ErrVersionTaken = fmt.Errorf("version taken: %w", ErrConflict)
	// ErrAmbiguousCommit is returned by Committer.Commit when it cannot know
	// whether the version was published (an error after the final write was
	// sent). Before it deletes anything, the caller looks for the transaction's id
	// in the versions since.
	ErrAmbiguousCommit = errors.New("commit outcome unknown")
	// ErrCorrupt: bytes that break the format's rules. Retrying cannot help.
	ErrCorrupt = errors.New("corrupt")
	// ErrUnsupported: well-formed, but this engine or this version of rehome
	// does not handle it. Nothing was written.
	ErrUnsupported = errors.New("not supported")
	// ErrNotFound: a version or an object that does not exist.
	ErrNotFound = errors.New("not found")
	// ErrNotTable: the place holds no table at all.
	ErrNotTable = errors.New("not a table")
	// ErrTerminal: no retry can make this succeed (for example, the read version
	// was removed while the work was done).
	ErrTerminal = errors.New("terminal")
)

// Outcome is what a caller should do about an error.
type Outcome int

// The outcomes, in the order in which a caller should prefer them.
const (
	OutcomeDone      Outcome = iota // no error
	OutcomeRetryable                // a conflict: do the work again on the current version
	OutcomeDamaged                  // the table is corrupt or not supported
	OutcomeFailed                   // anything else, I/O and cancellation included
)

func (o Outcome) String() string {
	switch o {
	case OutcomeDone:
		return "done"
	case OutcomeRetryable:
		return "retryable"
	case OutcomeDamaged:
		return "damaged or not supported"
	default:
		return "failed"
	}
}

// Classify folds err into an Outcome. Cancellation is OutcomeFailed even when it
// is wrapped together with a conflict: the caller asked to stop.
func Classify(err error) Outcome {
	switch {
	case err == nil:
		return OutcomeDone
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return OutcomeFailed
	case errors.Is(err, ErrCorrupt), errors.Is(err, ErrUnsupported), errors.Is(err, ErrNotTable):
		return OutcomeDamaged
	case errors.Is(err, ErrConflict):
		return OutcomeRetryable
	default:
		return OutcomeFailed
	}
}

// Corruptf returns an error that wraps ErrCorrupt. A %w in format is wrapped too.
func Corruptf(format string, args ...any) error { return mark(ErrCorrupt, format, args...) }

// Unsupportedf returns an error that wraps ErrUnsupported.
func Unsupportedf(format string, args ...any) error { return mark(ErrUnsupported, format, args...) }

// Conflictf returns an error that wraps ErrConflict.
func Conflictf(format string, args ...any) error { return mark(ErrConflict, format, args...) }

func mark(sentinel error, format string, args ...any) error {
	return &markedError{sentinel: sentinel, err: fmt.Errorf(format, args...)}
}

// markedError prints only the message: "manifest of version 3 is corrupt: corrupt"
// helps nobody.
type markedError struct{ sentinel, err error }

func (e *markedError) Error() string   { return e.err.Error() }
func (e *markedError) Unwrap() []error { return []error{e.sentinel, e.err} }
