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
	switch {
	case t.Kind == level.Fixed && t.Parts != "":
		d, err := compilePacked(e, t, f, limit)
		return &fixedValues{decoder: d, bits: t.Bits}, err
	case t.Kind == level.Fixed:
		d, err := compileFixed(e, t.Bits, f, limit, 0)
		return &fixedValues{decoder: d, bits: t.Bits}, err
	case t.Kind == level.Variable && t.Parts == "":
		d, err := compileStrings(e, f, limit, 0)
		return &stringValues{decoder: d}, err
	case t.Kind == level.FixedList:
		d, err := compileLists(e, t, limit)
		if err == nil && d.noItems {
			return nil, unsupported(e) // writers do so in full-zip pages only
		}
		return d, err
	case t.Kind == level.Variable:
		return nil, unsupported(e)
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
