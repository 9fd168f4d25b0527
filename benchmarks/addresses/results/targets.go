package results

import (
	"fmt"

	"github.com/rehome-db/rehome/benchmarks/rowmap"
)

// Target is something that a case has to show.
type Target struct {
	Workload rowmap.Workload
	What     string
	Got      string
	Met      bool
}

// What a reuse index has to be, compared with maps.
const (
	plainUpTo10   = 100 // times fewer bytes than plain pairs, up to 10 % deleted
	plainAt50     = 50  // the same at every second row
	packedAtMost  = 1.5 // times the bytes of the packed map
	fasterToFirst = 100 // times sooner with the first answer than the packed map
	lessMemory    = 50  // times smaller than the packed map, decoded
	fasterLookup  = 4   // times faster than a Go map
)

// Targets holds each case of one compaction against the targets, a map counted
// with both its copies. For the time to the first answer the map is the packed one
// (the plain one where the packed one was not decoded to a Go map), which for a
// sorted array is the faster to open. The memory of the index includes the stored
// bytes that it keeps pointing into. A map decoded to runs is a rank structure
// under another name: it is shown, not judged.
func (r *Report) Targets() []Target {
	var out []Target
	for _, c := range r.Cases {
		w := c.Workload
		index, ok := c.FRI()
		if !ok || w.Stacked > 1 {
			continue
		}
		add := func(what string, got, want float64, atLeast bool) {
			out = append(out, Target{Workload: w, What: what, Got: fmt.Sprintf("%.3g", got), Met: got >= want == atLeast || got == want})
		}
		bytes := float64(c.Costs[rowmap.StoredFRI].Last)
		if plain, ok := c.Costs[rowmap.StoredPlain]; ok {
			want := float64(plainUpTo10)
			if w.DeletedPercent > 10 {
				want = plainAt50
			}
			add(fmt.Sprintf("plain pairs take at least %g times the bytes", want), float64(plain.Last)/bytes, want, true)
			add(fmt.Sprintf("plain pairs, one copy only: at least %g times", want), float64(plain.Last)/2/bytes, want, true)
		}
		if packed, ok := c.Costs[rowmap.StoredPacked]; ok {
			add(fmt.Sprintf("at most %g times the bytes of packed pairs", packedAtMost), bytes/float64(packed.Last), packedAtMost, false)
		}
		for _, m := range []struct {
			name string
			form rowmap.Form
		}{{"a Go map", rowmap.FormHash}, {"a sorted array", rowmap.FormSorted}} {
			a, ok := c.Of(rowmap.StoredPacked, m.form)
			if !ok {
				if a, ok = c.Of(rowmap.StoredPlain, m.form); !ok {
					continue
				}
			}
			add(fmt.Sprintf("first answer at least %d times sooner than from packed pairs as %s", fasterToFirst, m.name), float64(a.FirstAnswer)/float64(index.FirstAnswer), fasterToFirst, true)
			add(fmt.Sprintf("memory at least %d times smaller than %s", lessMemory, m.name), float64(a.Live)/float64(max(index.Live, 1)), lessMemory, true)
		}
		if a, ok := c.Of(rowmap.StoredPlain, rowmap.FormHash); ok {
			add(fmt.Sprintf("random lookups at least %d times faster than a Go map", fasterLookup), a.Random/index.Random, fasterLookup, true)
			if w.Rows == 10_000_000 && w.DeletedPercent == 10 {
				add("random lookup in at most 20 ns", index.Random, 20, false)
			}
		}
		if w.DeletedPercent > 0 {
			want := 60.0
			if w.Pattern == rowmap.Clustered {
				want = 200
			}
			add(fmt.Sprintf("sorted batches of at least %g M addresses a second, drawn from everywhere", want), index.Batch/1e6, want, true)
			add(fmt.Sprintf("sorted batches of at least %g M addresses a second, consecutive rows", want), index.Dense/1e6, want, true)
		}
		decoded := index.Live - min(index.Live, c.Costs[rowmap.StoredFRI].Kept)
		add("decoded segments at most 0.2 bytes a moved row", float64(decoded)/float64(w.Rows), 0.2, false)
	}
	return out
}
