package fri_test

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rehome-db/rehome/deletion"
	"github.com/rehome-db/rehome/fri"
	"github.com/rehome-db/rehome/table"
)

// benchHistory is one compaction of ten fragments into two, a million rows moved
// and one in ten deleted, either scattered or in runs of a thousand.
func benchHistory(b testing.TB, scattered bool) (*fri.History, []table.RowAddr) {
	const fragments, rows = 10, 111112
	rng := rand.New(rand.NewPCG(1, 2))
	var builder fri.Builder
	var addrs []table.RowAddr
	moved := uint64(0)
	for id := range table.FragmentID(fragments) {
		var dead []uint32
		for o := range uint32(rows) {
			if scattered && rng.IntN(10) == 0 || !scattered && o/1000%10 == 3 {
				dead = append(dead, o)
			}
			addrs = append(addrs, table.NewRowAddr(id, o))
		}
		d := fri.Digest{ID: id, PhysicalRows: rows, DeletedRows: uint64(len(dead))}
		require.NoError(b, builder.AddSource(d, deletion.Of(dead...)))
		moved += d.LiveRows()
	}
	tr, err := builder.Build([]fri.Digest{{ID: 100, PhysicalRows: moved / 2}, {ID: 101, PhysicalRows: moved - moved/2}})
	require.NoError(b, err)
	h, err := (&fri.History{}).Append(2, tr)
	require.NoError(b, err)
	return h, addrs
}

// BenchmarkTranslate compares the index with a Go map of the same million moves,
// asked for the same addresses in random order.
func BenchmarkTranslate(b *testing.B) {
	for _, c := range []struct {
		name      string
		scattered bool
	}{{"scattered", true}, {"clustered", false}} {
		h, addrs := benchHistory(b, c.scattered)
		byMap := make(map[table.RowAddr]fri.Translation, len(addrs))
		for _, a := range addrs {
			byMap[a] = h.Translate(a)
		}
		rand.New(rand.NewPCG(3, 4)).Shuffle(len(addrs), func(i, j int) { addrs[i], addrs[j] = addrs[j], addrs[i] })
		b.Run(c.name+"/fri", func(b *testing.B) {
			b.ReportAllocs()
			i, moved := 0, 0
			for b.Loop() {
				if h.Translate(addrs[i]).State == fri.Moved {
					moved++
				}
				if i++; i == len(addrs) {
					i = 0
				}
			}
			b.ReportMetric(float64(fri.SegmentBytes(h))/float64(h.At(0).MovedRows()), "B/row")
			b.ReportMetric(float64(h.At(0).EncodedSize()), "stored-B")
		})
		b.Run(c.name+"/map", func(b *testing.B) {
			i, moved := 0, 0
			for b.Loop() {
				if byMap[addrs[i]].State == fri.Moved {
					moved++
				}
				if i++; i == len(addrs) {
					i = 0
				}
			}
		})
	}
}

// BenchmarkDecode opens a history of 200 transitions over 20 million rows, a tenth
// of them deleted.
func BenchmarkDecode(b *testing.B) {
	h := &fri.History{}
	for i := range table.FragmentID(200) {
		var builder fri.Builder
		dead := deletion.Of()
		for start := uint64(0); start < 100000; start += 1000 {
			dead = dead.Union(deletion.Range(start, start+100))
		}
		d := fri.Digest{ID: 2 * i, PhysicalRows: 100000, DeletedRows: dead.Cardinality()}
		require.NoError(b, builder.AddSource(d, dead))
		tr, err := builder.Build([]fri.Digest{{ID: 2*i + 1, PhysicalRows: d.LiveRows()}})
		require.NoError(b, err)
		h, err = h.Append(uint64(i), tr)
		require.NoError(b, err)
	}
	content := h.Encode()
	b.SetBytes(int64(len(content)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := fri.Decode(content, 0); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkBuild makes the transition of a million rows, a tenth of them deleted
// here and there.
func BenchmarkBuild(b *testing.B) {
	const rows = 1 << 20
	var offsets []uint32
	rng := rand.New(rand.NewPCG(1, 2))
	for o := range uint32(rows) {
		if rng.IntN(10) == 0 {
			offsets = append(offsets, o)
		}
	}
	dead := deletion.Of(offsets...)
	d := fri.Digest{ID: 0, PhysicalRows: rows, DeletedRows: dead.Cardinality()}
	for b.Loop() {
		var builder fri.Builder
		if err := builder.AddSource(d, dead); err != nil {
			b.Fatal(err)
		}
		if _, err := builder.Build([]fri.Digest{{ID: 1, PhysicalRows: d.LiveRows()}}); err != nil {
			b.Fatal(err)
		}
	}
}
