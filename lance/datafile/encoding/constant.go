package encoding

import (
	"bytes"
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
		return c.rleLevels(ctx, d, p, e, value)
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

// rleLevels decodes all levels of the page at once and cuts them into blocks.
func (c *constant) rleLevels(ctx context.Context, d *Decoder, p Page, e *emitter, value []byte) error {
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

// take implements sparsePlan. Levels are only to be had from the first on.
func (c *constant) take(ctx context.Context, d *Decoder, p Page, t *taker) error {
	if c.rep.count > 0 || c.def.count > 0 {
		return t.run(ctx, c, d, p, t.ranges[0].From, t.ranges[len(t.ranges)-1].To)
	}
	return windows(t.ranges, takeGap, takeRead, func(w Range) error {
		return t.run(ctx, c, d, p, w.From, w.To)
	})
}

// allNull encodes a page without a single value that is there: all null, or all
// in null or empty lists.
func (e *Encoder) allNull(l *levels) (EncodedPage, error) {
	layout := &enc21pb.ConstantLayout{Layers: layersProto(l.layers)}
	page := EncodedPage{Layout: &enc21pb.PageLayout{Layout: &enc21pb.PageLayout_Constant{Constant: layout}}}
	if len(l.layers) == 1 {
		return page, nil // null rows, and nothing more to say
	}
	page.Buffers = [][]byte{nil, nil}
	if !e.opts.Version.finished() {
		e.scratch = appendUint16s(e.scratch[:0], l.rep)
		rep := len(e.scratch)
		e.scratch = appendUint16s(e.scratch, l.def)
		page.Buffers[0], page.Buffers[1] = e.scratch[:rep], e.scratch[rep:]
		return page, nil
	}
	e.scratch = e.scratch[:0]
	rep := 0
	if l.rep != nil {
		layout.RepCompression, layout.NumRepValues = e.blockLevels(l.rep, l.maxRep), uint64(len(l.rep))
		rep = len(e.scratch)
	}
	if l.def != nil {
		layout.DefCompression, layout.NumDefValues = e.blockLevels(l.def, l.maxDef), uint64(len(l.def))
	}
	page.Buffers[0], page.Buffers[1] = e.scratch[:rep], e.scratch[rep:]
	return page, nil
}

// constant encodes a page of values that are all the same, which format 2.2 can
// do. Readers take the levels of such a page only uncompressed, so that it pays
// only without levels.
func (e *Encoder) constant(b *level.Block, l *levels, valid int) (EncodedPage, bool) {
	if !e.opts.Version.finished() || l.rep != nil || l.def != nil || valid != b.Values.N {
		return EncodedPage{}, false
	}
	value, ok := constantValue(b)
	if !ok {
		return EncodedPage{}, false
	}
	layout := &enc21pb.ConstantLayout{Layers: layersProto(l.layers)}
	page := EncodedPage{Layout: &enc21pb.PageLayout{Layout: &enc21pb.PageLayout_Constant{Constant: layout}}}
	if b.Type.Kind == level.Fixed && len(value) <= maxInlineConstant {
		layout.InlineValue = bytes.Clone(value)
		return page, true
	}
	// The buffers of an Arrow array of one value: a count, the sizes, the buffers.
	out := e.scratch[:0]
	put := func(v int) { out = binary.LittleEndian.AppendUint32(out, uint32(v)) }
	if b.Type.Kind == level.Variable {
		put(2)
		put(2 * b.Type.Bits / 8)
		put(len(value))
		for _, offset := range []int{0, len(value)} {
			put(offset)
			if b.Type.Bits == 64 {
				put(0)
			}
		}
	} else {
		put(1)
		put(len(value))
	}
	e.scratch = append(out, value...)
	page.Buffers = [][]byte{e.scratch}
	return page, true
}
