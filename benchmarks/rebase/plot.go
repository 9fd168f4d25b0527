package main

import "github.com/rehome-db/rehome/benchmarks/chart"

// measured is one line of the table of costs.
type measured struct {
	rows, dead, deletes int
	commit, over        string
	alone, overIt       float64 // milliseconds
}

// draw plots what commits over another change take, by the size of the table.
func draw(all []measured, dead, deletes int, file string) error {
	f := chart.Figure{Title: "A commit over another change of 1000 rows, 10 % deleted before", X: "rows of the table", Y: "milliseconds", LinearY: true}
	for _, m := range all {
		if m.dead == dead && m.deletes == deletes {
			f.Add(m.commit+" over "+m.over, float64(m.rows), m.overIt)
		}
	}
	return f.Save(file)
}
