package rowmap

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	"github.com/rehome-db/rehome/fri"
	"github.com/rehome-db/rehome/table"
)

// Questions says how much an approach is asked.
type Questions struct {
	// Lookups of each kind, single or in batches; of pieces of them the median
	// counts. The default is 1,048,576.
	Lookups int `json:"lookups"`
	// Rounds of opening and of rebasing, of which the median counts. The default
	// is 5.
	Rounds int `json:"rounds"`
	// Rebase are the numbers of affected rows. The default is 1, 1,000, 1,000,000.
	Rebase []int `json:"rebase"`
	// SlowOpen is the time to open from which on a cold rebase is not run but
	// added up from its parts. The default is 500 ms.
	SlowOpen time.Duration `json:"slow_open_ns"`
}

// EnsureDefaults fills in what is not set.
func (q *Questions) EnsureDefaults() {
	if q.Lookups == 0 {
		q.Lookups = 1 << 20
	}
	if q.Rounds == 0 {
		q.Rounds = 5
	}
	if q.Rebase == nil {
		q.Rebase = []int{1, 1000, 1_000_000}
	}
	if q.SlowOpen == 0 {
		q.SlowOpen = 500 * time.Millisecond
	}
}

// Answers is what asking took.
type Answers struct {
	// Open is the time from the files to the first question, FirstAnswer to the
	// first answer: medians, unless opening is slow.
	Open        time.Duration `json:"open_ns"`
	FirstAnswer time.Duration `json:"first_answer_ns"`
	// AllDecoded is the time until every source fragment has been asked about, one
	// address each: whatever is decoded on demand is decoded then.
	AllDecoded time.Duration `json:"all_decoded_ns"`
	// Live is the heap that is in use then beyond that before, the stored bytes
	// that are kept included. Peak is the most memory that the process had in the
	// time beyond that before, as the kernel counts it; 0 if it does not say.
	Live uint64 `json:"live_bytes"`
	Peak uint64 `json:"peak_bytes"`
	// Random and Sorted are nanoseconds a single lookup, of addresses in random and
	// in ascending order; Batch and Dense are addresses a second of a sorted batch,
	// drawn from everywhere and of consecutive rows.
	Random float64 `json:"random_ns"`
	Sorted float64 `json:"sorted_ns"`
	Batch  float64 `json:"batch_per_s"`
	Dense  float64 `json:"dense_per_s"`
	// Rebases, by affected rows.
	Rebases []RebaseTime `json:"rebases"`
	// Digest of all answers, equal for all approaches.
	Digest uint64 `json:"digest"`
}

// RebaseTime is the time to carry affected rows over, up to the deletion vectors
// for the fragments where they are now.
type RebaseTime struct {
	Rows int `json:"rows"`
	// Warm with the change of address open and decoded, Cold from the files on.
	Warm time.Duration `json:"warm_ns"`
	Cold time.Duration `json:"cold_ns"`
	// Added says that Cold is the sum of opening and Warm, each measured.
	Added bool `json:"added,omitempty"`
}

