package fsst

import "encoding/binary"

const (
	// maxSymbols is how many codes there are besides the escape.
	maxSymbols = 255

	// A slot of the table of long symbols is found by the first three bytes, so
	// of the symbols that share them only one can be used.
	longSlots = 2048
)

// symbol is up to eight bytes, first byte lowest, the rest zero.
type symbol struct {
	val uint64
	len uint8
}

func (s symbol) mask() uint64 { return ^uint64(0) >> (64 - 8*int(s.len)) }

// Encoder replaces the symbols of one table by their codes. [Train] makes one. It
// is immutable and safe for concurrent use.
type Encoder struct {
	symbols []symbol
	// short has, for each pair of bytes, what to do if no long symbol matches:
	// the code in the low 8 bits, the matched length above, and shortEscape if
	// the first byte has no symbol at all.
	short *[1 << 16]uint16
	// single is short for a lone last byte.
	single [256]uint16
	// long holds the symbols of three bytes and more, by longSlot.
	long [longSlots]longEntry
	gain float64
}

const shortEscape = 1 << 15

type longEntry struct {
	val, mask uint64
	code, len uint8
}

func longSlot(word uint64) uint32 {
	// The multiplier spreads 24 bits well over the top of 32; any odd number with
	// mixed bits does.
	return uint32(word&0xffffff) * 2654435769 >> (32 - 11)
}

func newEncoder() *Encoder {
	e := &Encoder{short: new([1 << 16]uint16)}
	e.clear()
	return e
}

func (e *Encoder) clear() {
	e.symbols = e.symbols[:0]
	e.long = [longSlots]longEntry{}
	for i := range e.single {
		e.single[i] = shortEscape | 1<<8 | uint16(i)
	}
	for i := range e.short {
		e.short[i] = e.single[i&0xff]
	}
}

// add gives the symbol the next code. It reports whether there was room.
func (e *Encoder) add(s symbol) bool {
	if len(e.symbols) == maxSymbols {
		return false
	}
	code := uint8(len(e.symbols))
	switch s.len {
	case 1:
		op := 1<<8 | uint16(code)
		e.single[s.val] = op
		for second := range 256 {
			if p := &e.short[second<<8|int(s.val)]; *p>>8&3 == 1 {
				*p = op
			}
		}
	case 2:
		e.short[s.val] = 2<<8 | uint16(code)
	default:
		slot := &e.long[longSlot(s.val)]
		if slot.len != 0 {
			return false
		}
		*slot = longEntry{val: s.val, mask: s.mask(), code: code, len: s.len}
	}
	e.symbols = append(e.symbols, s)
	return true
}

// Append appends the encoded form of each value of data to dst and returns it
// together with its offsets, which are appended to ends; value i of data is
// data[offsets[i]:offsets[i+1]]. The first new offset is where dst ended before.
// An encoded value is at most twice as long.
func (e *Encoder) Append(dst []byte, ends []uint32, data []byte, offsets []uint32) ([]byte, []uint32) {
	if len(offsets) == 0 {
		return dst, ends
	}
	ends = append(ends, uint32(len(dst)))
	for i := 1; i < len(offsets); i++ {
		dst = e.appendOne(dst, data, int(offsets[i-1]), int(offsets[i]))
		ends = append(ends, uint32(len(dst)))
	}
	return dst, ends
}

// appendOne encodes data[pos:end].
func (e *Encoder) appendOne(dst, data []byte, pos, end int) []byte {
	need := len(dst) + 2*(end-pos)
	if cap(dst) < need {
		dst = append(dst, make([]byte, need+len(dst)/4-len(dst))...)[:len(dst)]
	}
	at := len(dst)
	out := dst[:need]
	// Eight bytes are in reach: no match can go past the end.
	for pos+maxSymbol <= end {
		word := binary.LittleEndian.Uint64(data[pos:])
		if l := &e.long[longSlot(word)]; l.len != 0 && word&l.mask == l.val {
			out[at] = l.code
			at++
			pos += int(l.len)
			continue
		}
		op := e.short[uint16(word)]
		if op&shortEscape != 0 {
			out[at] = escapeCode
			at++
		}
		out[at] = uint8(op)
		at++
		pos += int(op >> 8 & 3)
	}
	for pos < end {
		code, n, esc := e.match(tailWord(data[pos:end]), end-pos)
		if esc {
			out[at] = escapeCode
			at++
		}
		out[at] = code
		at++
		pos += n
	}
	return out[:at]
}

// tailWord returns up to eight bytes, the rest zero.
func tailWord(b []byte) uint64 {
	if len(b) >= maxSymbol {
		return binary.LittleEndian.Uint64(b)
	}
	var w uint64
	for i := len(b) - 1; i >= 0; i-- {
		w = w<<8 | uint64(b[i])
	}
	return w
}

// match returns the code for the longest known prefix of the first left bytes of
// word; if esc, code is the byte itself.
func (e *Encoder) match(word uint64, left int) (code uint8, n int, esc bool) {
	if l := &e.long[longSlot(word)]; l.len != 0 && int(l.len) <= left && word&l.mask == l.val {
		return l.code, int(l.len), false
	}
	op := e.short[uint16(word)]
	if left == 1 {
		op = e.single[uint8(word)]
	}
	return uint8(op), int(op >> 8 & 3), op&shortEscape != 0
}

// Ratio is the encoded size over the plain size of the sample that the encoder
// was trained on.
func (e *Encoder) Ratio() float64 { return 1 - e.gain }

// Table returns the symbol table in the form that Lance stores, always 2312
// bytes: a header, then the symbols, then their lengths, without gaps, and zeros
// up to the fixed size. [ParseTable] reads it.
func (e *Encoder) Table() []byte {
	out := make([]byte, 8+256*maxSymbol+256)
	// The hints between switch and count mean nothing to a decoder: left 0.
	binary.LittleEndian.PutUint64(out, magic<<32|switchBit|uint64(len(e.symbols)))
	n := len(e.symbols)
	for i, s := range e.symbols {
		binary.LittleEndian.PutUint64(out[8+8*i:], s.val)
		out[8+8*n+i] = s.len
	}
	return out
}
