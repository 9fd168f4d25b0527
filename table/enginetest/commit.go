package enginetest

import (
	"context"
	"testing"

	"github.com/rehome-db/rehome/table"
)

func testCommit(t *testing.T, cfg Config) {
	cases{
		{"publishes new fragments under the ids it was given", commitPublishesNewFragmentsUnderTheIdsItWasGiven},
		{"replaces fragments by others", commitReplacesFragmentsByOthers},
		{"publishes new fragments together with their deletions", commitPublishesNewFragmentsTogetherWithTheirDeletions},
		{"can remove every fragment", commitCanRemoveEveryFragment},
		{"sets deletions and nothing else", commitSetsDeletionsAndNothingElse},
		{"undoes nothing that others did", commitUndoesNothingThatOthersDid},
		{"fails when the version is taken and changes nothing", commitFailsWhenTheVersionIsTakenAndChangesNothing},
	}.run(t, cfg)
}

func commitPublishesNewFragmentsUnderTheIdsItWasGiven(t *testing.T, cfg Config) {
	f := newFixture(t, cfg, 10)
	s := f.latest()
	added := place(s, f.write(numbers(10, 25), 25, table.WriteOptions{MaxRows: 10}).Fragments)
	next := f.commit(table.Change{Add: added})
	f.Equal(describe(f.latest()), describe(next), "Commit returns the version it made")
	f.Len(next.Fragments, 4)
	f.True(next.Fragments[0].Same(s.Fragments[0]))
	for i, want := range added {
		f.True(next.Fragments[1+i].Same(want), "fragment %d", want.ID)
		f.Equal(want.Files[0].Bytes, next.Fragments[1+i].Files[0].Bytes)
	}
	f.Equal(added[2].ID+1, next.NextFragmentID)
	f.hasRows(next, numbers(0, 35))
}

func commitReplacesFragmentsByOthers(t *testing.T, cfg Config) {
	f := newFixture(t, cfg, 10, 10, 10)
	f.delete(table.NewRowAddr(f.latest().Fragments[0].ID, 5), table.NewRowAddr(f.latest().Fragments[2].ID, 0))
	s := f.latest()
	out := f.write(without(numbers(0, 20), 5), 6, table.WriteOptions{})
	next := f.commit(table.Change{Remove: fragmentIDs(s)[:2], Add: place(s, out.Fragments)})
	f.Len(next.Fragments, 2)
	f.True(next.Fragments[0].Same(s.Fragments[2]), "what the change does not name stays as it is")
	f.hasRows(next, append(numbers(21, 9), without(numbers(0, 20), 5)...))
	f.hasRows(s, without(numbers(0, 30), 5, 20))
}

func commitPublishesNewFragmentsTogetherWithTheirDeletions(t *testing.T, cfg Config) {
	f := newFixture(t, cfg, 10)
	s := f.latest()
	added := place(s, f.write(numbers(0, 10), 10, table.WriteOptions{}).Fragments)
	ref, err := f.engine.WriteDeletions(f.ctx, added[0].ID, s.Version, offsets(2, 3))
	f.NoError(err)
	added[0].Deletion = &ref
	next := f.commit(table.Change{Remove: fragmentIDs(s), Add: added})
	f.holdsDeletions(next, next.Fragments[0], []uint32{2, 3})
	f.hasRows(next, without(numbers(0, 10), 2, 3))
}

func commitCanRemoveEveryFragment(t *testing.T, cfg Config) {
	f := newFixture(t, cfg, 10, 10)
	s := f.latest()
	next := f.commit(table.Change{Remove: fragmentIDs(s)})
	f.Empty(next.Fragments)
	f.Equal(s.NextFragmentID, next.NextFragmentID, "ids are not used again")
	frag := f.add(5)
	f.GreaterOrEqual(frag.ID, s.NextFragmentID)
	f.hasRows(f.latest(), numbers(20, 5))
}

func commitSetsDeletionsAndNothingElse(t *testing.T, cfg Config) {
	f := newFixture(t, cfg, 10, 10)
	s := f.latest()
	f.delete(table.NewRowAddr(s.Fragments[1].ID, 9))
	s = f.latest()
	ref, err := f.engine.WriteDeletions(f.ctx, s.Fragments[0].ID, s.Version, offsets(0, 1))
	f.NoError(err)
	next := f.commit(table.Change{SetDeletion: map[table.FragmentID]*table.DeletionRef{s.Fragments[0].ID: &ref}})
	f.True(next.Fragments[0].SameData(s.Fragments[0]))
	f.Equal(uint64(2), next.Fragments[0].DeletedRows())
	f.True(next.Fragments[1].Same(s.Fragments[1]))
	f.hasRows(next, without(numbers(0, 20), 0, 1, 19))
}

func commitUndoesNothingThatOthersDid(t *testing.T, cfg Config) {
	// A compaction of the first two fragments is worked out at version s. Then
	// others append, and delete from the third fragment. Its change, applied to
	// their version, must leave both in place.
	f := newFixture(t, cfg, 10, 10, 10)
	s := f.latest()
	out := f.write(numbers(0, 20), 20, table.WriteOptions{})
	f.delete(table.NewRowAddr(s.Fragments[2].ID, 4))
	f.add(10)
	base := f.latest()
	next, err := f.engine.Commit(f.ctx, proposal(base, s.Version, table.Change{Remove: fragmentIDs(s)[:2], Add: place(base, out.Fragments)}))
	f.NoError(err)
	f.hasRows(next, append(without(numbers(20, 20), 24), numbers(0, 20)...))
}

