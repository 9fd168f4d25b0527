package remap_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/RoaringBitmap/roaring/v2/roaring64"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"

	"github.com/rehome-db/rehome/deletion"
	"github.com/rehome-db/rehome/fri"
	"github.com/rehome-db/rehome/remap"
	"github.com/rehome-db/rehome/table"
)

// benchHistory is so many stacked compactions of all fragments, the first of which
// drops a tenth of two million rows, scattered or in runs of a hundred.
func benchHistory(b testing.TB, scattered bool, transitions int) (*fri.History, []table.RowAddr) {
	const fragments, rows = 4, 500000
	rng := rand.New(rand.NewPCG(1, 2))
	var addrs []table.RowAddr
	var sources []fri.Digest
	var builder fri.Builder
	for id := range table.FragmentID(fragments) {
		var dead []uint32
		for o := range uint32(rows) {
			if scattered && rng.IntN(10) == 0 || !scattered && o/100%10 == 3 {
				dead = append(dead, o)
			}
			addrs = append(addrs, table.NewRowAddr(id, o))
		}
		sources = append(sources, fri.Digest{ID: id, PhysicalRows: rows, DeletedRows: uint64(len(dead))})
		require.NoError(b, builder.AddSource(sources[id], deletion.Of(dead...)))
	}
	h := &fri.History{}
	next := table.FragmentID(fragments)
	for i := range transitions {
		if i > 0 {
			for _, s := range sources {
				require.NoError(b, builder.AddSource(s, nil))
			}
		}
		var live uint64
		for _, s := range sources {
			live += s.LiveRows()
		}
		sources = []fri.Digest{{ID: next, PhysicalRows: live / 2}, {ID: next + 1, PhysicalRows: live - live/2}}
		next += 2
		tr, err := builder.Build(sources)
		require.NoError(b, err)
		h, err = h.Append(uint64(i+2), tr)
		require.NoError(b, err)
		builder = fri.Builder{}
	}
	return h, addrs
}

func benchEach(b *testing.B, run func(b *testing.B, h *fri.History, addrs []table.RowAddr)) {
	for _, c := range []struct {
		scattered   bool
		transitions int
	}{{false, 1}, {true, 1}, {true, 20}} {
		how := "clustered"
		if c.scattered {
			how = "scattered"
		}
		b.Run(fmt.Sprintf("%s/transitions=%d", how, c.transitions), func(b *testing.B) {
			h, addrs := benchHistory(b, c.scattered, c.transitions)
			run(b, h, addrs)
		})
	}
}

// perAddr reports the time and the rate of an operation on n addresses.
func perAddr(b *testing.B, n int) {
	perOp := float64(b.Elapsed().Nanoseconds()) / float64(b.N)
	b.ReportMetric(perOp/float64(n), "ns/addr")
	b.ReportMetric(float64(n)/perOp*1e3, "Maddr/s")
}

// BenchmarkSlice compares in-place translation with a Go map of the same moves.
// Copying the input back is not part of the time.
func BenchmarkSlice(b *testing.B) {
	benchEach(b, func(b *testing.B, h *fri.History, addrs []table.RowAddr) {
		shuffled := slices.Clone(addrs)
		rand.New(rand.NewPCG(3, 4)).Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
		byMap := make(map[table.RowAddr]fri.Translation, len(addrs))
		for _, a := range addrs {
			byMap[a] = h.Translate(a)
		}
		viaMap := func(in []table.RowAddr) {
			out := in[:0]
			for _, a := range in {
				if t, ok := byMap[a]; !ok {
					out = append(out, a)
				} else if t.State != fri.Deleted {
					out = append(out, t.Addr)
				}
			}
		}
		buf := make([]table.RowAddr, len(addrs))
		r := remap.New(h, remap.Options{Unchecked: true})
		for _, c := range []struct {
			name string
			in   []table.RowAddr
			run  func([]table.RowAddr)
		}{
			{"sorted/fri", addrs, func(in []table.RowAddr) { _, _, _ = remap.Sorted(r, in) }},
			{"sorted/map", addrs, viaMap},
			{"random/fri", shuffled, func(in []table.RowAddr) { _, _, _ = remap.Slice(r, in) }},
			{"random/map", shuffled, viaMap},
		} {
			b.Run(c.name, func(b *testing.B) {
				for b.Loop() {
					b.StopTimer()
					copy(buf, c.in)
					b.StartTimer()
					c.run(buf)
				}
				perAddr(b, len(c.in))
			})
		}
	})
}

func BenchmarkArray(b *testing.B) {
	benchEach(b, func(b *testing.B, h *fri.History, addrs []table.RowAddr) {
		builder := array.NewUint64Builder(memory.DefaultAllocator)
		for _, a := range addrs {
			builder.Append(uint64(a))
		}
		arr := builder.NewUint64Array()
		r := remap.New(h, remap.Options{Unchecked: true})
		for b.Loop() {
			out, _, err := r.Array(arr)
			if err != nil {
				b.Fatal(err)
			}
			out.Release()
		}
		perAddr(b, len(addrs))
	})
}

// BenchmarkBitmap translates all rows, and every 50th.
func BenchmarkBitmap(b *testing.B) {
	benchEach(b, func(b *testing.B, h *fri.History, addrs []table.RowAddr) {
		r := remap.New(h, remap.Options{Unchecked: true})
		for _, every := range []int{1, 50} {
			bm := roaring64.New()
			for i := 0; i < len(addrs); i += every {
				bm.Add(uint64(addrs[i]))
			}
			bm.RunOptimize()
			b.Run(fmt.Sprintf("every=%d", every), func(b *testing.B) {
				for b.Loop() {
					if _, _, err := r.Bitmap(bm); err != nil {
						b.Fatal(err)
					}
				}
				perAddr(b, len(addrs)/every)
			})
		}
	})
}

func BenchmarkAddr(b *testing.B) {
	benchEach(b, func(b *testing.B, h *fri.History, addrs []table.RowAddr) {
		rand.New(rand.NewPCG(3, 4)).Shuffle(len(addrs), func(i, j int) { addrs[i], addrs[j] = addrs[j], addrs[i] })
		r := remap.New(h, remap.Options{Unchecked: true})
		b.ReportAllocs()
		i, deleted := 0, 0
		for b.Loop() {
			t, err := r.Addr(addrs[i])
			if err != nil {
				b.Fatal(err)
			}
			if t.State == fri.Deleted {
				deleted++
			}
			if i++; i == len(addrs) {
				i = 0
			}
		}
	})
}
