package encoding

import (
	"bytes"
	"encoding/binary"
	"math/bits"

	"github.com/rehome-db/rehome/lance/datafile/fastlanes"
	"github.com/rehome-db/rehome/lance/datafile/level"
	enc21pb "github.com/rehome-db/rehome/lance/internal/pb/enc21"
	enc23pb "github.com/rehome-db/rehome/lance/internal/pb/enc23"
)

// Planar layouts have no place for the levels of pages without values, nor for those of
// constants. Such pages get a sparse structure, and those that are much smaller with one;
// all others have levels as in format 2.2.

// planarPage describes a page in planar terms. One without values is encoded anew.
func (e *Encoder) planarPage(l *levels, page EncodedPage) EncodedPage {
	switch {
	case page.Planar != nil:
	case page.Layout.GetConstant() != nil:
		return e.sparsePage(l, &enc23pb.ValuePlane{Codec: &enc23pb.ValuePlane_None{None: &enc23pb.NoValues{}}})
	default:
		page.Planar, _ = Planar(page.Layout, len(page.Buffers)) // there are no others
	}
	return page
}

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

// validConstant returns the value that all slots have that are not null, of which there
// is one.
func validConstant(b *level.Block, l *levels) (value []byte, ok bool) {
	bits, slot := b.Type.Bits, 0
	same := func(null bool) bool {
		at := slot * bits
		slot++
		switch {
		case null:
			return true
		case bits%8 != 0:
			one := level.AppendBits(nil, 0, b.Values.Data, at, bits)
			if value == nil {
				value = one
			}
			return bytes.Equal(value, one)
		default:
			one := b.Values.Data[at/8 : (at+bits)/8]
			if value == nil {
				value = bytes.Clone(one)
			}
			return bytes.Equal(value, one)
		}
	}
	if l.def == nil {
		for slot < b.Values.N {
			if !same(false) {
				return nil, false
			}
		}
		return value, value != nil
	}
	for _, d := range l.def {
		if d <= l.maxVisible && !same(d > 0) {
			return nil, false
		}
	}
	return value, value != nil
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

// sparseBehind is sparsePage with the buffers of the values before those of the
// structure.
func (e *Encoder) sparseBehind(l *levels, values *enc23pb.ValuePlane, buffers [][]byte) EncodedPage {
	page := e.sparsePage(l, values)
	page.Buffers = append(buffers[:len(buffers):len(buffers)], page.Buffers...)
	return page
}

// sparsePage describes the structure that l has, for values whose buffers, if they
// have any, come first.
func (e *Encoder) sparsePage(l *levels, values *enc23pb.ValuePlane) EncodedPage {
	out := EncodedPage{}
	structure := new(enc23pb.SparseStructure)
	for k := len(l.layers) - 1; k >= 0; k-- {
		layer := gatherLayer(l, k)
		if k == 0 && e.opts.EmptyStructs {
			layer.nulls, layer.valid = nil, nil
		}
		structure.Layers = append(structure.Layers, layer.describe(&out.Buffers))
	}
	out.Planar = &enc23pb.PlanarLayout{Values: values, Structure: &enc23pb.StructuralPlane{
		Codec: &enc23pb.StructuralPlane_Sparse{Sparse: structure}}}
	return out
}

// slotLayer is the slots of one layer.
type slotLayer struct {
	list             bool
	slots            uint64
	nulls, valid     []uint64
	nonEmpty, counts []uint64
}

// gatherLayer finds the slots of layer k, counted from the leaf, in the levels of a
// page.
func gatherLayer(l *levels, k int) slotLayer {
	out := slotLayer{list: l.layers[k].IsList()}
	// Below first are the levels of what is inside the layer, from after on those of
	// what is around it; hides is the first of those that leave it no slot.
	rank, number, hides := uint16(0), uint16(1), l.maxDef+1
	var first, after uint16
	for i, layer := range l.layers {
		if i == k {
			first = number
			after = number + uint16(layer.Numbers())
		}
		if i > k && layer.IsList() && hides > l.maxDef {
			hides = number
		}
		if i < k && layer.IsList() {
			rank++
		}
		number += uint16(layer.Numbers())
	}
	// What is null around a list leaves nothing either.
	null := l.layers[k] != level.EmptyableList
	for i := range l.entries {
		rep, def := l.maxRep, uint16(0)
		if l.rep != nil {
			rep = l.rep[i]
		}
		if l.def != nil {
			def = l.def[i]
		}
		switch {
		case def >= hides:
		case out.list && rep == rank && def < first:
			out.counts[len(out.counts)-1]++
		case rep < rank, out.list && rep == rank:
		default:
			slot := out.slots
			out.slots++
			switch {
			case def >= after, def == first && def < after && null:
				out.nulls = append(out.nulls, slot)
				continue
			case out.list && def < first:
				out.nonEmpty, out.counts = append(out.nonEmpty, slot), append(out.counts, 1)
			}
			out.valid = append(out.valid, slot)
		}
	}
	return out
}

func (s *slotLayer) describe(buffers *[][]byte) *enc23pb.SparseLayer {
	sequence := func(values []uint64) *enc21pb.CompressiveEncoding {
		e, payload := encodeSequence(values)
		if payload != nil {
			*buffers = append(*buffers, payload)
		}
		return e
	}
	var list *enc23pb.SparseList
	if s.list {
		list = &enc23pb.SparseList{NumNonEmptyPositions: uint64(len(s.nonEmpty))}
		list.NonEmptyPositions, list.Counts = sequence(s.nonEmpty), sequence(s.counts)
		for _, n := range s.counts {
			list.NumChildSlots += n
		}
	}
	marked := s.nulls
	validity := &enc23pb.SparseValidity{Meaning: enc21pb.SparseMeaning_SPARSE_NULL}
	if len(s.valid) < len(s.nulls) {
		marked, validity.Meaning = s.valid, enc21pb.SparseMeaning_SPARSE_VALID
	}
	validity.Positions, validity.NumPositions = sequence(marked), uint64(len(marked))
	if list != nil {
		list.Validity = validity
		return &enc23pb.SparseLayer{Layer: &enc23pb.SparseLayer_List{List: list}}
	}
	return &enc23pb.SparseLayer{Layer: &enc23pb.SparseLayer_Validity{Validity: validity}}
}

// encodeSequence encodes whole numbers; without bytes if a description will do.
func encodeSequence(values []uint64) (*enc21pb.CompressiveEncoding, []byte) {
	if len(values) == 0 {
		return describeConstant(nil), nil
	}
	ascending, arithmetic := true, true
	largest, step := values[0], uint64(0)
	if len(values) > 1 {
		step = values[1] - values[0]
	}
	for i := 1; i < len(values); i++ {
		ascending = ascending && values[i] >= values[i-1]
		arithmetic = arithmetic && values[i]-values[i-1] == step
		largest = max(largest, values[i])
	}
	switch {
	case arithmetic && step == 0:
		return describeConstant(binary.LittleEndian.AppendUint64(nil, values[0])), nil
	case arithmetic && ascending:
		return &enc21pb.CompressiveEncoding{Compression: &enc21pb.CompressiveEncoding_Range{
			Range: &enc21pb.Range{UncompressedBitsPerValue: 64, Start: values[0], Step: step}}}, nil
	}
	plain, payload := packSequence(values, largest)
	if !ascending {
		return plain, payload
	}
	steps := make([]uint64, len(values)-1)
	largest = 0
	for i := range steps {
		steps[i] = values[i+1] - values[i]
		largest = max(largest, steps[i])
	}
	child, smaller := packSequence(steps, largest)
	if len(smaller) >= len(payload) {
		return plain, payload
	}
	return &enc21pb.CompressiveEncoding{Compression: &enc21pb.CompressiveEncoding_Delta{
		Delta: &enc21pb.Delta{UncompressedBitsPerValue: 64, Base: values[0], Deltas: child}}}, smaller
}

func describeConstant(value []byte) *enc21pb.CompressiveEncoding {
	return &enc21pb.CompressiveEncoding{Compression: &enc21pb.CompressiveEncoding_Constant{Constant: &enc21pb.Constant{Value: value}}}
}

// packSequence packs blocks of 1024 numbers to the bits that the largest takes. A tail
// is packed like [packedLevels] packs one.
func packSequence(values []uint64, largest uint64) (*enc21pb.CompressiveEncoding, []byte) {
	width := bits.Len64(largest)
	if width == 64 {
		return describeFlat(64), appendUint64s(nil, values)
	}
	width = max(width, 1)
	var out, in []byte
	for rest := values; len(rest) > 0; {
		n := min(len(rest), 1024)
		if 8*n <= 128*width && n < 1024 {
			out = appendUint64s(out, rest)
			break
		}
		in = appendUint64s(in[:0], rest[:n])
		in = append(in, make([]byte, 8192-len(in))...)
		have := len(out)
		out = append(out, make([]byte, 128*width)...)
		fastlanes.Pack(out[have:], in, 64, width)
		rest = rest[n:]
	}
	return describeOutOfLineBitpacking(64, width), out
}

func appendUint64s(dst []byte, values []uint64) []byte {
	for _, v := range values {
		dst = binary.LittleEndian.AppendUint64(dst, v)
	}
	return dst
}
