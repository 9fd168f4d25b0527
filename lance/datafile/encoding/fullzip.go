package encoding

import (
	"context"

	"github.com/rehome-db/rehome/lance/datafile/fsst"
	"github.com/rehome-db/rehome/lance/datafile/level"
	enc21pb "github.com/rehome-db/rehome/lance/internal/pb/enc21"
	"github.com/rehome-db/rehome/table"
)

// A full-zip page has its values one by one, each behind its levels: a control word of 1, 2
// or 4 bytes, repetition above definition level. Values of fixed width follow as they are,
// strings behind their length; nothing follows that is not there. The nullable strings "ab"
// and null:
//
//	00  02 00 00 00  61 62
//	01
//
// If entries differ in size, or rows have several, a second buffer says where each row
// begins and the last one ends, in numbers of 1, 2, 4 or 8 bytes:
//
//	00 07 08
//
// Without levels there is no control word, and then vectors are simply one after the other.

// fullZip decodes pages of wide values, in which each value stands behind its
// levels. Buffers: the entries back to back; where rows begin, if entries differ
// in size.
type fullZip struct {
	path     path
	bitsDef  int
	control  int // bytes of the word that holds the levels
	fixed    int // bytes of a value, rounded up; 0 for strings
	stored   int // bytes that a value has in the page
	bits     int // of a value that is no whole bytes
	validity int // bytes of item validity that each value begins with
	levels   []listLevel

	length  int // bytes of a string's length
	packed  *packedRows
	symbols *fsst.Table
	general *general
}

func (d *Decoder) planFullZip(l *enc21pb.FullZipLayout, p Page) (*fullZip, error) {
	z := &fullZip{bitsDef: int(l.GetBitsDef())}
	var err error
	if z.path, err = d.path(l.GetLayers()); err != nil {
		return nil, err
	}
	if l.GetBitsRep() > 16 || l.GetBitsDef() > 16 {
		return nil, table.Corruptf("encoding: levels of %d and %d bits", l.GetBitsRep(), l.GetBitsDef())
	}
	switch bits := l.GetBitsRep() + l.GetBitsDef(); {
	case bits == 0:
	case bits <= 8:
		z.control = 1
	case bits <= 16:
		z.control = 2
	default:
		z.control = 4
	}
	if (l.GetBitsRep() > 0) != (z.path.maxRep > 0) {
		return nil, table.Corruptf("encoding: repetition levels and list layers do not go together")
	}
	if l.GetBitsDef() == 0 {
		z.path = z.path.allPresent()
	}
	switch d.typ.Kind {
	case level.Fixed, level.FixedList:
		err = z.planFixed(l, d.typ, d.limits.Expanded)
	case level.Variable:
		err = z.planStrings(l, d.typ, d.limits.Expanded)
	default:
		err = table.Corruptf("encoding: full-zip values in a column without values")
	}
	if err != nil {
		return nil, err
	}
	return z, z.checkBuffers(p)
}

func (z *fullZip) planFixed(l *enc21pb.FullZipLayout, t level.Type, limit int) error {
	e := l.GetValueCompression()
	bits, ok := l.GetDetails().(*enc21pb.FullZipLayout_BitsPerValue)
	if !ok {
		return unsupported(e)
	}
	z.fixed = (t.ValueBits() + 7) / 8
	z.stored = z.fixed // a bit has a byte for itself
	if t.ValueBits()%8 != 0 {
		z.bits = t.ValueBits()
	}
	if t.Kind == level.Fixed {
		inner := e
		if packed, ok := e.GetCompression().(*enc21pb.CompressiveEncoding_PackedStruct); ok && t.Parts != "" {
			if err := packedWidths(packed.PackedStruct, t); err != nil {
				return err
			}
			inner = packed.PackedStruct.GetValues()
		}
		flat, ok := inner.GetCompression().(*enc21pb.CompressiveEncoding_Flat)
		if !ok || t.Parts != "" && inner == e {
			return unsupported(e)
		}
		if err := flatWidth(flat.Flat, max(t.Bits, 8)); err != nil {
			return err
		}
	} else {
		lists, err := compileLists(e, t, limit)
		if err != nil {
			return err
		}
		if lists.general != nil {
			return unsupported(e)
		}
		z.levels, z.validity = lists.levels, validityBytes(lists.levels)
		switch {
		case lists.noItems:
			z.stored = 0
		case z.bits > 0:
			return unsupported(e)
		}
	}
	if want := 8 * (z.stored + z.validity); int(bits.BitsPerValue) != want {
		return table.Corruptf("encoding: full-zip values of %d bits, want %d", bits.BitsPerValue, want)
	}
	return nil
}

