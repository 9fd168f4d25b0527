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
func (e *Encoder) zipsSparse(d *draft) bool {
	return e.opts.Version.Planar() && d.widestValue() >= wideValue && !e.opts.Mini && d.Type.Bits%8 == 0 && d.levels.maxDef > 0 &&
		(d.valid < d.Values.N/2 || !d.canZip())
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

// maxSparseRatio is what a sparse structure may take of the bytes of the levels that it
// stands for. It is loaded whole before the first row is found, while levels are read chunk
// by chunk, and what levels take is only estimated: so it has to be smaller by a quarter.
const maxSparseRatio = 0.75

// blocksPage encodes a page of mini-blocks, with levels or, if planar and that is smaller by
// far, with a sparse structure.
func (e *Encoder) blocksPage(b *level.Block, l *levels, values valueEncoder, dict *dictionaryPage) (result, error) {
	if !e.opts.Version.Planar() || l.rep == nil || e.opts.Mini {
		return e.miniBlock(b, l, values, dict)
	}
	structure := e.sparsePage(l, nil)
	size := 0
	for _, s := range structure.Buffers {
		size += len(s)
	}
	if float64(size) >= maxSparseRatio*float64(levelBytes(l, b.Values.N, values)) {
		return e.miniBlock(b, l, values, dict)
	}
	flat := &level.Block{Type: b.Type, Rows: b.Values.N, Layers: []level.Layer{level.AllValidItem}, Values: b.Values}
	out, err := e.miniBlock(flat, e.levels(flat), values, dict)
	if err != nil || out.cut != nil {
		return out, err
	}
	planar, _ := Planar(out.page.Layout, len(out.page.Buffers))
	chunked := planar.GetValues().GetChunked()
	chunked.Levels, chunked.NumItems = nil, 0
	return result{page: e.sparseBehind(l, planar.GetValues(), out.page.Buffers)}, nil
}

// levelBytes is about what the levels of a page take, chunk by chunk, with a repetition
// index.
func levelBytes(l *levels, slots int, values valueEncoder) int {
	perChunk := maxChunkSlots
	if _, packed := values.(*inlineEncoder); packed {
		perChunk = packBlock
	}
	chunks := slots/perChunk + 1
	n := indexEntry * chunks
	for _, s := range []struct {
		levels []uint16
		most   uint16
	}{{l.rep, l.maxRep}, {l.def, l.maxDef}} {
		if s.levels != nil {
			n += min(chunks*packedSize(len(s.levels)/chunks, levelWidth(s.most)), rleLevels{}.size(s.levels))
		}
	}
	return n
}
