package enginetest

import (
	"context"
	"math"
	"testing"

	"github.com/rehome-db/rehome/table"
	"github.com/rehome-db/rehome/table/txn"
)

func testLoad(t *testing.T, cfg Config) {
	cases{
		{"a new table is empty", loadANewTableIsEmpty},
		{"a snapshot describes the table", loadASnapshotDescribesTheTable},
		{"every version can be loaded, and zero is the latest", loadEveryVersionCanBeLoadedAndZeroIsTheLatest},
		{"a version that does not exist is not found", loadAVersionThatDoesNotExistIsNotFound},
		{"a place that holds no table is not a table", loadAPlaceThatHoldsNoTableIsNotATable},
		{"a snapshot never changes", loadASnapshotNeverChanges},
		{"a cancelled context ends a load", loadACancelledContextEndsALoad},
	}.run(t, cfg)
}

func loadANewTableIsEmpty(t *testing.T, cfg Config) {
	f := newFixture(t, cfg)
	s := f.latest()
	f.Empty(s.Fragments)
	f.Zero(s.NextFragmentID)
	f.hasRows(s, nil)
}

func loadASnapshotDescribesTheTable(t *testing.T, cfg Config) {
	f := newFixture(t, cfg, 10, 20)
	s := f.latest()
	f.NotEmpty(s.Table)
	f.NotZero(s.Timestamp)
	f.Len(s.Schema.Fields, len(cfg.Schema.Fields))
	for i, want := range cfg.Schema.Fields {
		got := s.Schema.Fields[i]
		f.Equal(want.Name, got.Name)
		f.Equal(want.Type.Fingerprint(), got.Type.Fingerprint(), "type of column %s", want.Name)
		f.Equal(want.Nullable, got.Nullable, "nullability of column %s", want.Name)
	}
	f.Len(s.Fragments, 2)
	for i, rows := range []uint64{10, 20} {
		frag := s.Fragments[i]
		f.Equal(rows, frag.PhysicalRows)
		f.Nil(frag.Deletion)
		f.Less(frag.ID, s.NextFragmentID)
		var stored []int32
		for _, file := range frag.Files {
			f.NotEmpty(file.Path)
			stored = append(stored, file.Fields...)
		}
		for _, field := range s.Schema.Fields {
			f.Contains(stored, field.ID, "some file of fragment %d must hold column %s", frag.ID, field.Name)
		}
	}
	f.NotEqual(s.Fragments[0].ID, s.Fragments[1].ID)
}

func loadEveryVersionCanBeLoadedAndZeroIsTheLatest(t *testing.T, cfg Config) {
	f := newFixture(t, cfg)
	seen := []string{describe(f.latest())}
	first := f.latest().Version
	f.GreaterOrEqual(first, uint64(1))
	for range 3 {
		f.add(5)
		seen = append(seen, describe(f.latest()))
	}
	f.Equal(first+3, f.latest().Version, "each commit is one version")
	for i, want := range seen {
		s, err := f.engine.Load(f.ctx, first+uint64(i))
		f.NoError(err)
		f.Equal(first+uint64(i), s.Version)
		f.Equal(want, describe(s))
	}
}

func loadAVersionThatDoesNotExistIsNotFound(t *testing.T, cfg Config) {
	f := newFixture(t, cfg, 5)
	for _, v := range []uint64{f.latest().Version + 1, 1 << 40, math.MaxUint64} {
		s, err := f.engine.Load(f.ctx, v)
		f.ErrorIs(err, table.ErrNotFound)
		f.Nil(s)
	}
}

func loadAPlaceThatHoldsNoTableIsNotATable(t *testing.T, cfg Config) {
	if cfg.OpenNothing == nil {
		t.Skip("Config.OpenNothing is not set")
	}
	f := newFixture(t, cfg)
	f.ErrorIs(cfg.OpenNothing(t), table.ErrNotTable)
}

func loadASnapshotNeverChanges(t *testing.T, cfg Config) {
	f := newFixture(t, cfg, 10, 10)
	old := f.latest()
	before := describe(old)
	f.delete(table.NewRowAddr(old.Fragments[0].ID, 3))
	f.add(10)
	s := f.latest()
	f.commit(table.Change{
		Remove: []table.FragmentID{s.Fragments[0].ID, s.Fragments[1].ID},
		Add:    place(s, f.write(numbers(100, 5), 5, table.WriteOptions{}).Fragments),
	})
	f.Equal(before, describe(old))
	f.hasRows(old, numbers(0, 20))
	again, err := f.engine.Load(f.ctx, old.Version)
	f.NoError(err)
	f.Equal(before, describe(again))
	f.hasRows(again, numbers(0, 20))
}

func loadACancelledContextEndsALoad(t *testing.T, cfg Config) {
	f := newFixture(t, cfg, 5)
	ctx, cancel := context.WithCancel(f.ctx)
	cancel()
	_, err := f.engine.Load(ctx, 0)
	f.ErrorIs(err, context.Canceled)
}

