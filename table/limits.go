package table

import "math"

// MaxVersion is the largest number that a version can have. Formats use the numbers
// above it for something else (versions outside the history), and programs hold
// versions in signed integers.
const MaxVersion = math.MaxInt64

// CheckSuccessor says why nothing can be committed over s: its version is the last that
// there can be, so that the next would never be seen, or would be another sort of
// version. It is asked before anything is written. The error is ErrUnsupported.
func (s *Snapshot) CheckSuccessor() error {
	if s.Version < MaxVersion {
		return nil
	}
	return Unsupportedf("table %s: version %d is the last that a table can have, and no change can be committed over it; write the rows into a new table", s.Table, s.Version)
}

// CheckNewFragments says why no fragment can be added to s: every id was given out. It
// is asked before rows are written; how many ids are left is checked when it is known
// how many fragments there are. The error is ErrUnsupported.
func (s *Snapshot) CheckNewFragments() error {
	if s.NextFragmentID <= MaxFragmentID {
		return nil
	}
	return Unsupportedf("table %s version %d: all %d fragment ids were given out, and none is ever used again; write the rows into a new table", s.Table, s.Version, uint64(MaxFragmentID)+1)
}
