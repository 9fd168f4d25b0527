package main

import (
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"
)

// measured is one line of the table of costs.
type measured struct {
	rows, dead, deletes int
	commit, over        string
	alone, overIt       float64 // milliseconds
}

// draw plots what commits over another change take, by the size of the table.
func draw(all []measured, dead, deletes int, file string) error {
	lines := map[string]plotter.XYs{}
	var names []string
	for _, m := range all {
		if m.dead != dead || m.deletes != deletes {
			continue
		}
		name := m.commit + " over " + m.over
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
		lines[name] = append(lines[name], plotter.XY{X: float64(m.rows), Y: m.overIt})
	}
	p := plot.New()
	p.Title.Text = "A commit over another change of 1000 rows, 10 % deleted before"
	p.X.Label.Text, p.Y.Label.Text = "rows of the table", "milliseconds"
	p.X.Scale, p.X.Tick.Marker = plot.LogScale{}, plot.LogTicks{Prec: -1}
	p.Y.Min = 0
	p.Legend.Top, p.Legend.Left = true, true
	var args []any
	for _, name := range names {
		args = append(args, name, lines[name])
	}
	if err := plotutil.AddLinePoints(p, args...); err != nil {
		return err
	}
	p.Add(plotter.NewGrid())
	p.Y.Max *= 1.6 // room for the legend
	return p.Save(16*vg.Centimeter, 11*vg.Centimeter, file)
}
