package table

import "context"

// Finding is one thing that is wrong with a version.
type Finding struct {
	// Kind is a stable word: manifest, fragment, file, deletion, index, fri, data.
	Kind string
	// Where names the place: "fragment 3 file data/x.lance".
	Where string
	Err   error
}

// Checker is implemented by an engine that can check more of a version than can
// be seen through Engine: what its format demands of files and metadata. It is
// optional.
type Checker interface {
	// Check looks at everything about s that Engine does not show, and goes on
	// after a finding. It returns how many things of which sort it looked at; an
	// error says that checking itself was impossible. It reads metadata, not the
	// rows: whoever wants those checked reads them.
	Check(ctx context.Context, s *Snapshot, found func(Finding)) (checked map[string]int, err error)
}
