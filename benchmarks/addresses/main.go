// Command addresses compares the two ways of publishing a change of address, the
// fragment reuse index and a row map in the transaction, on the same compactions in
// one run:
//
//	go run ./benchmarks/addresses            # all of it: an hour, and 16 GB of memory
//	go run ./benchmarks/addresses -quick     # a million rows, a minute
//	go run ./benchmarks/addresses -rows 10000000 -deleted 10 -pattern scattered
//
// Each change of address is stored by one process and read by another for each
// approach, so that the memory that the kernel reports is that of the approach
// alone. They run one after the other. Results go to benchmarks/results as text and
// as JSON; `go run ./benchmarks/addresses/report` makes the tables and plots of
// docs/benchmarks.md from the JSON.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rehome-db/rehome/benchmarks/addresses/results"
	"github.com/rehome-db/rehome/benchmarks/rowmap"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	var err error
	if len(os.Args) == 2 && os.Args[1] == childArg {
		err = child(ctx, os.Stdin, os.Stdout)
	} else {
		err = run(ctx, os.Args[1:])
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "addresses:", err)
		os.Exit(1)
	}
}

// options are the command's flags.
type options struct {
	rows, deleted, pattern, stacked, approaches string
	quick, shuffled, merge                      bool
	lookups, rounds                             int
	mapRows, twiceRows                          uint64
	dir, name                                   string
}

func run(ctx context.Context, args []string) error {
	var o options
	f := flag.NewFlagSet("addresses", flag.ContinueOnError)
	f.StringVar(&o.rows, "rows", "1000000,10000000,100000000", "rows moved by a compaction, several separated by commas")
	f.StringVar(&o.deleted, "deleted", "0,1,10,50", "percent of the rows deleted")
	f.StringVar(&o.pattern, "pattern", "scattered,clustered,regular", "how deleted rows lie: scattered (by chance), clustered, regular (every n-th; of 10 and 50 %, up to 10,000,000 rows)")
	f.StringVar(&o.stacked, "stacked", "1,50", "compactions of the same rows; more than one up to 10,000,000 rows and of 10 % scattered")
	f.StringVar(&o.approaches, "approaches", "", "only those whose name contains this")
	f.BoolVar(&o.shuffled, "shuffled", true, "also a rewrite that does not keep the order")
	f.BoolVar(&o.quick, "quick", false, "a million rows only, fewer lookups")
	f.BoolVar(&o.merge, "merge", false, "keep the results that the file has of other workloads")
	f.IntVar(&o.lookups, "lookups", 1<<20, "lookups of each kind")
	f.IntVar(&o.rounds, "rounds", 5, "rounds of opening and rebasing, of which the median counts")
	f.Uint64Var(&o.mapRows, "map-rows", 100_000_000, "largest number of rows, over all stacked compactions, that row maps are decoded for")
	f.Uint64Var(&o.twiceRows, "twice-rows", 1_000_000, "largest number of rows that packed pairs, too, are decoded to a Go map for, which is then no other than that of plain pairs")
	f.StringVar(&o.dir, "dir", "", "where files are made (default: a temporary directory)")
	f.StringVar(&o.name, "name", "", "name of the files under benchmarks/results (default: addresses, or addresses-quick)")
	if err := f.Parse(args); err != nil {
		return err
	}
	if o.quick {
		o.rows, o.lookups, o.rounds = "1000000", 1<<18, 3
	}
	if o.name == "" {
		o.name = "addresses"
		if o.quick {
			o.name = "addresses-quick"
		}
	}
	workloads, err := o.workloads()
	if err != nil {
		return err
	}
	work, err := os.MkdirTemp(o.dir, "rehome-addresses-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)

	report := results.Report{
		Command: strings.TrimSpace("go run ./benchmarks/addresses " + strings.Join(args, " ")),
		Machine: fmt.Sprintf("%d cores, %s/%s, %s", runtime.NumCPU(), runtime.GOOS, runtime.GOARCH, runtime.Version()),
		Date:    time.Now().UTC().Format("2006-01-02"),
	}
	path := filepath.Join(resultsDir(), o.name)
	if o.merge {
		old, err := results.Load(path + ".json")
		if err != nil {
			return err
		}
		report.Cases = old.Cases
		if old.Command != report.Command {
			report.Command = old.Command + "; " + report.Command
		}
	}
	for i, w := range workloads {
		fmt.Fprintf(os.Stderr, "%d of %d: %v\n", i+1, len(workloads), w)
		c, err := o.measure(ctx, w, work)
		if err != nil {
			return fmt.Errorf("%v: %w", w, err)
		}
		report.Add(c)
		// After each: an hour's work should survive an interruption.
		if err := report.Save(path); err != nil {
			return err
		}
	}
	fmt.Print(report.Text())
	return nil
}

func resultsDir() string {
	_, file, _, _ := runtime.Caller(0)
	return filepath.Join(filepath.Dir(file), "..", "results")
}

func (o options) workloads() ([]rowmap.Workload, error) {
	rows, err := numbers(o.rows)
	if err != nil {
		return nil, err
	}
	deleted, err := numbers(o.deleted)
	if err != nil {
		return nil, err
	}
	stacked, err := numbers(o.stacked)
	if err != nil {
		return nil, err
	}
	var out []rowmap.Workload
	for _, n := range rows {
		for _, k := range stacked {
			for _, d := range deleted {
				for _, p := range strings.Split(o.pattern, ",") {
					w := rowmap.Workload{Rows: uint64(n), DeletedPercent: d, Pattern: rowmap.Pattern(p), Stacked: int(k)}
					w.EnsureDefaults()
					if err := w.Validate(); err != nil {
						return nil, err
					}
					switch {
					case d == 0 && len(out) > 0 && out[len(out)-1].DeletedPercent == 0 && out[len(out)-1].Rows == w.Rows && out[len(out)-1].Stacked == w.Stacked:
						continue // nothing lies in no pattern
					case w.Pattern == rowmap.Regular && (d < 10 || n > 10_000_000):
						continue
					case k > 1 && (n > 10_000_000 || d != 10 || w.Pattern != rowmap.Scattered):
						continue
					}
					out = append(out, w)
				}
			}
		}
		if o.shuffled && n <= 10_000_000 {
			w := rowmap.Workload{Rows: uint64(n), DeletedPercent: 10, Shuffled: true}
			w.EnsureDefaults()
			out = append(out, w)
		}
	}
	return out, nil
}

func numbers(list string) ([]float64, error) {
	var out []float64
	for _, s := range strings.Split(list, ",") {
		v, err := strconv.ParseFloat(strings.TrimSpace(s), 64)
		if err != nil || v < 0 {
			return nil, fmt.Errorf("%q is no number", s)
		}
		out = append(out, v)
	}
	return out, nil
}

// measure stores a workload in every form and asks every approach.
func (o options) measure(ctx context.Context, w rowmap.Workload, work string) (results.Case, error) {
	c := results.Case{Workload: w}
	dir, err := os.MkdirTemp(work, "case-")
	if err != nil {
		return c, err
	}
	defer os.RemoveAll(dir)
	var as []rowmap.Approach
	var forms []rowmap.Stored
	for _, a := range rowmap.Approaches() {
		if o.approaches != "" && !strings.Contains(a.String(), o.approaches) && a.Stored != rowmap.StoredFRI {
			continue
		}
		if w.Rows*uint64(w.Stacked) > o.mapRows && (a.Form == rowmap.FormHash || a.Form == rowmap.FormSorted) {
			continue
		}
		if a.Form == rowmap.FormHash && w.Rows > 10_000_000 && (w.DeletedPercent != 10 || w.Pattern != rowmap.Scattered) {
			continue // a Go map does not care how the rows lie, and takes minutes
		}
		if w.Rows*uint64(w.Stacked) > o.twiceRows && a.Stored == rowmap.StoredPacked && a.Form == rowmap.FormHash {
			continue
		}
		as = append(as, a)
		if !slices.Contains(forms, a.Stored) {
			forms = append(forms, a.Stored)
		}
	}
	// A lookup goes through all stacked compactions.
	lookups := max(o.lookups/w.Stacked, min(o.lookups, 1<<16))
	start := time.Now()
	var written response
	if _, err := spawn(ctx, request{Workload: w, Dir: dir, Forms: forms}, &written); err != nil {
		return c, err
	}
	c.Costs = written.Costs
	fmt.Fprintf(os.Stderr, "  stored in %v\n", time.Since(start).Round(time.Millisecond))
	for _, a := range as {
		if c.Costs[a.Stored].Refused != "" {
			continue
		}
		var read response
		start := time.Now()
		rss, err := spawn(ctx, request{Workload: w, Dir: dir, Approach: &a, Questions: rowmap.Questions{Lookups: lookups, Rounds: o.rounds}}, &read)
		if err != nil {
			return c, fmt.Errorf("%v: %w", a, err)
		}
		c.Answers = append(c.Answers, results.Answer{Approach: a, Answers: read.Answers, MaxRSS: rss, Load: load()})
		fmt.Fprintf(os.Stderr, "  %v in %v: first answer %v, %.0f ns\n", a, time.Since(start).Round(time.Millisecond), read.Answers.FirstAnswer, read.Answers.Random)
	}
	for _, a := range c.Answers {
		if a.Answers.Digest != c.Answers[0].Answers.Digest {
			return c, fmt.Errorf("%v and %v answer differently", a.Approach, c.Answers[0].Approach)
		}
	}
	return c, nil
}

// load is the machine's load average, to tell results that others disturbed.
func load() string {
	b, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return ""
	}
	first, _, _ := strings.Cut(string(b), " ")
	return first
}

