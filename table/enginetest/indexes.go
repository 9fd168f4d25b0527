package enginetest

import (
	"testing"

	"github.com/rehome-db/rehome/table"
)

func testIndexes(t *testing.T, cfg Config) {
	cases{
		{"are described", indexesAreDescribed},
		{"are left alone by a commit that does not name them", indexesAreLeftAloneByACommitThatDoesNotNameThem},
		{"get the coverage that a commit sets", indexesGetTheCoverageThatACommitSets},
		{"that cover nothing are not those with unknown coverage", indexesThatCoverNothingAreNotThoseWithUnknownCoverage},
		{"can be dropped", indexesCanBeDropped},
	}.run(t, cfg)
}

// withIndexes makes a table of two fragments with one index that covers both
// and one whose coverage nobody knows.
func withIndexes(t *testing.T, cfg Config) (f *fixture, known, unknown table.UUID) {
	f = newFixture(t, cfg, 10, 10)
	indexer, ok := f.ops.(Indexer)
	if !ok {
		t.Skip("Ops does not implement Indexer")
	}
	s := f.latest()
	key := []int32{s.Schema.Fields[0].ID}
	known, err := indexer.AddIndex(f.ctx, table.IndexMeta{Name: "known", Fields: key, DatasetVersion: s.Version, Coverage: fragmentIDs(s), CoverageKnown: true})
	f.NoError(err)
	unknown, err = indexer.AddIndex(f.ctx, table.IndexMeta{Name: "unknown", Fields: key, DatasetVersion: s.Version})
	f.NoError(err)
	f.NotEqual(known, unknown)
	return f, known, unknown
}

func indexesAreDescribed(t *testing.T, cfg Config) {
	f, known, unknown := withIndexes(t, cfg)
	s := f.latest()
	a, b := f.index(s, known), f.index(s, unknown)
	f.Equal("known", a.Name)
	f.Equal([]int32{s.Schema.Fields[0].ID}, a.Fields)
	f.True(a.CoverageKnown)
	f.Equal(fragmentIDs(s), a.Coverage)
	f.True(a.Covers(s.Fragments[1].ID))
	f.False(b.CoverageKnown)
	f.False(b.Covers(s.Fragments[1].ID))
}

func indexesAreLeftAloneByACommitThatDoesNotNameThem(t *testing.T, cfg Config) {
	f, known, unknown := withIndexes(t, cfg)
	s := f.latest()
	next := f.commit(table.Change{
		Remove: fragmentIDs(s),
		Add:    place(s, f.write(numbers(0, 20), 20, table.WriteOptions{}).Fragments),
	})
	for _, id := range []table.UUID{known, unknown} {
		before, after := f.index(s, id), f.index(next, id)
		f.Equal(before.Coverage, after.Coverage, "coverage may name fragments that are gone")
		f.Equal(before.CoverageKnown, after.CoverageKnown)
		f.Equal(before.DatasetVersion, after.DatasetVersion)
	}
}

func indexesGetTheCoverageThatACommitSets(t *testing.T, cfg Config) {
	f, known, unknown := withIndexes(t, cfg)
	s := f.latest()
	before, ids := describe(s), fragmentIDs(s)
	next := f.commit(table.Change{SetCoverage: map[table.UUID][]table.FragmentID{known: ids[1:]}})
	f.Equal(ids[1:], f.index(next, known).Coverage)
	f.False(f.index(next, unknown).CoverageKnown)
	f.Equal(before, describe(s), "a snapshot never changes")

	next = f.commit(table.Change{SetCoverage: map[table.UUID][]table.FragmentID{unknown: ids}})
	f.True(f.index(next, unknown).CoverageKnown)
	f.Equal(ids, f.index(next, unknown).Coverage)
}

func indexesThatCoverNothingAreNotThoseWithUnknownCoverage(t *testing.T, cfg Config) {
	for _, none := range [][]table.FragmentID{nil, {}} {
		f, known, unknown := withIndexes(t, cfg)
		f.commit(table.Change{SetCoverage: map[table.UUID][]table.FragmentID{known: none}})
		next := f.latest()
		f.True(f.index(next, known).CoverageKnown)
		f.Empty(f.index(next, known).Coverage)
		f.False(f.index(next, unknown).CoverageKnown)
	}
}

func indexesCanBeDropped(t *testing.T, cfg Config) {
	f, known, unknown := withIndexes(t, cfg)
	next := f.commit(table.Change{DropIndexes: []table.UUID{unknown}})
	f.index(next, known)
	for _, m := range next.Indexes {
		f.NotEqual(unknown, m.UUID)
	}
}

