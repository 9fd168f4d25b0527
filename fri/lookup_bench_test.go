package fri_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rehome-db/rehome/deletion"
	"github.com/rehome-db/rehome/fri"
	"github.com/rehome-db/rehome/table"
)

// The benchmarks of this file are about ten million moved rows:
//
//	go test -run '^$' -bench 'Lookup|Sorted|FirstAnswer' -benchmem -count 5 ./fri
const movedRows = 10_000_000

// workload is one rewrite of fragments of a million rows into others, as a history
// that was read back from its bytes.
type workload struct {
	content  []byte
	addrs    []table.RowAddr // of all rows, deleted ones included, ascending
	moved    uint64
	physical uint64
}

// pattern says how rows were deleted.
type pattern struct {
	name      string
	percent   int
	clustered bool
}

var patterns = []pattern{{"none", 0, false}, {"1%scattered", 1, false}, {"10%scattered", 10, false}, {"10%clustered", 10, true}, {"50%scattered", 50, false}, {"50%clustered", 50, true}}

func (p pattern) dead(rows uint64, rng *rand.Rand) *deletion.Vector {
	var offsets []uint32
	for o := range uint32(rows) {
		if p.clustered && int(o/1000%100*37%100) < p.percent || !p.clustered && rng.IntN(100) < p.percent {
			offsets = append(offsets, o)
		}
	}
	return deletion.Of(offsets...)
}

func newWorkload(t testing.TB, p pattern) *workload {
	const fragmentRows = 1_000_000
	w := &workload{}
	rng := rand.New(rand.NewPCG(1, 2))
	var b fri.Builder
	for id := table.FragmentID(0); w.moved < movedRows; id++ {
		dead := p.dead(fragmentRows, rng)
		d := fri.Digest{ID: id, PhysicalRows: fragmentRows, DeletedRows: dead.Cardinality()}
		require.NoError(t, b.AddSource(d, dead))
		w.moved += d.LiveRows()
		w.physical += fragmentRows
		for o := range uint32(fragmentRows) {
			w.addrs = append(w.addrs, table.NewRowAddr(id, o))
		}
	}
	var dests []fri.Digest
	for left := w.moved; left > 0; left -= dests[len(dests)-1].PhysicalRows {
		dests = append(dests, fri.Digest{ID: table.FragmentID(100 + len(dests)), PhysicalRows: min(left, fragmentRows)})
	}
	tr, err := b.Build(dests)
	require.NoError(t, err)
	h, err := (&fri.History{}).Append(2, tr)
	require.NoError(t, err)
	w.content = h.Encode()
	return w
}

func (w *workload) open(t testing.TB) *fri.History {
	h, err := fri.Decode(w.content, 0)
	require.NoError(t, err)
	return h
}

func shuffled(addrs []table.RowAddr, n int) []table.RowAddr {
	out := slices.Clone(addrs)
	rand.New(rand.NewPCG(3, 4)).Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
	return out[:min(n, len(out))]
}

// BenchmarkLookup asks for single addresses in random order, and a Go map of the
// moved ones for the same.
func BenchmarkLookup(b *testing.B) {
	for _, p := range patterns {
		w := newWorkload(b, p)
		addrs := shuffled(w.addrs, 1<<22)
		const mask = 1<<22 - 1
		h := w.open(b)
		b.Run(p.name+"/history", func(b *testing.B) {
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				sink = h.Translate(addrs[i&mask])
			}
			b.ReportMetric(float64(fri.SegmentBytes(h))/float64(w.moved), "decoded-B/row")
			b.ReportMetric(float64(len(w.content))/float64(w.moved), "stored-B/row")
		})
		tr := h.Translator()
		b.Run(p.name+"/translator", func(b *testing.B) {
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				sink, _ = tr.Translate(addrs[i&mask])
			}
		})
		if p.percent != 10 {
			continue
		}
		byMap := make(map[table.RowAddr]table.RowAddr, w.moved)
		for _, a := range w.addrs {
			if to := h.Translate(a); to.State == fri.Moved {
				byMap[a] = to.Addr
			}
		}
		b.Run(p.name+"/map", func(b *testing.B) {
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				to, ok := byMap[addrs[i&mask]]
				sink = fri.Translation{State: fri.Deleted}
				if ok {
					sink = fri.Translation{State: fri.Moved, Addr: to}
				}
			}
		})
	}
}

