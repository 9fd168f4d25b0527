package encoding

import (
	"context"
	"slices"

	"github.com/rehome-db/rehome/lance/datafile/fsst"
	"github.com/rehome-db/rehome/lance/datafile/level"
	enc21pb "github.com/rehome-db/rehome/lance/internal/pb/enc21"
	"github.com/rehome-db/rehome/table"
)

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

func (z *fullZip) planStrings(l *enc21pb.FullZipLayout, t level.Type, limit int) error {
	e := l.GetValueCompression()
	bits, ok := l.GetDetails().(*enc21pb.FullZipLayout_BitsPerOffset)
	if !ok {
		return unsupported(e)
	}
	if bits.BitsPerOffset != 32 && bits.BitsPerOffset != 64 {
		return table.Corruptf("encoding: lengths of %d bits", bits.BitsPerOffset)
	}
	z.length = int(bits.BitsPerOffset) / 8
	if t.Parts != "" {
		rows, ok := e.GetCompression().(*enc21pb.CompressiveEncoding_VariablePackedStruct)
		if !ok {
			return unsupported(e)
		}
		var err error
		z.packed, err = compilePackedRows(rows.VariablePackedStruct, e, t, limit)
		return err
	}
	var err error
	z.symbols, z.general, err = singleValues(e, e, limit)
	return err
}

// singleValues checks an encoding in which strings are compressed one by one, and
// returns what undoes it: a symbol table, a general scheme, or neither. of is the
// whole encoding, for messages.
func singleValues(values, of *enc21pb.CompressiveEncoding, limit int) (symbols *fsst.Table, scheme *general, err error) {
	inner := values
	switch c := values.GetCompression().(type) {
	case *enc21pb.CompressiveEncoding_Fsst:
		if symbols, err = fsst.ParseTable(c.Fsst.GetSymbolTable()); err != nil {
			return nil, nil, err
		}
		inner = c.Fsst.GetValues()
	case *enc21pb.CompressiveEncoding_General:
		if err := checkScheme(c.General.GetCompression()); err != nil {
			return nil, nil, err
		}
		scheme = &general{scheme: c.General.GetCompression().GetScheme(), limit: limit}
		inner = c.General.GetValues()
	}
	v, ok := inner.GetCompression().(*enc21pb.CompressiveEncoding_Variable)
	if !ok {
		return nil, nil, unsupported(of)
	}
	_, err = offsetBits(v.Variable, of)
	return symbols, scheme, err
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

// indexWidth returns the size of the repetition index's entries, which are one
// more than there are rows.
func (z *fullZip) indexWidth(p Page) (int, error) {
	size := p.Buffers[1].Size
	switch width := size / (p.Rows + 1); {
	case size%(p.Rows+1) != 0:
	case width == 1, width == 2, width == 4, width == 8:
		return int(width), nil
	}
	return 0, table.Corruptf("encoding: a repetition index of %d bytes for %d rows", size, p.Rows)
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

// runIndexed decodes entries of any size, finding rows by the repetition index.
func (z *fullZip) runIndexed(ctx context.Context, d *Decoder, p Page, e *emitter) error {
	width, err := z.indexWidth(p)
	if err != nil {
		return err
	}
	d.aux, err = read(ctx, p, d.aux, Buffer{p.Buffers[1].Offset + e.from*uint64(width), (e.to - e.from + 1) * uint64(width)})
	if err != nil {
		return err
	}
	start := func(row uint64) uint64 { return loadWord(d.aux[int(row-e.from)*width:], width) }
	if end := start(e.to); e.from == 0 && start(0) != 0 || e.to == p.Rows && end != p.Buffers[0].Size {
		return table.Corruptf("encoding: the repetition index does not span the %d bytes of the page", p.Buffers[0].Size)
	}
	s := &d.out
	for !e.done() {
		from := start(e.row)
		to, until := e.row, from
		for to < e.to && int(to-e.row) < d.limits.BlockEntries {
			next := start(to + 1)
			if next < until || next > p.Buffers[0].Size {
				return table.Corruptf("encoding: row %d ends at byte %d of %d, after %d", to, next, p.Buffers[0].Size, until)
			}
			if to > e.row && (next-from)*z.growth() > uint64(d.limits.BlockBytes) {
				break
			}
			to, until = to+1, next
		}
		d.in, err = read(ctx, p, d.in, Buffer{p.Buffers[0].Offset + from, until - from})
		if err != nil {
			return err
		}
		in := d.in
		for row := e.row; row < to; row++ {
			// A row is one entry, or with lists as many as fill it; the entry
			// that begins it is the only one that does.
			begun := s.rows
			left := int(start(row+1) - start(row))
			for used := 0; used < left || s.rows == begun; {
				rest, err := z.entry(s, in[:left-used])
				if err != nil {
					return err
				}
				n := left - used - len(rest)
				used, in = used+n, in[n:]
				if s.rows != begun+1 || n == 0 {
					return table.Corruptf("encoding: row %d does not begin where the repetition index says", row)
				}
			}
		}
		if err := s.finish(e, s.rows); err != nil {
			return err
		}
	}
	return nil
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