// fullZip encodes a page of wide values: each behind its levels, found by offset.
func (e *Encoder) fullZip(b *level.Block, l *levels, widest int) (EncodedPage, error) {
	if l.rep != nil {
		var err error
		if l, err = l.declared(e.opts.Layers); err != nil {
			return EncodedPage{}, err
		}
	}
	layout := &enc21pb.FullZipLayout{
		Layers:          layersProto(l.layers),
		NumItems:        uint32(l.entries),
		NumVisibleItems: uint32(b.Values.N),
	}
	z := zipper{l: l}
	if l.rep != nil {
		layout.BitsRep = uint32(levelWidth(l.maxRep))
	}
	if l.def != nil {
		layout.BitsDef = uint32(levelWidth(l.maxDef))
	}
	z.defBits = int(layout.BitsDef)
	z.wordBytes = controlBytes(int(layout.BitsRep + layout.BitsDef))

	page := EncodedPage{Layout: &enc21pb.PageLayout{Layout: &enc21pb.PageLayout_FullZip{FullZip: layout}}}
	if b.Type.Kind == level.Variable {
		values, err := e.zipStrings(b, widest)
		if err != nil {
			return EncodedPage{}, err
		}
		layout.ValueCompression = values.encoding
		layout.Details = &enc21pb.FullZipLayout_BitsPerOffset{BitsPerOffset: uint32(b.Type.Bits)}
		e.data = z.strings(e.data[:0], values)
		page.Buffers = [][]byte{e.data, e.rowOffsets(z.rows, len(e.data))}
		return page, nil
	}
	encoding := describeFlat(b.Type.Bits)
	if b.Type.Parts != "" {
		encoding = describePacked(b.Type)
	}
	valueBits := b.Type.ValueBits()
	if b.Type.Kind == level.FixedList {
		levels, err := e.listLevels(b)
		if err != nil {
			return EncodedPage{}, err
		}
		encoding = describeFixedList(levels, b.Type.Bits)
		valueBits += 8 * validityBytes(levels)
		z.levels = levels
	}
	layout.ValueCompression = encoding
	layout.Details = &enc21pb.FullZipLayout_BitsPerValue{BitsPerValue: uint32(valueBits)}
	if z.wordBytes == 0 && b.Values.ItemValid == nil {
		// Nothing is put between the values: they are the page.
		page.Buffers = [][]byte{b.Values.Data[:b.Values.N*valueBits/8]}
		return page, nil
	}
	e.data = z.fixed(e.data[:0], b)
	page.Buffers = [][]byte{e.data}
	if l.rep != nil {
		page.Buffers = append(page.Buffers, e.rowOffsets(z.rows, len(e.data)))
	}
	return page, nil
}

// stride is the size of an entry if all are of one size, else 0.
func (z *fullZip) stride() uint64 {
	if z.length > 0 || z.path.maxRep > 0 {
		return 0
	}
	return uint64(z.control + z.validity + z.stored)
}

// growth is how many times as large as in the page values are when they are decoded, at
// most.
func (z *fullZip) growth() uint64 {
	if z.stored >= z.fixed {
		return 1
	}
	return uint64(z.fixed/max(z.validity, 1)) + 1
}

func (z *fullZip) checkBuffers(p Page) error {
	stride := z.stride()
	switch {
	case len(p.Buffers) == 0:
		return table.Corruptf("encoding: a full-zip page without buffers")
	case stride > 0 && p.Buffers[0].Size/stride != p.Rows,
		stride > 0 && p.Buffers[0].Size%stride != 0:
		return table.Corruptf("encoding: %d bytes for %d entries of %d bytes", p.Buffers[0].Size, p.Rows, stride)
	case stride == 0 && len(p.Buffers) < 2:
		return table.Corruptf("encoding: a full-zip page without repetition index")
	case stride == 0:
		_, err := z.indexWidth(p)
		return err
	}
	return nil
}

func (z *fullZip) run(ctx context.Context, d *Decoder, p Page, e *emitter) error {
	d.out.begin(d.typ, z.path)
	e.row = e.from
	if z.stride() > 0 {
		return z.runStride(ctx, d, p, e)
	}
	return z.runIndexed(ctx, d, p, e)
}

// runStride decodes entries that are all of one size, each a row.
func (z *fullZip) runStride(ctx context.Context, d *Decoder, p Page, e *emitter) error {
	stride := z.stride()
	step := min(max(uint64(d.limits.BlockBytes)/(stride*z.growth()), 1), uint64(d.limits.BlockEntries))
	for !e.done() {
		rows := min(step, e.to-e.row)
		var err error
		d.in, err = read(ctx, p, d.in, Buffer{p.Buffers[0].Offset + e.row*stride, rows * stride})
		if err != nil {
			return err
		}
		if z.control == 0 && z.validity == 0 && z.bits == 0 {
			// The entries are the values: nothing to take apart.
			b := level.Block{Type: d.typ, Rows: int(rows), Layers: z.path.layers,
				Values: level.Values{N: int(rows), Data: d.in}}
			if err := e.emit(&b); err != nil {
				return err
			}
			continue
		}
		s := &d.out
		s.v.Data = grow(s.v.Data, int(rows)*z.fixed)
		for in := d.in; len(in) > 0; {
			if in, err = z.entry(s, in); err != nil {
				return err
			}
		}
		if err := s.finish(e, s.rows); err != nil {
			return err
		}
	}
	return nil
}

// take implements sparsePlan: an entry is found without those before it.
func (z *fullZip) take(ctx context.Context, d *Decoder, p Page, t *taker) error {
	mean := max(p.Buffers[0].Size/max(p.Rows, 1), 1)
	return windows(t.ranges, takeGap/mean, max(takeRead/mean, 1), func(w Range) error {
		return t.run(ctx, z, d, p, w.From, w.To)
	})
}
