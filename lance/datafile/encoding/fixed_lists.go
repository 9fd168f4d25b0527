package encoding

import (
	"github.com/rehome-db/rehome/lance/datafile/level"
	enc21pb "github.com/rehome-db/rehome/lance/internal/pb/enc21"
	"github.com/rehome-db/rehome/table"
)

// Fixed-size lists are their items, one list after the other. In a chunk a bitmap comes
// before them, in a buffer of its own, for each level of lists that has null items. The
// lists of two int8 [1, null] and [3, 4]:
//
//	0d           items 0, 2 and 3 are there
//	01 00 03 04
//
// In a full-zip page and in a dictionary each list stands behind its own bitmap:
//
//	01  01 00
//	03  03 04

// listLevel is one level of nested fixed-size lists: the lists directly inside
// the value, those inside these, and at last the items.
type listLevel struct {
	// elements is how many there are in one value, over all lists of the level
	// above.
	elements int
	// validity says that the page stores which of them are null.
	validity bool
}

// validityBytes is what the validity of one value takes where each value stands
// by itself: whole bytes a level.
func validityBytes(levels []listLevel) int {
	n := 0
	for _, l := range levels {
		if l.validity {
			n += (l.elements + 7) / 8
		}
	}
	return n
}

// describeFixedList nests one list a level, outermost first.
func describeFixedList(levels []listLevel, bits int) *enc21pb.CompressiveEncoding {
	out := describeFlat(bits)
	for i := len(levels) - 1; i >= 0; i-- {
		items := levels[i].elements
		if i > 0 {
			items /= levels[i-1].elements
		}
		out = &enc21pb.CompressiveEncoding{Compression: &enc21pb.CompressiveEncoding_FixedSizeList{
			FixedSizeList: &enc21pb.FixedSizeList{ItemsPerValue: uint64(items), Values: out, HasValidity: levels[i].validity}}}
	}
	return out
}

// compileLists follows the chain of list encodings, outermost first, to the flat
// items.
func compileLists(e *enc21pb.CompressiveEncoding, t level.Type, limit int) (*listValues, error) {
	d := &listValues{typ: t}
	outer := e
	if g, ok := e.GetCompression().(*enc21pb.CompressiveEncoding_General); ok {
		if err := checkScheme(g.General.GetCompression()); err != nil {
			return nil, err
		}
		d.general = &general{scheme: g.General.GetCompression().GetScheme(), limit: limit}
		e = g.General.GetValues()
	}
	elements, inner := uint64(1), uint64(0)
	for {
		switch c := e.GetCompression().(type) {
		case *enc21pb.CompressiveEncoding_FixedSizeList:
			items := c.FixedSizeList.GetItemsPerValue()
			if items == 0 || items > uint64(t.Dim) || len(d.levels) > maxEncodingDepth {
				return nil, table.Corruptf("encoding: lists of %d items, want %d in all", items, t.Dim)
			}
			if len(d.levels) > 0 {
				inner += elements
			}
			if elements *= items; elements > uint64(t.Dim) {
				return nil, table.Corruptf("encoding: lists of %d items, want %d", elements, t.Dim)
			}
			validity := c.FixedSizeList.GetHasValidity()
			d.levels = append(d.levels, listLevel{int(elements), validity})
			if validity {
				d.nulls++
			}
			e = c.FixedSizeList.GetValues()
		case *enc21pb.CompressiveEncoding_Flat:
			if len(d.levels) == 0 {
				return nil, unsupported(outer)
			}
			if err := listsAre(t, elements, inner); err != nil {
				return nil, err
			}
			return d, flatWidth(c.Flat, t.Bits)
		case *enc21pb.CompressiveEncoding_Constant:
			if len(d.levels) == 0 || !d.levels[len(d.levels)-1].validity || len(c.Constant.GetValue()) > 0 {
				return nil, unsupported(outer)
			}
			// All elements of the last level are null, and what is inside them is left out.
			rest := t.ValidBits() - int(inner+elements)
			if uint64(t.Dim)%elements != 0 || rest < 0 {
				return nil, listsAre(t, elements, inner)
			}
			if rest > 0 {
				d.levels = append(d.levels, listLevel{elements: rest})
			}
			d.noItems = true
			return d, nil
		default:
			return nil, unsupported(outer)
		}
	}
}

