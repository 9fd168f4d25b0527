package encoding

import (
	"context"
	"encoding/binary"

	"github.com/rehome-db/rehome/lance/datafile/level"
	enc21pb "github.com/rehome-db/rehome/lance/internal/pb/enc21"
	"github.com/rehome-db/rehome/table"
)

// constant decodes pages whose values are all null, or all the same where they
// are not null. Buffers, each of which may be missing: the value if it is too
// long for the page's description; repetition and definition levels, both or
// neither.
type constant struct {
	path     path
	rep, def levelBuffer
	allNull  bool
	inline   []byte  // the value's bytes
	value    *Buffer // or where the value is
}

// levelBuffer is the levels of a whole page.
type levelBuffer struct {
	buffer  *Buffer
	decoder fixedDecoder // nil for plain 16-bit words
	count   int
}

func (d *Decoder) planConstant(l *enc21pb.ConstantLayout, p Page) (*constant, error) {
	c := &constant{}
	var err error
	if c.path, err = d.path(l.GetLayers()); err != nil {
		return nil, err
	}
	buffers := p.Buffers
	if l.InlineValue != nil {
		if c.inline, err = inlineValue(l.InlineValue, d.typ); err != nil {
			return nil, err
		}
	} else if len(buffers)%2 == 1 {
		c.value, buffers = &buffers[0], buffers[1:]
		if c.value.Size > uint64(d.limits.Expanded) {
			return nil, table.Corruptf("encoding: a constant of %d bytes", c.value.Size)
		}
	} else {
		c.allNull = true
	}
	switch len(buffers) {
	case 0:
	case 2:
		if c.rep, err = planLevels(l.GetRepCompression(), &buffers[0], l.GetNumRepValues(), d.limits.Expanded); err != nil {
			return nil, err
		}
		if c.def, err = planLevels(l.GetDefCompression(), &buffers[1], l.GetNumDefValues(), d.limits.Expanded); err != nil {
			return nil, err
		}
	default:
		return nil, table.Corruptf("encoding: a constant page has %d buffers", len(p.Buffers))
	}
	return c, c.check(d, p)
}

func (c *constant) check(d *Decoder, p Page) error {
	hasRep, hasDef := c.rep.count > 0, c.def.count > 0
	switch {
	case p.Rows == 0:
		return nil
	case hasRep != (c.path.maxRep > 0):
		return table.Corruptf("encoding: repetition levels and list layers do not go together")
	case hasRep && hasDef && c.rep.count != c.def.count:
		return table.Corruptf("encoding: %d repetition levels but %d definition levels", c.rep.count, c.def.count)
	case !hasRep && hasDef && uint64(c.def.count) != p.Rows:
		return table.Corruptf("encoding: %d definition levels for %d rows", c.def.count, p.Rows)
	case hasDef && c.path.maxDef == 0:
		return table.Corruptf("encoding: definition levels where every layer is always there")
	case hasDef:
	case !c.allNull:
		c.path = c.path.allPresent()
	case c.path.layers[0] != level.NullableItem && d.typ.Kind != level.Nothing:
		return table.Corruptf("encoding: a page without values has values that are not null")
	}
	return nil
}

// planLevels checks a buffer of levels. Compressed levels are at most so many
// that the memory they take stays in proportion to what is stored.
func planLevels(e *enc21pb.CompressiveEncoding, b *Buffer, count uint64, limit int) (levelBuffer, error) {
	if e == nil {
		if b.Size%2 != 0 || b.Size > uint64(limit) {
			return levelBuffer{}, table.Corruptf("encoding: levels of %d bytes", b.Size)
		}
		return levelBuffer{buffer: b, count: int(b.Size / 2)}, nil
	}
	if count > uint64(limit)/2 || count > 1<<20+512*b.Size {
		return levelBuffer{}, table.Corruptf("encoding: %d levels in %d bytes", count, b.Size)
	}
	decoder, err := compileLevels(e, limit)
	return levelBuffer{buffer: b, decoder: decoder, count: int(count)}, err
}

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

