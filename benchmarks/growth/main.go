// Command growth measures what a row of a compaction costs as tables grow: from 10 to
// 10,000 fragments and from 1 to 50 million rows, with rehome and a stock engine on
// copies of the same table, in turns:
//
//	interop/setup.sh                          # once: the stock engines
//	go run ./benchmarks/growth -plots docs/img
//	go run ./benchmarks/growth -fragments 10,100 -fragment-rows 100000 -rows 100000,200000 -rounds 1 -results /tmp
//
// Three series are measured. In the first the rows stay the same and are divided into
// more and more fragments, so that a row's share of opening files grows; in the second
// each fragment has the same number of rows, and in the third there are more and more
// fragments of a larger size. The tables are those of `go run ./benchmarks/generate
// -types narrow`, written by pylance, which writes many fragments in one commit.
//
// It prints a table of medians and writes the same, with the runs behind the medians, to
// benchmarks/results.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/rehome-db/rehome/benchmarks/report"
	"github.com/rehome-db/rehome/benchmarks/versus"
	"github.com/rehome-db/rehome/interop"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "growth:", err)
		os.Exit(1)
	}
}

// numbers is a flag of positive numbers separated by commas, which may be empty.
type numbers []int

func (n *numbers) String() string {
	return strings.Trim(strings.Join(strings.Fields(fmt.Sprint(*n)), ","), "[]")
}

func (n *numbers) Set(s string) error {
	*n = nil
	for _, part := range strings.FieldsFunc(s, func(c rune) bool { return c == ',' }) {
		v, err := strconv.Atoi(part)
		if err != nil || v < 1 {
			return fmt.Errorf("%q is not a positive number", part)
		}
		*n = append(*n, v)
	}
	return nil
}

// options are the command's flags.
type options struct {
	fragments, perFragment, rows numbers
	fragmentRows, small, large   int
	rounds                       int
	format, stock, flags         string
	dir, name, results, plots    string
}

