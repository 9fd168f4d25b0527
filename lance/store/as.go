package store

import "github.com/rehome-db/rehome/internal/unwrap"

// Wrapper is implemented by a store that passes what it is asked on to another one, such
// as one that counts or fails calls. It is optional; without it what the other can do
// beside the contract is lost.
type Wrapper interface {
	// Unwrap returns the store inside, never the wrapper itself.
	Unwrap() Store
}

// As returns what a store can do beside the contract of [Store]: T is an optional
// interface. It asks s first, and then what s wraps, from the outside inwards.
func As[T any](s Store) (T, bool) { return unwrap.As[T, Store](s) }
