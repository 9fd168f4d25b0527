package encoding20

import (
	"context"
	"encoding/binary"

	"github.com/rehome-db/rehome/lance/datafile/level"
	enc20pb "github.com/rehome-db/rehome/lance/internal/pb/enc20"
	"github.com/rehome-db/rehome/table"
)

// dictionary is indices into a few values.
type dictionary struct {
	indices *flat
	valid   *flat // of indices, or nil
	items   values
	count   uint64
	// zeroIsNull says that index 0 is null and 1 the first value.
	zeroIsNull bool
	loaded     sink // the values, once typ is set
	widest     uint64
}

func (c *compiler) dictionary(d *enc20pb.Dictionary, e *enc20pb.ArrayEncoding, leaf Leaf, n uint64, depth int) (values, error) {
	t := leaf.Type
	if !leaf.Dictionary && t.Kind != level.Variable || t.Kind == level.FixedList || t.Parts != "" {
		return nil, unsupported(e)
	}
	v := &dictionary{count: uint64(d.GetNumDictionaryItems()), zeroIsNull: !leaf.Dictionary}
	// Lance before 0.20 wrote nulls as null indices.
	indices := dense(d.GetIndices())
	switch k := indices.GetNullable().GetNullability().(type) {
	case *enc20pb.Nullable_AllNulls:
		return nothing{t}, nil
	case *enc20pb.Nullable_SomeNulls:
		var err error
		if v.valid, err = compileFlat(k.SomeNulls.GetValidity(), c.page, 1, n, c.limit); err != nil {
			return nil, err
		}
		indices = dense(k.SomeNulls.GetValues())
	}
	bits := max(indices.GetFlat().GetBitsPerValue(), indices.GetBitpacked().GetUncompressedBitsPerValue(),
		indices.GetBitpackedForNonNeg().GetUncompressedBitsPerValue())
	if bits != 8 && bits != 16 && bits != 32 && bits != 64 {
		return nil, unsupported(e)
	}
	if v.count > uint64(c.limit)/max(uint64(t.ValueBits()/8), 8) {
		return nil, table.Corruptf("encoding: a dictionary of %d items", v.count)
	}
	var err error
	if v.indices, err = compileFlat(indices, c.page, bits, n, c.limit); err != nil {
		return nil, err
	}
	leaf.Dictionary = false
	if dense(d.GetItems()).GetDictionary() != nil {
		return nil, unsupported(e)
	}
	v.items, err = c.compile(d.GetItems(), leaf, v.count, depth+1)
	v.loaded.typ = leaf.Type
	return v, err
}

// load reads the values.
func (v *dictionary) load(ctx context.Context, r *Reader) error {
	s := &v.loaded
	if uint64(s.v.N) == v.count {
		return nil
	}
	size, err := v.items.size(ctx, r, 0, v.count)
	if err != nil {
		return err
	}
	if size > uint64(r.limits.Expanded) {
		return table.Unsupportedf("encoding: a dictionary of %d bytes", size)
	}
	s.begin(s.typ)
	if err := v.items.appendTo(ctx, r, s, 0, v.count); err != nil {
		s.begin(s.typ)
		return err
	}
	v.widest = uint64(s.typ.ValueBits()+7) / 8
	for i := 1; i < len(s.v.Offsets); i++ {
		v.widest = max(v.widest, uint64(s.v.Offsets[i]-s.v.Offsets[i-1])+4)
	}
	return nil
}

func (v *dictionary) size(ctx context.Context, r *Reader, lo, hi uint64) (uint64, error) {
	if err := v.load(ctx, r); err != nil {
		return 0, err
	}
	return (hi - lo) * v.widest, nil
}

func (v *dictionary) appendTo(ctx context.Context, r *Reader, s *sink, lo, hi uint64) error {
	if err := v.load(ctx, r); err != nil {
		return err
	}
	w, n := v.indices.bits/8, int(hi-lo)
	r.spare = resize(r.spare, n*int(w))
	if err := v.indices.read(ctx, r.source.File, r.spare, lo*w); err != nil {
		return err
	}
	var valid []byte
	if v.valid != nil {
		var err error
		if valid, err = v.validBits(ctx, r, lo, hi); err != nil {
			return err
		}
	}
	first, from := s.v.N, &v.loaded
	s.add(n)
	for i := range n {
		at := word(r.spare[i*int(w):], int(w))
		if v.zeroIsNull {
			at-- // null becomes the largest
		}
		isNull := v.zeroIsNull && at == 1<<64-1 || valid != nil && valid[i/8]>>(i%8)&1 == 0
		null := at >= v.count || isNull
		if null && !isNull {
			return table.Corruptf("encoding: index %d into a dictionary of %d items", at, v.count)
		}
		if !null && from.def[at] != 0 {
			null = true
		}
		if null {
			s.null(first + i)
		}
		if err := v.append(s, first+i, at, null); err != nil {
			return err
		}
	}
	return nil
}

// validBits reads the validity of indices. What r has in spare stays as it is.
func (v *dictionary) validBits(ctx context.Context, r *Reader, lo, hi uint64) ([]byte, error) {
	spare := r.spare
	r.spare = nil
	bits, err := v.valid.appendBits(ctx, r, r.bits[:0], 0, lo, hi)
	r.spare, r.bits = spare, bits
	return bits, err
}

// append appends value at of the dictionary as value i, or something for a null.
func (v *dictionary) append(s *sink, i int, at uint64, null bool) error {
	from := &v.loaded.v
	switch w := s.typ.ValueBits(); {
	case s.typ.Kind == level.Variable:
		if !null {
			b := from.Data[from.Offsets[at]:from.Offsets[at+1]]
			if err := s.tooLong(uint64(len(b))); err != nil {
				return err
			}
			s.v.Data = append(s.v.Data, b...)
		}
		s.v.Offsets = append(s.v.Offsets, uint32(len(s.v.Data)))
	case null:
		clear(s.extend(((i+1)*w+7)/8 - len(s.v.Data)))
	case w%8 != 0:
		s.v.Data = level.AppendBits(s.v.Data, i*w, from.Data, int(at)*w, w)
	default:
		s.v.Data = append(s.v.Data, from.Data[int(at)*w/8:int(at+1)*w/8]...)
	}
	return nil
}

// word reads a little-endian number of w bytes.
func word(b []byte, w int) uint64 {
	switch w {
	case 1:
		return uint64(b[0])
	case 2:
		return uint64(binary.LittleEndian.Uint16(b))
	case 4:
		return uint64(binary.LittleEndian.Uint32(b))
	default:
		return binary.LittleEndian.Uint64(b)
	}
}
