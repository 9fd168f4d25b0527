package encoding

import (
	"encoding/binary"

	"github.com/rehome-db/rehome/lance/datafile/fsst"
	"github.com/rehome-db/rehome/lance/datafile/level"
	enc21pb "github.com/rehome-db/rehome/lance/internal/pb/enc21"
	"github.com/rehome-db/rehome/table"
)

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

// packedRows decodes rows of packed structs with fields of variable width, which
// only full-zip pages hold: each field's bytes, behind their length if that
// varies, and then possibly compressed.
type packedRows struct {
	fields []packedField
	spare  []byte
}

type packedField struct {
	level.Part
	length  int // bytes of the stored length
	symbols *fsst.Table
	general *general
}

func compilePackedRows(v *enc21pb.VariablePackedStruct, e *enc21pb.CompressiveEncoding, t level.Type, limit int) (*packedRows, error) {
	parts := t.Parts.List()
	if len(v.GetFields()) != len(parts) {
		return nil, table.Unsupportedf("encoding: a packed struct of %d fields, of which the table has %d: reading it as something else is not supported", len(v.GetFields()), len(parts))
	}
	out := &packedRows{}
	for i, f := range v.GetFields() {
		field := packedField{Part: parts[i]}
		var err error
		if field.Variable {
			err = field.compileVariable(f, e, limit)
		} else {
			err = field.compileFixed(f, e)
		}
		if err != nil {
			return nil, err
		}
		out.fields = append(out.fields, field)
	}
	return out, nil
}

func (f *packedField) compileFixed(p *enc21pb.VariablePackedStruct_VariablePackedField, e *enc21pb.CompressiveEncoding) error {
	bits, ok := p.GetLayout().(*enc21pb.VariablePackedStruct_VariablePackedField_BitsPerValue)
	if !ok || bits.BitsPerValue != uint64(f.Bits) {
		return table.Corruptf("encoding: a packed struct whose field is not of %d bits", f.Bits)
	}
	inner, width := p.GetValue(), f.Bits
	if f.Items > 0 {
		list, ok := inner.GetCompression().(*enc21pb.CompressiveEncoding_FixedSizeList)
		if !ok || list.FixedSizeList.GetHasValidity() || list.FixedSizeList.GetItemsPerValue() != uint64(f.Items) {
			return unsupported(e)
		}
		inner, width = list.FixedSizeList.GetValues(), f.Bits/f.Items
	}
	flat, ok := inner.GetCompression().(*enc21pb.CompressiveEncoding_Flat)
	if !ok {
		return unsupported(e)
	}
	return flatWidth(flat.Flat, width)
}

func (f *packedField) compileVariable(p *enc21pb.VariablePackedStruct_VariablePackedField, e *enc21pb.CompressiveEncoding, limit int) error {
	bits, ok := p.GetLayout().(*enc21pb.VariablePackedStruct_VariablePackedField_BitsPerLength)
	if !ok || bits.BitsPerLength != 32 && bits.BitsPerLength != 64 {
		return table.Corruptf("encoding: a packed struct whose field has no length")
	}
	f.length = int(bits.BitsPerLength) / 8
	var err error
	f.symbols, f.general, err = singleValues(p.GetValue(), e, limit)
	return err
}

// append appends the row in to dst with nothing compressed and lengths of the
// widths that the type has.
func (d *packedRows) append(dst, in []byte) ([]byte, error) {
	for i := range d.fields {
		f := &d.fields[i]
		n := f.Bits / 8
		if f.Variable {
			if len(in) < f.length {
				return dst, table.Corruptf("encoding: a packed struct ends within a length")
			}
			size := loadWord(in, f.length)
			if in = in[f.length:]; size > uint64(len(in)) {
				return dst, table.Corruptf("encoding: a field of %d bytes in the last %d of a packed struct", size, len(in))
			}
			n = int(size)
		}
		if n > len(in) {
			return dst, table.Corruptf("encoding: a field of %d bytes in the last %d of a packed struct", n, len(in))
		}
		value := in[:n]
		in = in[n:]
		if !f.Variable {
			dst = append(dst, value...)
			continue
		}
		var err error
		if value, err = f.expand(&d.spare, value); err != nil {
			return dst, err
		}
		if f.Bits == 32 {
			dst = binary.LittleEndian.AppendUint32(dst, uint32(len(value)))
		} else {
			dst = binary.LittleEndian.AppendUint64(dst, uint64(len(value)))
		}
		dst = append(dst, value...)
	}
	if len(in) > 0 {
		return dst, table.Corruptf("encoding: %d bytes behind the last field of a packed struct", len(in))
	}
	return dst, nil
}

func (f *packedField) expand(spare *[]byte, value []byte) ([]byte, error) {
	var err error
	switch {
	case len(value) == 0:
		return value, nil
	case f.symbols != nil:
		*spare, err = f.symbols.Append((*spare)[:0], value)
	case f.general != nil:
		*spare, err = decompress(f.general.scheme, (*spare)[:0], value, f.general.limit)
	default:
		return value, nil
	}
	return *spare, err
}
