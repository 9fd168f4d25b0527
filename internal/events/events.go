// Package events has what structs of event handlers need: functions of one argument,
// any of which may be nil.
package events

// OrNothing makes a handler that is nil one that does nothing.
func OrNothing[I any](f *func(I)) {
	if *f == nil {
		*f = func(I) {}
	}
}

// Tee returns a handler that calls those of all the given structs, in order.
func Tee[E, I any](all []E, handler func(E) func(I)) func(I) {
	return func(info I) {
		for _, e := range all {
			handler(e)(info)
		}
	}
}

// WithErr adds to the line of an event what went wrong, if anything did.
func WithErr(line string, err error) string {
	if err == nil {
		return line
	}
	return line + ": failed: " + err.Error()
}