var sink fri.Translation

// BenchmarkSorted translates sorted batches: every row (dense), and one of a
// hundred (sparse).
func BenchmarkSorted(b *testing.B) {
	for _, p := range patterns {
		w := newWorkload(b, p)
		h := w.open(b)
		for name, addrs := range map[string][]table.RowAddr{"dense": w.addrs[:1<<22], "sparse": thinned(w.addrs, 100)} {
			tr := h.Translator()
			batch, states := make([]table.RowAddr, len(addrs)), make([]fri.State, len(addrs))
			b.Run(fmt.Sprintf("%s/%s", p.name, name), func(b *testing.B) {
				for b.Loop() {
					// A copy is part of the time: a batch is translated in place.
					copy(batch, addrs)
					if err := tr.TranslateSorted(batch, states); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(len(addrs))*float64(b.N)/b.Elapsed().Seconds()/1e6, "Maddr/s")
			})
		}
	}
}

func thinned(addrs []table.RowAddr, every int) []table.RowAddr {
	var out []table.RowAddr
	rng := rand.New(rand.NewPCG(5, 6))
	for i := rng.IntN(every); i < len(addrs); i += 1 + rng.IntN(2*every-1) {
		out = append(out, addrs[i])
	}
	return out
}

// BenchmarkFirstAnswer opens a history and asks it one question.
func BenchmarkFirstAnswer(b *testing.B) {
	for _, p := range patterns {
		w := newWorkload(b, p)
		b.Run(p.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				h, err := fri.Decode(w.content, 0)
				if err != nil {
					b.Fatal(err)
				}
				sink = h.Translate(w.addrs[len(w.addrs)/2])
			}
		})
	}
}

// BenchmarkOpen opens a history of 200 rewrites of half a million rows each.
func BenchmarkOpen(b *testing.B) {
	for _, p := range patterns {
		rng := rand.New(rand.NewPCG(1, 2))
		h := &fri.History{}
		dead := p.dead(500_000, rng)
		for i := range table.FragmentID(200) {
			var builder fri.Builder
			d := fri.Digest{ID: 2 * i, PhysicalRows: 500_000, DeletedRows: dead.Cardinality()}
			require.NoError(b, builder.AddSource(d, dead))
			tr, err := builder.Build([]fri.Digest{{ID: 2*i + 1, PhysicalRows: d.LiveRows()}})
			require.NoError(b, err)
			h, err = h.Append(uint64(i), tr)
			require.NoError(b, err)
		}
		content := h.Encode()
		b.Run(p.name, func(b *testing.B) {
			b.ReportAllocs()
			b.ReportMetric(float64(len(content)), "stored-B")
			for b.Loop() {
				if _, err := fri.Decode(content, 0); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkRuns composes the runs of a fragment of a million rows through fifty
// rewrites.
func BenchmarkRuns(b *testing.B) {
	h, id := &fri.History{}, table.FragmentID(0)
	rows := uint64(1_000_000)
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range 50 {
		var builder fri.Builder
		var offsets []uint32
		for o := range uint32(rows) {
			if rng.IntN(1000) == 0 {
				offsets = append(offsets, o)
			}
		}
		d := fri.Digest{ID: id, PhysicalRows: rows, DeletedRows: uint64(len(offsets))}
		require.NoError(b, builder.AddSource(d, deletion.Of(offsets...)))
		id, rows = id+1, d.LiveRows()
		tr, err := builder.Build([]fri.Digest{{ID: id, PhysicalRows: rows}})
		require.NoError(b, err)
		h, err = h.Append(uint64(i), tr)
		require.NoError(b, err)
	}
	tr := h.Translator()
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		n = 0
		for _, err := range tr.Runs(0) {
			if err != nil {
				b.Fatal(err)
			}
			n++
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/run")
	b.ReportMetric(float64(n), "runs")
}