func run(ctx context.Context, args []string) error {
	o := options{
		fragments: numbers{10, 30, 100, 300, 1000, 3000, 10_000}, perFragment: numbers{10, 100, 1000, 10_000},
		rows: numbers{1_000_000, 2_000_000, 5_000_000, 10_000_000, 20_000_000, 50_000_000},
	}
	f := flag.NewFlagSet("growth", flag.ContinueOnError)
	f.Var(&o.fragments, "fragments", "first series: how many fragments")
	f.IntVar(&o.fragmentRows, "fragment-rows", 5_000_000, "first series: rows of the table")
	f.Var(&o.perFragment, "more-fragments", "second series: how many fragments")
	f.IntVar(&o.small, "small", 5000, "second series: rows of a fragment")
	f.Var(&o.rows, "rows", "third series: how many rows")
	f.IntVar(&o.large, "large", 100_000, "third series: rows of a fragment")
	f.IntVar(&o.rounds, "rounds", 5, "runs of each contender, alternating")
	f.StringVar(&o.format, "format", "2.1", "version of the data files")
	f.StringVar(&o.stock, "stock", interop.LanceDB39.Name, "stock engine to compare with")
	f.StringVar(&o.flags, "flags", "", "flags for rehome, for example --no-sync")
	f.StringVar(&o.dir, "dir", "", "where the tables are made (default: a temporary directory)")
	f.StringVar(&o.name, "name", "growth", "name of the result's file")
	f.StringVar(&o.results, "results", filepath.Join(sourceDir(), "..", "results"), "directory for the result's file")
	f.StringVar(&o.plots, "plots", "", "directory for the plots (default: none)")
	if err := f.Parse(args); err != nil {
		return err
	}
	spec, err := interop.SpecOf(o.stock)
	if err != nil {
		return err
	}
	if o.rounds < 1 {
		return errors.New("there has to be a round at least")
	}
	work, err := os.MkdirTemp(o.dir, "rehome-growth-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	b := bench{options: o, work: work}
	for _, command := range []string{"cmd/rehome", "benchmarks/generate"} {
		binary := filepath.Join(work, filepath.Base(command))
		if out, err := exec.CommandContext(ctx, "go", "build", "-o", binary, "github.com/rehome-db/rehome/"+command).CombinedOutput(); err != nil {
			return fmt.Errorf("build %s: %w\n%s", command, err, out)
		}
	}
	b.contenders = []versus.Contender{versus.Stock(spec), versus.Rehome(filepath.Join(work, "rehome"), strings.Fields(o.flags)...)}
	all, err := b.measureAll(ctx)
	if err != nil {
		return err
	}
	r := report.New("growth", args)
	b.print(r, all)
	fmt.Print(r)
	if err := r.Save(o.results, o.name); err != nil {
		return err
	}
	if o.plots == "" {
		return nil
	}
	return draw(all, o.plots)
}

func sourceDir() string {
	_, file, _, _ := runtime.Caller(0)
	return filepath.Dir(file)
}

// series is tables that grow.
type series struct {
	name, title, x string
	points         []point
}

// point is one table, and what compacting it cost each contender.
type point struct {
	rows, fragments int
	x               float64
	costs           map[string][]versus.Cost
}

func (o options) series() []*series {
	same := &series{name: "fragments", title: fmt.Sprintf("%d rows in more and more fragments", o.fragmentRows), x: "fragments"}
	for _, n := range o.fragments {
		same.points = append(same.points, point{rows: o.fragmentRows / n * n, fragments: n, x: float64(n)})
	}
	small := &series{name: "more-fragments", title: fmt.Sprintf("More and more fragments of %d rows", o.small), x: "fragments"}
	for _, n := range o.perFragment {
		small.points = append(small.points, point{rows: o.small * n, fragments: n, x: float64(n)})
	}
	rows := &series{name: "rows", title: fmt.Sprintf("More and more rows, in fragments of %d", o.large), x: "rows"}
	for _, n := range o.rows {
		fragments := max(n/o.large, 1)
		rows.points = append(rows.points, point{rows: n / fragments * fragments, fragments: fragments, x: float64(n)})
	}
	return slices.DeleteFunc([]*series{same, small, rows}, func(s *series) bool { return len(s.points) == 0 })
}

// bench is a run of the command.
type bench struct {
	options
	work       string
	contenders []versus.Contender
}

func (b bench) measureAll(ctx context.Context) ([]*series, error) {
	all := b.series()
	for _, s := range all {
		for i := range s.points {
			if err := b.measure(ctx, &s.points[i]); err != nil {
				return nil, fmt.Errorf("%d rows in %d fragments: %w", s.points[i].rows, s.points[i].fragments, err)
			}
		}
	}
	return all, nil
}

// measure makes the table of a point and has it compacted.
func (b bench) measure(ctx context.Context, p *point) error {
	dir := filepath.Join(b.work, "tables")
	defer os.RemoveAll(dir)
	// In a process of its own: the kernel counts the peak memory of whoever starts a
	// process among that of the process.
	perCommit := max(500_000/(p.rows/p.fragments), 1)
	generate := exec.CommandContext(ctx, filepath.Join(b.work, "generate"), "-engine", interop.PyLance14.Name, "-types", "narrow",
		"-format", b.format, "-rows", strconv.Itoa(p.rows), "-fragments", strconv.Itoa(p.fragments),
		"-per-commit", strconv.Itoa(min(perCommit, p.fragments)), "-digests=false", "-out", dir)
	if out, err := generate.CombinedOutput(); err != nil {
		return fmt.Errorf("make the table: %w\n%s", err, out)
	}
	table := filepath.Join(dir, "narrow", "t.lance")
	p.costs = map[string][]versus.Cost{}
	for round := range b.rounds {
		for i := range b.contenders {
			c := b.contenders[(i+round)%len(b.contenders)]
			cost, err := versus.Measure(ctx, c, table, b.work)
			if err != nil {
				return err
			}
			p.costs[c.Name] = append(p.costs[c.Name], cost)
			fmt.Fprintf(os.Stderr, "%d rows in %d fragments, round %d: %s: %v\n", p.rows, p.fragments, round+1, c.Name, cost.Wall)
		}
	}
	return nil
}
