package encoding

import (
	"github.com/rehome-db/rehome/lance/datafile/level"
	enc21pb "github.com/rehome-db/rehome/lance/internal/pb/enc21"
	"github.com/rehome-db/rehome/table"
)

// A packed struct is stored by row: its fields side by side. The rows {1, 2} and {3, 4} of an
// int8 and an int16:
//
//	01 02 00
//	03 04 00

// compilePacked checks the encoding of packed structs of fixed-width fields: rows
// of them, one after the other.
func compilePacked(e *enc21pb.CompressiveEncoding, t level.Type, f form, limit int) (fixedDecoder, error) {
	switch c := e.GetCompression().(type) {
	case *enc21pb.CompressiveEncoding_PackedStruct:
		if err := packedWidths(c.PackedStruct, t); err != nil {
			return nil, err
		}
		return compileFixed(c.PackedStruct.GetValues(), t.Bits, f, limit, 0)
	case *enc21pb.CompressiveEncoding_General:
		if err := checkScheme(c.General.GetCompression()); err != nil {
			return nil, err
		}
		packed, ok := c.General.GetValues().GetCompression().(*enc21pb.CompressiveEncoding_PackedStruct)
		if !ok {
			return nil, unsupported(e)
		}
		if err := packedWidths(packed.PackedStruct, t); err != nil {
			return nil, err
		}
		inner, err := compileFixed(packed.PackedStruct.GetValues(), t.Bits, f, limit, 1)
		if err != nil {
			return nil, err
		}
		if inner.buffers() == 0 {
			return nil, unsupported(e)
		}
		return &generalFixed{general{scheme: c.General.GetCompression().GetScheme(), limit: limit}, inner}, nil
	default:
		return nil, unsupported(e)
	}
}

// packedWidths checks that the page splits rows where the schema does.
func packedWidths(p *enc21pb.PackedStruct, t level.Type) error {
	parts := t.Parts.List()
	if len(p.GetBitsPerValue()) != len(parts) {
		return table.Unsupportedf("encoding: a packed struct of %d fields, of which the table has %d: reading it as something else is not supported", len(p.GetBitsPerValue()), len(parts))
	}
	for i, bits := range p.GetBitsPerValue() {
		if bits != uint64(parts[i].Bits) {
			return table.Corruptf("encoding: field %d of a packed struct has %d bits, want %d", i, bits, parts[i].Bits)
		}
	}
	return nil
}

// describePacked describes rows of fixed-width fields.
func describePacked(t level.Type) *enc21pb.CompressiveEncoding {
	var widths []uint64
	for _, p := range t.Parts.List() {
		widths = append(widths, uint64(p.Bits))
	}
	return &enc21pb.CompressiveEncoding{Compression: &enc21pb.CompressiveEncoding_PackedStruct{
		PackedStruct: &enc21pb.PackedStruct{BitsPerValue: widths, Values: describeFlat(t.Bits)}}}
}

// packedEncoder stores rows as they are.
type packedEncoder struct {
	flatEncoder
	typ level.Type
}

func (c *packedEncoder) describe() (*enc21pb.CompressiveEncoding, int) {
	return describePacked(c.typ), 1
}

// packedPage encodes a page of packed structs.
func (e *Encoder) packedPage(b *level.Block, l *levels) (result, error) {
	if b.Type.Kind == level.Variable {
		if e.opts.Version < V2_2 {
			return result{}, table.Unsupportedf("encoding: format %s has no packed structs of variable width", e.opts.Version)
		}
		page, err := e.fullZip(b, l, 0)
		return result{page: page}, err
	}
	if b.Type.Bits/8 < wideValue {
		out, err := e.miniBlock(b, l, e.wrap(&packedEncoder{flatEncoder{data: b.Values.Data, bits: b.Type.Bits}, b.Type}), nil)
		if err != nil || out.cut == nil || b.Rows > 1 {
			return out, err
		}
	}
	page, err := e.fullZip(b, l, b.Type.Bits/8)
	return result{page: page}, err
}
