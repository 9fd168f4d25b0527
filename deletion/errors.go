package deletion

import (
	"errors"
	"fmt"
)

// The sentinels of this package; test for them with errors.Is. The package is a
// leaf and does not know the ones of package table: an engine wraps them.
var (
	// ErrCorrupt: bytes that break the format, or a set that does not fit its
	// fragment.
	ErrCorrupt = errors.New("corrupt deletion vector")
	// ErrUnsupported: a form that the format may have and this package does not
	// read.
	ErrUnsupported = errors.New("unsupported deletion vector")
)

// markedError wraps a sentinel without repeating its text in the message.
type markedError struct{ sentinel, err error }

func (e *markedError) Error() string   { return e.err.Error() }
func (e *markedError) Unwrap() []error { return []error{e.sentinel, e.err} }

func corruptf(format string, args ...any) error {
	return &markedError{ErrCorrupt, fmt.Errorf(format, args...)}
}

func unsupportedf(format string, args ...any) error {
	return &markedError{ErrUnsupported, fmt.Errorf(format, args...)}
}
