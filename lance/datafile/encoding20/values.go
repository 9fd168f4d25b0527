package encoding20

import (
	"context"

	"github.com/rehome-db/rehome/lance/datafile/level"
	enc20pb "github.com/rehome-db/rehome/lance/internal/pb/enc20"
	"github.com/rehome-db/rehome/table"
)

// values reads the values of a page whose description was checked.
type values interface {
	// size returns how many bytes the values from lo to hi take, at most.
	size(ctx context.Context, r *Reader, lo, hi uint64) (uint64, error)
	// appendTo appends the values from lo to hi.
	appendTo(ctx context.Context, r *Reader, s *sink, lo, hi uint64) error
}

// sink gathers values.
type sink struct {
	typ level.Type
	v   level.Values
	// def has one entry a slot: 1 for null.
	def   []uint16
	nulls int
}

func (s *sink) begin(t level.Type) {
	s.typ, s.def, s.nulls = t, s.def[:0], 0
	s.v = level.Values{Data: s.v.Data[:0], Offsets: s.v.Offsets[:0]}
	if t.Kind == level.Variable {
		s.v.Offsets = append(s.v.Offsets, 0)
	}
}

// extend makes n more bytes of values, whose content does not matter.
func (s *sink) extend(n int) []byte {
	have := len(s.v.Data)
	if cap(s.v.Data)-have < n {
		grown := make([]byte, have, max(have+n, 2*have))
		copy(grown, s.v.Data)
		s.v.Data = grown
	}
	s.v.Data = s.v.Data[:have+n]
	return s.v.Data[have:]
}

// add counts n slots whose values were appended.
func (s *sink) add(n int) {
	s.v.N += n
	have := len(s.def)
	s.def = append(s.def, make([]uint16, n)...)
	clear(s.def[have:])
}

// null says that a slot that was counted is null.
func (s *sink) null(i int) {
	if s.def[i] == 0 {
		s.def[i] = 1
		s.nulls++
	}
}

// addNulls appends n nulls.
func (s *sink) addNulls(n int) {
	switch s.typ.Kind {
	case level.Fixed, level.FixedList:
		bits := s.typ.ValueBits()
		clear(s.extend(((s.v.N+n)*bits+7)/8 - len(s.v.Data)))
		if s.v.ItemValid != nil {
			s.v.ItemValid = level.AppendOnes(s.v.ItemValid, s.v.N*s.typ.ValidBits(), n*s.typ.ValidBits())
		}
	case level.Variable:
		for range n {
			s.v.Offsets = append(s.v.Offsets, uint32(len(s.v.Data)))
		}
	}
	s.add(n)
	for i := range n {
		s.null(len(s.def) - n + i)
	}
}

// tooLong says whether n more bytes are more than offsets can tell apart.
func (s *sink) tooLong(n uint64) error {
	if uint64(len(s.v.Data))+n > 1<<32-1 {
		return table.Unsupportedf("encoding: more than 4 GiB of values in one row")
	}
	return nil
}

// compiler checks the encodings of one page.
type compiler struct {
	page  *Page
	limit int
}

// compile checks the description of n values.
func (c *compiler) compile(e *enc20pb.ArrayEncoding, leaf Leaf, n uint64, depth int) (values, error) {
	if depth > maxDepth {
		return nil, table.Unsupportedf("encoding: encodings are nested more than %d deep", maxDepth)
	}
	if leaf.Type.Kind == level.Nothing {
		// The null type, and structs without fields.
		return nothing{}, nil
	}
	if e, ok := e.GetArrayEncoding().(*enc20pb.ArrayEncoding_Nullable); ok {
		switch k := e.Nullable.GetNullability().(type) {
		case *enc20pb.Nullable_AllNulls:
			return nothing{leaf.Type}, nil
		case *enc20pb.Nullable_NoNulls:
			return c.compile(k.NoNulls.GetValues(), leaf, n, depth+1)
		case *enc20pb.Nullable_SomeNulls:
			valid, err := compileFlat(k.SomeNulls.GetValidity(), c.page, 1, n, c.limit)
			if err != nil {
				return nil, err
			}
			inner, err := c.compile(k.SomeNulls.GetValues(), leaf, n, depth+1)
			if err != nil {
				return nil, err
			}
			return &someNull{valid, inner}, nil
		default:
			return nil, table.Unsupportedf("encoding: a kind of nullability that is not known")
		}
	}
	if d, ok := e.GetArrayEncoding().(*enc20pb.ArrayEncoding_Dictionary); ok {
		return c.dictionary(d.Dictionary, e, leaf, n, depth)
	}
	if leaf.Dictionary {
		return nil, unsupported(e)
	}
	switch t := leaf.Type; {
	case t.Parts != "":
		return c.packed(e, t, n)
	case t.Kind == level.Fixed:
		f, err := compileFlat(e, c.page, uint64(t.Bits), n, c.limit)
		return &fixed{flat: f}, err
	case t.Kind == level.FixedList:
		return c.list(e, t, n)
	default:
		return c.strings(e, n)
	}
}

