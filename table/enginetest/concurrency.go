package enginetest

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/rehome-db/rehome/table"
)

func testConcurrency(t *testing.T, cfg Config) {
	cases{
		{"exactly one of many commits to a version wins", concurrentlyExactlyOneOfManyCommitsToAVersionWins},
		{"writers that try again all get through", concurrentlyWritersThatTryAgainAllGetThrough},
		{"reservations never overlap", concurrentlyReservationsNeverOverlap},
	}.run(t, cfg)
}

func concurrentlyExactlyOneOfManyCommitsToAVersionWins(t *testing.T, cfg Config) {
	f := newFixture(t, cfg, 10)
	for round := range 5 {
		base := f.latest()
		const writers = 6
		var proposals []table.Proposal
		for range writers {
			added := place(base, f.write(numbers(f.nextID, 10), 10, table.WriteOptions{}).Fragments)
			proposals = append(proposals, proposal(base, base.Version, table.Change{Add: added}))
		}
		results := make([]*table.Snapshot, writers)
		errs := make([]error, writers)
		together(writers, func(i int) {
			results[i], errs[i] = f.engine.Commit(f.ctx, proposals[i])
		})
		winner := -1
		for i, err := range errs {
			if err != nil {
				f.ErrorIs(err, table.ErrVersionTaken)
				f.Nil(results[i])
				continue
			}
			f.Equal(-1, winner, "round %d: two writers were told that they made version %d", round, base.Version+1)
			winner = i
		}
		f.NotEqual(-1, winner, "round %d: nobody won", round)
		f.nextID += 10
		f.Equal(base.Version+1, f.latest().Version)
		f.Equal(describe(results[winner]), describe(f.latest()))
		list, err := f.engine.TransactionsSince(f.ctx, base.Version, 0)
		f.NoError(err)
		f.Len(list, 1)
		f.Equal(proposals[winner].Transaction.ID, list[0].ID)
		f.hasRows(f.latest(), numbers(0, int(f.nextID)))
	}
}

func concurrentlyWritersThatTryAgainAllGetThrough(t *testing.T, cfg Config) {
	f := newFixture(t, cfg, 10)
	start := f.latest()
	const writers, commits = 4, 5
	ids := make([][]string, writers)
	errs := make([]error, writers)
	// Readers of an old version see it unchanged all the while.
	stop := make(chan struct{})
	var reader sync.WaitGroup
	var readErr error
	reader.Go(func() {
		for readErr == nil {
			select {
			case <-stop:
				return
			default:
			}
			n := int64(0)
			for batch, err := range f.engine.Rows(f.ctx, start, fragmentIDs(start), table.ReadOptions{}) {
				if readErr = err; err == nil {
					n += batch.Record.NumRows()
				}
			}
			if _, err := f.engine.Load(f.ctx, 0); err != nil {
				readErr = err
			}
			if readErr == nil && n != 10 {
				readErr = fmt.Errorf("version %d had 10 rows and now has %d", start.Version, n)
			}
		}
	})
	together(writers, func(w int) {
		for range commits {
			id, err := f.appendConcurrently()
			ids[w], errs[w] = append(ids[w], id), errors.Join(errs[w], err)
		}
	})
	close(stop)
	reader.Wait()
	f.NoError(readErr)
	f.NoError(errors.Join(errs...))

	end := f.latest()
	f.Equal(start.Version+writers*commits, end.Version)
	f.Len(end.Fragments, 1+writers*commits)
	unique := map[table.FragmentID]bool{}
	for _, frag := range end.Fragments {
		unique[frag.ID] = true
	}
	f.Len(unique, len(end.Fragments), "fragment ids are unique")
	list, err := f.engine.TransactionsSince(f.ctx, start.Version, 0)
	f.NoError(err)
	var committed []string
	for i, tx := range list {
		f.Equal(start.Version+uint64(i)+1, tx.Version)
		committed = append(committed, tx.ID)
	}
	f.ElementsMatch(slices.Concat(ids...), committed, "each transaction is there once")
}

func concurrentlyReservationsNeverOverlap(t *testing.T, cfg Config) {
	f := newFixture(t, cfg)
	start := f.latest()
	const writers = 4
	tops := make([]table.FragmentID, writers)
	errs := make([]error, writers)
	together(writers, func(w int) {
		var s *table.Snapshot
		for { // an engine may leave the retry to its caller
			if s, errs[w] = f.engine.ReserveFragments(f.ctx, 10); !errors.Is(errs[w], table.ErrConflict) {
				break
			}
		}
		if errs[w] == nil {
			tops[w] = s.NextFragmentID
		}
	})
	f.NoError(errors.Join(errs...))
	slices.Sort(tops)
	for i, top := range tops {
		f.Equal(start.NextFragmentID+table.FragmentID(10*(i+1)), top)
	}
}

// appendConcurrently commits a fragment of one row, against whatever others do,
// and returns the id of its transaction.
func (f *fixture) appendConcurrently() (string, error) {
	base, err := f.engine.Load(f.ctx, 0)
	if err != nil {
		return "", err
	}
	out, err := f.engine.WriteFragments(f.ctx, base.Schema, f.batches(numbers(0, 1), 1), table.WriteOptions{})
	if err != nil {
		return "", err
	}
	for {
		p := proposal(base, base.Version, table.Change{Add: place(base, out.Fragments)})
		if _, err = f.engine.Commit(f.ctx, p); !errors.Is(err, table.ErrVersionTaken) {
			return p.Transaction.ID, err
		}
		if base, err = f.engine.Load(f.ctx, 0); err != nil {
			return "", err
		}
	}
}

// together runs n functions that start at the same time.
func together(n int, run func(i int)) {
	var wg sync.WaitGroup
	begin := make(chan struct{})
	for i := range n {
		wg.Go(func() {
			<-begin
			run(i)
		})
	}
	close(begin)
	wg.Wait()
}
