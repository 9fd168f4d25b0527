package table

import (
	"context"
	"time"
)

// Orphan is a stored object that no version of the table refers to. A failed commit or
// a dead process left it behind, unless it is foreign.
type Orphan struct {
	// Path is the engine's name of the object, relative to the table.
	Path  string `json:"path"`
	Bytes uint64 `json:"bytes"`
	// Modified is when the object was written, by the store's clock.
	Modified time.Time `json:"modified"`
	// Foreign says that no writer of such tables gives an object in this place such a
	// name: somebody else put it there, and may want it.
	Foreign bool `json:"foreign"`
	// Unfinished says that the object has the name of an unfinished write: its process
	// was killed or, if the object is young, is still writing. No version will ever
	// refer to it.
	Unfinished bool `json:"unfinished"`
}

// OrphanFinder is implemented by an engine that can find unreferenced objects. It is
// optional.
type OrphanFinder interface {
	// Orphans looks in the places where the table keeps its objects. It calls found
	// for every object that no existing version refers to, and returns how many
	// versions it read. It also finds what a writer has written and not committed yet:
	// only the age tells such an object from one that was left behind.
	//
	// It fails closed: if anything about some version is damaged (ErrCorrupt) or
	// not understood (ErrUnsupported), so that it may refer to more than is seen,
	// found is not called at all.
	Orphans(ctx context.Context, found func(Orphan)) (versions int, err error)
}
