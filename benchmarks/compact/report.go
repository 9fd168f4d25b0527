package main

import (
	"fmt"

	"github.com/rehome-db/rehome/benchmarks/report"
	"github.com/rehome-db/rehome/benchmarks/versus"
)

// printCosts prints medians, ratios to the first contender, and the runs.
func printCosts(r *report.Report, contenders []versus.Contender, costs [][]versus.Cost) {
	r.Printf("Medians of %d runs, in turns; in brackets the ratio to the first line.\n\n", len(costs[0]))
	rows := []string{"\twall s\tCPU s\tpeak MB\twritten MB\tnew data MB\tfragments"}
	base := versus.Median(costs[0])
	for i, c := range contenders {
		m := versus.Median(costs[i])
		rows = append(rows, fmt.Sprintf("%s\t%s\t%s\t%s\t%s\t%s\t%d -> %d", c.Name,
			ratio(m.Wall.Seconds(), base.Wall.Seconds(), 1), ratio(m.CPU.Seconds(), base.CPU.Seconds(), 1),
			ratio(float64(m.PeakRSS), float64(base.PeakRSS), 1e6), ratio(float64(m.Written), float64(base.Written), 1e6),
			ratio(float64(m.DataBytes), float64(base.DataBytes), 1e6), m.FragmentsRemoved, m.FragmentsAdded))
	}
	r.Table(rows...)
	r.Printf("\nRuns\n")
	for i, c := range contenders {
		r.Printf("  %s: %s\n", c.Name, c.Command)
		for _, k := range costs[i] {
			r.Printf("    wall %.2f s, CPU %.2f s, peak %.0f MB, written %.0f MB\n",
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
