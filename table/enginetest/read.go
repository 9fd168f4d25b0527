package enginetest

import (
	"context"
	"slices"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/rehome-db/rehome/table"
)

func testRows(t *testing.T, cfg Config) {
	cases{
		{"come in the order of the fragments asked for", rowsComeInTheOrderOfTheFragmentsAskedFor},
		{"leave deleted rows out", rowsLeaveDeletedRowsOut},
		{"have addresses that count deleted rows", rowsHaveAddressesThatCountDeletedRows},
		{"have no addresses unless asked for", rowsHaveNoAddressesUnlessAskedFor},
		{"have the columns asked for in that order", rowsHaveTheColumnsAskedForInThatOrder},
		{"come in schema order when no columns are named", rowsComeInSchemaOrderWhenNoColumnsAreNamed},
		{"come in batches no larger than asked for", rowsComeInBatchesNoLargerThanAskedFor},
		{"come in batches of at most 8192 when no size is asked for", rowsComeInBatchesOfAtMost8192WhenNoSizeIsAskedFor},
		{"stay valid when retained", rowsStayValidWhenRetained},
		{"can be left early and read again", rowsCanBeLeftEarlyAndReadAgain},
		{"end with the first error", rowsEndWithTheFirstError},
		{"end when the context is cancelled", rowsEndWhenTheContextIsCancelled},
	}.run(t, cfg)
}

func rowsComeInTheOrderOfTheFragmentsAskedFor(t *testing.T, cfg Config) {
	f := newFixture(t, cfg, 4, 3, 5)
	s := f.latest()
	f.hasRows(s, numbers(0, 12))
	ids := fragmentIDs(s)
	got, _ := f.read(s, []table.FragmentID{ids[2], ids[0]}, table.ReadOptions{})
	f.Equal(f.texts(append(numbers(7, 5), numbers(0, 4)...)), got)
	got, _ = f.read(s, nil, table.ReadOptions{})
	f.Empty(got)
}

func rowsLeaveDeletedRowsOut(t *testing.T, cfg Config) {
	f := newFixture(t, cfg, 10, 10)
	s := f.latest()
	a, b := s.Fragments[0].ID, s.Fragments[1].ID
	f.delete(table.NewRowAddr(a, 0), table.NewRowAddr(a, 4), table.NewRowAddr(b, 9))
	f.hasRows(f.latest(), without(numbers(0, 20), 0, 4, 19))
	f.delete(table.NewRowAddr(a, 4), table.NewRowAddr(a, 5))
	f.hasRows(f.latest(), without(numbers(0, 20), 0, 4, 5, 19))
	f.hasRows(s, numbers(0, 20))
}

func rowsHaveAddressesThatCountDeletedRows(t *testing.T, cfg Config) {
	f := newFixture(t, cfg, 6, 6)
	a, b := f.latest().Fragments[0].ID, f.latest().Fragments[1].ID
	f.delete(table.NewRowAddr(a, 0), table.NewRowAddr(a, 3), table.NewRowAddr(b, 1))
	var want []table.RowAddr
	for _, offset := range []uint32{0, 2, 3, 4, 5} {
		want = append(want, table.NewRowAddr(b, offset))
	}
	for _, offset := range []uint32{1, 2, 4, 5} {
		want = append(want, table.NewRowAddr(a, offset))
	}
	for _, batchRows := range []int{1, 2, 100} {
		_, addrs := f.read(f.latest(), []table.FragmentID{b, a}, table.ReadOptions{WithAddrs: true, BatchRows: batchRows})
		f.Equal(want, addrs)
	}
	for batch, err := range f.engine.Rows(f.ctx, f.latest(), []table.FragmentID{a}, table.ReadOptions{WithAddrs: true}) {
		f.NoError(err)
		f.Len(batch.Addrs, int(batch.Record.NumRows()), "one address a row")
	}
}

func rowsHaveNoAddressesUnlessAskedFor(t *testing.T, cfg Config) {
	f := newFixture(t, cfg, 6)
	for batch, err := range f.engine.Rows(f.ctx, f.latest(), fragmentIDs(f.latest()), table.ReadOptions{}) {
		f.NoError(err)
		f.Nil(batch.Addrs)
	}
}

func rowsHaveTheColumnsAskedForInThatOrder(t *testing.T, cfg Config) {
	f := newFixture(t, cfg, 20)
	s := f.latest()
	var all []string
	for _, field := range s.Schema.Fields {
		all = append(all, field.Name)
	}
	backwards := slices.Clone(all)
	slices.Reverse(backwards)
	for _, want := range [][]string{backwards, {all[len(all)-1]}, {all[0]}} {
		for batch, err := range f.engine.Rows(f.ctx, s, fragmentIDs(s), table.ReadOptions{Columns: want}) {
			f.NoError(err)
			whole := makeRecord(f.t, cfg.Schema, memory.DefaultAllocator, numbers(0, 20))
			for i, name := range want {
				f.Equal(name, batch.Record.ColumnName(i))
				at := whole.Schema().FieldIndices(name)[0]
				for row := range 20 {
					f.Equal(whole.Column(at).ValueStr(row), batch.Record.Column(i).ValueStr(row))
				}
			}
			f.Len(batch.Record.Columns(), len(want))
		}
	}
}