// nothing is values that are all null.
type nothing struct{ typ level.Type }

func (v nothing) size(_ context.Context, _ *Reader, lo, hi uint64) (uint64, error) {
	return (hi - lo) * uint64(v.typ.ValueBits()+7) / 8, nil
}

func (nothing) appendTo(_ context.Context, _ *Reader, s *sink, lo, hi uint64) error {
	s.addNulls(int(hi - lo))
	return nil
}

// someNull is values some of which are null.
type someNull struct {
	valid *flat
	values
}

func (v *someNull) appendTo(ctx context.Context, r *Reader, s *sink, lo, hi uint64) error {
	first := s.v.N
	if err := v.values.appendTo(ctx, r, s, lo, hi); err != nil {
		return err
	}
	bits, err := v.valid.appendBits(ctx, r, r.bits[:0], 0, lo, hi)
	if err != nil {
		return err
	}
	r.bits = bits
	for i := range int(hi - lo) {
		if bits[i/8]>>(i%8)&1 == 0 {
			s.null(first + i)
		}
	}
	return nil
}

// fixed is values of one width; those of fixed-size lists are their items together.
type fixed struct {
	*flat
	levels []listLevel // of a fixed-size list
	items  uint64      // in all of its levels
}

// listLevel is one level of a fixed-size list.
type listLevel struct {
	elements uint64 // in one value
	valid    *flat  // nil if all are valid
	none     bool   // all are null
}

func (v *fixed) size(_ context.Context, r *Reader, lo, hi uint64) (uint64, error) {
	return ((hi-lo)*v.width() + 7) / 8, nil
}

// width is that of a value in bits.
func (v *fixed) width() uint64 {
	if len(v.levels) > 0 {
		return v.bits * v.items
	}
	return v.bits
}

func (v *fixed) appendTo(ctx context.Context, r *Reader, s *sink, lo, hi uint64) error {
	n, w := int(hi-lo), v.width()
	switch {
	case len(v.levels) > 0 && v.levels[len(v.levels)-1].none:
		clear(s.extend(((s.v.N+n)*int(w)+7)/8 - len(s.v.Data)))
	case w%8 == 0:
		if err := v.flat.read(ctx, r.source.File, s.extend(n*int(w/8)), lo*w/8); err != nil {
			return err
		}
	default:
		var err error
		if s.v.Data, err = v.flat.appendBits(ctx, r, s.v.Data, s.v.N*int(w), lo*w, hi*w); err != nil {
			return err
		}
	}
	if err := v.appendItemValid(ctx, r, s, lo, hi); err != nil {
		return err
	}
	s.add(n)
	return nil
}

// appendItemValid appends the validity of what is inside fixed-size lists: for each
// value that of the inner lists, outermost first, then that of the items.
func (v *fixed) appendItemValid(ctx context.Context, r *Reader, s *sink, lo, hi uint64) error {
	some := s.v.ItemValid != nil
	for _, l := range v.levels {
		some = some || l.valid != nil || l.none
	}
	if !some || len(v.levels) == 0 {
		return nil
	}
	n, width := int(hi-lo), s.typ.ValidBits()
	if s.v.ItemValid == nil {
		s.v.ItemValid = level.AppendOnes(nil, 0, s.v.N*width)
	}
	have := s.v.N * width
	r.levelBits = r.levelBits[:0]
	for _, l := range v.levels {
		var bits []byte
		switch {
		case l.valid != nil:
			var err error
			if bits, err = l.valid.appendBits(ctx, r, nil, 0, lo*l.elements, hi*l.elements); err != nil {
				return err
			}
		case l.none:
			bits = make([]byte, (n*int(l.elements)+7)/8)
		default:
			bits = level.AppendOnes(nil, 0, n*int(l.elements))
		}
		r.levelBits = append(r.levelBits, bits)
	}
	if len(v.levels) == 1 {
		s.v.ItemValid = level.AppendBits(s.v.ItemValid, have, r.levelBits[0], 0, n*width)
		return nil
	}
	for i := range n {
		for k, l := range v.levels {
			s.v.ItemValid = level.AppendBits(s.v.ItemValid, have, r.levelBits[k], i*int(l.elements), int(l.elements))
			have += int(l.elements)
		}
	}
	return nil
}

