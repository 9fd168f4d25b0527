package encoding20

import (
	"context"
	"encoding/binary"

	"github.com/rehome-db/rehome/lance/datafile/fsst"
	enc20pb "github.com/rehome-db/rehome/lance/internal/pb/enc20"
	"github.com/rehome-db/rehome/table"
)

// ends is where each of some strings or lists ends.
type ends struct {
	*flat
	// null is what ends of nulls are too large by, and more than any end.
	null uint64
}

func (c *compiler) ends(e *enc20pb.ArrayEncoding, null, n uint64) (ends, error) {
	f, err := compileFlat(e, c.page, 64, n, c.limit)
	return ends{f, null}, err
}

// at returns end i, wherever the one before it is.
func (v ends) at(raw []byte, i int) (end uint64, null bool) {
	end = binary.LittleEndian.Uint64(raw[8*i:])
	if end >= v.null {
		return end - v.null, true
	}
	return end, false
}

// read returns where what is in front of lo ends and the ends of lo to hi as they are
// stored, which are valid until the next read.
func (v ends) readEnds(ctx context.Context, r *Reader, lo, hi uint64) (start uint64, raw []byte, err error) {
	from := lo
	if lo > 0 {
		from--
	}
	r.ends = resize(r.ends, int(8*(hi-from)))
	if err := v.flat.read(ctx, r.source.File, r.ends, 8*from); err != nil {
		return 0, nil, err
	}
	if from == lo {
		return 0, r.ends, nil
	}
	start, _ = v.at(r.ends, 0)
	return start, r.ends[8:], nil
}

// binaries is strings: where each ends, and bytes.
type binaries struct {
	ends  ends
	bytes *flat
	// symbols expand what is stored, if there are any.
	symbols *fsst.Table
}

// strings checks the encoding of n strings.
func (c *compiler) strings(e *enc20pb.ArrayEncoding, n uint64) (values, error) {
	v := &binaries{}
	if f, ok := e.GetArrayEncoding().(*enc20pb.ArrayEncoding_FixedSizeBinary); ok {
		return c.equalStrings(f.FixedSizeBinary, n)
	}
	if f, ok := e.GetArrayEncoding().(*enc20pb.ArrayEncoding_Fsst); ok {
		var err error
		if v.symbols, err = fsst.ParseTable(f.Fsst.GetSymbolTable()); err != nil {
			return nil, err
		}
		e = dense(f.Fsst.GetBinary())
	}
	b, ok := e.GetArrayEncoding().(*enc20pb.ArrayEncoding_Binary)
	if !ok {
		return nil, unsupported(e)
	}
	var err error
	if v.ends, err = c.ends(b.Binary.GetIndices(), b.Binary.GetNullAdjustment(), n); err != nil {
		return nil, err
	}
	if _, none := dense(b.Binary.GetBytes()).GetNullable().GetNullability().(*enc20pb.Nullable_AllNulls); none {
		v.bytes = &flat{bits: 8} // there are no bytes
		return v, nil
	}
	v.bytes, err = compileBuffer(b.Binary.GetBytes(), c.page, 8, c.limit)
	return v, err
}

// equalStrings checks the encoding of n strings of the same number of bytes each. A
// null has as many, which do not matter.
func (c *compiler) equalStrings(e *enc20pb.FixedSizeBinary, n uint64) (values, error) {
	w := uint64(e.GetByteWidth())
	if n > maxItems/max(w, 1) {
		return nil, table.Corruptf("encoding: %d strings of %d bytes", n, w)
	}
	bytes, err := compileFlat(e.GetBytes(), c.page, 8, n*w, c.limit)
	return &equalBytes{bytes, w}, err
}

// maxExpansion is how many bytes a byte stands for in FSST.
const maxExpansion = 8

func (v *binaries) size(ctx context.Context, r *Reader, lo, hi uint64) (uint64, error) {
	from, _, err := v.ends.readEnds(ctx, r, lo, lo+1)
	if err != nil {
		return 0, err
	}
	_, raw, err := v.ends.readEnds(ctx, r, hi-1, hi)
	if err != nil {
		return 0, err
	}
	to, _ := v.ends.at(raw, 0)
	if to < from {
		return 0, table.Corruptf("encoding: strings that end at %d before %d", to, from)
	}
	n := to - from
	if v.symbols != nil {
		n = min(n, 1<<40) * maxExpansion / 2
	}
	return n + 4*(hi-lo), nil
}

func (v *binaries) appendTo(ctx context.Context, r *Reader, s *sink, lo, hi uint64) error {
	start, raw, err := v.ends.readEnds(ctx, r, lo, hi)
	if err != nil {
		return err
	}
	if err := v.bytes.load(ctx, r.source.File); err != nil {
		return err
	}
	n, end := int(hi-lo), start
	for i := range n {
		e, _ := v.ends.at(raw, i)
		if e < end || e > v.bytes.length() {
			return table.Corruptf("encoding: a string from %d to %d of %d bytes", end, e, v.bytes.length())
		}
		end = e
	}
	if err := s.tooLong(end - start); err != nil {
		return err
	}
	first := s.v.N
	s.add(n)
	base := uint64(len(s.v.Data))
	if v.symbols == nil {
		if err := v.bytes.read(ctx, r.source.File, s.extend(int(end-start)), start); err != nil {
			return err
		}
		for i := range n {
			e, null := v.ends.at(raw, i)
			s.v.Offsets = append(s.v.Offsets, uint32(base+e-start))
			if null {
				s.null(first + i)
			}
		}
		return nil
	}
	r.spare = resize(r.spare, int(end-start))
	if err := v.bytes.read(ctx, r.source.File, r.spare, start); err != nil {
		return err
	}
	at := start
	for i := range n {
		e, null := v.ends.at(raw, i)
		if err := s.tooLong((e - at) * maxExpansion); err != nil {
			return err
		}
		if s.v.Data, err = v.symbols.Append(s.v.Data, r.spare[at-start:e-start]); err != nil {
			return err
		}
		at = e
		s.v.Offsets = append(s.v.Offsets, uint32(len(s.v.Data)))
		if null {
			s.null(first + i)
		}
	}
	return nil
}
