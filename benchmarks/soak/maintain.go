package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/rehome-db/rehome/compaction"
	"github.com/rehome-db/rehome/rebase"
	"github.com/rehome-db/rehome/table"
)

// compact compacts some of the table, at once or in steps with time between them.
// Whatever groups are lost must have been overlapped by another compaction, or have
// no row left.
func (s *soak) compact(ctx context.Context, e table.Engine, rng *rand.Rand) error {
	opts := compaction.Options{
		TargetRows:  uint64(10 + rng.IntN(s.rows)),
		AnyDeletion: rng.IntN(3) == 0, DeletionThreshold: []float64{0.05, 0.5}[rng.IntN(2)],
		FRI:     []compaction.FRIMode{compaction.FRIAuto, compaction.FRINever, compaction.FRIAuto, compaction.FRIAlways}[rng.IntN(4)],
		Threads: 1 + rng.IntN(2),
		NoSync:  true,
	}
	if rng.IntN(2) == 0 {
		opts.MaxSourceFragments = 2 + rng.IntN(8)
	}
	base, err := e.Load(ctx, 0)
	if err != nil {
		return err
	}
	if s.built.Load() > 0 || base.StableRowIDs {
		opts.FRI = compaction.FRIAuto // what else is right depends on the indexes
	}
	plan, err := compaction.PlanSnapshot(ctx, e, base, opts)
	if err != nil || len(plan.Tasks) == 0 {
		return err
	}
	var results []compaction.Result
	for _, t := range plan.Tasks {
		r, err := compaction.Execute(ctx, e, t, compaction.Options{})
		if err != nil {
			return err
		}
		results = append(results, r)
	}
	if rng.IntN(2) == 0 {
		time.Sleep(time.Duration(rng.Int64N(int64(30 * time.Millisecond))))
	}
	out, err := compaction.Publish(ctx, e, results, opts)
	lost := out.Lost
	if conflict := (*rebase.ConflictError)(nil); errors.As(err, &conflict) && len(conflict.Lost) > 0 {
		lost, err = conflict.Lost, nil
	}
	if err != nil {
		return err
	}
	if len(out.Leftover) > 0 {
		return fmt.Errorf("left %v", out.Leftover)
	}
	for _, l := range lost {
		why, err := s.excuse(ctx, e, base.Version, l)
		if err != nil {
			return err
		}
		s.stats.add(func(st *stats) { st.lost[why]++ })
	}
	if out.Version > 0 {
		s.stats.add(func(st *stats) {
			st.compactions++
			st.compactionOver += len(out.RebasedOver)
			st.carried += out.RowsRelocated
		})
	}
	return nil
}

// excuse says why it is right that a group was lost, as the table itself tells it.
func (s *soak) excuse(ctx context.Context, e table.Engine, since uint64, l rebase.LostGroup) (string, error) {
	txs, err := e.TransactionsSince(ctx, since, 0)
	if err != nil {
		return "", err
	}
	indexed := false
	for _, tx := range txs {
		switch op := tx.Operation.(type) {
		case table.Rewrite:
			for _, g := range op.Groups {
				for _, f := range g.Old {
					if slices.Contains(l.Sources, f.ID) {
						return "overlapped by another compaction", nil
					}
				}
			}
		case table.CreateIndex:
			indexed = indexed || len(op.New) > 0
		}
	}
	now, err := e.Load(ctx, 0)
	if err != nil {
		return "", err
	}
	left := false
	for _, id := range l.Sources {
		f, ok := now.Fragment(id)
		left = left || ok && f.LiveRows() > 0
	}
	switch {
	case !left:
		return "no row of them is left", nil
	case indexed:
		return "covered in part by an index that was built meanwhile", nil
	}
	return "", fmt.Errorf("%w: the group of fragments %d was thrown away: %s", errWrong, l.Sources, l.Reason)
}

// trim trims the fragment reuse index.
func (s *soak) trim(ctx context.Context, e table.Engine, rng *rand.Rand) error {
	out, err := compaction.Trim(ctx, e, compaction.TrimOptions{RetainVersions: uint64(rng.IntN(20))})
	if err != nil {
		return err
	}
	if out.Committed {
		s.stats.add(func(st *stats) {
			st.trims++
			st.dropped += out.Dropped
		})
	}
	return nil
}

// mostIndexes are enough: each stands in the way of merging what it covers and what
// it does not.
const mostIndexes = 6

// buildIndex builds an index now and then.
func (s *soak) buildIndex(ctx context.Context, _ table.Engine, _ *rand.Rand) error {
	if s.built.Load() >= mostIndexes {
		return nil
	}
	built, err := s.place.index(ctx, int(s.built.Load()))
	if err == nil && built {
		s.built.Add(1)
		s.stats.add(func(st *stats) { st.indexes++ })
	}
	return err
}