// list checks the encoding of fixed-size lists, one level after the other.
func (c *compiler) list(e *enc20pb.ArrayEncoding, t level.Type, n uint64) (values, error) {
	v := &fixed{items: uint64(t.Dim)}
	elements, inner := uint64(1), uint64(0)
	for depth := 0; ; depth++ {
		l, ok := dense(e).GetArrayEncoding().(*enc20pb.ArrayEncoding_FixedSizeList)
		if !ok {
			break
		}
		if l.FixedSizeList.GetHasValidity() {
			return nil, unsupported(e)
		}
		if depth > 0 {
			inner += elements
		}
		elements *= uint64(l.FixedSizeList.GetDimension())
		if depth > maxDepth || elements == 0 || elements > uint64(t.Dim) || inner > uint64(t.Inner) {
			return nil, table.Corruptf("encoding: fixed-size lists of %d items, want %d", elements, t.Dim)
		}
		at := listLevel{elements: elements}
		e = l.FixedSizeList.GetItems()
		switch k := dense(e).GetNullable().GetNullability().(type) {
		case *enc20pb.Nullable_SomeNulls:
			var err error
			if at.valid, err = compileFlat(k.SomeNulls.GetValidity(), c.page, 1, n*elements, c.limit); err != nil {
				return nil, err
			}
			e = k.SomeNulls.GetValues()
		case *enc20pb.Nullable_AllNulls:
			at.none = true
		}
		v.levels = append(v.levels, at)
		if at.none {
			// Nothing is stored of what is inside, not even how long lists there are.
			if all := uint64(t.Inner) + uint64(t.Dim); elements < uint64(t.Dim) && all > inner+elements {
				v.levels = append(v.levels, listLevel{elements: all - inner - elements, none: true})
				elements, inner = uint64(t.Dim), uint64(t.Inner)
			}
			break
		}
	}
	if elements != uint64(t.Dim) || inner != uint64(t.Inner) {
		return nil, table.Corruptf("encoding: fixed-size lists of %d items, want %d", elements, t.Dim)
	}
	if v.levels[len(v.levels)-1].none {
		v.flat = &flat{bits: uint64(t.Bits)}
		return v, nil
	}
	var err error
	v.flat, err = compileFlat(e, c.page, uint64(t.Bits), n*elements, c.limit)
	return v, err
}

// packed checks the encoding of rows of fields of fixed width.
func (c *compiler) packed(e *enc20pb.ArrayEncoding, t level.Type, n uint64) (values, error) {
	p, ok := e.GetArrayEncoding().(*enc20pb.ArrayEncoding_PackedStruct)
	if !ok {
		return nil, unsupported(e)
	}
	parts := t.Parts.List()
	if len(p.PackedStruct.GetInner()) != len(parts) {
		return nil, table.Corruptf("encoding: a packed struct of %d fields, want %d", len(p.PackedStruct.GetInner()), len(parts))
	}
	total := uint64(0)
	for i, inner := range p.PackedStruct.GetInner() {
		inner, items := dense(inner), 1
		if l, ok := inner.GetArrayEncoding().(*enc20pb.ArrayEncoding_FixedSizeList); ok {
			items, inner = int(l.FixedSizeList.GetDimension()), dense(l.FixedSizeList.GetItems())
		}
		f, ok := inner.GetArrayEncoding().(*enc20pb.ArrayEncoding_Flat)
		if !ok || parts[i].Variable {
			return nil, unsupported(e)
		}
		if items != max(parts[i].Items, 1) || f.Flat.GetBitsPerValue()*uint64(items) != uint64(parts[i].Bits) || parts[i].Bits%8 != 0 {
			return nil, table.Corruptf("encoding: field %d of a packed struct has %d times %d bits, want %d", i, items, f.Flat.GetBitsPerValue(), parts[i].Bits)
		}
		total += uint64(parts[i].Bits)
	}
	b, err := bufferOf(p.PackedStruct.GetBuffer(), c.page)
	if err != nil {
		return nil, err
	}
	if b.Size < n*total/8 {
		return nil, table.Corruptf("encoding: a buffer of %d bytes for %d packed structs of %d", b.Size, n, total/8)
	}
	rows := &flat{bits: total, buffer: b, size: n * total / 8}
	if t.Kind == level.Variable {
		return &equalBytes{rows, total / 8}, nil
	}
	return &fixed{flat: rows}, nil
}

// equalBytes is values of the same number of bytes each that level space has as
// strings: rows of a packed struct with a fixed-size list, and strings.
type equalBytes struct {
	*flat
	n uint64
}

func (v *equalBytes) size(_ context.Context, _ *Reader, lo, hi uint64) (uint64, error) {
	return (hi - lo) * (v.n + 4), nil
}

func (v *equalBytes) appendTo(ctx context.Context, r *Reader, s *sink, lo, hi uint64) error {
	n, w := hi-lo, v.n
	if err := s.tooLong(n * w); err != nil {
		return err
	}
	if err := v.flat.read(ctx, r.source.File, s.extend(int(n*w)), lo*w); err != nil {
		return err
	}
	for range n {
		s.v.Offsets = append(s.v.Offsets, s.v.Offsets[len(s.v.Offsets)-1]+uint32(w))
	}
	s.add(int(n))
	return nil
}
