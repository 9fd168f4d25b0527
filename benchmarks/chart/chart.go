// Package chart draws the plots of docs/benchmarks.md. It is apart from package report
// so that only what draws needs the plotting library.
package chart

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"
)

// Figure is a plot of lines over a logarithmic x axis.
type Figure struct {
	Title, X, Y string
	// LinearY has the y axis linear, from 0 on. The default is logarithmic.
	LinearY bool
	// Room is how many times the highest value the y axis ends at, to leave room for the
	// legend. The default is 100, or 1.6 on a linear axis.
	Room  float64
	lines []line
}

type line struct {
	name   string
	points plotter.XYs
}

// Add adds a point to a line. One that has no place on the axes is left out.
func (f *Figure) Add(name string, x, y float64) {
	if x <= 0 || y < 0 || y == 0 && !f.LinearY {
		return
	}
	i := slices.IndexFunc(f.lines, func(l line) bool { return l.name == name })
	if i < 0 {
		i = len(f.lines)
		f.lines = append(f.lines, line{name: name})
	}
	f.lines[i].points = append(f.lines[i].points, plotter.XY{X: x, Y: y})
}

// Save writes the plot to a file, whose name says in which format. Without a point there
// is no plot.
func (f *Figure) Save(file string) error {
	if len(f.lines) == 0 {
		return nil
	}
	p := plot.New()
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = f.Title, f.X, f.Y
	p.X.Scale, p.X.Tick.Marker = plot.LogScale{}, plot.LogTicks{Prec: -1}
	room := f.Room
	if f.LinearY {
		p.Y.Min = 0
		if room == 0 {
			room = 1.6
		}
	} else {
		p.Y.Scale, p.Y.Tick.Marker = plot.LogScale{}, plot.LogTicks{Prec: -1}
		if room == 0 {
			room = 100
		}
	}
	p.Legend.Top, p.Legend.Left = true, true
	var args []any
	for _, l := range f.lines {
		slices.SortStableFunc(l.points, func(a, b plotter.XY) int { return cmp.Compare(a.X, b.X) })
		args = append(args, l.name, l.points)
	}
	if err := plotutil.AddLinePoints(p, args...); err != nil {
		return fmt.Errorf("chart: %s: %w", file, err)
	}
	p.Add(plotter.NewGrid())
	p.Y.Max *= room
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return p.Save(16*vg.Centimeter, 11*vg.Centimeter, file)
}