func commitFailsWhenTheVersionIsTakenAndChangesNothing(t *testing.T, cfg Config) {
	f := newFixture(t, cfg, 10, 10)
	stale := f.latest()
	out := f.write(numbers(0, 20), 20, table.WriteOptions{})
	f.add(10)
	// The reuse index is large enough that a format might give it an object.
	err := f.refuses(proposal(stale, stale.Version, table.Change{
		Remove: fragmentIDs(stale),
		Add:    place(stale, out.Fragments),
		Reuse:  &table.ReuseIndexUpdate{Content: cfg.ReuseIndex(t, 300<<10)},
	}))
	f.ErrorIs(err, table.ErrVersionTaken)
	f.ErrorIs(err, table.ErrConflict)
	f.Equal(table.OutcomeRetryable, table.Classify(err))
	f.hasRows(f.latest(), numbers(0, 30))
	// What it wrote is still there for the next attempt.
	base := f.latest()
	next, err := f.engine.Commit(f.ctx, proposal(base, stale.Version, table.Change{Remove: fragmentIDs(stale), Add: place(base, out.Fragments)}))
	f.NoError(err)
	f.hasRows(next, append(numbers(20, 10), numbers(0, 20)...))
}

func testCommitRefuses(t *testing.T, cfg Config) {
	// Every case changes a change that would pass: one that replaces the first of
	// two fragments.
	for name, spoil := range map[string]func(f *fixture, s *table.Snapshot, c *table.Change){
		"the id of a fragment that is there": func(f *fixture, s *table.Snapshot, c *table.Change) {
			c.Add[0].ID = s.Fragments[1].ID
		},
		"the id of a fragment that it removes": func(f *fixture, s *table.Snapshot, c *table.Change) {
			c.Add[0].ID = c.Remove[0]
		},
		"the id of a fragment that was removed before": func(f *fixture, s *table.Snapshot, c *table.Change) {
			c.Add[0].ID = s.Fragments[0].ID - 1
		},
		"the same new id twice": func(f *fixture, s *table.Snapshot, c *table.Change) {
			again := f.write(numbers(0, 10), 10, table.WriteOptions{}).Fragments[0]
			c.Add = append(c.Add, table.Fragment{ID: c.Add[0].ID, PhysicalRows: again.PhysicalRows, Files: again.Files})
		},
		"an id that no fragment can have": func(f *fixture, s *table.Snapshot, c *table.Change) {
			c.Add[0].ID = table.MaxFragmentID + 1
		},
		"to remove a fragment that is not there": func(f *fixture, s *table.Snapshot, c *table.Change) {
			c.Remove = append(c.Remove, s.NextFragmentID+5)
		},
		"to remove a fragment that was removed before": func(f *fixture, s *table.Snapshot, c *table.Change) {
			c.Remove = append(c.Remove, s.Fragments[0].ID-1)
		},
		"to set deletions of a fragment that is not there": func(f *fixture, s *table.Snapshot, c *table.Change) {
			ref, err := f.engine.WriteDeletions(f.ctx, s.NextFragmentID+5, s.Version, offsets(1))
			f.NoError(err)
			c.SetDeletion = map[table.FragmentID]*table.DeletionRef{s.NextFragmentID + 5: &ref}
		},
		"a data file that does not exist": func(f *fixture, s *table.Snapshot, c *table.Change) {
			f.NoError(f.engine.Delete(f.ctx, table.Object{Kind: table.ObjectData, Path: c.Add[0].Files[0].Path}))
		},
		"a deletion vector that does not exist": func(f *fixture, s *table.Snapshot, c *table.Change) {
			id := s.Fragments[1].ID
			ref, err := f.engine.WriteDeletions(f.ctx, id, s.Version, offsets(1))
			f.NoError(err)
			f.NoError(f.engine.Delete(f.ctx, table.Object{Kind: table.ObjectDeletion, Path: ref.Path}))
			c.SetDeletion = map[table.FragmentID]*table.DeletionRef{id: &ref}
		},
		"coverage of an index that is not there": func(f *fixture, s *table.Snapshot, c *table.Change) {
			c.SetCoverage = map[table.UUID][]table.FragmentID{{1, 2, 3}: nil}
		},
		"to drop an index that is not there": func(f *fixture, s *table.Snapshot, c *table.Change) {
			c.DropIndexes = []table.UUID{{1, 2, 3}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, cfg, 10, 10, 10)
			f.commit(table.Change{Remove: fragmentIDs(f.latest())[:1]})
			s := f.latest()
			change := table.Change{
				Remove: fragmentIDs(s)[:1],
				Add:    place(s, f.write(numbers(10, 10), 10, table.WriteOptions{}).Fragments),
			}
			spoil(f, s, &change)
			err := f.refuses(proposal(s, s.Version, change))
			f.NotErrorIs(err, table.ErrVersionTaken, "trying again would not help")
			f.hasRows(f.latest(), numbers(10, 20))
			f.add(3) // the table still takes commits
		})
	}

	t.Run("to commit when the context is cancelled", func(t *testing.T) {
		f := newFixture(t, cfg, 10)
		s := f.latest()
		change := table.Change{Add: place(s, f.write(numbers(10, 10), 10, table.WriteOptions{}).Fragments)}
		ctx, cancel := context.WithCancel(f.ctx)
		cancel()
		_, err := f.engine.Commit(ctx, proposal(s, s.Version, change))
		f.ErrorIs(err, context.Canceled)
		f.unchangedSince(s)
	})
}
