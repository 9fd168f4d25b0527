package enginetest

import (
	"testing"

	"github.com/rehome-db/rehome/table"
)

func testObjects(t *testing.T, cfg Config) {
	t.Run("that do not exist are not found", func(t *testing.T) {
		f := newFixture(t, cfg, 10)
		gone := f.write(numbers(0, 5), 5, table.WriteOptions{}).Objects[0]
		f.NoError(f.engine.Delete(f.ctx, gone))
		_, err := f.engine.Stat(f.ctx, gone)
		f.ErrorIs(err, table.ErrNotFound)
	})

	t.Run("can be deleted twice", func(t *testing.T) {
		f := newFixture(t, cfg, 10)
		out := f.write(numbers(0, 50), 10, table.WriteOptions{MaxRows: 25})
		f.NoError(f.engine.Delete(f.ctx, out.Objects[0]))
		f.NoError(f.engine.Delete(f.ctx, out.Objects[0]))
		size, err := f.engine.Stat(f.ctx, out.Objects[1])
		f.NoError(err, "the others stay")
		f.Equal(out.Objects[1].Bytes, size)
		f.hasRows(f.latest(), numbers(0, 10))
	})

	t.Run("of a version can be found by its references", func(t *testing.T) {
		f := newFixture(t, cfg, 10, 10)
		f.delete(table.NewRowAddr(f.latest().Fragments[0].ID, 1))
		for _, frag := range f.latest().Fragments {
			for _, file := range frag.Files {
				size, err := f.engine.Stat(f.ctx, table.Object{Kind: table.ObjectData, Path: file.Path})
				f.NoError(err)
				if file.Bytes != 0 {
					f.Equal(file.Bytes, size)
				}
			}
			if frag.Deletion != nil {
				_, err := f.engine.Stat(f.ctx, table.Object{Kind: table.ObjectDeletion, Path: frag.Deletion.Path})
				f.NoError(err)
			}
		}
	})
}

func testReserve(t *testing.T, cfg Config) {
	t.Run("takes ids and leaves the rest alone", func(t *testing.T) {
		f := newFixture(t, cfg, 10)
		before := f.latest()
		after, err := f.engine.ReserveFragments(f.ctx, 5)
		f.NoError(err)
		f.Equal(before.Version+1, after.Version)
		f.Equal(before.NextFragmentID+5, after.NextFragmentID)
		f.Equal(describe(f.latest()), describe(after))
		f.True(after.Fragments[0].Same(before.Fragments[0]))
		f.hasRows(after, numbers(0, 10))
	})

	t.Run("is seen by others", func(t *testing.T) {
		f := newFixture(t, cfg, 10)
		before := f.latest()
		_, err := f.engine.ReserveFragments(f.ctx, 5)
		f.NoError(err)
		list, err := f.engine.TransactionsSince(f.ctx, before.Version, 0)
		f.NoError(err)
		f.Len(list, 1)
		f.Equal(table.ReserveFragments{Count: 5}, list[0].Operation)
	})

	t.Run("is honoured by later commits", func(t *testing.T) {
		f := newFixture(t, cfg)
		after, err := f.engine.ReserveFragments(f.ctx, 3)
		f.NoError(err)
		f.Equal(after.NextFragmentID, f.add(10).ID)
		again, err := f.engine.ReserveFragments(f.ctx, 2)
		f.NoError(err)
		f.Equal(after.NextFragmentID+3, again.NextFragmentID)
	})

	t.Run("can be part of another commit", func(t *testing.T) {
		f := newFixture(t, cfg, 10)
		s := f.latest()
		next := f.commit(table.Change{
			Add:     place(s, f.write(numbers(10, 10), 10, table.WriteOptions{}).Fragments),
			Reserve: 4,
		})
		f.Equal(s.NextFragmentID+5, next.NextFragmentID)
		f.hasRows(next, numbers(0, 20))
	})
}
