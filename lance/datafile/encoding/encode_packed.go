package encoding

import (
	"encoding/binary"

	"github.com/rehome-db/rehome/lance/datafile/fsst"
	"github.com/rehome-db/rehome/lance/datafile/level"
	enc21pb "github.com/rehome-db/rehome/lance/internal/pb/enc21"
	"github.com/rehome-db/rehome/table"
)

// packedPage encodes a page of packed structs. Rows of fixed width are values like
// any other, and so are kept as they are in mini-blocks or full-zip; rows that
// vary have full-zip to themselves.
func (e *Encoder) packedPage(b *level.Block, l *levels) (EncodedPage, *gap, error) {
	if b.Type.Kind == level.Variable {
		if e.opts.Version < V2_2 {
			return EncodedPage{}, nil, table.Unsupportedf("encoding: format %s has no packed structs of variable width", e.opts.Version)
		}
		page, err := e.fullZip(b, l, 0)
		return page, nil, err
	}
	if b.Type.Bits/8 < wideValue {
		page, at, err := e.miniBlock(b, l, e.wrap(&packedCodec{flatCodec{data: b.Values.Data, bits: b.Type.Bits}, b.Type}), nil)
		if err != nil || at == nil || b.Rows > 1 {
			return page, at, err
		}
	}
	page, err := e.fullZip(b, l, b.Type.Bits/8)
	return page, nil, err
}

// packedCodec stores rows as they are.
type packedCodec struct {
	flatCodec
	typ level.Type
}

func (c *packedCodec) describe() (*enc21pb.CompressiveEncoding, int) { return describePacked(c.typ), 1 }

// describePacked describes rows of fixed-width fields.
func describePacked(t level.Type) *enc21pb.CompressiveEncoding {
	var widths []uint64
	for _, p := range t.Parts.List() {
		widths = append(widths, uint64(p.Bits))
	}
	return &enc21pb.CompressiveEncoding{Compression: &enc21pb.CompressiveEncoding_PackedStruct{
		PackedStruct: &enc21pb.PackedStruct{BitsPerValue: widths, Values: describeFlat(t.Bits)}}}
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
