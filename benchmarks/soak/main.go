// Command soak has everybody work on one table at the same time, for as long as is
// asked for, and compares the table with a model:
//
//	go run ./benchmarks/soak -duration 10m -seed 1
//	go run -race ./benchmarks/soak -engine memory -commits 20000
//
// Two writers append, delete, update and merge rows at random, many of them the same
// rows; a quarter of the changes are computed, sent away as JSON, and committed some
// time later. Two compactors rewrite what they find with random options, and half of
// the time wait before they publish. A trimmer drops what it may of the fragment
// reuse index, and an index is built now and then.
//
// What is right is decided by replaying the changes in the order of their versions;
// see history. Every version must be a change that a writer was told of or one that
// changes no row, a change must not have overlooked another, no row may be lost,
// doubled or resurrected in any of the versions that are looked at, no compaction may
// be thrown away but for another one's sake, the table must verify, and no object may
// be left that no version refers to. The first thing that is wrong ends the run.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := command(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "soak:", err)
		os.Exit(1)
	}
}

func command(ctx context.Context, args []string) error {
	o := options{writers: 2, compactors: 2}
	f := flag.NewFlagSet("soak", flag.ContinueOnError)
	f.DurationVar(&o.duration, "duration", 10*time.Minute, "how long")
	f.Uint64Var(&o.commits, "commits", 20_000, "end after so many commits")
	f.Uint64Var(&o.seed, "seed", 1, "seed of what everybody does; when is up to the scheduler")
	f.IntVar(&o.writers, "writers", o.writers, "writers")
	f.IntVar(&o.compactors, "compactors", o.compactors, "compactors")
	f.IntVar(&o.rows, "rows", 2000, "rows of the table, about")
	f.DurationVar(&o.checkpoint, "checkpoint", 2*time.Second, "how often the table is compared with the model")
	f.BoolVar(&o.unique, "unique", true, "declare the key unique, and have writers insert the same keys")
	var where placeOptions
	f.StringVar(&where.engine, "engine", "lance", "lance (a table in a directory, each actor an engine of its own) or memory")
	f.StringVar(&where.shared, "session", "own", "what the engines of a lance table remember: one session for all, each its own, or none")
	f.BoolVar(&where.stable, "stable", false, "a lance table has stable row ids")
	f.BoolVar(&where.stock, "stock", false, "a stock engine builds the indexes of a lance table; interop/setup.sh installs it")
	dir := f.String("dir", "", "where the table is made (default: a temporary directory)")
	if err := f.Parse(args); err != nil {
		return err
	}
	work, err := os.MkdirTemp(*dir, "rehome-soak-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	where.path, where.unique = filepath.Join(work, "t.lance"), o.unique
	p, err := newPlace(ctx, where)
	if err != nil {
		return err
	}
	defer p.close()
	st := newStats()
	begin := time.Now()
	err = run(ctx, p, o, st)
	fmt.Printf("%s, seed %d, %v\n%s", where.engine, o.seed, time.Since(begin).Round(time.Millisecond), st)
	if err == nil {
		fmt.Println("no row lost, none twice, none resurrected")
	}
	return err
}
