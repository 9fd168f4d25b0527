// Package results is what `benchmarks/addresses` measures, as it is saved, printed
// and compared with the targets.
package results

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/rehome-db/rehome/benchmarks/rowmap"
)

// Report is a run.
type Report struct {
	Command string `json:"command"`
	Machine string `json:"machine"`
	Date    string `json:"date"`
	Cases   []Case `json:"cases"`
}

// Case is a workload.
type Case struct {
	Workload rowmap.Workload               `json:"workload"`
	Costs    map[rowmap.Stored]rowmap.Cost `json:"costs"`
	Answers  []Answer                      `json:"answers"`
}

// Answer is an approach to it.
type Answer struct {
	Approach rowmap.Approach `json:"approach"`
	rowmap.Answers
	// MaxRSS is the most resident memory of the whole process, with its questions.
	MaxRSS int64 `json:"max_rss_bytes"`
	// Load is the load average of the machine at the end.
	Load string `json:"load"`
}

// Load reads what Save wrote.
func Load(path string) (Report, error) {
	var r Report
	b, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(b, &r)
	}
	return r, err
}

// Save writes the report beside path, as .json and as .txt.
func (r *Report) Save(path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	b, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(path+".json", append(b, '\n'), 0o644); err != nil {
		return err
	}
	return os.WriteFile(path+".txt", []byte(r.Text()), 0o644)
}

// Add adds a case, or replaces the one of the same workload.
func (r *Report) Add(c Case) {
	if i := slices.IndexFunc(r.Cases, func(o Case) bool { return o.Workload == c.Workload }); i >= 0 {
		r.Cases[i] = c
	} else {
		r.Cases = append(r.Cases, c)
	}
	// One compaction before stacked ones before shuffled ones, then by size.
	slices.SortStableFunc(r.Cases, func(a, b Case) int {
		return cmp.Or(
			cmp.Compare(order(a.Workload), order(b.Workload)),
			cmp.Compare(a.Workload.Rows, b.Workload.Rows),
			cmp.Compare(a.Workload.DeletedPercent, b.Workload.DeletedPercent),
			-cmp.Compare(a.Workload.Pattern[:1], b.Workload.Pattern[:1]), // scattered, regular, clustered
		)
	})
}

func order(w rowmap.Workload) int {
	if w.Shuffled {
		return math.MaxInt
	}
	return w.Stacked
}

// Of returns the answer of an approach.
func (c Case) Of(stored rowmap.Stored, form rowmap.Form) (Answer, bool) {
	i := slices.IndexFunc(c.Answers, func(a Answer) bool { return a.Approach == rowmap.Approach{Stored: stored, Form: form} })
	if i < 0 {
		return Answer{}, false
	}
	return c.Answers[i], true
}

// FRI returns the reuse index's answer.
func (c Case) FRI() (Answer, bool) { return c.Of(rowmap.StoredFRI, rowmap.FormFRI) }

// Text prints everything for people.
func (r *Report) Text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "Command: %s\nMachine: %s\nDate: %s\n", r.Command, r.Machine, r.Date)
	for _, c := range r.Cases {
		fmt.Fprintf(&b, "\n%v\n", c.Workload)
		w := tabwriter.NewWriter(&b, 2, 0, 2, ' ', 0)
		fmt.Fprintln(w, "  stored\tlast commit\tall commits\tto read\tbuild\t")
		for _, s := range []rowmap.Stored{rowmap.StoredFRI, rowmap.StoredPlain, rowmap.StoredPacked} {
			k, ok := c.Costs[s]
			if !ok {
				continue
			}
			if k.Refused != "" {
				fmt.Fprintf(w, "  %s\tcannot express it\t\t\t\t\n", s)
				continue
			}
			fmt.Fprintf(w, "  %s\t%s\t%s\t%s\t%s\t%s\n", s, Bytes(k.Last), Bytes(k.Total), Bytes(k.Kept), Time(k.Build), tried(k))
		}
		_ = w.Flush()
		fmt.Fprintln(w, "  decoded\topen\tfirst answer\tall decoded\tlive heap\tpeak\trandom ns\tsorted ns\tbatch M/s\tdense M/s\trebase cold (warm)\tmax RSS\tload")
		for _, a := range c.Answers {
			fmt.Fprintf(w, "  %v\t%s\t%s\t%s\t%s\t%s\t%.1f\t%.1f\t%.0f\t%.0f\t%s\t%s\t%s\n", a.Approach, Time(a.Open), Time(a.FirstAnswer), Time(a.AllDecoded),
				Bytes(a.Live), Bytes(a.Peak), a.Random, a.Sorted, a.Batch/1e6, a.Dense/1e6, rebases(a), Bytes(uint64(a.MaxRSS)), a.Load)
		}
		_ = w.Flush()
	}
	fmt.Fprintf(&b, "\nTargets\n")
	w := tabwriter.NewWriter(&b, 2, 0, 2, ' ', 0)
	for _, t := range r.Targets() {
		verdict := "met"
		if !t.Met {
			verdict = "MISSED"
		}
		fmt.Fprintf(w, "  %v\t%s\t%s\t%s\n", t.Workload, t.What, t.Got, verdict)
	}
	_ = w.Flush()
	return b.String()
}

func tried(k rowmap.Cost) string {
	if k.Coding == "" {
		return ""
	}
	var s []string
	for name, n := range k.Tried {
		s = append(s, fmt.Sprintf("%s %s", name, Bytes(uint64(n))))
	}
	slices.Sort(s)
	return k.Coding + " (first map: " + strings.Join(s, ", ") + ")"
}

func rebases(a Answer) string {
	var s []string
	for _, r := range a.Rebases {
		added := ""
		if r.Added {
			added = "+"
		}
		s = append(s, fmt.Sprintf("%d: %s%s (%s)", r.Rows, Time(r.Cold), added, Time(r.Warm)))
	}
	return strings.Join(s, ", ")
}

// Bytes prints a size with three digits.
func Bytes(n uint64) string {
	v, unit := float64(n), "B"
	for _, u := range []string{"kB", "MB", "GB"} {
		if v < 1000 {
			break
		}
		v, unit = v/1000, u
	}
	return digits(v) + " " + unit
}

// Time prints a duration with three digits.
func Time(d time.Duration) string {
	v, unit := float64(d), "ns"
	for _, u := range []string{"µs", "ms", "s"} {
		if v < 1000 {
			break
		}
		v, unit = v/1000, u
	}
	return digits(v) + " " + unit
}

func digits(v float64) string {
	switch {
	case v >= 99.95 || v == float64(int(v)):
		return fmt.Sprintf("%.0f", v)
	case v >= 9.995:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.2f", v)
}
