package encoding

import (
	"bytes"
	"encoding/binary"

	"github.com/rehome-db/rehome/lance/datafile/level"
	enc21pb "github.com/rehome-db/rehome/lance/internal/pb/enc21"
)

// maxInlineConstant is the largest value that is stored in the layout itself.
const maxInlineConstant = 32

// allNull encodes a page without a single value that is there: all null, or all
// in null or empty lists.
func (e *Encoder) allNull(l *levels) (EncodedPage, error) {
	layout := &enc21pb.ConstantLayout{Layers: layersProto(l.layers)}
	page := EncodedPage{Layout: &enc21pb.PageLayout{Layout: &enc21pb.PageLayout_Constant{Constant: layout}}}
	if len(l.layers) == 1 {
		return page, nil // null rows, and nothing more to say
	}
	page.Buffers = [][]byte{nil, nil}
	if !e.opts.Version.finished() {
		e.scratch = appendUint16s(e.scratch[:0], l.rep)
		rep := len(e.scratch)
		e.scratch = appendUint16s(e.scratch, l.def)
		page.Buffers[0], page.Buffers[1] = e.scratch[:rep], e.scratch[rep:]
		return page, nil
	}
	e.scratch = e.scratch[:0]
	rep := 0
	if l.rep != nil {
		layout.RepCompression, layout.NumRepValues = e.blockLevels(l.rep, l.maxRep), uint64(len(l.rep))
		rep = len(e.scratch)
	}
	if l.def != nil {
		layout.DefCompression, layout.NumDefValues = e.blockLevels(l.def, l.maxDef), uint64(len(l.def))
	}
	page.Buffers[0], page.Buffers[1] = e.scratch[:rep], e.scratch[rep:]
	return page, nil
}

// blockLevels appends the levels of a whole page to e.scratch, as small as can be.
func (e *Encoder) blockLevels(levels []uint16, maxLevel uint16) *enc21pb.CompressiveEncoding {
	var best levelCodec = flatLevels{}
	for _, c := range []levelCodec{packedLevels{width: levelWidth(maxLevel), scratch: &e.levelBuf}, runLevels{}} {
		if c.size(levels) < best.size(levels) {
			best = c
		}
	}
	e.scratch = best.append(e.scratch, levels)
	return best.describe()
}

// constant encodes a page of values that are all the same, which format 2.2 can
// do. Readers take the levels of such a page only uncompressed, so that it pays
// only without levels.
func (e *Encoder) constant(b *level.Block, l *levels, valid int) (EncodedPage, bool) {
	if !e.opts.Version.finished() || l.rep != nil || l.def != nil || valid != b.Values.N {
		return EncodedPage{}, false
	}
	value, ok := constantValue(b)
	if !ok {
		return EncodedPage{}, false
	}
	layout := &enc21pb.ConstantLayout{Layers: layersProto(l.layers)}
	page := EncodedPage{Layout: &enc21pb.PageLayout{Layout: &enc21pb.PageLayout_Constant{Constant: layout}}}
	if b.Type.Kind == level.Fixed && len(value) <= maxInlineConstant {
		layout.InlineValue = bytes.Clone(value)
		return page, true
	}
	// The buffers of an Arrow array of one value: a count, the sizes, the buffers.
	out := e.scratch[:0]
	put := func(v int) { out = binary.LittleEndian.AppendUint32(out, uint32(v)) }
	if b.Type.Kind == level.Variable {
		put(2)
		put(2 * b.Type.Bits / 8)
		put(len(value))
		for _, offset := range []int{0, len(value)} {
			put(offset)
			if b.Type.Bits == 64 {
				put(0)
			}
		}
	} else {
		put(1)
		put(len(value))
	}
	e.scratch = append(out, value...)
	page.Buffers = [][]byte{e.scratch}
	return page, true
}

// constantValue returns the value that all slots of b have, or false.
func constantValue(b *level.Block) ([]byte, bool) {
	v := &b.Values
	switch {
	case b.Type.Kind == level.Fixed && b.Type.Bits == 1:
		return constantBit(v.Data, v.N)
	case b.Type.Kind == level.Fixed:
		w := b.Type.Bits / 8
		data := v.Data[:v.N*w]
		// Every value equals the one before it.
		return data[:w], bytes.Equal(data[w:], data[:len(data)-w])
	case b.Type.Kind == level.Variable:
		first := v.Data[v.Offsets[0]:v.Offsets[1]]
		for i := 1; i < v.N; i++ {
			if !bytes.Equal(first, v.Data[v.Offsets[i]:v.Offsets[i+1]]) {
				return nil, false
			}
		}
		return first, true
	default:
		return nil, false
	}
}

func constantBit(data []byte, n int) ([]byte, bool) {
	first := data[0] & 1
	for i := range n {
		if data[i/8]>>(i%8)&1 != first {
			return nil, false
		}
	}
	return []byte{first}, true
}
