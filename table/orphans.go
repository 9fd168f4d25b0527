package table

import (
	"context"
	"time"
)

// Orphan is a stored object that no version of the table refers to: what a commit
// that failed, or a process that died, has left behind, unless it is foreign.
type Orphan struct {
	// Path is the engine's name of the object, relative to the table.
	Path  string `json:"path"`
	Bytes uint64 `json:"bytes"`
	// Modified is when the object was written, by the store's clock.
	Modified time.Time `json:"modified"`
	// Foreign says that the object is called like nothing that a writer of such tables
	// puts at its place: somebody else has put it there, and wants it, perhaps.
	Foreign bool `json:"foreign"`
	// Unfinished says that the object has the name of a write that did not end: of a
	// process that was killed or, if it is young, of one that is at it. No version will
	// ever refer to it.
	Unfinished bool `json:"unfinished"`
}

// OrphanFinder is implemented by an engine that can tell what nothing refers to. It
// is optional.
type OrphanFinder interface {
	// Orphans calls found for every object in the places where the table keeps its
	// objects that none of the versions that are there refers to, and returns how
	// many versions it looked at. What a writer has written and not committed yet
	// is found too: only its age tells it from what is left for good.
	//
	// It fails closed: if anything about some version is damaged (ErrCorrupt) or
	// not understood (ErrUnsupported), so that it may refer to more than is seen,
	// found is not called at all.
	Orphans(ctx context.Context, found func(Orphan)) (versions int, err error)
}
