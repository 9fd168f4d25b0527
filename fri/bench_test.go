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
