package table

import "math"

// MaxVersion is the largest number that a version can have. Formats use the numbers
// above it for something else (versions outside the history), and programs hold
// versions in signed integers.
const MaxVersion = math.MaxInt64

// CheckSuccessor returns an error if nothing can be committed over s: s is the last
// possible version, and the next number would be invisible or mean another sort of
// version. Call it before anything is written. The error is ErrUnsupported.
func (s *Snapshot) CheckSuccessor() error {
	if s.Version < MaxVersion {
		return nil
	}
	return Unsupportedf("table %s: version %d is the last that a table can have, and no change can be committed over it; write the rows into a new table", s.Table, s.Version)
}

// CheckNewFragments returns an error if no fragment can be added to s, because every id
// was given out. Call it before rows are written; whether enough ids are left is checked
// later, when the number of fragments is known. The error is ErrUnsupported.
func (s *Snapshot) CheckNewFragments() error {
	if s.NextFragmentID <= MaxFragmentID {
		return nil
	}
	return Unsupportedf("table %s version %d: all %d fragment ids were given out, and none is ever used again; write the rows into a new table", s.Table, s.Version, uint64(MaxFragmentID)+1)
}
