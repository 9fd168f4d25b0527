package enginetest

import (
	"slices"
	"testing"

	"github.com/rehome-db/rehome/table"
)

func testDeletions(t *testing.T, cfg Config) {
	cases{
		{"of an untouched fragment are an empty set", deletionsOfAnUntouchedFragmentAreAnEmptySet},
		{"are read back as the user made them", deletionsAreReadBackAsTheUserMadeThem},
		{"are read back as they were written", deletionsAreReadBackAsTheyWereWritten},
		{"are a new object at every write", deletionsAreANewObjectAtEveryWrite},
		{"beyond the fragment's rows are corrupt", deletionsBeyondTheFragmentSRowsAreCorrupt},
		{"that are not as many as recorded are corrupt", deletionsThatAreNotAsManyAsRecordedAreCorrupt},
		{"whose object is gone are an error", deletionsWhoseObjectIsGoneAreAnError},
	}.run(t, cfg)
}

func deletionsOfAnUntouchedFragmentAreAnEmptySet(t *testing.T, cfg Config) {
	f := newFixture(t, cfg, 10)
	s := f.latest()
	deleted, err := f.engine.ReadDeletions(f.ctx, s, s.Fragments[0])
	f.NoError(err)
	f.NotNil(deleted)
	f.Zero(deleted.Cardinality())
	f.False(deleted.Contains(0))
	f.Empty(slices.Collect(deleted.All()))
}

func deletionsAreReadBackAsTheUserMadeThem(t *testing.T, cfg Config) {
	f := newFixture(t, cfg, 100)
	id := f.latest().Fragments[0].ID
	for i, gone := range [][]uint32{{7}, {7, 8, 99}, {0}} {
		var addrs []table.RowAddr
		for _, offset := range gone {
			addrs = append(addrs, table.NewRowAddr(id, offset))
		}
		f.delete(addrs...)
		s := f.latest()
		want := [][]uint32{{7}, {7, 8, 99}, {0, 7, 8, 99}}[i]
		f.holdsDeletions(s, s.Fragments[0], want)
	}
}

func deletionsAreReadBackAsTheyWereWritten(t *testing.T, cfg Config) {
	const rows = 3000
	every := func(step uint32) (out []uint32) {
		for o := uint32(0); o < rows; o += step {
			out = append(out, o)
		}
		return out
	}
	for name, want := range map[string][]uint32{
		"the first row":   {0},
		"the last row":    {rows - 1},
		"a run":           every(1)[1000:2000],
		"every other row": every(2),
		"a few rows":      every(600),
		"every row":       every(1),
	} {
		f := newFixture(t, cfg, rows)
		s := f.latest()
		ref, err := f.engine.WriteDeletions(f.ctx, s.Fragments[0].ID, s.Version, offsets(want...))
		f.NoError(err)
		f.Equal(uint64(len(want)), ref.Rows, name)
		f.unchangedSince(s)

		s = f.commit(table.Change{SetDeletion: map[table.FragmentID]*table.DeletionRef{s.Fragments[0].ID: &ref}})
		f.Equal(uint64(len(want)), s.Fragments[0].DeletedRows(), name)
		f.holdsDeletions(s, s.Fragments[0], want)
		gone := make([]int64, len(want))
		for i, offset := range want {
			gone[i] = int64(offset)
		}
		f.hasRows(s, without(numbers(0, rows), gone...))
	}
}

func deletionsAreANewObjectAtEveryWrite(t *testing.T, cfg Config) {
	f := newFixture(t, cfg, 10)
	s, before := f.latest(), f.objects()
	paths := map[string]bool{}
	for range 3 {
		ref, err := f.engine.WriteDeletions(f.ctx, s.Fragments[0].ID, s.Version, offsets(1, 2))
		f.NoError(err)
		paths[ref.Path] = true
		size, err := f.engine.Stat(f.ctx, table.Object{Kind: table.ObjectDeletion, Path: ref.Path})
		f.NoError(err)
		f.NotZero(size)
	}
	f.Len(paths, 3)
	if before != nil {
		f.Len(f.objects(), len(before)+3)
	}
	for path := range paths {
		f.NoError(f.engine.Delete(f.ctx, table.Object{Kind: table.ObjectDeletion, Path: path}))
	}
	f.Equal(before, f.objects())
}

func deletionsBeyondTheFragmentSRowsAreCorrupt(t *testing.T, cfg Config) {
	f := newFixture(t, cfg, 10)
	s := f.latest()
	frag := s.Fragments[0]
	ref, err := f.engine.WriteDeletions(f.ctx, frag.ID, s.Version, offsets(3, 10))
	f.NoError(err)
	frag.Deletion = &ref
	_, err = f.engine.ReadDeletions(f.ctx, s, frag)
	f.ErrorIs(err, table.ErrCorrupt)
}

func deletionsThatAreNotAsManyAsRecordedAreCorrupt(t *testing.T, cfg Config) {
	f := newFixture(t, cfg, 10)
	s := f.latest()
	frag := s.Fragments[0]
	for _, rows := range []uint64{1, 3} {
		ref, err := f.engine.WriteDeletions(f.ctx, frag.ID, s.Version, offsets(3, 4))
		f.NoError(err)
		ref.Rows = rows
		frag.Deletion = &ref
		_, err = f.engine.ReadDeletions(f.ctx, s, frag)
		f.ErrorIs(err, table.ErrCorrupt)
	}
}

func deletionsWhoseObjectIsGoneAreAnError(t *testing.T, cfg Config) {
	f := newFixture(t, cfg, 10)
	s := f.latest()
	frag := s.Fragments[0]
	ref, err := f.engine.WriteDeletions(f.ctx, frag.ID, s.Version, offsets(3))
	f.NoError(err)
	f.NoError(f.engine.Delete(f.ctx, table.Object{Kind: table.ObjectDeletion, Path: ref.Path}))
	frag.Deletion = &ref
	_, err = f.engine.ReadDeletions(f.ctx, s, frag)
	f.Error(err)
}

func (f *fixture) holdsDeletions(s *table.Snapshot, frag table.Fragment, want []uint32) {
	f.t.Helper()
	deleted, err := f.engine.ReadDeletions(f.ctx, s, frag)
	f.NoError(err)
	f.Equal(uint64(len(want)), deleted.Cardinality())
	f.Equal(want, slices.Collect(deleted.All()), "in ascending order")
	for _, offset := range want {
		f.True(deleted.Contains(offset))
	}
	for offset := range uint32(frag.PhysicalRows) {
		if deleted.Contains(offset) {
			f.Contains(want, offset)
		}
	}
}