func (f *fixture) index(s *table.Snapshot, id table.UUID) table.IndexMeta {
	f.t.Helper()
	for _, m := range s.Indexes {
		if m.UUID == id {
			return m
		}
	}
	f.Failf("index is missing", "version %d has no index segment %s", s.Version, id)
	return table.IndexMeta{}
}

func testReuseIndex(t *testing.T, cfg Config) {
	t.Run("of a table without one is nil", func(t *testing.T) {
		f := newFixture(t, cfg, 10)
		f.Nil(f.latest().Reuse)
		content, err := f.engine.ReuseIndex(f.ctx, f.latest())
		f.NoError(err)
		f.Nil(content)
	})

	t.Run("is carried byte by byte", func(t *testing.T) {
		for _, size := range []int{100, 300 << 10} {
			f := newFixture(t, cfg, 10, 10)
			s := f.latest()
			added := place(s, f.write(numbers(0, 20), 20, table.WriteOptions{}).Fragments)
			want := cfg.ReuseIndex(t, size)
			s = f.commit(table.Change{
				Remove: fragmentIDs(s),
				Add:    added,
				Reuse:  &table.ReuseIndexUpdate{Content: want, Coverage: []table.FragmentID{added[0].ID}},
			})
			f.hasReuseIndex(s, want)
			f.hasReuseIndex(f.latest(), want)
			f.hasRows(s, numbers(0, 20))
		}
	})

	t.Run("stays until it is replaced", func(t *testing.T) {
		f := newFixture(t, cfg, 10)
		f.Nil(f.latest().Reuse)
		first, second := cfg.ReuseIndex(t, 300<<10), cfg.ReuseIndex(t, 200)
		s1 := f.commit(table.Change{Reuse: &table.ReuseIndexUpdate{Content: first}})
		f.add(10)
		f.delete(table.NewRowAddr(f.latest().Fragments[0].ID, 1))
		f.hasReuseIndex(f.latest(), first)
		s2 := f.commit(table.Change{Reuse: &table.ReuseIndexUpdate{Content: second}})
		f.hasReuseIndex(s2, second)
		f.hasReuseIndex(s1, first)
	})

	t.Run("can be dropped", func(t *testing.T) {
		f := newFixture(t, cfg, 10)
		for _, size := range []int{100, 300 << 10} {
			want := cfg.ReuseIndex(t, size)
			with := f.commit(table.Change{Reuse: &table.ReuseIndexUpdate{Content: want}})
			p := proposal(with, with.Version, table.Change{DropReuse: true})
			p.Transaction.Operation = table.CreateIndex{}
			without, err := f.engine.Commit(f.ctx, p)
			f.NoError(err)
			f.hasNoReuseIndex(without)
			f.hasNoReuseIndex(f.latest())
			for _, m := range without.Indexes {
				f.False(m.System, "index %s is left of it", m.Name)
			}
			f.hasReuseIndex(with, want)
			f.hasRows(without, numbers(0, 10))
			f.add(1)
			f.nextID--
			f.delete(table.NewRowAddr(f.latest().Fragments[1].ID, 0))
			f.hasNoReuseIndex(f.latest())
		}
	})

	t.Run("that is not there cannot be dropped", func(t *testing.T) {
		f := newFixture(t, cfg, 10)
		base := f.latest()
		err := f.refuses(proposal(base, base.Version, table.Change{DropReuse: true}))
		f.ErrorIs(err, table.ErrNotFound)
	})
}

func (f *fixture) hasNoReuseIndex(s *table.Snapshot) {
	f.t.Helper()
	f.Nil(s.Reuse)
	content, err := f.engine.ReuseIndex(f.ctx, s)
	f.NoError(err)
	f.Nil(content)
}

func (f *fixture) hasReuseIndex(s *table.Snapshot, want []byte) {
	f.t.Helper()
	f.NotNil(s.Reuse)
	f.Equal(uint64(len(want)), s.Reuse.Bytes)
	f.Equal(int32(0), s.Reuse.IndexVersion)
	f.Equal(s.Reuse.External, s.Reuse.Path != "", "an external reuse index has a path")
	got, err := f.engine.ReuseIndex(f.ctx, s)
	f.NoError(err)
	f.Equal(want, got)
	if s.Reuse.External {
		size, err := f.engine.Stat(f.ctx, table.Object{Kind: table.ObjectReuseIndex, Path: s.Reuse.Path})
		f.NoError(err)
		f.GreaterOrEqual(size, s.Reuse.Bytes)
	}
}
