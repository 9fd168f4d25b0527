package encoding

import (
	"bytes"
	"encoding/binary"

	"github.com/rehome-db/rehome/lance/datafile/level"
	"github.com/rehome-db/rehome/table"
)

// maxInlineConstant is the largest value that is stored in the layout itself.
const maxInlineConstant = 32

// inlineValue checks a constant that is in the page's description: a value in
// Arrow's form, little-endian; of a boolean the lowest bit.
func inlineValue(v []byte, t level.Type) ([]byte, error) {
	if t.Kind != level.Fixed {
		return nil, table.Unsupportedf("encoding: an inline constant of this type is not supported")
	}
	if want := (t.Bits + 7) / 8; len(v) < want || want == 0 {
		return nil, table.Corruptf("encoding: an inline constant of %d bytes, want %d", len(v), want)
	}
	return v[:(t.Bits+7)/8], nil
}

// scalarValue takes a constant out of its buffer: the Arrow buffers of an array
// of one value, behind their number and their sizes.
func scalarValue(in []byte, t level.Type) ([]byte, error) {
	bad := func() ([]byte, error) {
		return nil, table.Corruptf("encoding: a constant in a buffer of %d bytes", len(in))
	}
	if len(in) < 4 {
		return bad()
	}
	n := binary.LittleEndian.Uint32(in)
	if n > 3 || len(in) < 4+4*int(n) {
		return bad()
	}
	sizes, rest := in[4:4+4*n], in[4+4*n:]
	var parts [3][]byte
	for i := range int(n) {
		size := binary.LittleEndian.Uint32(sizes[4*i:])
		if uint64(size) > uint64(len(rest)) {
			return bad()
		}
		parts[i], rest = rest[:size], rest[size:]
	}
	switch t.Kind {
	case level.Fixed:
		if n != 1 {
			return bad()
		}
		return inlineValue(parts[0], t)
	case level.Variable:
		width := t.Bits / 8
		if n != 2 || len(parts[0]) < 2*width {
			return bad()
		}
		from, to := loadWord(parts[0], width), loadWord(parts[0][width:], width)
		if from > to || to > uint64(len(parts[1])) {
			return bad()
		}
		return parts[1][from:to], nil
	default:
		return nil, table.Unsupportedf("encoding: a constant of this type is not supported")
	}
}

// constantValue returns the value that all slots of b have, or false.
func constantValue(b *level.Block) ([]byte, bool) {
	v := &b.Values
	switch {
	case b.Type.Kind == level.Fixed && b.Type.Bits == 1:
		return constantBit(v.Data, v.N)
	case b.Type.Kind == level.Fixed:
		w := b.Type.Bits / 8
		data := v.Data[:v.N*w]
		// Every value equals the one before it.
		return data[:w], bytes.Equal(data[w:], data[:len(data)-w])
	case b.Type.Kind == level.Variable:
		first := v.Data[v.Offsets[0]:v.Offsets[1]]
		for i := 1; i < v.N; i++ {
			if !bytes.Equal(first, v.Data[v.Offsets[i]:v.Offsets[i+1]]) {
				return nil, false
			}
		}
		return first, true
	default:
		return nil, false
	}
}

func constantBit(data []byte, n int) ([]byte, bool) {
	first := data[0] & 1
	for i := range n {
		if data[i/8]>>(i%8)&1 != first {
			return nil, false
		}
	}
	return []byte{first}, true
}

// validConstant returns the value that all slots have that are not null, of which there
// is one.
func validConstant(b *level.Block, l *levels) (value []byte, ok bool) {
	bits, slot := b.Type.Bits, 0
	same := func(null bool) bool {
		at := slot * bits
		slot++
		switch {
		case null:
			return true
		case bits%8 != 0:
			one := level.AppendBits(nil, 0, b.Values.Data, at, bits)
			if value == nil {
				value = one
			}
			return bytes.Equal(value, one)
		default:
			one := b.Values.Data[at/8 : (at+bits)/8]
			if value == nil {
				value = bytes.Clone(one)
			}
			return bytes.Equal(value, one)
		}
	}
	if l.def == nil {
		for slot < b.Values.N {
			if !same(false) {
				return nil, false
			}
		}
		return value, value != nil
	}
	for _, d := range l.def {
		if d <= l.maxVisible && !same(d > 0) {
			return nil, false
		}
	}
	return value, value != nil
}