func testTransactions(t *testing.T, cfg Config) {
	cases{
		{"come oldest first and without gaps", transactionsComeOldestFirstAndWithoutGaps},
		{"say what was done", transactionsSayWhatWasDone},
		{"survive package txn, the codec for engines without one", transactionsSurvivePackageTxnTheCodecForEnginesWithoutOne},
		{"keep what the committer said", transactionsKeepWhatTheCommitterSaid},
		{"of versions that do not exist are an error", transactionsOfVersionsThatDoNotExistAreAnError},
	}.run(t, cfg)
}

func transactionsComeOldestFirstAndWithoutGaps(t *testing.T, cfg Config) {
	f := newFixture(t, cfg)
	start := f.latest().Version
	frag := f.add(10)
	f.delete(table.NewRowAddr(frag.ID, 1))
	f.add(10)
	end := f.latest().Version
	f.Equal(start+3, end)
	for after := start; after <= end; after++ {
		for upTo := after; upTo <= end; upTo++ {
			list, err := f.engine.TransactionsSince(f.ctx, after, upTo)
			f.NoError(err)
			f.Len(list, int(upTo-after))
			for i, tx := range list {
				f.Equal(after+uint64(i)+1, tx.Version)
			}
		}
		toLatest, err := f.engine.TransactionsSince(f.ctx, after, 0)
		f.NoError(err)
		f.Len(toLatest, int(end-after))
	}
}

func transactionsSayWhatWasDone(t *testing.T, cfg Config) {
	f := newFixture(t, cfg)
	start := f.latest().Version
	frag := f.add(10)
	f.delete(table.NewRowAddr(frag.ID, 1), table.NewRowAddr(frag.ID, 7))
	list, err := f.engine.TransactionsSince(f.ctx, start, 0)
	f.NoError(err)
	f.Len(list, 2)

	added, ok := list[0].Operation.(table.Append)
	f.True(ok, "an append is %s", list[0].Operation.Kind())
	f.Len(added.Fragments, 1)
	f.Equal(uint64(10), added.Fragments[0].PhysicalRows)

	// An engine may see its own delete as an update that adds nothing.
	var updated []table.Fragment
	switch op := list[1].Operation.(type) {
	case table.Delete:
		f.Empty(op.Removed)
		updated = op.Updated
	case table.Update:
		f.Empty(op.Removed)
		f.Empty(op.New)
		updated = op.Updated
	default:
		f.Fail("wrong operation", "a delete is %s", op.Kind())
	}
	f.Len(updated, 1)
	f.True(updated[0].Same(f.latest().Fragments[0]), "an updated fragment is as the transaction left it")
}

func transactionsSurvivePackageTxnTheCodecForEnginesWithoutOne(t *testing.T, cfg Config) {
	f := newFixture(t, cfg)
	start := f.latest().Version
	frag := f.add(10)
	f.delete(table.NewRowAddr(frag.ID, 1), table.NewRowAddr(frag.ID, 7))
	list, err := f.engine.TransactionsSince(f.ctx, start, 0)
	f.NoError(err)
	f.Len(list, 2)
	for _, want := range list {
		data, err := txn.Marshal(want)
		f.NoError(err)
		got, err := txn.Unmarshal(data)
		f.NoError(err)
		f.Equal(want.Operation, got.Operation)
		f.Equal(want.ID, got.ID)
		f.Equal(want.ReadVersion, got.ReadVersion)
		f.Equal(want.Version, got.Version)
	}
}

func transactionsKeepWhatTheCommitterSaid(t *testing.T, cfg Config) {
	f := newFixture(t, cfg, 10, 10)
	readVersion := f.latest().Version
	f.add(10)
	s := f.latest()
	p := proposal(s, readVersion, table.Change{
		Remove: fragmentIDs(s)[:2],
		Add:    place(s, f.write(numbers(0, 20), 20, table.WriteOptions{}).Fragments),
	})
	p.Transaction.Properties = map[string]string{"reason": "small fragments"}
	next, err := f.engine.Commit(f.ctx, p)
	f.NoError(err)
	list, err := f.engine.TransactionsSince(f.ctx, s.Version, 0)
	f.NoError(err)
	f.Len(list, 1)
	f.Equal(p.Transaction.ID, list[0].ID)
	f.Equal(readVersion, list[0].ReadVersion)
	f.Equal(p.Transaction.Properties, list[0].Properties)
	f.Equal(next.Version, list[0].Version)
	op, ok := list[0].Operation.(table.Rewrite)
	f.True(ok, "a rewrite is %s", list[0].Operation.Kind())
	f.Len(op.Groups, 1)
	f.Len(op.Groups[0].Old, 2)
	f.Len(op.Groups[0].New, 1)
	for i, old := range op.Groups[0].Old {
		f.True(old.Same(s.Fragments[i]), "old fragments are as the task read them")
	}
	f.True(op.Groups[0].New[0].Same(next.Fragments[1]), "new fragments are as published")
}

func transactionsOfVersionsThatDoNotExistAreAnError(t *testing.T, cfg Config) {
	f := newFixture(t, cfg, 5)
	latest := f.latest().Version
	_, err := f.engine.TransactionsSince(f.ctx, latest-1, latest+3)
	f.ErrorIs(err, table.ErrNotFound)
}
