package main

import (
	"fmt"
	"strings"

	"github.com/rehome-db/rehome/benchmarks/addresses/results"
	"github.com/rehome-db/rehome/benchmarks/rowmap"
)

// tables returns the tables of the page.
func tables(r results.Report) string {
	var b strings.Builder
	fmt.Fprintf(&b, "\nMachine: %s. Date: %s. Everything that was measured is in `benchmarks/results/addresses.txt`.\n", r.Machine, r.Date)
	fmt.Fprintf(&b, "\n**Bytes that the commit writes**, a map with both its copies; in brackets how many times the index's.\n\n")
	b.WriteString("| moved rows, deleted | FRI | plain pairs | packed pairs | coding |\n|---|---|---|---|---|\n")
	for _, c := range r.Cases {
		if c.Workload.Stacked > 1 {
			continue
		}
		index, plain, packed := c.Costs[rowmap.StoredFRI], c.Costs[rowmap.StoredPlain], c.Costs[rowmap.StoredPacked]
		if index.Refused != "" {
			fmt.Fprintf(&b, "| %v | cannot express it | %s | %s | %s |\n", c.Workload, results.Bytes(plain.Last), results.Bytes(packed.Last), packed.Coding)
			continue
		}
		fmt.Fprintf(&b, "| %v | %s | %s | %s | %s |\n", c.Workload, results.Bytes(index.Last), times(plain.Last, index.Last), times(packed.Last, index.Last), packed.Coding)
	}
	fmt.Fprintf(&b, "\n**Opening and memory.** First answer: from the files on. Memory: the live heap after every source fragment was asked about, stored bytes that are kept included.\n\n")
	b.WriteString("| moved rows, deleted | first answer: FRI | plain, Go map | packed, sorted | packed, intervals | memory: FRI | Go map | sorted | intervals |\n|---|---|---|---|---|---|---|---|---|\n")
	for _, c := range r.Cases {
		fmt.Fprintf(&b, "| %v |", c.Workload)
		for _, of := range []func(results.Answer) string{
			func(a results.Answer) string { return results.Time(a.FirstAnswer) },
			func(a results.Answer) string { return results.Bytes(a.Live) },
		} {
			row(&b, c, of)
		}
		b.WriteString("\n")
	}
	fmt.Fprintf(&b, "\n**Lookups.** Nanoseconds a single lookup in random order; addresses a second (millions) of a sorted batch, drawn from everywhere.\n\n")
	b.WriteString("| moved rows, deleted | random ns: FRI | Go map | sorted | intervals | batch M/s: FRI | Go map | sorted | intervals |\n|---|---|---|---|---|---|---|---|---|\n")
	for _, c := range r.Cases {
		fmt.Fprintf(&b, "| %v |", c.Workload)
		row(&b, c, func(a results.Answer) string { return fmt.Sprintf("%.1f", a.Random) })
		row(&b, c, func(a results.Answer) string { return fmt.Sprintf("%.0f", a.Batch/1e6) })
		b.WriteString("\n")
	}
	fmt.Fprintf(&b, "\n**Rebase** of a concurrent delete over the compaction, from the files to the new deletion vectors.\n\n")
	b.WriteString("| moved rows, deleted | affected rows | FRI | Go map | sorted | intervals |\n|---|---|---|---|---|---|\n")
	for _, c := range r.Cases {
		if len(c.Answers) == 0 || c.Workload.Pattern == rowmap.Regular {
			continue
		}
		for i, n := range c.Answers[0].Rebases {
			fmt.Fprintf(&b, "| %v | %d |", c.Workload, n.Rows)
			row(&b, c, func(a results.Answer) string { return results.Time(a.Rebases[i].Cold) })
			b.WriteString("\n")
		}
	}
	b.WriteString("\n")
	return b.String()
}

func row(b *strings.Builder, c results.Case, of func(results.Answer) string) {
	for _, a := range columns {
		s := "-"
		if got, ok := c.Of(a.Stored, a.Form); ok {
			s = of(got)
		}
		fmt.Fprintf(b, " %s |", s)
	}
}

// columns are the approaches that tables and plots show.
var columns = [...]rowmap.Approach{
	{Stored: rowmap.StoredFRI, Form: rowmap.FormFRI},
	{Stored: rowmap.StoredPlain, Form: rowmap.FormHash},
	{Stored: rowmap.StoredPacked, Form: rowmap.FormSorted},
	{Stored: rowmap.StoredPacked, Form: rowmap.FormIntervals},
}

func times(n, of uint64) string {
	r := float64(n) / float64(of)
	switch {
	case r >= 100:
		return fmt.Sprintf("%s (%.0f)", results.Bytes(n), r)
	case r >= 0.1:
		return fmt.Sprintf("%s (%.2f)", results.Bytes(n), r)
	}
	return fmt.Sprintf("%s (1/%.0f)", results.Bytes(n), 1/r)
}
