package encoding

import (
	"context"

	"github.com/rehome-db/rehome/lance/datafile/level"
	enc21pb "github.com/rehome-db/rehome/lance/internal/pb/enc21"
	"github.com/rehome-db/rehome/table"
)

// dictionaryValues looks up the values that chunks hold the indices of.
type dictionaryValues struct {
	indices fixedDecoder
	width   int // of an index, in bytes
	limit   int
	spare   []byte

	items   valueDecoder
	count   int
	entries sink // the dictionary, once loaded
}

func compileDictionary(l *enc21pb.MiniBlockLayout, t level.Type, limit int) (*dictionaryValues, error) {
	bits := widthOf(l.GetValueCompression())
	if bits != 8 && bits != 16 && bits != 32 && bits != 64 {
		return nil, unsupported(l.GetValueCompression())
	}
	if t.Kind == level.FixedList && t.Bits%8 != 0 || t.Parts != "" {
		return nil, table.Unsupportedf("encoding: a dictionary of %s is not supported here", Name(l.GetDictionary()))
	}
	if l.GetNumDictionaryItems() > uint64(limit) {
		return nil, table.Corruptf("encoding: a dictionary of %d items", l.GetNumDictionaryItems())
	}
	indices, err := compileFixed(l.GetValueCompression(), int(bits), inChunk, limit, 0)
	if err != nil {
		return nil, err
	}
	var items valueDecoder
	if t.Kind == level.FixedList {
		lists, err := compileLists(l.GetDictionary(), t, limit)
		if err != nil {
			return nil, err
		}
		if lists.noItems {
			return nil, unsupported(l.GetDictionary())
		}
		items = (*wholeLists)(lists)
	} else if items, err = compileValues(l.GetDictionary(), t, inBlock, limit); err != nil {
		return nil, err
	}
	return &dictionaryValues{
		indices: indices, width: int(bits) / 8, limit: limit,
		items: items, count: int(l.GetNumDictionaryItems()),
	}, nil
}

// load reads the dictionary itself.
func (d *dictionaryValues) load(ctx context.Context, dec *Decoder, p Page, b Buffer) error {
	in, err := read(ctx, p, dec.aux, b)
	if err != nil {
		return err
	}
	dec.aux = in
	d.entries.begin(dec.typ, path{})
	return d.items.appendTo(&d.entries, d.count, [][]byte{in})
}

func (d *dictionaryValues) buffers() int { return d.indices.buffers() }

func (d *dictionaryValues) appendTo(s *sink, n int, bufs [][]byte) error {
	var err error
	if d.spare, err = d.indices.decode(d.spare[:0], n, bufs); err != nil {
		return err
	}
	dict, have := &d.entries.v, len(s.v.Data)
	for i := range n {
		at := loadWord(d.spare[i*d.width:], d.width)
		if at >= uint64(dict.N) {
			return table.Corruptf("encoding: index %d into a dictionary of %d items", at, dict.N)
		}
		if s.typ.Kind == level.Variable {
			s.v.Data = append(s.v.Data, dict.Data[dict.Offsets[at]:dict.Offsets[at+1]]...)
			s.v.Offsets = append(s.v.Offsets, uint32(len(s.v.Data)))
		} else if s.typ.Kind == level.FixedList {
			if err := s.appendSlots(dict, int(at), int(at)+1); err != nil {
				return err
			}
		} else if s.typ.Bits%8 != 0 {
			s.v.Data = level.AppendBits(s.v.Data, (s.v.N+i)*s.typ.Bits, dict.Data, int(at)*s.typ.Bits, s.typ.Bits)
		} else {
			w := s.typ.Bits / 8
			s.v.Data = append(s.v.Data, dict.Data[int(at)*w:(int(at)+1)*w]...)
		}
		if len(s.v.Data)-have > d.limit || uint64(len(s.v.Data)) > 1<<32-1 {
			return table.Unsupportedf("encoding: a chunk of dictionary values expands to more than %d bytes", d.limit)
		}
	}
	if s.typ.Kind != level.FixedList {
		s.v.N += n
	}
	return nil
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
