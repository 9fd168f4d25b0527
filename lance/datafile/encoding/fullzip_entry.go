package encoding

import (
	"encoding/binary"
	"slices"

	"github.com/rehome-db/rehome/lance/datafile/level"
	"github.com/rehome-db/rehome/table"
)

// controlBytes returns the size of a control word of so many bits.
func controlBytes(bits int) int {
	switch {
	case bits == 0:
		return 0
	case bits <= 8:
		return 1
	case bits <= 16:
		return 2
	default:
		return 4
	}
}

// zipper puts levels and values together and keeps where rows begin.
type zipper struct {
	l         *levels
	defBits   int
	wordBytes int
	levels    []listLevel // of fixed-size lists
	rows      []uint64
}

// control appends the control word of an entry and returns the entry's definition
// level.
func (z *zipper) control(dst []byte, entry int) ([]byte, uint16) {
	var rep, def uint16
	if z.l.rep != nil {
		rep = z.l.rep[entry]
	}
	if z.l.def != nil {
		def = z.l.def[entry]
	}
	if z.l.rep == nil || rep == z.l.maxRep {
		z.rows = append(z.rows, uint64(len(dst)))
	}
	var word [4]byte
	binary.LittleEndian.PutUint32(word[:], uint32(rep)<<z.defBits|uint32(def))
	return append(dst, word[:z.wordBytes]...), def
}

// strings writes, for every entry, its levels, and if there is a value its length
// and its bytes.
func (z *zipper) strings(dst []byte, v *zipValues) []byte {
	slot := 0
	for entry := range z.l.entries {
		var def uint16
		dst, def = z.control(dst, entry)
		if def > z.l.maxVisible {
			continue
		}
		if def == 0 {
			value := v.data[v.offsets[slot]:v.offsets[slot+1]]
			if v.width == 4 {
				dst = binary.LittleEndian.AppendUint32(dst, uint32(len(value)))
			} else {
				dst = binary.LittleEndian.AppendUint64(dst, uint64(len(value)))
			}
			dst = append(dst, value...)
		}
		slot++
	}
	return dst
}

// fixed writes, for every entry, its levels, and if it has a slot the validity of
// its items, if that is kept, and its bytes.
func (z *zipper) fixed(dst []byte, b *level.Block) []byte {
	v := &b.Values
	w, slot := b.Type.ValueBits()/8, 0
	for entry := range z.l.entries {
		var def uint16
		dst, def = z.control(dst, entry)
		if def > z.l.maxVisible {
			continue
		}
		at := slot * b.Type.ValidBits()
		for _, l := range z.levels {
			if l.validity {
				dst = appendBitRange(dst, v.ItemValid, at, at+l.elements)
			}
			at += l.elements
		}
		dst = append(dst, v.Data[slot*w:(slot+1)*w]...)
		slot++
	}
	return dst
}

// entry decodes the entry at the start of in and returns what follows it.
func (z *fullZip) entry(s *sink, in []byte) ([]byte, error) {
	if len(in) < z.control {
		return nil, table.Corruptf("encoding: an entry ends within its levels")
	}
	var rep, def uint16
	if z.control > 0 {
		w := loadWord(in, z.control)
		rep, def = uint16(w>>z.bitsDef), uint16(w&(1<<z.bitsDef-1))
		in = in[z.control:]
		if rep > s.path.maxRep || def > s.path.maxDef {
			return nil, table.Corruptf("encoding: levels %d and %d, the largest are %d and %d", rep, def, s.path.maxRep, s.path.maxDef)
		}
	}
	if s.path.maxRep > 0 {
		s.rep = append(s.rep, rep)
	}
	if s.path.maxDef > 0 {
		s.def = append(s.def, def)
	}
	if rep == s.path.maxRep {
		s.rows++
	}
	s.entries++
	if def > s.path.maxVisible {
		return in, nil
	}
	return z.value(s, in, def)
}

// value decodes the value at the start of in and returns what follows it.
func (z *fullZip) value(s *sink, in []byte, def uint16) ([]byte, error) {
	if z.length > 0 {
		return z.stringEntry(s, in, def)
	}
	if len(in) < z.validity+z.stored {
		return nil, table.Corruptf("encoding: %d bytes for a value of %d", len(in), z.validity+z.stored)
	}
	if z.validity > 0 {
		have := s.v.N * s.typ.ValidBits()
		for _, l := range z.levels {
			if l.validity {
				s.v.ItemValid = level.AppendBits(s.v.ItemValid, have, in, 0, l.elements)
				in = in[(l.elements+7)/8:]
			} else {
				s.v.ItemValid = level.AppendOnes(s.v.ItemValid, have, l.elements)
			}
			have += l.elements
		}
	}
	if err := s.tooLong(z.fixed); err != nil {
		return nil, err
	}
	switch {
	case z.bits > 0 && z.stored == 0:
		s.v.Data = level.AppendBits(s.v.Data, s.v.N*z.bits, make([]byte, z.fixed), 0, z.bits)
	case z.bits > 0:
		s.v.Data = level.AppendBits(s.v.Data, s.v.N*z.bits, in, 0, z.bits)
	case z.stored > 0:
		s.v.Data = append(s.v.Data, in[:z.fixed]...)
	default: // all items are null
		have := len(s.v.Data)
		s.v.Data = slices.Grow(s.v.Data, z.fixed)[:have+z.fixed]
		clear(s.v.Data[have:])
	}
	s.v.N++
	return in[z.stored:], nil
}

// stringEntry decodes a length and so many bytes; nothing is stored for a null.
func (z *fullZip) stringEntry(s *sink, in []byte, def uint16) ([]byte, error) {
	if def > 0 {
		s.addEmpty(1)
		return in, nil
	}
	if len(in) < z.length {
		return nil, table.Corruptf("encoding: an entry ends within its length")
	}
	size := loadWord(in, z.length)
	if in = in[z.length:]; size > uint64(len(in)) {
		return nil, table.Corruptf("encoding: a string of %d bytes in %d", size, len(in))
	}
	value, rest := in[:size], in[size:]
	var err error
	switch {
	case z.packed != nil:
		s.v.Data, err = z.packed.append(s.v.Data, value)
	case z.symbols != nil:
		s.v.Data, err = z.symbols.Append(s.v.Data, value)
	case z.general != nil:
		s.v.Data, err = decompress(z.general.scheme, s.v.Data, value, z.general.limit)
	default:
		s.v.Data = append(s.v.Data, value...)
	}
	if err == nil {
		err = s.tooLong(0)
	}
	s.v.Offsets = append(s.v.Offsets, uint32(len(s.v.Data)))
	s.v.N++
	return rest, err
}