// Read opens what Write stored in dir and asks it.
func Read(ctx context.Context, w Workload, a Approach, q Questions, dir string) (Answers, error) {
	q.EnsureDefaults()
	var out Answers
	b, err := os.ReadFile(filepath.Join(dir, "sources.json"))
	if err != nil {
		return out, err
	}
	var first []fri.Digest
	if err := json.Unmarshal(b, &first); err != nil {
		return out, fmt.Errorf("rowmap: sources: %w", err)
	}
	touch := make([]table.RowAddr, len(first))
	for i, d := range first {
		touch[i] = table.NewRowAddr(d.ID, uint32(d.PhysicalRows/2))
	}
	before := heap()
	peak := startPeak()

	start := startWatch()
	c, err := a.Open(w, dir)
	if err != nil {
		return out, err
	}
	out.Open = start.elapsed()
	if _, err = c.Translate(touch[len(touch)/2]); err != nil {
		return out, err
	}
	out.FirstAnswer = start.elapsed()
	for _, t := range touch {
		if _, err = c.Translate(t); err != nil {
			return out, err
		}
	}
	out.AllDecoded = start.elapsed()
	out.Peak = peak()
	out.Live = heap() - min(before, heap())
	if out.Open < q.SlowOpen {
		if err := reopen(w, a, q, dir, touch, &out); err != nil {
			return out, err
		}
	}

	if err := lookups(ctx, c, first, q, &out); err != nil {
		return out, err
	}
	for _, n := range q.Rebase {
		if err := ctx.Err(); err != nil {
			return out, err
		}
		r, err := rebase(c, w, a, q, dir, sample(first, n, 3), out)
		if err != nil {
			return out, err
		}
		out.Rebases = append(out.Rebases, r)
	}
	runtime.KeepAlive(c)
	return out, nil
}

// reopen replaces the times to open, which a first time can disturb, by medians.
func reopen(w Workload, a Approach, q Questions, dir string, touch []table.RowAddr, out *Answers) error {
	var opens, firsts, alls []time.Duration
	for range q.Rounds {
		runtime.GC()
		start := startWatch()
		c, err := a.Open(w, dir)
		if err != nil {
			return err
		}
		opens = append(opens, start.elapsed())
		if _, err := c.Translate(touch[len(touch)/2]); err != nil {
			return err
		}
		firsts = append(firsts, start.elapsed())
		for _, t := range touch {
			if _, err := c.Translate(t); err != nil {
				return err
			}
		}
		alls = append(alls, start.elapsed())
	}
	for into, all := range map[*time.Duration][]time.Duration{&out.Open: opens, &out.FirstAnswer: firsts, &out.AllDecoded: alls} {
		slices.Sort(all)
		*into = all[len(all)/2]
	}
	return nil
}

// Run stores a workload and asks every approach, in this process.
func Run(ctx context.Context, w Workload, as []Approach, q Questions) (map[Stored]Cost, map[Approach]Answers, error) {
	dir, err := os.MkdirTemp("", "rowmap-")
	if err != nil {
		return nil, nil, err
	}
	defer os.RemoveAll(dir)
	var forms []Stored
	for _, a := range as {
		if !slices.Contains(forms, a.Stored) {
			forms = append(forms, a.Stored)
		}
	}
	costs, err := Write(ctx, w, dir, forms)
	if err != nil {
		return nil, nil, err
	}
	out := make(map[Approach]Answers)
	for _, a := range as {
		if costs[a.Stored].Refused != "" {
			continue
		}
		if out[a], err = Read(ctx, w, a, q, dir); err != nil {
			return nil, nil, fmt.Errorf("rowmap: %v: %v: %w", w, a, err)
		}
	}
	return costs, out, nil
}

// sample draws n rows of the fragments, ascending; a row may come twice.
func sample(ds []fri.Digest, n int, seed uint64) []table.RowAddr {
	starts := make([]uint64, len(ds)+1)
	for i, d := range ds {
		starts[i+1] = starts[i] + d.PhysicalRows
	}
	rng := rand.New(rand.NewPCG(seed, uint64(n)))
	rows := make([]uint64, n)
	for i := range rows {
		rows[i] = rng.Uint64N(starts[len(ds)])
	}
	slices.Sort(rows)
	out := make([]table.RowAddr, n)
	at := 0
	for i, r := range rows {
		for r >= starts[at+1] {
			at++
		}
		out[i] = table.NewRowAddr(ds[at].ID, uint32(r-starts[at]))
	}
	return out
}

// consecutive returns rows that follow each other, n or as many as there are.
func consecutive(ds []fri.Digest, n int) []table.RowAddr {
	out := make([]table.RowAddr, 0, n)
	for _, d := range ds {
		for o := range d.PhysicalRows {
			if len(out) == n {
				return out
			}
			out = append(out, table.NewRowAddr(d.ID, uint32(o)))
		}
	}
	return out
}

