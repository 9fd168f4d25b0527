package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/rehome-db/rehome/benchmarks/report"
	"github.com/rehome-db/rehome/benchmarks/versus"
	"github.com/rehome-db/rehome/compaction"
	"github.com/rehome-db/rehome/lance"
	"github.com/rehome-db/rehome/rebase"
	"github.com/rehome-db/rehome/table"
)

// cost is the benchmark of what it adds to a commit to carry a change over another.
type cost struct {
	rows, dead, deletes string
	fragments, rounds   int
	plot                string
}

func newCost() benchmark {
	o := &cost{}
	return benchmark{"cost", func(f *flag.FlagSet) {
		f.StringVar(&o.rows, "rows", "1000000,10000000,100000000", "rows of the tables, several separated by commas")
		f.StringVar(&o.dead, "dead", "0,10", "percent of the rows deleted before the compaction, scattered")
		f.StringVar(&o.deletes, "deletes", "10,1000,100000", "scattered rows deleted while the compaction runs, several separated by commas")
		f.IntVar(&o.fragments, "fragments", 10, "fragments of the tables, which a compaction makes one of")
		f.StringVar(&o.plot, "plot", "", "a file for a plot of 1000 deletes, 10 % deleted before (default: none)")
		f.IntVar(&o.rounds, "rounds", 9, "rounds, of which the median counts")
	}, o.measure}
}

func numbers(list string) (out []int, err error) {
	for part := range strings.SplitSeq(list, ",") {
		n, err := strconv.Atoi(part)
		if err != nil {
			return nil, err
		}
		out = append(out, n)
	}
	return out, nil
}

func (o *cost) measure(ctx context.Context, work string, r *report.Report) error {
	sizes, err := numbers(o.rows)
	dead, err2 := numbers(o.dead)
	deletes, err3 := numbers(o.deletes)
	if err := errors.Join(err, err2, err3); err != nil {
		return err
	}
	r.Printf("A table of one int32 column in %d fragments becomes one of one fragment. While that is written, scattered rows are deleted.\n", o.fragments)
	r.Printf("Milliseconds of the commit alone (a delete's: by one who has seen the compaction), and over the other change; medians of %d rounds in turns, each with an engine that has read nothing yet.\n"+
		"Found out: from the transaction, and proven by reading the rows at both addresses.\n\n", o.rounds)
	rows := []string{"rows\tdeleted before\tdeleted meanwhile\tcommit of\tover\talone ms\tover it ms\tadded ms"}
	var all []measured
	for _, n := range sizes {
		for _, share := range dead {
			path := filepath.Join(work, fmt.Sprintf("%d-%d", n, share), "t.lance")
			prepared, err := o.prepare(ctx, path, n, share)
			if err != nil {
				return err
			}
			for _, k := range deletes {
				found, err := o.compare(ctx, prepared, k)
				if err != nil {
					return err
				}
				for _, m := range found {
					m.rows, m.dead = n, share
					rows = append(rows, m.line())
					fmt.Fprintln(os.Stderr, m.line())
					all = append(all, m)
				}
			}
			if err := os.RemoveAll(filepath.Dir(path)); err != nil {
				return err
			}
		}
	}
	r.Table(rows...)
	if o.plot != "" {
		return draw(all, 10, 1000, o.plot)
	}
	return nil
}

func (m measured) line() string {
	return fmt.Sprintf("%d\t%d %%\t%d\t%s\t%s\t%.1f\t%.1f\t%.1f", m.rows, m.dead, m.deletes, m.commit, m.over, m.alone, m.overIt, m.overIt-m.alone)
}

// prepared is a table with a compaction that was executed and not published.
type prepared struct {
	path    string
	results []compaction.Result
	base    *table.Snapshot
	live    func(rng *rand.Rand) table.RowAddr // some row that is alive
}

func (o *cost) prepare(ctx context.Context, path string, rows, dead int) (p prepared, err error) {
	per := rows / o.fragments
	e, err := createCounting(ctx, path, o.fragments, per)
	if err != nil {
		return p, err
	}
	defer e.Close()
	// A row is dead or alive by its address alone.
	isDead := func(a table.RowAddr) bool { return int(uint64(a)*2654435761>>8%100) < dead }
	if dead > 0 {
		var addrs []table.RowAddr
		for f := range o.fragments {
			for i := range per {
				if a := table.NewRowAddr(table.FragmentID(f), uint32(i)); isDead(a) {
					addrs = append(addrs, a)
				}
			}
		}
		if _, err := e.DeleteRows(ctx, addrs...); err != nil {
			return p, err
		}
	}
	p = prepared{path: path, live: func(rng *rand.Rand) table.RowAddr {
		for {
			if a := table.NewRowAddr(table.FragmentID(rng.IntN(o.fragments)), uint32(rng.IntN(per))); !isDead(a) {
				return a
			}
		}
	}}
	if p.base, err = e.Load(ctx, 0); err != nil {
		return p, err
	}
	plan, err := compaction.PlanSnapshot(ctx, e, p.base, compaction.Options{TargetRows: uint64(rows)})
	if err != nil {
		return p, err
	}
	if len(plan.Tasks) != 1 {
		return p, fmt.Errorf("%d tasks for the compaction, want 1", len(plan.Tasks))
	}
	result, err := compaction.Execute(ctx, e, plan.Tasks[0], compaction.Options{})
	p.results = []compaction.Result{result}
	return p, err
}

