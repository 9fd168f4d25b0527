// Command rebase measures what it takes that nobody loses:
//
//	interop/setup.sh                          # once: the stock engines
//	go run ./benchmarks/rebase beside         # compactions beside a client that updates a row every 200 ms
//	go run ./benchmarks/rebase cost           # what carrying changes over each other adds to a commit
//
// beside runs compactions back to back while a stock client writes, with rehome and
// with the stock engine's own optimize, and counts how many were committed and what
// the others left behind. cost needs no stock engine.
//
// Each prints a table and writes the same to benchmarks/results.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	"github.com/rehome-db/rehome/benchmarks/report"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "rebase:", err)
		os.Exit(1)
	}
}

// benchmark is one of the commands; measure adds to the report what it found.
type benchmark struct {
	name    string
	flags   func(f *flag.FlagSet)
	measure func(ctx context.Context, work string, r *report.Report) error
}

func run(ctx context.Context, args []string) error {
	all := []benchmark{newBeside(), newCost()}
	i := slices.IndexFunc(all, func(b benchmark) bool { return len(args) > 0 && args[0] == b.name })
	if i < 0 {
		return errors.New("say what to measure: beside or cost")
	}
	b := all[i]
	f := flag.NewFlagSet("rebase "+b.name, flag.ContinueOnError)
	b.flags(f)
	dir := f.String("dir", "", "where tables are made (default: a temporary directory)")
	name := f.String("name", "rebase-"+b.name, "name of the result's file")
	results := f.String("results", filepath.Join(sourceDir(), "..", "results"), "directory for the result's file")
	if err := f.Parse(args[1:]); err != nil {
		return err
	}
	work, err := os.MkdirTemp(*dir, "rehome-rebase-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	r := report.New("rebase", args)
	if err := b.measure(ctx, work, r); err != nil {
		return err
	}
	fmt.Print(r)
	return r.Save(*results, *name)
}

func sourceDir() string {
	_, file, _, _ := runtime.Caller(0)
	return filepath.Dir(file)
}

func median(d []time.Duration) time.Duration {
	if len(d) == 0 {
		return 0
	}
	d = slices.Sorted(slices.Values(d))
	return d[len(d)/2]
}
