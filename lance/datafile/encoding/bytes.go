package encoding

import (
	"encoding/binary"

	"github.com/rehome-db/rehome/lance/datafile/level"
	"github.com/rehome-db/rehome/table"
)

// loadWord reads a number of 1, 2, 4 or 8 bytes.
func loadWord(b []byte, bytes int) uint64 {
	switch bytes {
	case 1:
		return uint64(b[0])
	case 2:
		return uint64(binary.LittleEndian.Uint16(b))
	case 4:
		return uint64(binary.LittleEndian.Uint32(b))
	default:
		return binary.LittleEndian.Uint64(b)
	}
}

// storeWord writes a number of 1, 2, 4 or 8 bytes.
func storeWord(b []byte, bytes int, v uint64) {
	switch bytes {
	case 1:
		b[0] = byte(v)
	case 2:
		binary.LittleEndian.PutUint16(b, uint16(v))
	case 4:
		binary.LittleEndian.PutUint32(b, uint32(v))
	default:
		binary.LittleEndian.PutUint64(b, v)
	}
}

// extend returns dst made n bytes longer; what the new bytes hold is left open.
func extend(dst []byte, n int) []byte {
	if cap(dst)-len(dst) >= n {
		return dst[:len(dst)+n]
	}
	return append(dst, make([]byte, n)...)
}

// resize returns a slice of n bytes that reuses b's memory if it can; what is in
// it does not matter.
func resize(b []byte, n int) []byte {
	if cap(b) < n {
		return make([]byte, n, n+n/8)
	}
	return b[:n]
}

// grow returns dst with room for n more bytes.
func grow(dst []byte, n int) []byte {
	if cap(dst)-len(dst) >= n {
		return dst
	}
	out := make([]byte, len(dst), len(dst)+n)
	copy(out, dst)
	return out
}

// bytesFor returns the bytes of n values, which must not be more than limit.
func bytesFor(n, bits, limit int) (int, error) {
	if n < 0 || n > (limit/bits)*8 {
		return 0, table.Corruptf("encoding: %d values of %d bits are more than %d bytes", n, bits, limit)
	}
	return (n*bits + 7) / 8, nil
}

func appendUint16s(dst []byte, values []uint16) []byte {
	have := len(dst)
	dst = append(dst, make([]byte, 2*len(values))...)
	for i, v := range values {
		binary.LittleEndian.PutUint16(dst[have+2*i:], v)
	}
	return dst
}

func appendUint64s(dst []byte, values []uint64) []byte {
	for _, v := range values {
		dst = binary.LittleEndian.AppendUint64(dst, v)
	}
	return dst
}

// appendBitRange appends the bits [from, to) of src, which begin a new byte of
// dst.
func appendBitRange(dst, src []byte, from, to int) []byte {
	if from%8 == 0 && to%8 == 0 {
		return append(dst, src[from/8:to/8]...)
	}
	return level.AppendBits(dst, 8*len(dst), src, from, to-from)
}

// allOnes says whether n bits from bit from on are all set.
func allOnes(bits []byte, from, n int) bool {
	for i := from; i < from+n; {
		if i%8 == 0 && i+8 <= from+n {
			if bits[i/8] != 0xff {
				return false
			}
			i += 8
			continue
		}
		if bits[i/8]>>(i%8)&1 == 0 {
			return false
		}
		i++
	}
	return true
}

// padTo appends fill until the length of b is a multiple of n.
func padTo(b []byte, n int, fill byte) []byte {
	for len(b)%n != 0 {
		b = append(b, fill)
	}
	return b
}

func pad8(n int) int { return (n + 7) &^ 7 }

func log2(n int) int {
	l := 0
	for n > 1 {
		n /= 2
		l++
	}
	return l
}
