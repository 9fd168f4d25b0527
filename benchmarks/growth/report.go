package main

import (
	"fmt"
	"path/filepath"
	"time"

	"github.com/rehome-db/rehome/benchmarks/chart"
	"github.com/rehome-db/rehome/benchmarks/report"
	"github.com/rehome-db/rehome/benchmarks/versus"
)

// perRow is a time's share of a row in nanoseconds.
func (p point) perRow(d time.Duration) float64 { return float64(d) / float64(p.rows) }

func (b bench) print(r *report.Report, all []*series) {
	r.Printf("Tables: five integers, two strings; data format %s, written by pylance-14.0.2. Medians of %d runs, in turns. ns are of a row.\n", b.format, b.rounds)
	for _, s := range all {
		r.Printf("\n%s\n\n", s.title)
		lines := []string{"rows\tfragments\tcontender\twall s\twall ns\tCPU s\tCPU ns\tpeak MB\tfragments"}
		for _, p := range s.points {
			for _, c := range b.contenders {
				m := versus.Median(p.costs[c.Name])
				lines = append(lines, fmt.Sprintf("%d\t%d\t%s\t%.2f\t%.0f\t%.2f\t%.0f\t%.0f\t%d -> %d", p.rows, p.fragments, c.Name,
					m.Wall.Seconds(), p.perRow(m.Wall), m.CPU.Seconds(), p.perRow(m.CPU), float64(m.PeakRSS)/1e6, m.FragmentsRemoved, m.FragmentsAdded))
			}
		}
		r.Table(lines...)
		for _, c := range b.contenders {
			low, high := s.spread(c.Name)
			r.Printf("%s: between %.0f and %.0f ns a row, %.2f times", c.Name, low, high, high/low)
			if each, ok := s.perFragment(c.Name); ok {
				r.Printf("; a fragment more costs %.0f µs", float64(each.Nanoseconds())/1000)
			}
			r.Printf("\n")
		}
	}
	r.Printf("\nRuns\n")
	for _, s := range all {
		for _, p := range s.points {
			for _, c := range b.contenders {
				r.Printf("  %d rows in %d fragments: %s:", p.rows, p.fragments, c.Command)
				for _, k := range p.costs[c.Name] {
					r.Printf(" %.2f s (CPU %.2f s, %.0f MB)", k.Wall.Seconds(), k.CPU.Seconds(), float64(k.PeakRSS)/1e6)
				}
				r.Printf("\n")
			}
		}
	}
}

// spread is the least and the most that a row costs anywhere in the series.
func (s *series) spread(contender string) (low, high float64) {
	for i, p := range s.points {
		v := p.perRow(versus.Median(p.costs[contender]).Wall)
		if low = min(low, v); i == 0 {
			low = v
		}
		high = max(high, v)
	}
	return low, high
}

// perFragment is what a fragment more costs in a series of equally many rows, from its
// first point to its last.
func (s *series) perFragment(contender string) (time.Duration, bool) {
	first, last := s.points[0], s.points[len(s.points)-1]
	n := last.fragments - first.fragments
	if n <= 0 || first.rows-last.rows > last.fragments || last.rows > first.rows {
		return 0, false
	}
	return (versus.Median(last.costs[contender]).Wall - versus.Median(first.costs[contender]).Wall) / time.Duration(n), true
}

// draw plots each series.
func draw(all []*series, dir string) error {
	for _, s := range all {
		f := chart.Figure{Title: s.title, X: s.x, Y: "nanoseconds a row", LinearY: true}
		for _, p := range s.points {
			for name, costs := range p.costs {
				f.Add(name, p.x, p.perRow(versus.Median(costs).Wall))
			}
		}
		if err := f.Save(filepath.Join(dir, "growth-"+s.name+".svg")); err != nil {
			return err
		}
	}
	return nil
}
