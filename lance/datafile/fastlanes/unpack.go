package fastlanes

import (
	"encoding/binary"

	"github.com/rehome-db/rehome/table"
)

// Unpack reads a block of 1024 values of width bits each from src and writes them
// to dst with valueBits (8, 16, 32 or 64) bits a value, little-endian. It reads
// the first 128*width bytes of src and writes the first 128*valueBits bytes of
// dst, and returns ErrCorrupt if src is shorter or the widths make no sense. dst
// must be long enough.
func Unpack(dst, src []byte, valueBits, width int) error {
	if valueBits != 8 && valueBits != 16 && valueBits != 32 && valueBits != 64 {
		return table.Corruptf("fastlanes: values of %d bits", valueBits)
	}
	if width < 0 || width > valueBits {
		return table.Corruptf("fastlanes: values of %d bits packed into %d", valueBits, width)
	}
	if len(src) < rowBytes*width {
		return table.Corruptf("fastlanes: a block of width %d has %d bytes, want %d", width, len(src), rowBytes*width)
	}
	dst = dst[:rowBytes*valueBits]
	if width == 0 {
		clear(dst)
		return nil
	}
	// The value of row r occupies bits [r*width, (r+1)*width) of each lane's
	// stream, so it begins shift bits into stream word number word.
	word, shift := 0, 0
	for row := range valueBits {
		at := (packOrder[row/8]*16 + row%8*blockValues/8) * valueBits / 8
		out := (*[rowBytes]byte)(dst[at:])
		in := (*[rowBytes]byte)(src[word*rowBytes:])
		here := min(width, valueBits-shift) // bits of the value in this word
		mask := ^lanesFrom(here, valueBits)
		if here == width {
			for i := range rowWords {
				v := binary.LittleEndian.Uint64(in[i*8:]) >> shift & mask
				binary.LittleEndian.PutUint64(out[i*8:], v)
			}
		} else {
			next := (*[rowBytes]byte)(src[(word+1)*rowBytes:])
			nextMask := lanesFrom(here, valueBits) &^ lanesFrom(width, valueBits)
			for i := range rowWords {
				v := binary.LittleEndian.Uint64(in[i*8:]) >> shift & mask
				v |= binary.LittleEndian.Uint64(next[i*8:]) << here & nextMask
				binary.LittleEndian.PutUint64(out[i*8:], v)
			}
		}
		if shift += width; shift >= valueBits {
			shift -= valueBits
			word++
		}
	}
	return nil
}
