package lance_test

import (
	"context"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/rehome-db/rehome/compaction"
	"github.com/rehome-db/rehome/fri"
	"github.com/rehome-db/rehome/lance"
	"github.com/rehome-db/rehome/lance/store"
	"github.com/rehome-db/rehome/remap"
	"github.com/rehome-db/rehome/table"
)

// outside is an index that somebody keeps beside the table: where each id is, in
// the version that it was last brought to, and of which fragments it has all rows.
type outside struct {
	addrs   []table.RowAddr
	ids     []int64
	covered []table.FragmentID
	counts  remap.Counts // of all visits
}

// where returns the address of every live row by its id.
func where(t require.TestingT, e *lance.Engine, s *table.Snapshot) map[int64]table.RowAddr {
	out := map[int64]table.RowAddr{}
	for b, err := range e.Rows(context.Background(), s, fragmentIDs(s), table.ReadOptions{Columns: []string{"id"}, WithAddrs: true}) {
		require.NoError(t, err)
		for i, a := range b.Addrs {
			out[b.Record.Column(0).(*array.Int64).Value(i)] = a
		}
	}
	return out
}

// catchUp brings the index to the table's latest version, as docs/remap.md says.
func (o *outside) catchUp(t require.TestingT, e *lance.Engine) *table.Snapshot {
	ctx := context.Background()
	s, err := e.Load(ctx, 0)
	require.NoError(t, err)
	h, err := fri.Load(ctx, e, s)
	require.NoError(t, err)
	r := remap.New(h, remap.Options{Current: s})
	deleted, counts, err := remap.SliceMask(r, o.addrs)
	require.NoError(t, err)
	o.counts.Add(counts)
	n := 0
	for i := range o.addrs {
		if !deleted.Get(i) {
			o.addrs[n], o.ids[n] = o.addrs[i], o.ids[i]
			n++
		}
	}
	o.addrs, o.ids = o.addrs[:n], o.ids[:n]
	c, err := r.Coverage(o.covered)
	require.NoError(t, err)
	o.covered = c.Fragments
	return s
}

// TestAnIndexOutsideTheTableFollowsItsRows: whatever is appended, deleted and
// compacted between two visits, the addresses that it kept are those of its rows.
func TestAnIndexOutsideTheTableFollowsItsRows(t *testing.T) {
	ctx := context.Background()
	var all remap.Counts
	defer func() {
		require.Positive(t, all.Moved)
		require.Positive(t, all.Deleted)
		require.Positive(t, all.Unaffected)
	}()
	rapid.Check(t, func(t *rapid.T) {
		e, err := lance.CreateStore(ctx, store.NewMem(), people, lance.CreateOptions{}, lance.Options{})
		require.NoError(t, err)
		defer e.Close()
		next := int64(0)
		grow := func() {
			n := rapid.Int64Range(1, 40).Draw(t, "rows")
			_, err := e.Append(ctx, rows(next, n), table.WriteOptions{})
			require.NoError(t, err)
			next += n
		}
		for range 3 {
			grow()
		}
		s, err := e.Load(ctx, 0)
		require.NoError(t, err)
		o := &outside{covered: fragmentIDs(s)}
		for id, a := range where(t, e, s) {
			o.addrs, o.ids = append(o.addrs, a), append(o.ids, id)
		}
		known := next // the index holds ids below

		for range rapid.IntRange(1, 3).Draw(t, "visits") {
			for range rapid.IntRange(1, 4).Draw(t, "changes") {
				switch rapid.IntRange(0, 3).Draw(t, "change") {
				case 0:
					grow()
				case 1:
					s, err := e.Load(ctx, 0)
					require.NoError(t, err)
					one := rapid.Int64Range(0, 4).Draw(t, "rest")
					var dead []table.RowAddr
					for id, a := range where(t, e, s) {
						if id%5 == one && a.Offset() > 0 { // no fragment goes as a whole
							dead = append(dead, a)
						}
					}
					if len(dead) > 0 {
						_, err = e.DeleteRows(ctx, dead...)
						require.NoError(t, err)
					}
				default:
					_, err := compaction.Compact(ctx, e, compaction.Options{FRI: compaction.FRIAlways, TargetRows: 64})
					require.NoError(t, err)
				}
			}
			s := o.catchUp(t, e)
			now := where(t, e, s)
			at := map[int64]table.RowAddr{}
			for i, id := range o.ids {
				at[id] = o.addrs[i]
			}
			for id, a := range now {
				if id < known {
					require.Equal(t, a, at[id], "id %d", id)
				}
				// Where coverage is claimed, no row is missing.
				for _, f := range o.covered {
					if a.Fragment() == f {
						require.Contains(t, at, id)
					}
				}
			}
		}
		all.Add(o.counts)
	})
}
