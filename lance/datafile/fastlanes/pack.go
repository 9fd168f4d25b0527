package fastlanes

import (
	"encoding/binary"
	"math/bits"
)

// A row of a block is 1024 bits whatever the value width T: 1024/T lanes of T
// bits. Rows are handled as rowWords words of 64 bits, several lanes at once.
const (
	blockValues = 1024
	rowBytes    = blockValues / 8
	rowWords    = rowBytes / 8
)

// packOrder is the order in which the eight groups of eight rows are stored.
var packOrder = [8]int{0, 4, 2, 6, 1, 5, 3, 7}

// Pack writes a block of 1024 values of valueBits bits each (8, 16, 32 or 64;
// little-endian) to dst with width bits a value. It reads 128*valueBits bytes of
// src and writes 128*width bytes of dst. No value may have a bit set at or above
// width: see [Width].
//
// Unlike Unpack it does not check: when packing, sizes and widths are the
// caller's own. The slices must be long enough.
func Pack(dst, src []byte, valueBits, width int) {
	src, dst = src[:rowBytes*valueBits], dst[:rowBytes*width]
	if width == 0 {
		return
	}
	// In every lane the values of the rows make one stream of bits. acc is the
	// word of it that is being filled, of all lanes; shift is how full it is.
	var acc [rowWords]uint64
	shift, out := 0, 0
	for row := range valueBits {
		at := (packOrder[row/8]*16 + row%8*blockValues/8) * valueBits / 8
		in := (*[rowBytes]byte)(src[at:])
		low := lanesFrom(shift, valueBits)
		for i := range acc {
			v := binary.LittleEndian.Uint64(in[i*8:])
			acc[i] |= v << shift & low
		}
		if shift+width < valueBits {
			shift += width
			continue
		}
		word := (*[rowBytes]byte)(dst[out*rowBytes:])
		for i := range acc {
			binary.LittleEndian.PutUint64(word[i*8:], acc[i])
		}
		out++
		// What did not fit begins the next word.
		shift += width - valueBits
		if shift == 0 {
			acc = [rowWords]uint64{}
			continue
		}
		taken, high := width-shift, ^lanesFrom(shift, valueBits)
		for i := range acc {
			acc[i] = binary.LittleEndian.Uint64(in[i*8:]) >> taken & high
		}
	}
}

// lanesFrom returns a word in which each lane of laneBits has the bits from shift
// upwards set.
func lanesFrom(shift, laneBits int) uint64 {
	if laneBits == 64 {
		return ^uint64(0) << shift
	}
	lane := (uint64(1)<<laneBits - 1) &^ (uint64(1)<<shift - 1)
	for n := laneBits; n < 64; n *= 2 {
		lane |= lane << n
	}
	return lane
}

// Width returns the number of bits that the largest of the values in src needs,
// taken as unsigned. src holds whole little-endian values of valueBits (8, 16, 32
// or 64) bits.
func Width(src []byte, valueBits int) int {
	var or uint64
	for len(src) >= 32 {
		or |= binary.LittleEndian.Uint64(src) | binary.LittleEndian.Uint64(src[8:]) |
			binary.LittleEndian.Uint64(src[16:]) | binary.LittleEndian.Uint64(src[24:])
		src = src[32:]
	}
	for len(src) >= 8 {
		or |= binary.LittleEndian.Uint64(src)
		src = src[8:]
	}
	for i, b := range src {
		or |= uint64(b) << (8 * i)
	}
	for n := 32; n >= valueBits; n /= 2 {
		or |= or >> n
	}
	if valueBits < 64 {
		or &= 1<<valueBits - 1
	}
	return bits.Len64(or)
}