const childArg = "-child"

// request is what a process is to do: store if it has no approach, else read.
type request struct {
	Workload  rowmap.Workload
	Dir       string
	Forms     []rowmap.Stored
	Approach  *rowmap.Approach
	Questions rowmap.Questions
}

type response struct {
	Costs   map[rowmap.Stored]rowmap.Cost
	Answers rowmap.Answers
}

func child(ctx context.Context, in io.Reader, out io.Writer) error {
	var q request
	if err := json.NewDecoder(in).Decode(&q); err != nil {
		return err
	}
	var r response
	var err error
	if q.Approach == nil {
		r.Costs, err = rowmap.Write(ctx, q.Workload, q.Dir, q.Forms)
	} else {
		r.Answers, err = rowmap.Read(ctx, q.Workload, *q.Approach, q.Questions, q.Dir)
	}
	if err != nil {
		return err
	}
	return json.NewEncoder(out).Encode(r)
}

// spawn runs a request in a process of its own and returns the most memory that it
// had.
func spawn(ctx context.Context, q request, r *response) (maxRSS int64, err error) {
	exe, err := os.Executable()
	if err != nil {
		return 0, err
	}
	in, err := json.Marshal(q)
	if err != nil {
		return 0, err
	}
	cmd := exec.CommandContext(ctx, exe, childArg)
	cmd.Stdin = strings.NewReader(string(in))
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return 0, err
	}
	return maxRSSOf(cmd.ProcessState), json.Unmarshal(out, r)
}
