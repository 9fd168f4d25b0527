package rowmap

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/rehome-db/rehome/deletion"
	"github.com/rehome-db/rehome/fri"
	"github.com/rehome-db/rehome/table"
)

// Pattern is how deleted rows lie.
type Pattern string

const (
	// Scattered: each row is deleted or not by chance.
	Scattered Pattern = "scattered"
	// Clustered: deleted rows lie in runs, 500 long on average.
	Clustered Pattern = "clustered"
	// Regular: every n-th row.
	Regular Pattern = "regular"
)

// Workload describes a table and its compactions. The same workload is the same
// rows everywhere.
type Workload struct {
	// Rows that the first compaction moves, roughly.
	Rows uint64 `json:"rows"`
	// DeletedPercent of the rows are deleted by the end. The default is none.
	DeletedPercent float64 `json:"deleted_percent"`
	// Pattern of the deletions. The default is Scattered.
	Pattern Pattern `json:"pattern"`
	// Stacked is the number of compactions, each of which rewrites what the one
	// before wrote; the deletions are shared out among them. The default is 1.
	Stacked int `json:"stacked"`
	// Shuffled rewrites give the rows of a group a new order. The default is false.
	Shuffled bool `json:"shuffled,omitempty"`
	// SourceRows are the physical rows of a fragment before the first compaction.
	// The default is 100,000.
	SourceRows uint64 `json:"source_rows"`
	// GroupSources are the fragments that become one. The default is 10.
	GroupSources int `json:"group_sources"`
	// Seed of what is drawn. The default is 0.
	Seed uint64 `json:"seed,omitempty"`
}

// EnsureDefaults fills in what is not set.
func (w *Workload) EnsureDefaults() {
	if w.Pattern == "" {
		w.Pattern = Scattered
	}
	if w.Stacked == 0 {
		w.Stacked = 1
	}
	if w.SourceRows == 0 {
		w.SourceRows = 100_000
	}
	if w.GroupSources == 0 {
		w.GroupSources = 10
	}
}

// Validate says what cannot be.
func (w *Workload) Validate() error {
	switch {
	case w.Rows == 0:
		return fmt.Errorf("rowmap: a workload of no rows")
	case w.DeletedPercent < 0 || w.DeletedPercent >= 100:
		return fmt.Errorf("rowmap: %g %% of the rows deleted", w.DeletedPercent)
	case w.Pattern != Scattered && w.Pattern != Clustered && w.Pattern != Regular:
		return fmt.Errorf("rowmap: no pattern %q", w.Pattern)
	case w.Stacked < 1 || w.GroupSources < 1:
		return fmt.Errorf("rowmap: %d compactions of groups of %d", w.Stacked, w.GroupSources)
	case w.SourceRows == 0 || w.SourceRows*uint64(w.GroupSources) > math.MaxUint32:
		return fmt.Errorf("rowmap: %d fragments of %d rows become one", w.GroupSources, w.SourceRows)
	}
	return nil
}

// String names the workload in results.
func (w Workload) String() string {
	s := fmt.Sprintf("%d rows, %g %%", w.Rows, w.DeletedPercent)
	if w.DeletedPercent > 0 {
		s += " " + string(w.Pattern)
	}
	if w.Stacked > 1 {
		s += fmt.Sprintf(", %d stacked", w.Stacked)
	}
	if w.Shuffled {
		s += ", shuffled"
	}
	return s
}

// Compactions makes the groups of each compaction.
func (w Workload) Compactions() ([][]Group, error) {
	w.EnsureDefaults()
	if err := w.Validate(); err != nil {
		return nil, err
	}
	rng := rand.New(rand.NewPCG(w.Seed, w.Rows))
	share := w.DeletedPercent / 100
	// What each compaction finds deleted of what the one before left.
	step := 1 - math.Pow(1-share, 1/float64(w.Stacked))
	physical := uint64(math.Ceil(float64(w.Rows) / (1 - step)))
	next := table.FragmentID(0)
	var sources [][]fri.Digest
	for left := physical; left > 0; {
		n := min(left, w.SourceRows)
		left -= n
		if len(sources) == 0 || len(sources[len(sources)-1]) == w.GroupSources {
			sources = append(sources, nil)
		}
		last := &sources[len(sources)-1]
		*last = append(*last, fri.Digest{ID: next, PhysicalRows: n})
		next++
	}
	var out [][]Group
	for range w.Stacked {
		var groups []Group
		var written [][]fri.Digest
		for _, ds := range sources {
			g := Group{Sources: ds}
			for i := range ds {
				v := w.delete(rng, ds[i].PhysicalRows, step)
				ds[i].DeletedRows = v.Cardinality()
				g.Deleted = append(g.Deleted, v)
			}
			if n := moved([]Group{g}); n > 0 {
				g.Destinations = []fri.Digest{{ID: next, PhysicalRows: n}}
				written = append(written, []fri.Digest{{ID: next, PhysicalRows: n}})
				next++
				if w.Shuffled {
					g.Order = permutation(rng, n)
				}
			}
			groups = append(groups, g)
		}
		out = append(out, groups)
		sources = written
	}
	return out, nil
}

func permutation(rng *rand.Rand, n uint64) []uint32 {
	out := make([]uint32, n)
	for i := range out {
		out[i] = uint32(i)
	}
	rng.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
	return out
}

// meanCluster is the average length of a run of deleted rows.
const meanCluster = 500

func (w Workload) delete(rng *rand.Rand, rows uint64, share float64) *deletion.Vector {
	if share == 0 {
		return nil
	}
	var dead []uint32
	switch w.Pattern {
	case Regular:
		every := max(2, uint64(math.Round(1/share)))
		for r := every - 1; r < rows; r += every {
			dead = append(dead, uint32(r))
		}
	case Clustered:
		// Runs of live and of dead rows in turns, of lengths up to twice the mean.
		live := uint64(math.Round(meanCluster * (1 - share) / share))
		for r := rng.Uint64N(2*live + 1); r < rows; r += 1 + rng.Uint64N(2*live+1) {
			for n := 1 + rng.Uint64N(2*meanCluster); n > 0 && r < rows; n, r = n-1, r+1 {
				dead = append(dead, uint32(r))
			}
		}
	default:
		for r := range rows {
			if rng.Float64() < share {
				dead = append(dead, uint32(r))
			}
		}
	}
	return deletion.Of(dead...)
}
