package remap

import (
	"fmt"

	"github.com/rehome-db/rehome/fri"
	"github.com/rehome-db/rehome/table"
)

// A history says what it saw. That it does not mention an address may mean that
// nothing rewrote the row; or that the rewrite was not recorded, or forgotten since,
// or that there never was such a row. Only the version's own list of fragments tells
// these apart, so an answer is looked up there before it is called good.

// standing is the fragments of the version that answers are about.
type standing struct {
	version, next uint64
	rows          map[table.FragmentID]uint64 // physical rows
}

func standingOf(s *table.Snapshot) *standing {
	if s == nil {
		return nil
	}
	out := &standing{version: s.Version, next: uint64(s.NextFragmentID), rows: make(map[table.FragmentID]uint64, len(s.Fragments))}
	for _, f := range s.Fragments {
		out.rows[f.ID] = f.PhysicalRows
	}
	return out
}

// has says whether the version has a row, alive or dead, at the address.
func (s *standing) has(a table.RowAddr) bool { return uint64(a.Offset()) < s.rows[a.Fragment()] }

// stands says whether an answer may be given.
func (r *Remapper) stands(a table.RowAddr, state fri.State) bool {
	switch {
	case state == fri.Deleted || state == fri.Untranslatable:
		return true
	case r.current == nil:
		return r.opts.Unchecked || state == fri.Moved
	}
	return r.current.has(a)
}

// doubt says why the answer a may not be given. asked is the address that it is the
// answer for, a itself if that is not known.
func (r *Remapper) doubt(asked, a table.RowAddr) error {
	id := a.Fragment()
	if r.current == nil {
		return &DoubtError{Addr: a, reason: "nothing rewrote it that the history knows of, and without the fragments of the version (Options.Current) nobody can say that it stands"}
	}
	s := r.current
	reason := ""
	rows, there := s.rows[id]
	switch {
	case there:
		reason = fmt.Sprintf("fragment %d of version %d has %d rows, and so no row %d", id, s.version, rows, a.Offset())
	case uint64(id) >= s.next:
		reason = fmt.Sprintf("version %d has had no fragment %d: the next new one is %d", s.version, id, s.next)
	default:
		reason = fmt.Sprintf("fragment %d is gone from version %d, and the history does not say what became of its rows: it was rewritten without a record, the record was trimmed, or all its rows were deleted", id, s.version)
		if _, ok := r.history.Consumer(id); ok {
			reason = fmt.Sprintf("fragment %d had %d rows when it was rewritten, and so no row %d", id, r.physicalRows(id), a.Offset())
		}
	}
	if asked != a {
		reason = fmt.Sprintf("the history leads to %v, and %s", a, reason)
	}
	return &DoubtError{Addr: a, reason: reason}
}

// DoubtError is the cause of an [*UntranslatableError] for an answer that the version
// does not bear out, or that nothing was given to check with. It wraps ErrNotFound of
// package table.
type DoubtError struct {
	// Addr is the answer that the history by itself would have given.
	Addr   table.RowAddr
	reason string
}

func (e *DoubtError) Error() string { return e.reason }

func (e *DoubtError) Unwrap() error { return table.ErrNotFound }