func lookups(ctx context.Context, c ChangeOfAddress, first []fri.Digest, q Questions, out *Answers) error {
	sorted := sample(first, q.Lookups, 1)
	random := slices.Clone(sorted)
	rand.New(rand.NewPCG(2, 2)).Shuffle(len(random), func(i, j int) { random[i], random[j] = random[j], random[i] })
	dense := consecutive(first, q.Lookups)
	now, states := make([]table.RowAddr, 0, q.Lookups), make([]fri.State, q.Lookups)

	single := func(addrs []table.RowAddr) (float64, error) {
		seen := 0
		ns, err := perItem(len(addrs), pieceOfSingles, func(from, to int) error {
			for _, a := range addrs[from:to] {
				t, err := c.Translate(a)
				if err != nil {
					return err
				}
				seen += int(t.State)
			}
			return nil
		})
		sink(seen)
		return ns, err
	}
	batch := func(addrs []table.RowAddr) (float64, error) {
		now = append(now[:0], addrs...)
		ns, err := perItem(len(addrs), pieceOfBatches, func(from, to int) error {
			return c.TranslateSorted(now[from:to], states[from:to])
		})
		return 1e9 / ns, err
	}
	for _, m := range []struct {
		into  *float64
		run   func([]table.RowAddr) (float64, error)
		addrs []table.RowAddr
	}{{&out.Random, single, random}, {&out.Sorted, single, sorted}, {&out.Dense, batch, dense}, {&out.Batch, batch, sorted}} {
		if err := ctx.Err(); err != nil {
			return err
		}
		var err error
		if *m.into, err = m.run(m.addrs); err != nil {
			return err
		}
	}
	// The last batch was the sorted one; single lookups must agree with it.
	for i, a := range now {
		if states[i] == fri.Deleted {
			a = 0 // it has no meaning
		}
		if i%64 == 0 {
			one, err := c.Translate(sorted[i])
			if err != nil || one.State != states[i] || one.State != fri.Deleted && one.Addr != a {
				return fmt.Errorf("%v: %v %v in a batch, %v alone (error: %v)", sorted[i], states[i], a, one, err)
			}
		}
		out.Digest = out.Digest*1099511628211 ^ uint64(a)<<2 ^ uint64(states[i])
	}
	return nil
}

// Lookups that are timed together.
const (
	pieceOfSingles = 1 << 13
	pieceOfBatches = 1 << 16
)

// sink keeps the compiler from dropping what was summed up.
//
//go:noinline
func sink(int) {}

func median(rounds int, run func() (time.Duration, error)) (time.Duration, error) {
	var all []time.Duration
	for range rounds {
		v, err := run()
		if err != nil {
			return 0, err
		}
		all = append(all, v)
	}
	slices.Sort(all)
	return all[len(all)/2], nil
}

func rebase(c ChangeOfAddress, w Workload, a Approach, q Questions, dir string, affected []table.RowAddr, so Answers) (RebaseTime, error) {
	r := RebaseTime{Rows: len(affected)}
	var err error
	r.Warm, err = median(q.Rounds, func() (time.Duration, error) {
		start := startWatch()
		_, _, err := Rebase(c, affected)
		return start.elapsed(), err
	})
	if err != nil {
		return r, err
	}
	if so.Open > q.SlowOpen {
		r.Cold, r.Added = so.Open+r.Warm, true
		return r, nil
	}
	r.Cold, err = median(q.Rounds, func() (time.Duration, error) {
		runtime.GC() // what the round before left is not this one's to clear
		start := startWatch()
		c, err := a.Open(w, dir)
		if err != nil {
			return 0, err
		}
		_, _, err = Rebase(c, affected)
		return start.elapsed(), err
	})
	return r, err
}
