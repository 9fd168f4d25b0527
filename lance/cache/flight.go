package cache

import (
	"context"
	"errors"
	"sync"
)

// flights let goroutines that want the same value at once make it once. Unlike those of
// package singleflight a goroutine that waits for another's gives up with its context:
// the other may be waiting for a store that never answers.
type flights struct {
	mu sync.Mutex
	by map[string]*flight
}

type flight struct {
	done  chan struct{} // closed once value and err are set
	value any
	err   error
}

var errNoFlight = errors.New("the value was not made")

// do returns what load makes, in this goroutine or in the one that is at it already.
// first says that it was this one.
func (f *flights) do(ctx context.Context, key string, load func() (any, error)) (v any, first bool, err error) {
	f.mu.Lock()
	if other := f.by[key]; other != nil {
		f.mu.Unlock()
		select {
		case <-other.done:
			return other.value, false, other.err
		case <-ctx.Done():
			return nil, false, ctx.Err()
		}
	}
	own := &flight{done: make(chan struct{}), err: errNoFlight} // unless load returns
	if f.by == nil {
		f.by = map[string]*flight{}
	}
	f.by[key] = own
	f.mu.Unlock()
	defer func() {
		f.mu.Lock()
		delete(f.by, key)
		f.mu.Unlock()
		close(own.done)
	}()
	own.value, own.err = load()
	return own.value, true, own.err
}
