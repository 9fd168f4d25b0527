package fsst

import (
	"encoding/binary"

	"github.com/rehome-db/rehome/table"
)

const (
	magic      = 0x46535354
	switchBit  = 1 << 24
	escapeCode = 255
	maxSymbol  = 8
)

// Table expands compressed strings. It is immutable and safe for concurrent use.
type Table struct {
	// symbols holds the bytes of a code little-endian, lengths how many count;
	// 0 for codes that stand for nothing.
	symbols [256]uint64
	lengths [256]uint8
	off     bool
}

// ParseTable reads a serialised table. Bytes that are none are ErrCorrupt.
func ParseTable(b []byte) (*Table, error) {
	if len(b) < 8 {
		return nil, table.Corruptf("fsst: symbol table of %d bytes", len(b))
	}
	header := binary.LittleEndian.Uint64(b)
	if header>>32 != magic {
		return nil, table.Corruptf("fsst: symbol table begins with %#x, want %#x", header>>32, magic)
	}
	t := &Table{off: header&switchBit == 0}
	if t.off {
		return t, nil
	}
	n := int(header & 255)
	if len(b) < 8+n*(maxSymbol+1) {
		return nil, table.Corruptf("fsst: symbol table of %d bytes for %d symbols", len(b), n)
	}
	lengths := b[8+n*maxSymbol:]
	for i := range n {
		if lengths[i] < 1 || lengths[i] > maxSymbol {
			return nil, table.Corruptf("fsst: symbol %d is %d bytes long", i, lengths[i])
		}
		t.symbols[i] = binary.LittleEndian.Uint64(b[8+i*maxSymbol:])
		t.lengths[i] = lengths[i]
	}
	return t, nil
}

// Off says that strings are stored as they are: the compressor found nothing to
// gain. [Table.Append] then copies.
func (t *Table) Off() bool { return t.off }

// Append expands one string and appends it to dst. A code without a symbol, or
// an escape without its byte, is ErrCorrupt; dst is then returned as it was.
func (t *Table) Append(dst, src []byte) ([]byte, error) {
	if t.off {
		return append(dst, src...), nil
	}
	have := len(dst)
	for len(src) > 0 {
		in := src[:min(len(src), piece)]
		if len(in) < len(src) && trailingEscape(in) {
			in = in[:len(in)-1]
		}
		dst = reserve(dst, len(in)*maxSymbol+maxSymbol)
		n, ok := t.expand(dst[len(dst):cap(dst)], in)
		if !ok {
			return dst[:have], errString(len(src))
		}
		dst = dst[:len(dst)+n]
		src = src[len(in):]
	}
	return dst, nil
}

// piece is how much is expanded at a time: it bounds the room that is reserved
// in vain, which is eight times what is read.
const piece = 1 << 15

// AppendAll expands the strings src[offsets[i]:offsets[i+1]], appends them to dst
// one after the other, and the length of dst after each to ends. The offsets must
// not decrease or point outside src. Lengths must fit in 32 bits.
func (t *Table) AppendAll(dst []byte, ends []uint32, src []byte, offsets []uint32) ([]byte, []uint32, error) {
	var err error
	for i := 0; i+1 < len(offsets); {
		// As many strings as are small together need room only once.
		from, k := offsets[i], i+1
		for k+1 < len(offsets) && offsets[k+1]-from <= piece {
			k++
		}
		if t.off || offsets[k]-from > piece {
			if dst, err = t.Append(dst, src[from:offsets[i+1]]); err != nil {
				return dst, ends, err
			}
			ends = append(ends, uint32(len(dst)))
			i++
			continue
		}
		dst = reserve(dst, int(offsets[k]-from)*maxSymbol+maxSymbol)
		out, end := dst[:cap(dst)], len(dst)
		for ; i < k; i++ {
			n, ok := t.expand(out[end:], src[offsets[i]:offsets[i+1]])
			if !ok {
				return dst, ends, errString(int(offsets[i+1] - offsets[i]))
			}
			end += n
			ends = append(ends, uint32(end))
		}
		dst = out[:end]
	}
	return dst, ends, nil
}

func errString(n int) error {
	return table.Corruptf("fsst: a string of %d bytes holds a code without symbol or a lone escape", n)
}

// reserve returns dst with room for n more bytes. It doubles, where append would
// grow a large slice by a quarter.
func reserve(dst []byte, n int) []byte {
	if cap(dst)-len(dst) >= n {
		return dst
	}
	out := make([]byte, len(dst), len(dst)+max(n, len(dst)))
	copy(out, dst)
	return out
}

// trailingEscape says whether the last byte of in is an escape whose literal
// comes after in.
func trailingEscape(in []byte) bool {
	escaped := false
	for i := len(in) - 1; i >= 0 && in[i] == escapeCode; i-- {
		escaped = !escaped
	}
	// The byte before a run of 255 is no escape, so the run's first is one, its
	// second that one's literal, and so on: an odd run ends in an escape.
	return escaped
}

// expand writes the expansion of src to dst, which is long enough to write eight
// bytes at any position that is reached, and returns its length.
func (t *Table) expand(dst, src []byte) (int, bool) {
	out := 0
	for i := 0; i < len(src); i++ {
		c := src[i]
		if n := int(t.lengths[c]); n > 0 && c != escapeCode {
			binary.LittleEndian.PutUint64(dst[out:], t.symbols[c])
			out += n
			continue
		}
		i++
		if c != escapeCode || i == len(src) {
			return 0, false
		}
		dst[out] = src[i]
		out++
	}
	return out, true
}