// listsAre checks what a chain of list encodings adds up to.
func listsAre(t level.Type, elements, inner uint64) error {
	if elements != uint64(t.Dim) || inner != uint64(t.Inner) {
		return table.Corruptf("encoding: lists of %d items and %d lists inside, want %d and %d", elements, inner, t.Dim, t.Inner)
	}
	return nil
}

// listValues is fixed-size lists of fixed-width items: for each level that can be
// null a bitmap, then the items.
type listValues struct {
	typ     level.Type
	levels  []listLevel
	nulls   int // levels with validity
	general *general
	// noItems says that no items are stored, because all are null, or in null lists.
	noItems bool
}

func (d *listValues) buffers() int { return d.nulls + 1 }

func (d *listValues) appendTo(s *sink, n int, bufs [][]byte) error {
	if d.general != nil {
		var err error
		if bufs, err = d.general.expand(bufs); err != nil {
			return err
		}
	}
	items := uint64(n) * uint64(d.typ.Dim)
	data := bufs[len(bufs)-1]
	if need := (items*uint64(d.typ.Bits) + 7) / 8; need > uint64(len(data)) {
		return table.Corruptf("encoding: %d bytes for %d items of %d bits", len(data), items, d.typ.Bits)
	}
	if err := d.appendValidity(s, n, bufs[:d.nulls]); err != nil {
		return err
	}
	if bits := d.typ.ValueBits(); bits%8 != 0 {
		s.v.Data = level.AppendBits(s.v.Data, s.v.N*bits, data, 0, n*bits)
	} else {
		s.v.Data = append(s.v.Data, data[:n*bits/8]...)
	}
	s.v.N += n
	return nil
}

// appendValidity takes one bitmap a level with nulls.
func (d *listValues) appendValidity(s *sink, n int, bitmaps [][]byte) error {
	k := 0
	for _, l := range d.levels {
		if !l.validity {
			continue
		}
		if bits := uint64(n) * uint64(l.elements); (bits+7)/8 > uint64(len(bitmaps[k])) {
			return table.Corruptf("encoding: validity of %d bytes for %d items", len(bitmaps[k]), bits)
		}
		k++
	}
	width := d.typ.ValidBits()
	switch have := s.v.N * width; {
	case d.nulls == 0 && s.v.ItemValid == nil:
	case d.nulls == 0:
		s.v.ItemValid = level.AppendOnes(s.v.ItemValid, have, n*width)
	default:
		if s.v.ItemValid == nil {
			s.v.ItemValid = level.AppendOnes(nil, 0, have)
		}
		if len(d.levels) == 1 {
			s.v.ItemValid = level.AppendBits(s.v.ItemValid, have, bitmaps[0], 0, n*width)
			return nil
		}
		for i := range n {
			s.v.ItemValid, have = appendSlotValidity(s.v.ItemValid, have, d.levels, bitmaps, i)
		}
	}
	return nil
}

// appendSlotValidity appends the validity of value i, which is bits [i*elements,
// (i+1)*elements) of each level's bitmap, to the bit stream dst of have bits.
func appendSlotValidity(dst []byte, have int, levels []listLevel, bitmaps [][]byte, i int) ([]byte, int) {
	k := 0
	for _, l := range levels {
		if l.validity {
			dst = level.AppendBits(dst, have, bitmaps[k], i*l.elements, l.elements)
			k++
		} else {
			dst = level.AppendOnes(dst, have, l.elements)
		}
		have += l.elements
	}
	return dst, have
}

// listLevels returns the levels of b's lists, and which of them hold nulls.
func (e *Encoder) listLevels(b *level.Block) ([]listLevel, error) {
	dims := e.opts.Dims
	if len(dims) == 0 && b.Type.Inner == 0 {
		dims = []int{b.Type.Dim}
	}
	levels := make([]listLevel, len(dims))
	elements, inner := 1, 0
	for i, d := range dims {
		if i > 0 {
			inner += elements
		}
		elements *= d
		levels[i].elements = elements
	}
	if elements != b.Type.Dim || inner != b.Type.Inner || len(dims) == 0 {
		return nil, table.Corruptf("encoding: dimensions %v for lists of %d items and %d lists inside", dims, b.Type.Dim, b.Type.Inner)
	}
	if b.Values.ItemValid == nil {
		return levels, nil
	}
	at := 0
	for i := range levels {
		l := &levels[i]
		for slot := 0; slot < b.Values.N && !l.validity; slot++ {
			l.validity = !allOnes(b.Values.ItemValid, slot*b.Type.ValidBits()+at, l.elements)
		}
		at += l.elements
	}
	return levels, nil
}

