package level

import "encoding/binary"

// appendBits appends n bits of src, from bit offset off on, to the bit stream dst
// of length have. Streams are least significant bit first, and the unused bits of
// the last byte are zero.
func appendBits(dst []byte, have int, src []byte, off, n int) []byte {
	if n == 0 {
		return dst
	}
	need := (have + n + 7) / 8
	if have%8 == 0 && off%8 == 0 {
		dst = append(dst[:have/8], src[off/8:(off+n+7)/8]...)
		return clearTail(dst, have+n)
	}
	dst = growZero(dst[:(have+7)/8], need)
	for n > 0 {
		// At most 56 bits at a time: with a shift of up to 7 they fit in a word.
		take := min(n, 56)
		w := loadBits(src, off, take)
		orBits(dst, have, w)
		have, off, n = have+take, off+take, n-take
	}
	return dst
}

// appendOnes appends n one bits to the bit stream dst of length have.
func appendOnes(dst []byte, have, n int) []byte {
	dst = growZero(dst[:(have+7)/8], (have+n+7)/8)
	for ; n > 0 && have%8 != 0; n-- {
		dst[have/8] |= 1 << (have % 8)
		have++
	}
	for i := have / 8; i < (have+n)/8; i++ {
		dst[i] = 0xff
	}
	for i := have + n&^7; i < have+n; i++ {
		dst[i/8] |= 1 << (i % 8)
	}
	return dst
}

// loadBits returns n <= 56 bits of src from bit offset off on.
func loadBits(src []byte, off, n int) uint64 {
	i, shift := off/8, off%8
	var w uint64
	if i+8 <= len(src) {
		w = binary.LittleEndian.Uint64(src[i:])
	} else {
		for k := len(src) - 1; k >= i; k-- {
			w = w<<8 | uint64(src[k])
		}
	}
	return w >> shift & (1<<n - 1)
}

// orBits sets the bits of w, at most 56, in dst from bit offset off on.
func orBits(dst []byte, off int, w uint64) {
	i := off / 8
	w <<= off % 8
	if i+8 <= len(dst) {
		binary.LittleEndian.PutUint64(dst[i:], binary.LittleEndian.Uint64(dst[i:])|w)
		return
	}
	for ; w != 0; i++ {
		dst[i] |= byte(w)
		w >>= 8
	}
}

// clearTail zeroes the bits of the last byte of dst at and after bit n.
func clearTail(dst []byte, n int) []byte {
	if n%8 != 0 {
		dst[len(dst)-1] &= 1<<(n%8) - 1
	}
	return dst
}

// growZero extends dst to n bytes; the new bytes are zero.
func growZero(dst []byte, n int) []byte {
	have := len(dst)
	if n <= have {
		return dst
	}
	if n <= cap(dst) {
		dst = dst[:n]
	} else {
		dst = append(dst, make([]byte, n-have)...)
	}
	clear(dst[have:])
	return dst
}
