package encoding

import (
	"encoding/binary"
	"math"

	"github.com/rehome-db/rehome/lance/datafile/level"
	"github.com/rehome-db/rehome/table"
)

// sink gathers what is decoded until it is handed out as a block. Its memory is
// used again for the next block.
type sink struct {
	typ  level.Type
	path path
	// rep and def are kept only where the path has them.
	rep, def []uint16
	entries  int
	// rows counts the entries that begin a row, lastStart is the last of them.
	rows      int
	lastStart int
	v         level.Values

	block level.Block
	spare []byte // for bits
}

// begin empties the sink for a page with the given path.
func (s *sink) begin(t level.Type, p path) {
	s.typ, s.path = t, p
	s.reset()
}

func (s *sink) reset() {
	s.rep, s.def = s.rep[:0], s.def[:0]
	s.entries, s.rows, s.lastStart = 0, 0, 0
	s.v = level.Values{Data: s.v.Data[:0], Offsets: s.v.Offsets[:0]}
	if s.typ.Kind == level.Variable {
		s.v.Offsets = append(s.v.Offsets, 0)
	}
}

// reserve makes room for n bytes of values, or a block's worth if that is less,
// so that they need not be moved as they grow.
func (s *sink) reserve(n uint64, l Limits) {
	// A block is closed by the chunk that makes it full.
	s.v.Data = grow(s.v.Data, int(min(n, uint64(l.BlockBytes)+64<<10)))
}

// full says whether it is time for a block.
func (s *sink) full(l Limits) bool {
	return len(s.v.Data)+4*len(s.v.Offsets) >= l.BlockBytes || s.entries >= l.BlockEntries
}

// addRep appends n repetition levels, given as little-endian 16-bit words.
func (s *sink) addRep(words []byte, n int) error {
	for i := range n {
		r := binary.LittleEndian.Uint16(words[2*i:])
		if r > s.path.maxRep {
			return table.Corruptf("encoding: repetition level %d, the largest is %d", r, s.path.maxRep)
		}
		if r == s.path.maxRep {
			s.rows++
			s.lastStart = len(s.rep)
		} else if len(s.rep) == 0 {
			return table.Corruptf("encoding: the page's first entry does not begin a row")
		}
		s.rep = append(s.rep, r)
	}
	return nil
}

// addDef appends n definition levels and returns how many of them are visible.
func (s *sink) addDef(words []byte, n int) (visible int, err error) {
	have := len(s.def)
	s.def = append(s.def, make([]uint16, n)...)
	out := s.def[have:]
	maxDef := uint16(0)
	for i := range out {
		d := binary.LittleEndian.Uint16(words[2*i:])
		out[i] = d
		maxDef = max(maxDef, d)
		if d <= s.path.maxVisible {
			visible++
		}
	}
	if maxDef > s.path.maxDef {
		return 0, table.Corruptf("encoding: definition level %d, the largest is %d", maxDef, s.path.maxDef)
	}
	return visible, nil
}

// close hands out what was gathered: everything if last, else the rows that are
// certainly complete, keeping the last one.
func (s *sink) close(e *emitter, last bool) error {
	if s.entries == 0 {
		return nil
	}
	if s.path.maxRep == 0 {
		return s.finish(e, s.entries)
	}
	if last {
		return s.finish(e, s.rows)
	}
	if s.lastStart == 0 {
		return nil // one row so far: it may go on
	}
	at, kept := s.lastStart, s.entries-s.lastStart
	value := at
	if s.path.maxDef > 0 {
		value = 0
		for _, d := range s.def[:at] {
			if d <= s.path.maxVisible {
				value++
			}
		}
	}
	b := s.view(s.rows - 1)
	b.Rep = s.rep[:at]
	if b.Def != nil {
		b.Def = s.def[:at]
	}
	b.Values.N = value
	if s.typ.Kind == level.Variable {
		b.Values.Offsets = s.v.Offsets[:value+1]
	}
	if err := e.emit(b); err != nil {
		return err
	}
	// The row that is not complete moves to the front.
	copy(s.rep, s.rep[at:])
	s.rep = s.rep[:kept]
	if s.path.maxDef > 0 {
		copy(s.def, s.def[at:])
		s.def = s.def[:kept]
	}
	s.entries, s.rows, s.lastStart = kept, 1, 0
	s.dropValues(value)
	return nil
}

