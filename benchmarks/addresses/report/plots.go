package main

import (
	"path/filepath"

	"github.com/rehome-db/rehome/benchmarks/addresses/results"
	"github.com/rehome-db/rehome/benchmarks/chart"
	"github.com/rehome-db/rehome/benchmarks/rowmap"
)

// draw writes the plots.
func draw(r results.Report, dir string) error {
	bytes := chart.Figure{Title: "Bytes committed for 10 M moved rows, deleted by chance", X: "percent of rows deleted", Y: "bytes"}
	first := chart.Figure{Title: "Time to the first answer, 10 % deleted by chance", X: "moved rows", Y: "seconds"}
	memory := chart.Figure{Title: "Memory, all decoded, 10 % deleted by chance", X: "moved rows", Y: "bytes"}
	lookup := chart.Figure{Title: "A random lookup, 10 % deleted by chance", X: "moved rows", Y: "nanoseconds"}
	rebase := chart.Figure{Title: "Rebase over a compaction of 10 M rows, from the files on", X: "affected rows", Y: "seconds"}
	for _, c := range r.Cases {
		w := c.Workload
		if w.Stacked > 1 || w.Shuffled || w.Pattern != rowmap.Scattered {
			continue
		}
		if w.Rows == 10_000_000 {
			for _, s := range []rowmap.Stored{rowmap.StoredFRI, rowmap.StoredPlain, rowmap.StoredPacked} {
				bytes.Add(storedName(s), w.DeletedPercent, float64(c.Costs[s].Last))
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
			first.Add(name, float64(w.Rows), got.FirstAnswer.Seconds())
			memory.Add(name, float64(w.Rows), float64(got.Live))
			lookup.Add(name, float64(w.Rows), got.Random)
			if w.Rows == 10_000_000 {
				for _, x := range got.Rebases {
					rebase.Add(name, float64(x.Rows), x.Cold.Seconds())
				}
			}
		}
	}
	for name, f := range map[string]*chart.Figure{"bytes": &bytes, "first-answer": &first, "memory": &memory, "lookup": &lookup, "rebase": &rebase} {
		if err := f.Save(filepath.Join(dir, "addresses-"+name+".svg")); err != nil {
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
