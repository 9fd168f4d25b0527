// Package recovered turns panics of libraries into errors.
//
// A library that decodes untrusted bytes may index beyond them and panic. That must not
// end the program in the middle of writing: the caller of such a library defers [Into],
// and cleans up as after any other error. Into cannot catch panics of other goroutines.
package recovered

import (
	"fmt"
	"runtime/debug"
)

// Error is a panic that was stopped.
type Error struct {
	Value any
	// Stack is where it happened.
	Stack []byte
}

// Error says what the panic said.
func (e *Error) Error() string { return fmt.Sprintf("internal error: %v", e.Value) }

// Unwrap returns the error that the panic was raised with, nil if it was none.
func (e *Error) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// Into replaces what err points to by an [*Error] if the goroutine is panicking, and
// stops the panic. It is to be deferred itself.
func Into(err *error) {
	if p := recover(); p != nil {
		*err = &Error{Value: p, Stack: debug.Stack()}
	}
}
