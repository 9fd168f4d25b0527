package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"text/tabwriter"

	"github.com/rehome-db/rehome/benchmarks/report"
	"github.com/rehome-db/rehome/benchmarks/versus"
	"github.com/rehome-db/rehome/interop"
	"github.com/rehome-db/rehome/interop/workload"
)

// largestRatio is how much larger than the stock engine's a result may be.
const largestRatio = 1.05

// compareSizes compacts the golden tables and a table of each family of types with
// the stock engine and with rehome, and compares the sizes of the new data files.
func compareSizes(ctx context.Context, r *report.Report, writer *interop.Engine, spec interop.Spec, rehome []versus.Contender, o options, work string) error {
	r.Printf("Sizes of the data files that compaction made, in bytes. Tables that either leaves alone, or that rehome does not support, are not listed. Where the two chose different fragments, the ratio is left out.\n\n")
	w := tabwriter.NewWriter(r, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "table\tstock\trehome\tratio\t")
	stock := versus.Stock(spec)
	worst, worstTable := 0.0, ""
	compare := func(name, path string) error {
		s, err := versus.Measure(ctx, stock, path, work)
		if err != nil {
			return fmt.Errorf("table %s: %w", name, err)
		}
		if len(rehome) == 0 {
			fmt.Fprintf(w, "%s\t%d\t\t\t\n", name, s.DataBytes)
			return nil
		}
		ours, err := versus.Measure(ctx, rehome[0], path, work)
		if err != nil {
			fmt.Fprintf(os.Stderr, "table %s: %v\n", name, err)
			return nil
		}
		if s.DataBytes == 0 || ours.DataBytes == 0 {
			return nil
		}
		if ours.FragmentsRemoved != s.FragmentsRemoved {
			fmt.Fprintf(w, "%s\t%d\t%d\t\t\n", name, s.DataBytes, ours.DataBytes)
			return nil
		}
		ratio := float64(ours.DataBytes) / float64(s.DataBytes)
		if ratio > worst {
			worst, worstTable = ratio, name
		}
		fmt.Fprintf(w, "%s\t%d\t%d\t%.2f\t\n", name, s.DataBytes, ours.DataBytes, ratio)
		return nil
	}
	rows, fragments := min(o.rows, 100_000), min(o.fragments, 10)
	for _, format := range []string{"2.0", "2.1", "2.2"} {
		for _, t := range workload.Typed(rows, fragments) {
			t.DataFormat = format
			path := filepath.Join(work, t.Name+"-"+format, "t.lance")
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				return err
			}
			if err := t.Build(ctx, writer, path); err != nil {
				return err
			}
			if err := compare(fmt.Sprintf("%s, %s, %d rows", t.Name, format, rows), path); err != nil {
				return err
			}
		}
	}
	golden, err := filepath.Glob(filepath.Join(sourceDir(), "..", "..", "testdata", "golden", "*", "t.lance"))
	if err != nil {
		return err
	}
	for _, path := range golden {
		if err := compare("golden "+filepath.Base(filepath.Dir(path)), path); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	r.Printf("\nLargest ratio: %.2f (%s)\n", worst, worstTable)
	if worst > largestRatio {
		return fmt.Errorf("table %s is %.2f times the stock engine's size, more than %.2f", worstTable, worst, largestRatio)
	}
	return nil
}
