package compaction

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/rehome-db/rehome/fri"
	"github.com/rehome-db/rehome/table"
)

// commitFinder finds out when transitions were committed. A transition records a
// version, but writers differ in which: rehome records the version that the commit
// made, stock engines one that the writer held before it, and between that and the
// commit an index may have been built that looks newer than it is.
//
// The table itself knows: a rewrite is committed in the version in which its
// sources are gone and the ids of its destinations are taken. Only metadata is
// read, of a few versions, and of each once.
type commitFinder struct {
	engine   table.Loader
	versions map[uint64]*versionFacts // nil for those that cannot be read
}

// versionFacts is what matters of a version. It holds on to nothing else of the
// snapshot, as there may be many.
type versionFacts struct {
	fragments []table.FragmentID // ascending
	next      table.FragmentID
	indexes   []table.IndexMeta
	time      time.Time
}

func newCommitFinder(e table.Loader) *commitFinder {
	return &commitFinder{engine: e, versions: map[uint64]*versionFacts{}}
}

// find returns the commit of a transition that base's history has, and the time of
// the version that it names. If versions were removed the answer is a later one:
// whatever was done before the commit was done before that, too.
func (f *commitFinder) find(ctx context.Context, base *table.Snapshot, t *fri.Transition) (fri.Commit, time.Time, error) {
	if f.versions[base.Version] == nil {
		f.versions[base.Version] = factsOf(base)
	}
	if !f.versions[base.Version].after(t) {
		return fri.Commit{}, time.Time{}, nil // a source is there: this is no history of this table
	}
	// The commit is in (low, high]; high is known to be after it.
	low, high := max(t.DatasetVersion(), 1)-1, base.Version
	if low >= high {
		low = 0 // a record from the future says nothing
	}
	for step := uint64(1); high-low > 1; step *= 2 {
		// First in growing steps, for most records are a version or two off; then
		// by halves.
		at := min(low+step, high-1)
		if step > 8 {
			at = low + (high-low)/2
		}
		v, err := f.load(ctx, at)
		if err != nil {
			return fri.Commit{}, time.Time{}, err
		}
		if v != nil && v.after(t) {
			high = at
		} else {
			low = at
		}
	}
	c := fri.Commit{Version: high, Exact: high == 1}
	// Removed versions look like ones before the commit.
	for high > 1 {
		v, err := f.load(ctx, high-1)
		if err != nil {
			return fri.Commit{}, time.Time{}, err
		}
		if v == nil {
			break
		}
		if !v.after(t) {
			c.Before, c.BeforeKnown, c.Exact = v.indexes, true, true
			break
		}
		high--
		c.Version = high
	}
	return c, f.versions[c.Version].time, nil
}

// load returns the facts of a version, nil if it is gone or cannot be read.
func (f *commitFinder) load(ctx context.Context, version uint64) (*versionFacts, error) {
	if v, ok := f.versions[version]; ok {
		return v, nil
	}
	s, err := f.engine.Load(ctx, version)
	switch {
	case err == nil:
		f.versions[version] = factsOf(s)
	case errors.Is(err, table.ErrNotFound), errors.Is(err, table.ErrCorrupt), errors.Is(err, table.ErrUnsupported):
		f.versions[version] = nil
	default:
		return nil, fmt.Errorf("load version %d: %w", version, err)
	}
	return f.versions[version], nil
}

func factsOf(s *table.Snapshot) *versionFacts {
	v := &versionFacts{next: s.NextFragmentID, fragments: fragmentIDs(s.Fragments), time: s.Timestamp}
	slices.Sort(v.fragments)
	for _, m := range s.Indexes {
		if !m.System {
			m.Handle = nil
			v.indexes = append(v.indexes, m)
		}
	}
	return v
}

// changed returns the fragments that the commit of a version added, and those that it
// removed; nil if the version before it is not known.
func (f *commitFinder) changed(version uint64) (made, gone []table.FragmentID) {
	now, was := f.versions[version], f.versions[version-1]
	if now == nil || was == nil {
		return nil, nil
	}
	return without(slices.Clone(now.fragments), was.fragments), without(slices.Clone(was.fragments), now.fragments)
}

// after says whether the version is one in which the transition was committed
// already.
func (v *versionFacts) after(t *fri.Transition) bool {
	for _, s := range t.Sources() {
		if _, there := slices.BinarySearch(v.fragments, s.ID); there || s.ID >= v.next {
			return false // not rewritten yet, or not even written
		}
	}
	for _, d := range t.Destinations() {
		if d.ID >= v.next {
			return false
		}
	}
	return true
}
