package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/rehome-db/rehome/dml"
	"github.com/rehome-db/rehome/rebase"
	"github.com/rehome-db/rehome/table"
)

// Keys. Appended rows have keys that nobody else makes, as an append does not look
// whether a key is there. Merges find those, and insert others out of a small range,
// in which writers often want the same.
const (
	contended     = 400
	firstAppended = 1000
)

// write makes one change.
func (s *soak) write(ctx context.Context, e table.Engine, rng *rand.Rand, writer int64) error {
	w, c := s.choose(rng, writer)
	if rng.IntN(4) == 0 {
		return s.writeLater(ctx, e, rng, w, c)
	}
	done, err := dml.Execute(ctx, e, w, dml.Options{MaxAttempts: 100})
	switch {
	case refused(err):
		s.stats.add(func(st *stats) { st.refused[c.kind+": "+reason(err)]++ })
		return nil
	case err != nil:
		return fmt.Errorf("%s: %w", c.kind, err)
	case !done.Committed:
		return nil
	case len(done.Leftover) > 0:
		return fmt.Errorf("%s: left %v", c.kind, done.Leftover)
	}
	c.read, c.version = done.ReadVersion, done.Version
	s.committed(c, int64(done.Inserted)-int64(done.Deleted))
	s.stats.add(func(st *stats) {
		st.changes[c.kind]++
		st.over += len(done.RebasedOver)
		st.relocated += done.RowsRelocated
		if done.Attempts > 1 {
			st.again++
		}
	})
	return nil
}

// refused says whether a change met another and is certainly not committed.
func refused(err error) bool {
	return errors.Is(err, table.ErrConflict) && !errors.Is(err, table.ErrAmbiguousCommit)
}

// writeLater computes a change, sends it elsewhere, and commits it some time after.
func (s *soak) writeLater(ctx context.Context, e table.Engine, rng *rand.Rand, w dml.Change, c *change) error {
	base, err := e.Load(ctx, 0)
	if err != nil {
		return err
	}
	u, computed, err := dml.Compute(ctx, e, base, w, dml.Options{})
	if err != nil || u.Affected.IsEmpty() && len(u.New) == 0 {
		return err
	}
	sent, err := json.Marshal(u)
	if err != nil {
		return err
	}
	var received rebase.Uncommitted
	if err := json.Unmarshal(sent, &received); err != nil {
		return err
	}
	time.Sleep(time.Duration(rng.Int64N(int64(20 * time.Millisecond))))
	done, err := rebase.Commit(ctx, e, received, rebase.Options{})
	switch {
	case refused(err):
		s.stats.add(func(st *stats) { st.refused[c.kind+" committed later: "+reason(err)]++ })
		return nil
	case err != nil:
		return fmt.Errorf("%s committed later: %w", c.kind, err)
	case done.Nothing:
		return nil
	case len(done.Leftover) > 0:
		return fmt.Errorf("%s: left %v", c.kind, done.Leftover)
	}
	c.read, c.version = done.ReadVersion, done.Version
	s.committed(c, int64(computed.Inserted)-int64(computed.Deleted))
	s.stats.add(func(st *stats) {
		st.changes[c.kind]++
		st.late++
		st.over += len(done.RebasedOver)
		st.relocated += done.RowsRelocated
	})
	return nil
}

// choose makes up a change. A table that is too small gets rows, one that is too
// large loses some.
func (s *soak) choose(rng *rand.Rand, writer int64) (dml.Change, *change) {
	kinds := []string{kindAppend, kindDelete, kindDelete, kindUpdate, kindUpdate, kindUpsert, kindUpsert}
	switch size := s.size.Load(); {
	case size < int64(s.rows)*2/3:
		kinds = append(kinds, kindAppend, kindAppend, kindUpsert)
	case size > int64(s.rows)*4/3:
		kinds = append(kinds, kindDelete, kindDelete, kindDelete, kindDelete)
	}
	c := &change{kind: kinds[rng.IntN(len(kinds))]}
	write := table.WriteOptions{NoSync: true}
	if rng.IntN(4) == 0 {
		write.MaxRows = uint64(1 + rng.IntN(50))
	}
	switch c.kind {
	case kindAppend:
		c.matched = dml.MatchedFail
		c.source = map[int64]int64{}
		n := int64(1 + rng.IntN(s.rows/10))
		first := s.nextKey.Add(n) - n
		for key := first; key < first+n; key++ {
			c.source[key] = rng.Int64()
		}
		return dml.Append{Rows: source(c.source), Write: write}, c
	case kindDelete:
		c.matches = s.condition(rng)
		return dml.Delete{Where: where(c.matches)}, c
	case kindUpdate:
		c.matches = s.condition(rng)
		token := rng.Int64()
		// The old value goes in: an update that is lost changes all that follow.
		c.set = func(key, value int64) int64 { return value*31 + key + token }
		return dml.Update{Where: where(c.matches), Set: assignments(c.set), Write: write}, c
	default:
		return s.merge(rng, writer, c, write)
	}
}

func (s *soak) merge(rng *rand.Rand, writer int64, c *change, write table.WriteOptions) (dml.Change, *change) {
	c.source = map[int64]int64{}
	for range 1 + rng.IntN(30) {
		c.source[s.aKey(rng, writer)] = rng.Int64()
	}
	m := dml.MergeInsert{On: []string{"k"}, Source: source(c.source), Write: write}
	switch rng.IntN(6) {
	case 0:
		c.matched = dml.MatchedKeep
	case 1:
		c.matched = dml.MatchedDelete
	default:
		c.matched = dml.MatchedUpdate
	}
	m.WhenMatched = c.matched
	if rng.IntN(6) == 0 {
		c.matches = s.condition(rng)
		m.WhenNotMatchedBySource, m.DeleteIf = dml.BySourceDelete, where(c.matches)
	}
	return m, c
}

// condition is about some rows: a range of keys, or keys or values of some kind.
func (s *soak) condition(rng *rand.Rand) func(key, value int64) bool {
	switch rng.IntN(4) {
	case 0: // merged ones
		from := rng.Int64N(contended)
		to := from + 1 + rng.Int64N(20)
		return func(key, _ int64) bool { return key >= from && key < to }
	case 1: // a few everywhere
		m, r := 20+rng.Int64N(200), rng.Int64N(20)
		return func(key, _ int64) bool { return key%m == r }
	case 2: // by value
		m, r := 20+rng.Int64N(200), rng.Int64N(20)
		return func(_, value int64) bool { return value%m == r }
	default: // those appended at about the same time
		from := s.nextKey.Load() - rng.Int64N(int64(2*s.rows))
		to := from + 1 + rng.Int64N(int64(1+s.rows/20))
		return func(key, _ int64) bool { return key >= from && key < to }
	}
}
