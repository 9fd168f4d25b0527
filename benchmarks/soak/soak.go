package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/rehome-db/rehome/table"
)

// options say how long a soak is and who takes part.
type options struct {
	duration time.Duration
	// commits ends it earlier, when the table has so many versions.
	commits uint64
	seed    uint64
	// writers and compactors are how many; a trimmer and an index builder come to
	// them.
	writers, compactors int
	// checkpoint is how often everybody stops and the table is compared with the
	// model.
	checkpoint time.Duration
	// rows is about how many rows the table has.
	rows int
	// unique declares the key unique, so that writers may insert the same ones. Else
	// each has its own to insert.
	unique bool
}

// soak is a run. Actors hold world for reading while they do one thing to the table;
// the checker holds it alone.
type soak struct {
	options
	place   place
	checker table.Engine
	stats   *stats

	world sync.RWMutex
	// changes were committed and not replayed yet. Guarded by mu.
	mu      sync.Mutex
	changes []*change
	model   *history
	// appended are the first key and the number of keys of the last appends. Guarded by mu.
	appended [][2]int64

	// ids are the rows' stable ids in version idsAt, if the table has such.
	ids   map[int64]table.RowIdentity
	idsAt uint64

	nextKey atomic.Int64 // of appended rows
	size    atomic.Int64 // rows, about
	built   atomic.Int64 // indexes
}

// actor does one thing to the table at a time. Once begun it is finished: what is
// half done when the time is up would be no fault.
type actor func(ctx context.Context, e table.Engine, rng *rand.Rand) error

// run lets everybody work until the time is up, the commits are made, or something
// is wrong, which is the error.
func run(ctx context.Context, p place, o options, st *stats) error {
	e, err := p.engine(ctx)
	if err != nil {
		return err
	}
	first, err := e.Load(ctx, 0)
	if err != nil {
		return err
	}
	s := &soak{options: o, place: p, checker: e, stats: st, model: newHistory(first.Version)}
	s.nextKey.Store(firstAppended)

	type role struct {
		name string
		// pause is the longest that it rests between two things.
		pause time.Duration
		act   actor
	}
	var roles []role
	for i := range o.writers {
		roles = append(roles, role{fmt.Sprintf("writer %d", i+1), time.Millisecond, func(ctx context.Context, e table.Engine, rng *rand.Rand) error { return s.write(ctx, e, rng, int64(i)) }})
	}
	for i := range o.compactors {
		roles = append(roles, role{fmt.Sprintf("compactor %d", i+1), 5 * time.Millisecond, s.compact})
	}
	roles = append(roles, role{"trimmer", 50 * time.Millisecond, s.trim}, role{"index builder", s.duration / mostIndexes, s.buildIndex})

	ended, stop := context.WithTimeout(ctx, o.duration)
	defer stop()
	g, working := errgroup.WithContext(ended)
	for i, r := range roles {
		e, err := p.engine(ctx)
		if err != nil {
			stop()
			return errors.Join(err, g.Wait())
		}
		rng := rand.New(rand.NewPCG(o.seed, uint64(i)))
		g.Go(func() error {
			for {
				// Not while the world waits for it to be done.
				sleep(working, time.Duration(rng.Int64N(int64(r.pause))))
				if working.Err() != nil {
					return nil
				}
				s.world.RLock()
				err := r.act(ctx, e, rng)
				s.world.RUnlock()
				if err != nil {
					return fmt.Errorf("%s: %w", r.name, err)
				}
			}
		})
	}
	g.Go(func() error {
		for working.Err() == nil {
			sleep(working, o.checkpoint)
			if err := s.check(ctx); err != nil {
				return err
			}
			if s.model.upTo-first.Version >= o.commits {
				stop()
			}
		}
		return nil
	})
	if err := g.Wait(); err != nil {
		return err
	}
	return s.check(ctx)
}

// committed notes a change for the model.
func (s *soak) committed(c *change, rows int64) {
	s.size.Add(rows)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.changes = append(s.changes, c)
	if c.kind == kindAppend {
		const remembered = 30
		s.appended = append(s.appended, [2]int64{slices.Min(slices.Collect(maps.Keys(c.source))), int64(len(c.source))})
		s.appended = s.appended[max(0, len(s.appended)-remembered):]
	}
}

// aKey is one that a merge may have: of the contended ones, or one that was appended
// and may be deleted since. Keys whose append is under way are not among them: it
// must stay the only one to insert them.
func (s *soak) aKey(rng *rand.Rand, writer int64) int64 {
	key := 1 + rng.Int64N(contended)
	if s.mu.Lock(); len(s.appended) > 0 && rng.IntN(2) == 0 {
		r := s.appended[rng.IntN(len(s.appended))]
		key = r[0] + rng.Int64N(r[1])
	}
	s.mu.Unlock()
	if n := int64(s.writers); !s.unique && key%n != writer {
		return 1 + rng.Int64N(contended/n)*n + (writer+n-1)%n
	}
	return key
}

// sleep waits, or until the run is over.
func sleep(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}
