package encoding

import (
	"encoding/binary"

	"github.com/rehome-db/rehome/lance/datafile/fsst"
	"github.com/rehome-db/rehome/lance/datafile/level"
	enc21pb "github.com/rehome-db/rehome/lance/internal/pb/enc21"
	"github.com/rehome-db/rehome/table"
)

// A packed struct with fields of variable width stands in full-zip pages only, each such
// field behind its length. The row {5, "hi"} of an int16 and a string:
//
//	05 00  02 00 00 00 68 69
//
// Strings may be compressed one by one, each field in its own way.

// packedRows decodes rows of packed structs with fields of variable width, which
// only full-zip pages hold: each field's bytes, behind their length if that
// varies, and then possibly compressed.
type packedRows struct {
	fields []packedField
	spare  []byte
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

type packedField struct {
	level.Part
	length  int // bytes of the stored length
	symbols *fsst.Table
	general *general
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

func describePackedRows(parts []rowPart) *enc21pb.CompressiveEncoding {
	out := &enc21pb.VariablePackedStruct{}
	for i := range parts {
		p := &parts[i]
		f := &enc21pb.VariablePackedStruct_VariablePackedField{}
		switch {
		case p.Variable:
			f.Value = describeVariable(p.Bits)
			if p.symbols != nil {
				f.Value = describeFSST(p.symbols.Table(), f.Value)
			}
			f.Layout = &enc21pb.VariablePackedStruct_VariablePackedField_BitsPerLength{BitsPerLength: uint64(p.Bits)}
		case p.Items > 0:
			f.Value = describeFixedList([]listLevel{{elements: p.Items}}, p.Bits/p.Items)
		default:
			f.Value = describeFlat(p.Bits)
		}
		if !p.Variable {
			f.Layout = &enc21pb.VariablePackedStruct_VariablePackedField_BitsPerValue{BitsPerValue: uint64(p.Bits)}
		}
		out.Fields = append(out.Fields, f)
	}
	return &enc21pb.CompressiveEncoding{Compression: &enc21pb.CompressiveEncoding_VariablePackedStruct{VariablePackedStruct: out}}
}

// rowPart is one field of the rows of a page.
type rowPart struct {
	level.Part
	// data and ends are the field's values in all rows that have any, one after the
	// other; of a field of variable width only.
	data []byte
	ends []uint32
	// symbols compresses the values, nil if that does not pay.
	symbols *fsst.Encoder
}

// packRows describes rows in which the width of fields varies, and compresses the
// fields that it pays for with a symbol table each.
func (e *Encoder) packRows(out *zipValues, b *level.Block) error {
	var parts []rowPart
	for _, p := range b.Type.Parts.List() {
		parts = append(parts, rowPart{Part: p, ends: []uint32{0}})
	}
	if e.opts.Compression == "" || e.opts.Compression == "fsst" {
		if err := e.splitRows(parts, b); err != nil {
			return err
		}
	}
	any := false
	for i := range parts {
		p := &parts[i]
		if len(p.data) < minSymbolBytes {
			continue
		}
		var trainer fsst.Trainer
		if s := trainer.Train(p.data, p.ends); s.Ratio() < maxSymbolRatio {
			p.symbols, any = s, true
			p.data, p.ends = s.Append(nil, nil, p.data, p.ends)
		}
	}
	out.encoding = describePackedRows(parts)
	if any {
		e.joinRows(parts, b)
		out.data, out.offsets = e.strings, e.ends
	}
	return nil
}

// splitRows gathers the values of the fields of variable width.
func (e *Encoder) splitRows(parts []rowPart, b *level.Block) error {
	v := &b.Values
	for i := range v.N {
		row := v.Data[v.Offsets[i]:v.Offsets[i+1]]
		for k := 0; k < len(parts) && len(row) > 0; k++ {
			p, n := &parts[k], uint64(parts[k].Bits/8)
			if p.Variable && n <= uint64(len(row)) {
				if size := loadWord(row, int(n)); size <= uint64(len(row))-n {
					p.data = append(p.data, row[n:n+size]...)
					p.ends = append(p.ends, uint32(len(p.data)))
					n += size
				} else {
					n = uint64(len(row)) + 1
				}
			}
			if n > uint64(len(row)) {
				return table.Corruptf("encoding: a packed struct of %d bytes ends within field %d", len(row), k)
			}
			row = row[n:]
		}
	}
	return nil
}

// joinRows writes the rows anew, with the fields that were compressed.
func (e *Encoder) joinRows(parts []rowPart, b *level.Block) {
	v := &b.Values
	e.strings, e.ends = e.strings[:0], append(e.ends[:0], 0)
	at := 0 // of the rows that have fields
	for i := range v.N {
		row := v.Data[v.Offsets[i]:v.Offsets[i+1]]
		some := len(row) > 0
		for k := 0; k < len(parts) && len(row) > 0; k++ {
			p, n := &parts[k], parts[k].Bits/8
			if p.Variable {
				n += int(loadWord(row, n))
			}
			value := row[:n]
			row = row[n:]
			if p.symbols == nil {
				e.strings = append(e.strings, value...)
				continue
			}
			value = p.data[p.ends[at]:p.ends[at+1]]
			if p.Bits == 32 {
				e.strings = binary.LittleEndian.AppendUint32(e.strings, uint32(len(value)))
			} else {
				e.strings = binary.LittleEndian.AppendUint64(e.strings, uint64(len(value)))
			}
			e.strings = append(e.strings, value...)
		}
		if some {
			at++
		}
		e.ends = append(e.ends, uint32(len(e.strings)))
	}
}