// finish hands out everything and empties the sink.
func (s *sink) finish(e *emitter, rows int) error {
	if err := e.emit(s.view(rows)); err != nil {
		return err
	}
	s.reset()
	return nil
}

// view is everything that was gathered, as a block.
func (s *sink) view(rows int) *level.Block {
	s.block = level.Block{Type: s.typ, Rows: rows, Layers: s.path.layers, Values: s.v}
	if s.path.maxRep > 0 {
		s.block.Rep = s.rep
	}
	if s.path.maxDef > 0 {
		s.block.Def = s.def
	}
	return &s.block
}

// dropValues removes the first n values.
func (s *sink) dropValues(n int) {
	kept := s.v.N - n
	drop := func(b []byte, bits int) []byte {
		if bits%8 == 0 {
			copy(b, b[n*bits/8:])
			return b[:kept*bits/8]
		}
		s.spare = level.AppendBits(s.spare[:0], 0, b, n*bits, kept*bits)
		return append(b[:0], s.spare...)
	}
	switch s.typ.Kind {
	case level.Fixed, level.FixedList:
		s.v.Data = drop(s.v.Data, s.typ.ValueBits())
		if s.v.ItemValid != nil {
			s.v.ItemValid = drop(s.v.ItemValid, s.typ.ValidBits())
		}
	case level.Variable:
		from := s.v.Offsets[n]
		copy(s.v.Data, s.v.Data[from:])
		s.v.Data = s.v.Data[:len(s.v.Data)-int(from)]
		copy(s.v.Offsets, s.v.Offsets[n:])
		s.v.Offsets = s.v.Offsets[:kept+1]
		for i := range s.v.Offsets {
			s.v.Offsets[i] -= from
		}
	}
	s.v.N = kept
}

// addEmpty appends n value slots whose content does not matter.
func (s *sink) addEmpty(n int) {
	switch s.typ.Kind {
	case level.Fixed, level.FixedList:
		need := ((s.v.N+n)*s.typ.ValueBits() + 7) / 8
		s.v.Data = append(s.v.Data, make([]byte, need-len(s.v.Data))...)
		if s.v.ItemValid != nil {
			s.v.ItemValid = level.AppendOnes(s.v.ItemValid, s.v.N*s.typ.ValidBits(), n*s.typ.ValidBits())
		}
	case level.Variable:
		end := uint32(len(s.v.Data))
		for range n {
			s.v.Offsets = append(s.v.Offsets, end)
		}
	}
	s.v.N += n
}

// tooLong says whether n more bytes are more than 32-bit offsets can tell apart.
func (s *sink) tooLong(n int) error {
	if uint64(len(s.v.Data))+uint64(n) > math.MaxUint32 {
		return table.Unsupportedf("encoding: more than 4 GiB of values in one row or chunk")
	}
	return nil
}

// appendSlots appends the slots [from, to) of v.
func (s *sink) appendSlots(v *level.Values, from, to int) error {
	n := to - from
	switch s.typ.Kind {
	case level.Fixed, level.FixedList:
		if bits := s.typ.ValueBits(); bits%8 != 0 {
			s.v.Data = level.AppendBits(s.v.Data, s.v.N*bits, v.Data, from*bits, n*bits)
		} else {
			s.v.Data = append(s.v.Data, v.Data[from*bits/8:to*bits/8]...)
		}
		width := s.typ.ValidBits()
		switch {
		case v.ItemValid != nil:
			if s.v.ItemValid == nil {
				s.v.ItemValid = level.AppendOnes(nil, 0, s.v.N*width)
			}
			s.v.ItemValid = level.AppendBits(s.v.ItemValid, s.v.N*width, v.ItemValid, from*width, n*width)
		case s.v.ItemValid != nil:
			s.v.ItemValid = level.AppendOnes(s.v.ItemValid, s.v.N*width, n*width)
		}
	case level.Variable:
		low, high := v.Offsets[from], v.Offsets[to]
		if err := s.tooLong(int(high - low)); err != nil {
			return err
		}
		base := uint32(len(s.v.Data)) - low
		for _, o := range v.Offsets[from+1 : to+1] {
			s.v.Offsets = append(s.v.Offsets, o+base)
		}
		s.v.Data = append(s.v.Data, v.Data[low:high]...)
	}
	s.v.N += n
	return nil
}
