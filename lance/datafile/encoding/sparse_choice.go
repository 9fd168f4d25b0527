package encoding

import (
	"github.com/rehome-db/rehome/lance/datafile/level"
	enc23pb "github.com/rehome-db/rehome/lance/internal/pb/enc23"
)

// planarConstant encodes a page of fixed values that are all the same where they are
// not null.
func (e *Encoder) planarConstant(b *level.Block, l *levels) (EncodedPage, bool) {
	if b.Type.Kind != level.Fixed || b.Type.Parts != "" || (b.Type.Bits+7)/8 > maxInlineConstant {
		return EncodedPage{}, false
	}
	value, ok := validConstant(b, l)
	if !ok {
		return EncodedPage{}, false
	}
	scalar := &enc23pb.ConstantValue{Scalar: value}
	values := &enc23pb.ValuePlane{Codec: &enc23pb.ValuePlane_Constant{Constant: scalar}}
	if l.rep != nil || l.maxDef > 0 {
		return e.sparsePage(l, values), true
	}
	return EncodedPage{Planar: &enc23pb.PlanarLayout{Values: values, Structure: &enc23pb.StructuralPlane{
		Codec: &enc23pb.StructuralPlane_Dense{Dense: &enc23pb.DenseStructure{Layers: layersProto(l.layers)}}}}}, true
}

// zipsSparse says whether wide values go into a sparse page: what is null takes nothing
// there, and lists may lie in structs that can be null.
func (e *Encoder) zipsSparse(b *level.Block, l *levels, valid, widest int) bool {
	return e.opts.Version.Planar() && widest >= wideValue && !e.opts.Mini && b.Type.Bits%8 == 0 && l.maxDef > 0 &&
		(valid < b.Values.N/2 || !canZip(b, l))
}

// sparseZip encodes a page of those wide values that are there.
func (e *Encoder) sparseZip(b *level.Block, l *levels, widest int) (EncodedPage, error) {
	there := sink{typ: b.Type}
	there.reset()
	slot, from := 0, 0
	flush := func() error {
		if from == slot {
			return nil
		}
		return there.appendSlots(&b.Values, from, slot)
	}
	for i := range l.entries {
		d := uint16(0)
		if l.def != nil {
			d = l.def[i]
		}
		if d > l.maxVisible {
			continue
		}
		if d > 0 {
			if err := flush(); err != nil {
				return EncodedPage{}, err
			}
			from = slot + 1
		}
		slot++
	}
	if err := flush(); err != nil {
		return EncodedPage{}, err
	}
	flat := &level.Block{Type: b.Type, Rows: there.v.N, Layers: []level.Layer{level.AllValidItem}, Values: there.v}
	page, err := e.fullZip(flat, e.levels(flat), widest)
	if err != nil {
		return page, err
	}
	planar, _ := Planar(page.Layout, len(page.Buffers))
	planar.GetValues().GetZipped().Levels = nil
	return e.sparseBehind(l, planar.GetValues(), page.Buffers), nil
}

// blocksPage encodes a page of mini-blocks, with levels or, if planar and that is smaller by
// far, with a sparse structure.
func (e *Encoder) blocksPage(b *level.Block, l *levels, codec valueCodec, dict *dictionaryPage) (EncodedPage, *gap, error) {
	if !e.opts.Version.Planar() || l.rep == nil || e.opts.Mini {
		return e.miniBlock(b, l, codec, dict)
	}
	structure := e.sparsePage(l, nil)
	size := 0
	for _, s := range structure.Buffers {
		size += len(s)
	}
	if 4*size >= 3*levelBytes(l, b.Values.N, codec) {
		return e.miniBlock(b, l, codec, dict)
	}
	flat := &level.Block{Type: b.Type, Rows: b.Values.N, Layers: []level.Layer{level.AllValidItem}, Values: b.Values}
	page, at, err := e.miniBlock(flat, e.levels(flat), codec, dict)
	if err != nil || at != nil {
		return page, at, err
	}
	planar, _ := Planar(page.Layout, len(page.Buffers))
	values := planar.GetValues().GetChunked()
	values.Levels, values.NumItems = nil, 0
	return e.sparseBehind(l, planar.GetValues(), page.Buffers), nil, nil
}

// levelBytes is about what the levels of a page take, chunk by chunk, with a repetition
// index.
func levelBytes(l *levels, values int, codec valueCodec) int {
	perChunk := 4096
	if _, packed := codec.(*bitpackCodec); packed {
		perChunk = 1024
	}
	chunks := values/perChunk + 1
	n := 16 * chunks
	for _, s := range []struct {
		levels []uint16
		most   uint16
	}{{l.rep, l.maxRep}, {l.def, l.maxDef}} {
		if s.levels != nil {
			n += min(chunks*packedSize(len(s.levels)/chunks, levelWidth(s.most)), runLevels{}.size(s.levels))
		}
	}
	return n
}
