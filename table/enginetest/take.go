package enginetest

import (
	"context"
	"testing"

	"github.com/rehome-db/rehome/table"
)

func testTake(t *testing.T, cfg Config) {
	// deleted makes a table with two fragments, in which rows 1, 2 and 11 are deleted.
	deleted := func(t *testing.T) (*fixture, table.RowTaker, *table.Snapshot) {
		f := newFixture(t, cfg, 10, 10)
		taker, ok := table.As[table.RowTaker](f.engine)
		if !ok {
			t.Skip("the engine does not implement table.RowTaker")
		}
		a, b := f.latest().Fragments[0].ID, f.latest().Fragments[1].ID
		f.delete(table.NewRowAddr(a, 1), table.NewRowAddr(a, 2), table.NewRowAddr(b, 1))
		return f, taker, f.latest()
	}
	take := func(f *fixture, taker table.RowTaker, s *table.Snapshot, addrs []table.RowAddr, columns ...string) (rows []string, got []table.RowAddr) {
		for batch, err := range taker.Take(f.ctx, s, addrs, columns) {
			f.NoError(err)
			f.Len(batch.Addrs, int(batch.Record.NumRows()), "one address a row")
			rows, got = append(rows, rowTexts(batch.Record)...), append(got, batch.Addrs...)
		}
		return rows, got
	}

	t.Run("gives rows by address, deleted ones too", func(t *testing.T) {
		f, taker, s := deleted(t)
		a, b := s.Fragments[0].ID, s.Fragments[1].ID
		for _, want := range [][]int64{nil, {0}, {2}, {19}, {1, 2, 3, 9, 10, 11, 18}, numbers(0, 20)} {
			var addrs []table.RowAddr
			for _, id := range want {
				addr := table.NewRowAddr(a, uint32(id))
				if id >= 10 {
					addr = table.NewRowAddr(b, uint32(id-10))
				}
				addrs = append(addrs, addr)
			}
			rows, got := take(f, taker, s, addrs)
			f.Equal(addrs, got)
			if len(want) > 0 {
				f.Equal(f.texts(want), rows)
			}
		}
		first := s.Schema.Fields[0].Name
		for batch, err := range taker.Take(f.ctx, s, []table.RowAddr{table.NewRowAddr(a, 5)}, []string{first}) {
			f.NoError(err)
			f.EqualValues(1, batch.Record.NumCols())
			f.Equal(first, batch.Record.ColumnName(0))
		}
	})

	t.Run("refuses an address without a row", func(t *testing.T) {
		f, taker, s := deleted(t)
		for _, addr := range []table.RowAddr{table.NewRowAddr(s.Fragments[1].ID, 10), table.NewRowAddr(s.NextFragmentID, 0)} {
			var err error
			for _, err = range taker.Take(f.ctx, s, []table.RowAddr{addr}, nil) {
			}
			f.ErrorIs(err, table.ErrNotFound)
		}
	})

	t.Run("refuses addresses that do not ascend", func(t *testing.T) {
		f, taker, s := deleted(t)
		a := table.NewRowAddr(s.Fragments[0].ID, 3)
		for _, addrs := range [][]table.RowAddr{{a, a}, {a + 1, a}} {
			var err error
			for _, err = range taker.Take(f.ctx, s, addrs, nil) {
			}
			f.Error(err)
		}
	})

	t.Run("heeds its context", func(t *testing.T) {
		f, taker, s := deleted(t)
		ctx, cancel := context.WithCancel(f.ctx)
		cancel()
		var err error
		for _, err = range taker.Take(ctx, s, []table.RowAddr{table.NewRowAddr(s.Fragments[0].ID, 3)}, nil) {
		}
		f.ErrorIs(err, context.Canceled)
	})
}