func (c *constant) run(ctx context.Context, d *Decoder, p Page, e *emitter) error {
	value := c.inline
	if c.value != nil {
		in, err := read(ctx, p, d.aux, *c.value)
		if err != nil {
			return err
		}
		d.aux = in
		if value, err = scalarValue(in, d.typ); err != nil {
			return err
		}
		value = append([]byte(nil), value...) // aux is used again
	}
	s := &d.out
	s.begin(d.typ, c.path)
	if c.rep.count > 0 || c.def.count > 0 {
		return c.runLevels(ctx, d, p, e, value)
	}
	e.row = e.from
	for !e.done() {
		rows := int(min(uint64(c.step(d, value)), e.to-e.row))
		if c.allNull && c.path.maxDef > 0 {
			for range rows {
				s.def = append(s.def, 1) // the leaf's own number
			}
		}
		s.entries = rows
		c.fill(s, value, rows)
		if err := s.finish(e, rows); err != nil {
			return err
		}
	}
	return nil
}

// step is how many values make a block.
func (c *constant) step(d *Decoder, value []byte) int {
	size := max(d.typ.ValueBits()/8, 1)
	if d.typ.Kind == level.Variable {
		size = 4 + len(value)
	}
	return max(min(d.limits.BlockBytes/size, d.limits.BlockEntries), 1)
}

// fill appends n times the value, or n nulls.
func (c *constant) fill(s *sink, value []byte, n int) {
	switch {
	case c.allNull:
		s.addEmpty(n)
		return
	case s.typ.Kind == level.Variable:
		for range n {
			s.v.Data = append(s.v.Data, value...)
			s.v.Offsets = append(s.v.Offsets, uint32(len(s.v.Data)))
		}
	case s.typ.Bits%8 == 0:
		s.v.Data = grow(s.v.Data, n*len(value))
		for range n {
			s.v.Data = append(s.v.Data, value...)
		}
	case value[0]&1 == 1: // booleans
		s.v.Data = level.AppendOnes(s.v.Data, s.v.N, n)
	default:
		s.addEmpty(n)
		return
	}
	s.v.N += n
}

// runLevels decodes all levels of the page at once and cuts them into blocks.
func (c *constant) runLevels(ctx context.Context, d *Decoder, p Page, e *emitter, value []byte) error {
	rep, err := c.rep.read(ctx, d, p)
	if err != nil {
		return err
	}
	def, err := c.def.read(ctx, d, p)
	if err != nil {
		return err
	}
	s, total := &d.out, max(c.rep.count, c.def.count)
	step := c.step(d, value)
	for at := 0; at < total && !e.done(); {
		n := min(step, total-at)
		visible := n
		if rep != nil {
			if err := s.addRep(rep[2*at:], n); err != nil {
				return err
			}
		}
		if def != nil {
			if visible, err = s.addDef(def[2*at:], n); err != nil {
				return err
			}
			if err := c.checkNull(d.typ, s.def[len(s.def)-n:]); err != nil {
				return err
			}
		}
		s.entries += n
		if c.path.maxRep == 0 {
			s.rows = s.entries
		}
		c.fill(s, value, visible)
		at += n
		if err := s.tooLong(0); err != nil {
			return err
		}
		if err := s.close(e, at == total); err != nil {
			return err
		}
	}
	if e.row != p.Rows && !e.done() {
		return table.Corruptf("encoding: the levels hold %d rows, the page %d", e.row, p.Rows)
	}
	return nil
}

// checkNull checks that a page without a value needs none.
func (c *constant) checkNull(t level.Type, def []uint16) error {
	if !c.allNull || t.Kind == level.Nothing {
		return nil
	}
	for _, d := range def {
		if d == 0 {
			return table.Corruptf("encoding: a page without values has values that are not null")
		}
	}
	return nil
}

// read decodes the levels into little-endian 16-bit words, nil if there are none.
func (l *levelBuffer) read(ctx context.Context, d *Decoder, p Page) ([]byte, error) {
	if l.count == 0 {
		return nil, nil
	}
	in, err := read(ctx, p, nil, *l.buffer)
	if err != nil || l.decoder == nil {
		return in, err
	}
	return l.decoder.decode(nil, l.count, [][]byte{in})
}