// fixedListEncoder stores lists of a fixed number of items as they are, after a
// bitmap for each level that has nulls.
type fixedListEncoder struct {
	levels []listLevel
	typ    level.Type
	data   []byte
	valid  []byte
}

func (c *fixedListEncoder) describe() (*enc21pb.CompressiveEncoding, int) {
	buffers := 1
	for _, l := range c.levels {
		if l.validity {
			buffers++
		}
	}
	return describeFixedList(c.levels, c.typ.Bits), buffers
}

func (c *fixedListEncoder) limits() (int, int) { return maxChunkSlots, fixedChunkBytes }

func (c *fixedListEncoder) size(from, to int) int {
	n := ((to-from)*c.typ.ValueBits() + 7) / 8
	for _, l := range c.levels {
		if l.validity {
			n += ((to-from)*l.elements + 7) / 8
		}
	}
	return n
}

func (c *fixedListEncoder) append(dst []byte, sizes []int, from, to int) ([]byte, []int) {
	at := 0 // of the level in a value's validity
	for _, l := range c.levels {
		if l.validity {
			dst = c.appendValidity(dst, l, at, from, to)
			dst = padTo(dst, alignment, chunkPad)
			sizes = append(sizes, ((to-from)*l.elements+7)/8)
		}
		at += l.elements
	}
	w := c.typ.ValueBits()
	dst = appendBitRange(dst, c.data, from*w, to*w)
	return padTo(dst, alignment, chunkPad), append(sizes, ((to-from)*w+7)/8)
}

// appendValidity appends one level's bits of the values [from, to).
func (c *fixedListEncoder) appendValidity(dst []byte, l listLevel, at, from, to int) []byte {
	width := c.typ.ValidBits()
	if l.elements == width {
		return appendBitRange(dst, c.valid, from*width, to*width)
	}
	have := 8 * len(dst)
	for i := from; i < to; i++ {
		dst = level.AppendBits(dst, have, c.valid, i*width+at, l.elements)
		have += l.elements
	}
	return dst
}

// wholeLists is lists one after the other in one buffer, each behind its validity.
type wholeLists listValues

func (*wholeLists) buffers() int { return 1 }

func (d *wholeLists) appendTo(s *sink, n int, bufs [][]byte) error {
	if d.general != nil {
		var err error
		if bufs, err = d.general.expand(bufs); err != nil {
			return err
		}
	}
	z := fullZip{fixed: d.typ.ValueBits() / 8, stored: d.typ.ValueBits() / 8, levels: d.levels, validity: validityBytes(d.levels)}
	in := bufs[0]
	if size := z.fixed + z.validity; size == 0 || n != len(in)/size || n*size != len(in) {
		return table.Corruptf("encoding: %d bytes for %d lists of %d", len(in), n, size)
	}
	for range n {
		var err error
		if in, err = z.value(s, in, 0); err != nil {
			return err
		}
	}
	return nil
}

// wholeLists returns the lists of b as bytes, each behind the validity of its items.
func (e *Encoder) wholeLists(b *level.Block) (*level.Block, error) {
	levels, err := e.listLevels(b)
	if err != nil {
		return nil, err
	}
	size := b.Type.ValueBits() / 8
	out := &level.Block{Type: level.Type{Kind: level.FixedList, Bits: 8, Dim: size + validityBytes(levels)}, Rows: b.Values.N, Layers: b.Layers}
	out.Values.N = b.Values.N
	at := 0
	for i := range b.Values.N {
		for _, l := range levels {
			if l.validity {
				out.Values.Data = append(out.Values.Data, level.AppendBits(nil, 0, b.Values.ItemValid, at, l.elements)...)
			}
			at += l.elements
		}
		out.Values.Data = append(out.Values.Data, b.Values.Data[i*size:(i+1)*size]...)
	}
	return out, nil
}

// describeListItems says of a dictionary that its items are lists.
func (e *Encoder) describeListItems(b *level.Block, page *dictionaryPage) error {
	levels, err := e.listLevels(b)
	if err != nil {
		return err
	}
	lists := describeFixedList(levels, b.Type.Bits)
	if g := page.encoding.GetGeneral(); g != nil {
		g.Values = lists
	} else {
		page.encoding = lists
	}
	return nil
}
