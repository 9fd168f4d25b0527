// Command compact compares `rehome compact` with the stock engines' own compaction,
// each on copies of the same table, in one run:
//
//	interop/setup.sh                          # once: the stock engines
//	go run ./benchmarks/compact               # the headline table, 1,000,000 rows
//	go run ./benchmarks/compact -rows 20000 -fragments 10 -rounds 1
//	go run ./benchmarks/compact -deleted 0 -copies -flags=--no-sync
//	go run ./benchmarks/compact -table narrow -rows 10000000
//	go run ./benchmarks/compact -sizes        # only how large the results are
//
// It prints a table of medians with the ratios to the first stock engine, and
// writes the same, with the runs behind the medians, to benchmarks/results.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/rehome-db/rehome/benchmarks/report"
	"github.com/rehome-db/rehome/benchmarks/versus"
	"github.com/rehome-db/rehome/interop"
	"github.com/rehome-db/rehome/interop/workload"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "compact:", err)
		os.Exit(1)
	}
}

// options are the command's flags.
type options struct {
	table                            string
	rows, fragments, columns, rounds int
	deleted                          int
	format, engines, flags           string
	sizes, stockOnly, copies         bool
	dir, name, results               string
	build                            string
	args                             []string
}

func run(ctx context.Context, args []string) error {
	var o options
	f := flag.NewFlagSet("compact", flag.ContinueOnError)
	f.StringVar(&o.table, "table", "vectors", "which table: vectors, narrow, wide or texts")
	f.IntVar(&o.columns, "columns", 2000, "columns of the wide table")
	f.IntVar(&o.deleted, "deleted", 1, "percent of the rows that are deleted, spread evenly")
	f.BoolVar(&o.copies, "copies", false, "compare with copying the data files' bytes into one, with and without syncing it, and with pylance's binary copy")
	f.StringVar(&o.build, "build", "", "make the table at this path and stop; how the command makes it, so that the peak memory which that takes is not counted against those whom it starts")
	f.IntVar(&o.rows, "rows", 1_000_000, "rows of the table")
	f.IntVar(&o.fragments, "fragments", 100, "fragments of the table")
	f.IntVar(&o.rounds, "rounds", 5, "runs of each contender, alternating")
	f.StringVar(&o.format, "format", "2.1", "version of the data files")
	f.StringVar(&o.engines, "stock", interop.LanceDB39.Name, "stock engines to compare with, separated by commas; the first writes the table and is what ratios refer to")
	f.StringVar(&o.flags, "flags", "", "flags for a second rehome contender, for example --no-sync")
	f.BoolVar(&o.sizes, "sizes", false, "compare the sizes of the results on the golden tables and on tables of each type instead")
	f.BoolVar(&o.stockOnly, "stock-only", false, "leave rehome out")
	f.StringVar(&o.dir, "dir", "", "where the tables are made (default: a temporary directory)")
	f.StringVar(&o.name, "name", "", "name of the result's file (default: from the other flags)")
	f.StringVar(&o.results, "results", filepath.Join(sourceDir(), "..", "results"), "directory for the result's file")
	if err := f.Parse(args); err != nil {
		return err
	}
	o.args = args
	specs, err := stockEngines(o.engines)
	if err != nil {
		return err
	}
	if o.build != "" {
		return o.buildTable(ctx, specs[0])
	}
	work, err := os.MkdirTemp(o.dir, "rehome-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)

	var rehome []versus.Contender
	if !o.stockOnly {
		binary := filepath.Join(work, "rehome")
		if out, err := exec.CommandContext(ctx, "go", "build", "-o", binary, "github.com/rehome-db/rehome/cmd/rehome").CombinedOutput(); err != nil {
			return fmt.Errorf("build rehome: %w\n%s", err, out)
		}
		rehome = append(rehome, versus.Rehome(binary))
		if o.flags != "" {
			rehome = append(rehome, versus.Rehome(binary, strings.Fields(o.flags)...))
		}
	}
	writer, err := interop.Start(ctx, specs[0])
	if err != nil {
		return err
	}
	defer writer.Close()

	r := report.New("compact", args)
	if o.sizes {
		err = compareSizes(ctx, r, writer, specs[0], rehome, o, work)
	} else {
		err = compareCosts(ctx, r, writer, specs, rehome, o, work)
	}
	if err != nil {
		return err
	}
	fmt.Print(r)
	return r.Save(o.results, o.resultName())
}

func sourceDir() string {
	_, file, _, _ := runtime.Caller(0)
	return filepath.Dir(file)
}

func (o options) resultName() string {
	switch {
	case o.name != "":
		return o.name
	case o.sizes:
		return "compact-sizes"
	default:
		return fmt.Sprintf("compact-%s-%drows-%ddeleted-%s", o.table, o.rows, o.deleted, o.format)
	}
}

// workload is the table that the flags describe.
func (o options) workload() (workload.Table, error) {
	var t workload.Table
	switch o.table {
	case "vectors":
		t = workload.Vectors(o.rows, o.fragments)
	case "narrow":
		t = workload.Narrow(o.rows, o.fragments)
	case "wide":
		t = workload.Wide(o.rows, o.fragments, o.columns)
	case "texts":
		t = workload.Texts(o.rows, o.fragments)
	default:
		return t, fmt.Errorf("no table %q: there are vectors, narrow, wide and texts", o.table)
	}
	t.DeletePercent, t.DataFormat = o.deleted, o.format
	return t, nil
}

// buildTable makes the table at o.build.
func (o options) buildTable(ctx context.Context, spec interop.Spec) error {
	t, err := o.workload()
	if err != nil {
		return err
	}
	writer, err := interop.Start(ctx, spec)
	if err != nil {
		return err
	}
	defer writer.Close()
	return t.Build(ctx, writer, o.build)
}

// buildElsewhere has the table made by another process: the kernel counts the peak
// memory of whoever starts a process among that of the process.
func (o options) buildElsewhere(ctx context.Context, path string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	args := append(slices.Clone(o.args), "-build", path)
	if out, err := exec.CommandContext(ctx, self, args...).CombinedOutput(); err != nil {
		return fmt.Errorf("make the table: %w\n%s", err, out)
	}
	return nil
}

func stockEngines(list string) ([]interop.Spec, error) {
	var out []interop.Spec
	for _, name := range strings.Split(list, ",") {
		s, err := interop.SpecOf(name)
		if err != nil {
			return nil, err
		}
		out = append(out, s)
	}
	return out, nil
}

// compareCosts runs every contender in every round on a copy of one table.
func compareCosts(ctx context.Context, r *report.Report, writer *interop.Engine, specs []interop.Spec, rehome []versus.Contender, o options, work string) error {
	table, err := o.workload()
	if err != nil {
		return err
	}
	path := filepath.Join(work, "table", "t.lance")
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	if err := o.buildElsewhere(ctx, path); err != nil {
		return err
	}
	bytes, err := versus.DataBytes(path)
	if err != nil {
		return err
	}
	r.Printf("Table: %s, %d rows in %d fragments, %d columns, %d %% of the rows deleted, data format %s, %d data bytes, written by %s.\n",
		table.Name, o.rows, o.fragments, 1+len(table.Columns), table.DeletePercent, o.format, bytes, writer.Name)

	var contenders []versus.Contender
	for _, s := range specs {
		contenders = append(contenders, versus.Stock(s))
	}
	if o.copies {
		contenders = append(contenders, versus.StockCopy(interop.PyLance14), versus.Bytes(false), versus.Bytes(true))
	}
	contenders = append(contenders, rehome...)
	costs := make([][]versus.Cost, len(contenders))
	for round := range o.rounds {
		// Who goes first changes from round to round.
		for i := range contenders {
			at := (i + round) % len(contenders)
			cost, err := versus.Measure(ctx, contenders[at], path, work)
			if err != nil {
				return err
			}
			costs[at] = append(costs[at], cost)
			fmt.Fprintf(os.Stderr, "round %d: %s: %v\n", round+1, contenders[at].Name, cost.Wall)
		}
	}
	printCosts(r, contenders, costs)
	return nil
}
