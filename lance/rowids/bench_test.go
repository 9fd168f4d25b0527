package rowids

import (
	"fmt"
	"testing"

	"github.com/rehome-db/rehome/deletion"
	"github.com/rehome-db/rehome/table"
)

// BenchmarkSelect drops dead rows from a fragment's ids, as a compaction does at every
// attempt to commit. The work grows with the runs of live rows.
func BenchmarkSelect(b *testing.B) {
	const rows = 1 << 20
	for _, every := range []uint32{2, 10, 1000, 100_000} {
		dead := deletion.Collect(func(yield func(uint32) bool) {
			for i := uint32(0); i < rows; i += every {
				if !yield(i) {
					return
				}
			}
		})
		b.Run(fmt.Sprintf("one-in-%d-dead", every), func(b *testing.B) {
			for b.Loop() {
				Range(0, rows).Select(dead.Live(rows)).Encode()
			}
		})
	}
}

// BenchmarkFind looks for a thousand ids in a fragment of a million rows.
func BenchmarkFind(b *testing.B) {
	const rows = 1 << 20
	var ids, odd []table.RowID
	for i := range table.RowID(1000) {
		ids = append(ids, i*1000)
	}
	for i := range table.RowID(rows) {
		odd = append(odd, 2*i+1)
	}
	for name, s := range map[string]*Sequence{"range": Range(0, rows), "bitmap": Of(odd...)} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				for range s.Find(ids) {
					continue
				}
			}
		})
	}
}
