package encoding

import (
	"context"

	"github.com/rehome-db/rehome/lance/datafile/level"
	enc21pb "github.com/rehome-db/rehome/lance/internal/pb/enc21"
	"github.com/rehome-db/rehome/table"
)

// A page with a dictionary has the distinct values once, as a block in a buffer of its own,
// and in the chunks an index for each value slot. The strings "a", "b", "a":
//
//	20 00 00 00  14 00 00 00  00 00 00 00  01 00 00 00  02 00 00 00  61 62  the dictionary
//	00 00 00 00  01 00 00 00  00 00 00 00                                   indices in a chunk
//
// dictionary_choice.go says which values get one, dictionary_arrow.go makes those of columns
// that are dictionaries in Arrow.

// dictionaryPage is what a page with a dictionary has besides indices.
type dictionaryPage struct {
	encoding *enc21pb.CompressiveEncoding
	items    int
	buffer   []byte
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

// dictionaryPage writes the items in block form. Format 2.2 compresses them.
func (e *Encoder) dictionaryPage(t level.Type, items []string) *dictionaryPage {
	page := &dictionaryPage{items: len(items), encoding: describeFlat(t.Bits)}
	buf := e.dict[:0]
	if t.Kind == level.Variable {
		page.encoding = describeVariable(t.Bits)
		buf = appendStringBlock(buf, t.Bits/8, items)
	} else if t.Bits%8 != 0 {
		for i, item := range items {
			buf = level.AppendBits(buf, i*t.Bits, []byte(item), 0, t.Bits)
		}
	} else {
		for _, item := range items {
			buf = append(buf, item...)
		}
	}
	plain := len(buf)
	switch scheme := e.dictionaryScheme(); scheme {
	case enc21pb.BufferCompression_LZ4:
		buf = e.compress.lz4Block(buf, buf)
	case enc21pb.BufferCompression_ZSTD:
		buf = e.compress.zstdValue(buf, buf, e.opts.CompressionLevel)
	}
	// Only what gets smaller, so that a small dictionary is read without it.
	if packed := len(buf) - plain; packed > 0 && packed < plain {
		page.encoding = describeGeneral(&enc21pb.BufferCompression{Scheme: e.dictionaryScheme()}, page.encoding)
		page.buffer, e.dict = buf[plain:], buf
		return page
	}
	buf = buf[:plain]
	page.buffer, e.dict = buf, buf
	return page
}

// dictionaryScheme returns how dictionaries are compressed, 0 for not at all.
func (e *Encoder) dictionaryScheme() enc21pb.BufferCompression_Scheme {
	switch c := e.opts.DictionaryCompression; {
	case c == "zstd":
		return enc21pb.BufferCompression_ZSTD
	case c == "lz4" || c == "" && e.opts.Version.wideWords():
		return enc21pb.BufferCompression_LZ4
	default:
		return enc21pb.BufferCompression_UNSPECIFIED
	}
}