func rowsComeInSchemaOrderWhenNoColumnsAreNamed(t *testing.T, cfg Config) {
	f := newFixture(t, cfg, 3)
	for batch, err := range f.engine.Rows(f.ctx, f.latest(), fragmentIDs(f.latest()), table.ReadOptions{}) {
		f.NoError(err)
		for i, field := range f.latest().Schema.Fields {
			f.Equal(field.Name, batch.Record.ColumnName(i))
			f.Equal(field.Type.Fingerprint(), batch.Record.Column(i).DataType().Fingerprint())
		}
	}
}

func rowsComeInBatchesNoLargerThanAskedFor(t *testing.T, cfg Config) {
	f := newFixture(t, cfg, 300, 200)
	f.delete(table.NewRowAddr(f.latest().Fragments[0].ID, 50))
	s := f.latest()
	for _, limit := range []int{1, 7, 64, 10000} {
		var rows []string
		for batch, err := range f.engine.Rows(f.ctx, s, fragmentIDs(s), table.ReadOptions{BatchRows: limit}) {
			f.NoError(err)
			f.LessOrEqual(batch.Record.NumRows(), int64(limit))
			rows = append(rows, rowTexts(batch.Record)...)
		}
		f.Equal(f.texts(without(numbers(0, 500), 50)), rows)
	}
}

func rowsComeInBatchesOfAtMost8192WhenNoSizeIsAskedFor(t *testing.T, cfg Config) {
	f := newFixture(t, cfg, 20000)
	var n int64
	for batch, err := range f.engine.Rows(f.ctx, f.latest(), fragmentIDs(f.latest()), table.ReadOptions{}) {
		f.NoError(err)
		f.LessOrEqual(batch.Record.NumRows(), int64(8192))
		n += batch.Record.NumRows()
	}
	f.Equal(int64(20000), n)
}

func rowsStayValidWhenRetained(t *testing.T, cfg Config) {
	f := newFixture(t, cfg, 100)
	var batches []table.Batch
	for batch, err := range f.engine.Rows(f.ctx, f.latest(), fragmentIDs(f.latest()), table.ReadOptions{BatchRows: 10}) {
		f.NoError(err)
		batch.Record.Retain()
		batches = append(batches, batch)
	}
	var rows []string
	for _, batch := range batches {
		rows = append(rows, rowTexts(batch.Record)...)
		batch.Record.Release()
	}
	f.Equal(f.texts(numbers(0, 100)), rows)
}

func rowsCanBeLeftEarlyAndReadAgain(t *testing.T, cfg Config) {
	f := newFixture(t, cfg, 100)
	s := f.latest()
	rows := f.engine.Rows(f.ctx, s, fragmentIDs(s), table.ReadOptions{BatchRows: 10})
	for range 3 {
		for batch, err := range rows {
			f.NoError(err)
			f.Equal(f.texts(numbers(0, int(batch.Record.NumRows()))), rowTexts(batch.Record))
			break
		}
	}
	f.hasRows(s, numbers(0, 100))
}

func rowsEndWithTheFirstError(t *testing.T, cfg Config) {
	f := newFixture(t, cfg, 10, 10)
	s := f.latest()
	missing := s.NextFragmentID + 7
	for name, read := range map[string]struct {
		ids  []table.FragmentID
		opts table.ReadOptions
	}{
		"unknown fragment": {ids: []table.FragmentID{s.Fragments[0].ID, missing, s.Fragments[1].ID}},
		"unknown column":   {ids: fragmentIDs(s), opts: table.ReadOptions{Columns: []string{"no such column"}}},
	} {
		var failed error
		for _, err := range f.engine.Rows(f.ctx, s, read.ids, read.opts) {
			f.NoError(failed, "%s: a batch after an error", name)
			failed = err
		}
		f.Error(failed, name)
	}
}

func rowsEndWhenTheContextIsCancelled(t *testing.T, cfg Config) {
	f := newFixture(t, cfg, 500, 500)
	s := f.latest()
	ctx, cancel := context.WithCancel(f.ctx)
	defer cancel()
	var batches int
	var failed error
	for _, err := range f.engine.Rows(ctx, s, fragmentIDs(s), table.ReadOptions{BatchRows: 1}) {
		f.NoError(failed, "a batch after an error")
		failed = err
		batches++
		cancel()
	}
	f.ErrorIs(failed, context.Canceled)
	f.Less(batches, 1000)
}
