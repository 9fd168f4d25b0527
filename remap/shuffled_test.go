package remap

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/rehome-db/rehome/table"
)

func TestRadixSortSortsAndKeepsPlaces(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		mask := rapid.SampledFrom([]uint64{0, 0xff, 0x7ff << 11, 0xffff_0000_ffff, ^uint64(0)}).Draw(t, "bits that differ")
		addrs := rapid.SliceOf(rapid.Map(rapid.Uint64(), func(v uint64) table.RowAddr { return table.RowAddr(v & mask) })).Draw(t, "addresses")
		entries := make([]entry, len(addrs))
		for i, a := range addrs {
			entries[i] = entry{a, uint32(i)}
		}
		got := radixSort(entries, make([]entry, len(addrs)))
		require.Len(t, got, len(addrs))
		require.True(t, slices.IsSortedFunc(got, func(a, b entry) int {
			if a.addr != b.addr {
				return map[bool]int{true: -1, false: 1}[a.addr < b.addr]
			}
			return int(a.at) - int(b.at)
		}))
		for _, e := range got {
			require.Equal(t, addrs[e.at], e.addr)
		}
	})
}
