package table

import "github.com/rehome-db/rehome/internal/unwrap"

// Wrapper is implemented by an engine that passes what it is asked on to another one,
// such as one that counts or delays calls. It is optional; without it the optional
// interfaces of the other are lost, as a wrapper has only the methods that it spells out.
type Wrapper interface {
	// Unwrap returns the engine inside, never the wrapper itself.
	Unwrap() Engine
}

// As returns what an engine can do beside its own contract: T is an optional interface,
// such as [Rewriter]. It asks e first, and then what e wraps, from the outside inwards:
// a wrapper that must see the calls of an optional interface implements it.
//
//	if taker, ok := table.As[table.RowTaker](e); ok {
func As[T any](e any) (T, bool) { return unwrap.As[T, Engine](e) }
