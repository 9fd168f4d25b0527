package encoding

import (
	"context"
	"encoding/binary"
	"slices"

	"github.com/rehome-db/rehome/lance/datafile/level"
	enc21pb "github.com/rehome-db/rehome/lance/internal/pb/enc21"
	"github.com/rehome-db/rehome/table"
)

// descriptions is the type of what a blob page holds instead of values: where in
// the file a value is, and how long.
var descriptions = level.Type{Kind: level.Fixed, Bits: 128, Parts: level.NewParts([]level.Part{{Bits: 64}, {Bits: 64}})}

// BlobDescriptions is the type of blocks that [Encoder.EncodeBlobs] takes: a value
// is a position in the file and a size, 64 bits each.
func BlobDescriptions() level.Type { return descriptions }

// blob decodes pages of large values that lie elsewhere in the file. Inside is a
// page of descriptions, one a row, each a position and a size. Of a value without
// bytes the size is 0, and the position is either 0 or, for one that is absent,
// its definition level above 16 bits of repetition level.
//
// A decoder for values of the type of the descriptions gives these instead, with the
// page's levels.
type blob struct {
	path  path
	inner Page
	raw   bool // descriptions are wanted
}

func (d *Decoder) planBlob(l *enc21pb.BlobLayout, p Page) (*blob, error) {
	b := &blob{inner: p, raw: d.typ == descriptions}
	var err error
	if b.path, err = d.path(l.GetLayers()); err != nil {
		return nil, err
	}
	if b.path.maxRep > 0 {
		return nil, table.Unsupportedf("encoding: a blob page of lists is not supported")
	}
	if !b.raw && (d.typ.Kind != level.Variable || d.typ.Parts != "") {
		return nil, table.Corruptf("encoding: a blob page in a column of other values")
	}
	if _, nested := l.GetInnerLayout().GetLayout().(*enc21pb.PageLayout_Blob); nested {
		return nil, table.Corruptf("encoding: a blob page inside a blob page")
	}
	b.inner.Layout = l.GetInnerLayout()
	return b, b.descriptions(d).Check(b.inner)
}

// descriptions returns a decoder of the page inside.
func (b *blob) descriptions(d *Decoder) *Decoder {
	return NewDecoder(descriptions, []level.Layer{level.AllValidItem}, d.limits)
}

func (b *blob) run(ctx context.Context, d *Decoder, p Page, e *emitter) error {
	s := &d.out
	s.begin(d.typ, b.path)
	e.row = e.from
	var failed error
	err := b.descriptions(d).Decode(ctx, b.inner, e.from, e.to, func(rows *level.Block) bool {
		for i := range rows.Rows {
			at, size := description(rows, i)
			if failed = b.append(ctx, d, s, p, at, size); failed == nil && s.full(d.limits) {
				failed = s.finish(e, s.entries)
			}
			if failed != nil {
				return false
			}
		}
		return true
	})
	if failed != nil {
		return failed
	}
	if err != nil || s.entries == 0 {
		return err
	}
	return s.finish(e, s.entries)
}

// description returns where the value of a row is, and how long.
func description(rows *level.Block, i int) (at, size uint64) {
	d := rows.Values.Data[16*i:]
	return binary.LittleEndian.Uint64(d), binary.LittleEndian.Uint64(d[8:])
}

// append reads one value.
func (b *blob) append(ctx context.Context, d *Decoder, s *sink, p Page, at, size uint64) error {
	def := uint64(0)
	if size == 0 {
		if def = at >> 16; def > uint64(b.path.maxDef) || at&0xffff != 0 {
			return table.Corruptf("encoding: a blob without bytes has the levels %#x", at)
		}
	} else if at > p.Size || size > p.Size-at {
		return table.Corruptf("encoding: a blob of %d bytes at %d in a file of %d", size, at, p.Size)
	}
	if b.path.maxDef > 0 {
		s.def = append(s.def, uint16(def))
	}
	s.entries++
	s.rows++
	if b.raw {
		if size == 0 {
			at = 0
		}
		s.v.Data = binary.LittleEndian.AppendUint64(s.v.Data, at)
		s.v.Data = binary.LittleEndian.AppendUint64(s.v.Data, size)
		s.v.N++
		return nil
	}
	if size > 0 {
		if uint64(len(s.v.Data))+size > 1<<32-1 {
			return table.Unsupportedf("encoding: a blob of %d bytes: blocks hold at most 4 GiB", size)
		}
		in, err := read(ctx, p, d.in, Buffer{at, size})
		if err != nil {
			return err
		}
		d.in = in
		s.v.Data = append(s.v.Data, in...)
	}
	s.v.Offsets = append(s.v.Offsets, uint32(len(s.v.Data)))
	s.v.N++
	return nil
}

// take implements sparsePlan: it takes the descriptions of the rows that are wanted,
// and reads the values of these and no others.
func (b *blob) take(ctx context.Context, d *Decoder, p Page, t *taker) error {
	rows, err := level.NewBuilder(descriptions, []level.Layer{level.AllValidItem})
	if err != nil {
		return err
	}
	s := &d.out
	s.begin(d.typ, b.path)
	t.all()
	wanted := slices.Clone(t.ranges) // t's own get fewer as rows are picked
	full := func() error {
		described := rows.Block()
		for i := range described.Rows {
			if s.entries == 0 {
				t.e.row = wanted[0].From
			}
			at, size := description(described, i)
			if err := b.append(ctx, d, s, p, at, size); err != nil {
				return err
			}
			wanted[0].From++
			over := wanted[0].From == wanted[0].To // what follows is elsewhere
			if over {
				wanted = wanted[1:]
			}
			if over || s.full(d.limits) {
				if err := s.finish(&t.e, s.entries); err != nil {
					return err
				}
			}
		}
		rows.Reset()
		return nil
	}
	if err := b.descriptions(d).Take(ctx, b.inner, t.ranges, Gathering{Into: rows, Full: full}); err != nil {
		return err
	}
	return full()
}

// EncodeBlobs is Encode for a column whose values were written elsewhere in the
// file: b, of type [BlobDescriptions], says where. What it says of values without
// bytes does not matter. Paths with lists are ErrUnsupported.
func (e *Encoder) EncodeBlobs(b *level.Block, emit func(EncodedPage) error) error {
	if b.Rows == 0 {
		return nil
	}
	if b.Type != descriptions || b.Rep != nil {
		return table.Unsupportedf("encoding: blobs in lists are not supported")
	}
	data := append([]byte(nil), b.Values.Data[:16*b.Rows]...)
	for i := range b.Rows {
		row := data[16*i : 16*i+16]
		def := uint64(0)
		if b.Def != nil {
			def = uint64(b.Def[i])
		}
		if def > 0 || binary.LittleEndian.Uint64(row[8:]) == 0 {
			binary.LittleEndian.PutUint64(row, def<<16)
			clear(row[8:])
		}
	}
	inner := &level.Block{Type: descriptions, Rows: b.Rows, Layers: []level.Layer{level.AllValidItem},
		Values: level.Values{N: b.Rows, Data: data}}
	out, err := e.packedPage(inner, e.levels(inner))
	if err != nil {
		return err
	}
	if out.cut != nil {
		return table.Unsupportedf("encoding: a blob page of %d rows fits no page", b.Rows)
	}
	page := out.page
	page.Rows = b.Rows
	page.Layout = &enc21pb.PageLayout{Layout: &enc21pb.PageLayout_Blob{
		Blob: &enc21pb.BlobLayout{InnerLayout: page.Layout, Layers: layersProto(b.Layers)}}}
	return emit(page)
}
