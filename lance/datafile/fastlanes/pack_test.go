package fastlanes

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// naivePack follows the definition of the layout bit by bit: in lane l the value
// of row r occupies bits [r*width, (r+1)*width) of a stream, whose word k is word
// lanes*k+l of the block.
func naivePack(src []byte, valueBits, width int) []byte {
	dst := make([]byte, 128*width)
	lanes := 1024 / valueBits
	for lane := range lanes {
		for row := range valueBits {
			value := []int{0, 4, 2, 6, 1, 5, 3, 7}[row/8]*16 + row%8*128 + lane
			for bit := range width {
				from := value*valueBits + bit
				if src[from/8]>>(from%8)&1 == 0 {
					continue
				}
				stream := row*width + bit
				to := (stream/valueBits*lanes+lane)*valueBits + stream%valueBits
				dst[to/8] |= 1 << (to % 8)
			}
		}
	}
	return dst
}

func TestPackAgainstDefinition(t *testing.T) {
	for _, valueBits := range []int{8, 16, 32, 64} {
		for width := range valueBits + 1 {
			seed := uint64(width)*0x9e3779b97f4a7c15 + 1
			src := make([]byte, 128*valueBits)
			for i := range 1024 {
				seed ^= seed << 13
				seed ^= seed >> 7
				seed ^= seed << 17
				var b [8]byte
				binary.LittleEndian.PutUint64(b[:], seed&(1<<width-1))
				copy(src[i*valueBits/8:], b[:valueBits/8])
			}
			got := make([]byte, 128*width)
			for i := range got {
				got[i] = 0xa5 // Pack overwrites
			}
			Pack(got, src, valueBits, width)
			require.Equal(t, naivePack(src, valueBits, width), got, "%d bits in %d", valueBits, width)
		}
	}
}

func TestWidth(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		valueBits := rapid.SampledFrom([]int{8, 16, 32, 64}).Draw(t, "bits")
		limit := rapid.IntRange(0, valueBits).Draw(t, "limit")
		values := rapid.SliceOfN(rapid.Uint64Range(0, 1<<limit-1), 0, 40).Draw(t, "values")
		src := make([]byte, len(values)*valueBits/8+8)
		want := 0
		for i, v := range values {
			binary.LittleEndian.PutUint64(src[i*valueBits/8:], v)
			for v>>want != 0 {
				want++
			}
		}
		require.Equal(t, want, Width(src[:len(values)*valueBits/8], valueBits))
	})
}

func BenchmarkPack64(b *testing.B) {
	src, dst := make([]byte, 8192), make([]byte, 8192)
	b.SetBytes(8192)
	for b.Loop() {
		Pack(dst, src, 64, 21)
	}
}

func BenchmarkPack16(b *testing.B) {
	src, dst := make([]byte, 2048), make([]byte, 2048)
	b.SetBytes(2048)
	for b.Loop() {
		Pack(dst, src, 16, 1)
	}
}
