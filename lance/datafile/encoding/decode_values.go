package encoding

import (
	"github.com/rehome-db/rehome/lance/datafile/level"
	enc21pb "github.com/rehome-db/rehome/lance/internal/pb/enc21"
	"github.com/rehome-db/rehome/table"
)

// valueDecoder appends the values of a chunk to a sink.
type valueDecoder interface {
	buffers() int
	appendTo(s *sink, n int, bufs [][]byte) error
}

// compileValues checks the encoding of a leaf's values in mini-block chunks, or
// in the block of a dictionary.
func compileValues(e *enc21pb.CompressiveEncoding, t level.Type, f form, limit int) (valueDecoder, error) {
	switch t.Kind {
	case level.Fixed:
		d, err := compileFixed(e, t.Bits, f, limit, 0)
		return &fixedValues{decoder: d, bits: t.Bits}, err
	case level.Variable:
		d, err := compileStrings(e, f, limit, 0)
		return &stringValues{decoder: d}, err
	case level.FixedList:
		return compileLists(e, t, limit)
	default:
		return nil, table.Corruptf("encoding: %s values for a column without values", Name(e))
	}
}

type fixedValues struct {
	decoder fixedDecoder
	bits    int
	spare   []byte
}

func (d *fixedValues) buffers() int { return d.decoder.buffers() }

func (d *fixedValues) appendTo(s *sink, n int, bufs [][]byte) error {
	var err error
	if d.bits%8 == 0 {
		s.v.Data, err = d.decoder.decode(s.v.Data, n, bufs)
	} else if d.spare, err = d.decoder.decode(d.spare[:0], n, bufs); err == nil {
		s.v.Data = level.AppendBits(s.v.Data, s.v.N*d.bits, d.spare, 0, n*d.bits)
	}
	s.v.N += n
	return err
}

type stringValues struct{ decoder stringDecoder }

func (d *stringValues) buffers() int { return d.decoder.buffers() }

func (d *stringValues) appendTo(s *sink, n int, bufs [][]byte) error {
	s.v.N += n
	if f, ok := d.decoder.(*fsstStrings); ok {
		var err error
		s.v.Data, s.v.Offsets, err = f.appendTo(s.v.Data, s.v.Offsets, n, bufs)
		return err
	}
	in, err := d.decoder.decode(n, bufs)
	if err != nil {
		return err
	}
	first, end := in.offsets[0], in.offsets[n]
	if err := s.tooLong(int(end - first)); err != nil {
		return err
	}
	base := uint32(len(s.v.Data)) - first
	have := len(s.v.Offsets)
	s.v.Offsets = append(s.v.Offsets, in.offsets[1:n+1]...)
	added := s.v.Offsets[have:]
	for i := range added {
		added[i] += base
	}
	s.v.Data = append(s.v.Data, in.data[first:end]...)
	return nil
}

// listValues is fixed-size lists of fixed-width items: for the items that can be
// null a bitmap, then the items.
type listValues struct {
	bits, dim int
	validity  bool
	general   *general
}

// compileLists follows the chain of list encodings, outermost first, to the flat
// items. Lists inside a list that can be null themselves are refused: a leaf's
// values know null items only.
func compileLists(e *enc21pb.CompressiveEncoding, t level.Type, limit int) (*listValues, error) {
	d := &listValues{bits: t.Bits, dim: t.Dim}
	outer := e
	if g, ok := e.GetCompression().(*enc21pb.CompressiveEncoding_General); ok {
		if err := checkScheme(g.General.GetCompression()); err != nil {
			return nil, err
		}
		d.general = &general{scheme: g.General.GetCompression().GetScheme(), limit: limit}
		e = g.General.GetValues()
	}
	dim := uint64(1)
	for depth := 0; ; depth++ {
		switch c := e.GetCompression().(type) {
		case *enc21pb.CompressiveEncoding_FixedSizeList:
			if d.validity {
				return nil, table.Unsupportedf("encoding: %s with inner lists that can be null is not supported", Name(outer))
			}
			items := c.FixedSizeList.GetItemsPerValue()
			if items == 0 || items > uint64(t.Dim) || depth > maxEncodingDepth {
				return nil, table.Corruptf("encoding: lists of %d items, want %d in all", items, t.Dim)
			}
			dim *= items
			d.validity = c.FixedSizeList.GetHasValidity()
			e = c.FixedSizeList.GetValues()
		case *enc21pb.CompressiveEncoding_Flat:
			if depth == 0 {
				return nil, unsupported(outer)
			}
			if dim != uint64(t.Dim) {
				return nil, table.Corruptf("encoding: lists of %d items, want %d", dim, t.Dim)
			}
			return d, flatWidth(c.Flat, t.Bits)
		default:
			return nil, unsupported(outer)
		}
	}
}

func (d *listValues) buffers() int {
	if d.validity {
		return 2
	}
	return 1
}

func (d *listValues) appendTo(s *sink, n int, bufs [][]byte) error {
	if d.general != nil {
		var err error
		if bufs, err = d.general.expand(bufs); err != nil {
			return err
		}
	}
	items := uint64(n) * uint64(d.dim)
	data := bufs[len(bufs)-1]
	if need := (items*uint64(d.bits) + 7) / 8; need > uint64(len(data)) {
		return table.Corruptf("encoding: %d bytes for %d items of %d bits", len(data), items, d.bits)
	}
	if d.validity && (items+7)/8 > uint64(len(bufs[0])) {
		return table.Corruptf("encoding: item validity of %d bytes for %d items", len(bufs[0]), items)
	}
	if d.bits%8 != 0 {
		s.v.Data = level.AppendBits(s.v.Data, s.v.N*d.dim*d.bits, data, 0, int(items)*d.bits)
	} else {
		s.v.Data = append(s.v.Data, data[:int(items)*d.bits/8]...)
	}
	switch {
	case d.validity:
		if s.v.ItemValid == nil {
			s.v.ItemValid = level.AppendOnes(nil, 0, s.v.N*d.dim)
		}
		s.v.ItemValid = level.AppendBits(s.v.ItemValid, s.v.N*d.dim, bufs[0], 0, int(items))
	case s.v.ItemValid != nil:
		s.v.ItemValid = level.AppendOnes(s.v.ItemValid, s.v.N*d.dim, int(items))
	}
	s.v.N += n
	return nil
}
