package level

// AppendBits appends n bits of src, from bit offset off on, to the bit stream dst
// of have bits, and returns it. Streams are least significant bit first; the
// unused bits of the last byte are zero. It panics if src is too short.
func AppendBits(dst []byte, have int, src []byte, off, n int) []byte {
	return appendBits(dst, have, src, off, n)
}

// AppendOnes appends n one bits to the bit stream dst of have bits, and returns it.
func AppendOnes(dst []byte, have, n int) []byte { return appendOnes(dst, have, n) }
