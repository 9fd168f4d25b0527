package main

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/rehome-db/rehome/benchmarks/versus"
)

// report collects what is printed and saved.
type report struct{ b strings.Builder }

func newReport(args []string) *report {
	r := &report{}
	r.printf("Command: go run ./benchmarks/compact %s\n", strings.Join(args, " "))
	r.printf("Machine: %d cores, %s, %s/%s, %s\n", runtime.NumCPU(), memory(), runtime.GOOS, runtime.GOARCH, runtime.Version())
	r.printf("Date: %s\n\n", time.Now().UTC().Format("2006-01-02"))
	return r
}

func (r *report) printf(format string, args ...any) { fmt.Fprintf(&r.b, format, args...) }

func (r *report) String() string { return r.b.String() }

// save writes the report to a file.
func (r *report) save(dir, name string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, name+".txt"), []byte(r.String()), 0o644)
}

// costs prints medians, ratios to the first contender, and the runs.
func (r *report) costs(contenders []versus.Contender, costs [][]versus.Cost) {
	r.printf("Medians of %d runs, in turns; in brackets the ratio to the first line.\n\n", len(costs[0]))
	w := tabwriter.NewWriter(&r.b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "\twall s\tCPU s\tpeak MB\twritten MB\tnew data MB\tfragments")
	base := versus.Median(costs[0])
	for i, c := range contenders {
		m := versus.Median(costs[i])
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%d -> %d\n", c.Name,
			ratio(m.Wall.Seconds(), base.Wall.Seconds(), 1), ratio(m.CPU.Seconds(), base.CPU.Seconds(), 1),
			ratio(float64(m.PeakRSS), float64(base.PeakRSS), 1e6), ratio(float64(m.Written), float64(base.Written), 1e6),
			ratio(float64(m.DataBytes), float64(base.DataBytes), 1e6), m.FragmentsRemoved, m.FragmentsAdded)
	}
	_ = w.Flush()
	r.printf("\nRuns\n")
	for i, c := range contenders {
		r.printf("  %s: %s\n", c.Name, c.Command)
		for _, k := range costs[i] {
			r.printf("    wall %.2f s, CPU %.2f s, peak %.0f MB, written %.0f MB\n",
				k.Wall.Seconds(), k.CPU.Seconds(), float64(k.PeakRSS)/1e6, float64(k.Written)/1e6)
		}
	}
}

func ratio(v, base, unit float64) string {
	if base == 0 {
		return fmt.Sprintf("%.2f", v/unit)
	}
	return fmt.Sprintf("%.2f (%.2f)", v/unit, v/base)
}

// memory says how much memory the machine has.
func memory() string {
	f, err := os.Open("/proc/meminfo")
	if err != nil {
		return "memory unknown"
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		var kb int64
		if _, err := fmt.Sscanf(s.Text(), "MemTotal: %d kB", &kb); err == nil {
			return fmt.Sprintf("%.0f GiB of memory", float64(kb)/(1<<20))
		}
	}
	return "memory unknown"
}
