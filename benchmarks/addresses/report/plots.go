package main

import (
	"fmt"
	"path/filepath"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"

	"github.com/rehome-db/rehome/benchmarks/addresses/results"
	"github.com/rehome-db/rehome/benchmarks/rowmap"
)

// figure is a plot with logarithmic axes, of lines over the cases chosen.
type figure struct {
	file, title, x, y string
	lines             []line
}

type line struct {
	name   string
	points plotter.XYs
}

// add appends a point to a line. What is not positive has no place on the axes.
func (f *figure) add(name string, x, y float64) {
	if x <= 0 || y <= 0 {
		return
	}
	i := slices.IndexFunc(f.lines, func(l line) bool { return l.name == name })
	if i < 0 {
		i = len(f.lines)
		f.lines = append(f.lines, line{name: name})
	}
	f.lines[i].points = append(f.lines[i].points, plotter.XY{X: x, Y: y})
}

func (f *figure) save(dir string) error {
	p := plot.New()
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = f.title, f.x, f.y
	p.X.Scale, p.Y.Scale = plot.LogScale{}, plot.LogScale{}
	p.X.Tick.Marker, p.Y.Tick.Marker = plot.LogTicks{Prec: -1}, plot.LogTicks{Prec: -1}
	p.Legend.Top, p.Legend.Left = true, true
	var args []any
	for _, l := range f.lines {
		slices.SortFunc(l.points, func(a, b plotter.XY) int {
			if a.X < b.X {
				return -1
			}
			return 1
		})
		args = append(args, l.name, l.points)
	}
	if len(args) == 0 {
		return nil // nothing of the kind was measured
	}
	if err := plotutil.AddLinePoints(p, args...); err != nil {
		return fmt.Errorf("%s: %w", f.file, err)
	}
	p.Add(plotter.NewGrid())
	// Room for the legend above the highest line.
	p.Y.Max *= 100
	return p.Save(16*vg.Centimeter, 11*vg.Centimeter, filepath.Join(dir, f.file))
}

// draw writes the plots.
func draw(r results.Report, dir string) error {
	bytes := figure{file: "addresses-bytes.svg", title: "Bytes committed for 10 M moved rows, deleted by chance", x: "percent of rows deleted", y: "bytes"}
	first := figure{file: "addresses-first-answer.svg", title: "Time to the first answer, 10 % deleted by chance", x: "moved rows", y: "seconds"}
	memory := figure{file: "addresses-memory.svg", title: "Memory, all decoded, 10 % deleted by chance", x: "moved rows", y: "bytes"}
	lookup := figure{file: "addresses-lookup.svg", title: "A random lookup, 10 % deleted by chance", x: "moved rows", y: "nanoseconds"}
	rebase := figure{file: "addresses-rebase.svg", title: "Rebase over a compaction of 10 M rows, from the files on", x: "affected rows", y: "seconds"}
	for _, c := range r.Cases {
		w := c.Workload
		if w.Stacked > 1 || w.Shuffled || w.Pattern != rowmap.Scattered {
			continue
		}
		if w.Rows == 10_000_000 {
			for _, s := range []rowmap.Stored{rowmap.StoredFRI, rowmap.StoredPlain, rowmap.StoredPacked} {
				bytes.add(storedName(s), w.DeletedPercent, float64(c.Costs[s].Last))
			}
		}
		if w.DeletedPercent != 10 {
			continue
		}
		for _, a := range columns {
			got, ok := c.Of(a.Stored, a.Form)
			if !ok {
				continue
			}
			name := storedName(a.Stored)
			if a.Form != rowmap.FormFRI {
				name += ", " + string(a.Form)
			}
			first.add(name, float64(w.Rows), got.FirstAnswer.Seconds())
			memory.add(name, float64(w.Rows), float64(got.Live))
			lookup.add(name, float64(w.Rows), got.Random)
			if w.Rows == 10_000_000 {
				for _, x := range got.Rebases {
					rebase.add(name, float64(x.Rows), x.Cold.Seconds())
				}
			}
		}
	}
	for _, f := range []figure{bytes, first, memory, lookup, rebase} {
		if err := f.save(dir); err != nil {
			return err
		}
	}
	return nil
}

func storedName(s rowmap.Stored) string {
	switch s {
	case rowmap.StoredFRI:
		return "fragment reuse index"
	case rowmap.StoredPlain:
		return "plain pairs"
	}
	return "packed pairs"
}
