package fastlanes

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/rehome-db/rehome/table"
)

// naiveUnpack follows the definition of the layout bit by bit, the other way
// round than naivePack.
func naiveUnpack(src []byte, valueBits, width int) []byte {
	dst := make([]byte, 128*valueBits)
	lanes := 1024 / valueBits
	for lane := range lanes {
		for row := range valueBits {
			value := []int{0, 4, 2, 6, 1, 5, 3, 7}[row/8]*16 + row%8*128 + lane
			for bit := range width {
				stream := row*width + bit
				from := (stream/valueBits*lanes+lane)*valueBits + stream%valueBits
				to := value*valueBits + bit
				dst[to/8] |= src[from/8] >> (from % 8) & 1 << (to % 8)
			}
		}
	}
	return dst
}

func TestUnpackAgainstDefinition(t *testing.T) {
	seed := uint64(1)
	for _, valueBits := range []int{8, 16, 32, 64} {
		for width := range valueBits + 1 {
			src := make([]byte, 128*width)
			for i := range src {
				seed ^= seed << 13
				seed ^= seed >> 7
				seed ^= seed << 17
				src[i] = byte(seed)
			}
			got := make([]byte, 128*valueBits)
			for i := range got {
				got[i] = 0xa5 // Unpack overwrites
			}
			require.NoError(t, Unpack(got, src, valueBits, width))
			require.Equal(t, naiveUnpack(src, valueBits, width), got, "%d bits in %d", valueBits, width)
		}
	}
}

func TestUnpackUndoesPack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		valueBits := rapid.SampledFrom([]int{8, 16, 32, 64}).Draw(t, "bits")
		src := rapid.SliceOfN(rapid.Byte(), 128*valueBits, 128*valueBits).Draw(t, "values")
		width := Width(src, valueBits)
		packed := make([]byte, 128*width)
		Pack(packed, src, valueBits, width)
		got := make([]byte, len(src))
		require.NoError(t, Unpack(got, packed, valueBits, width))
		require.Equal(t, src, got)
	})
}

func TestUnpackRefuses(t *testing.T) {
	dst := make([]byte, 128*64)
	require.ErrorIs(t, Unpack(dst, make([]byte, 128*16), 24, 3), table.ErrCorrupt)
	require.ErrorIs(t, Unpack(dst, make([]byte, 128*16), 16, 17), table.ErrCorrupt)
	require.ErrorIs(t, Unpack(dst, make([]byte, 128*16), 16, -1), table.ErrCorrupt)
	require.ErrorIs(t, Unpack(dst, make([]byte, 128*5-1), 16, 5), table.ErrCorrupt)
}

func BenchmarkUnpack(b *testing.B) {
	for _, c := range []struct {
		name             string
		valueBits, width int
	}{{"16 from 3", 16, 3}, {"32 from 12", 32, 12}, {"64 from 17", 64, 17}} {
		b.Run(c.name, func(b *testing.B) {
			src, dst := make([]byte, 128*c.width), make([]byte, 128*c.valueBits)
			b.SetBytes(int64(len(dst)))
			for b.Loop() {
				if err := Unpack(dst, src, c.valueBits, c.width); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
