package rows

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/rehome-db/rehome/deletion"
	"github.com/rehome-db/rehome/lance/datafile/level"
	"github.com/rehome-db/rehome/lance/schema"
	"github.com/rehome-db/rehome/table"
)

// The live rows of blocks, however blocks and deletions fall, are those that are
// not deleted, in order, and so are their addresses.
func TestLiveRowsOfBlocks(t *testing.T) {
	leaf := schema.Leaf{
		FieldID: 0, Path: "v",
		Type:   level.Type{Kind: level.Fixed, Bits: 32},
		Layers: []level.Layer{level.AllValidItem},
	}
	rapid.Check(t, func(t *rapid.T) {
		sizes := rapid.SliceOfN(rapid.IntRange(0, 9), 0, 20).Draw(t, "block sizes")
		var blocks []*level.Block
		total := uint32(0)
		for _, n := range sizes {
			b := &level.Block{Type: leaf.Type, Rows: n, Layers: leaf.Layers, Values: level.Values{N: n}}
			for range n {
				b.Values.Data = binary.LittleEndian.AppendUint32(b.Values.Data, total)
				total++
			}
			blocks = append(blocks, b)
		}
		var dead []uint32
		var want []uint32
		var addrs []table.RowAddr
		for i := range total {
			if rapid.IntRange(0, 2).Draw(t, "dies") == 0 {
				dead = append(dead, i)
			} else {
				want = append(want, i)
				addrs = append(addrs, table.NewRowAddr(7, i))
			}
		}
		v := deletion.Of(dead...)
		source := func(yield func(*level.Block, error) bool) {
			for _, b := range blocks {
				if !yield(b, nil) {
					return
				}
			}
		}
		var got []uint32
		for b, err := range liveOnly(source, leaf, v, uint64(total)) {
			if err != nil {
				t.Fatal(err)
			}
			for i := range b.Rows {
				got = append(got, binary.LittleEndian.Uint32(b.Values.Data[4*i:]))
			}
		}
		if len(want)+len(got) > 0 {
			require.Equal(t, want, got)
		}
		a := newAddresses(table.Fragment{ID: 7, PhysicalRows: uint64(total)}, v)
		defer a.stop()
		var gotAddrs []table.RowAddr
		for {
			part := a.next(rapid.IntRange(1, 5).Draw(t, "addresses"))
			if len(part) == 0 {
				break
			}
			gotAddrs = append(gotAddrs, part...)
		}
		require.Equal(t, addrs, gotAddrs)
	})
}