// step is what somebody does to a copy of the table.
type step func(ctx context.Context, e *lance.Engine) error

// compare measures the commits of both changes, alone and over the other.
func (o *cost) compare(ctx context.Context, p prepared, deletes int) ([]measured, error) {
	rng := rand.New(rand.NewPCG(1, uint64(deletes)))
	rows := rebase.RowSet{}
	for rows.Rows() < uint64(deletes) {
		var addrs []table.RowAddr
		for range deletes - int(rows.Rows()) {
			addrs = append(addrs, p.live(rng))
		}
		rows.AddAll(rebase.Rows(addrs...))
	}
	compact := func(mode compaction.FRIMode) step {
		results := slices.Clone(p.results)
		for i := range results {
			results[i].Task.Publishing.FRI = mode
		}
		return func(ctx context.Context, e *lance.Engine) error {
			_, err := compaction.Publish(ctx, e, results, compaction.Options{})
			return err
		}
	}
	moved, err := p.moved(rows)
	if err != nil {
		return nil, err
	}
	remove := func(read uint64, rows rebase.RowSet) step {
		return func(ctx context.Context, e *lance.Engine) error {
			done, err := rebase.Commit(ctx, e, rebase.Uncommitted{
				Table:       p.base.Table,
				Transaction: table.Transaction{ID: uuid.NewString(), ReadVersion: read, Operation: table.Delete{}},
				Affected:    rows,
			}, rebase.Options{})
			if err == nil && done.RowsDeleted != uint64(deletes) {
				err = fmt.Errorf("%d rows deleted, want %d", done.RowsDeleted, deletes)
			}
			return err
		}
	}
	early := remove(p.base.Version, rows)
	// The same delete by one who has seen the compaction.
	late := remove(p.base.Version+1, moved)
	without, with := compact(compaction.FRINever), compact(compaction.FRIAlways)
	variants := []struct {
		commit, over       string
		aloneBefore, alone step
		before, then       step
		session            bool // that all have in common
	}{
		{"compaction", "delete", nil, without, early, without, false},
		// By how the delete finds out where its rows are now.
		{"delete", "compaction, found out", without, late, without, early, false},
		{"delete", "compaction, from its FRI", with, late, with, early, false},
		{"delete", "compaction, from the session", without, late, without, early, true},
	}
	var out []measured
	for _, v := range variants {
		var alone, over []time.Duration
		for range o.rounds {
			for _, turn := range []struct {
				before, then step
				to           *[]time.Duration
			}{{v.aloneBefore, v.alone, &alone}, {v.before, v.then, &over}} {
				took, err := o.time(ctx, p, turn.before, turn.then, v.session)
				if err != nil {
					return nil, fmt.Errorf("%s over %s: %w", v.commit, v.over, err)
				}
				*turn.to = append(*turn.to, took)
			}
		}
		out = append(out, measured{deletes: deletes, commit: v.commit, over: v.over, alone: ms(median(alone)), overIt: ms(median(over))})
	}
	return out, nil
}

// moved are the rows where the compaction takes them.
func (p prepared) moved(rows rebase.RowSet) (rebase.RowSet, error) {
	g, err := p.results[0].Group()
	if err != nil {
		return nil, err
	}
	var to []table.FragmentID
	for i := range g.New {
		to = append(to, p.base.NextFragmentID+table.FragmentID(i))
	}
	c, err := rebase.NewChangeOfAddress([]rebase.Group{g}, [][]table.FragmentID{to})
	if err != nil {
		return nil, err
	}
	moved, _, err := c.Relocate(rows)
	return moved, err
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// time times one step on a copy of the table, after another, which may be nil, was
// done by somebody else: by another engine that has nothing in common with the one
// that is timed, but for a session if it is asked for.
func (o *cost) time(ctx context.Context, p prepared, before, then step, shared bool) (took time.Duration, err error) {
	dir, err := os.MkdirTemp(filepath.Dir(p.path), "round-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "t.lance")
	if err := versus.Copy(p.path, path); err != nil {
		return 0, err
	}
	var session *lance.Session
	if shared {
		if session, err = lance.NewSession(lance.SessionOptions{}); err != nil {
			return 0, err
		}
		defer session.Close()
	}
	if before != nil {
		if err := withEngine(ctx, path, session, before); err != nil {
			return 0, err
		}
	}
	err = withEngine(ctx, path, session, func(ctx context.Context, e *lance.Engine) error {
		begin := time.Now()
		err := then(ctx, e)
		took = time.Since(begin)
		return err
	})
	return took, err
}

func withEngine(ctx context.Context, path string, session *lance.Session, do step) error {
	e, err := lance.Open(ctx, path, lance.Options{Session: session})
	if err != nil {
		return err
	}
	return errors.Join(do(ctx, e), e.Close())
}
