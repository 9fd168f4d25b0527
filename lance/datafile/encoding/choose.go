package encoding

import (
	"github.com/rehome-db/rehome/lance/datafile/level"
)

// wideValue is the size from which on a value is not put into mini-blocks.
const wideValue = 256

// encodePage encodes b as one page, or says where it has to be cut.
func (e *Encoder) encodePage(b *level.Block) (EncodedPage, *gap, error) {
	l := e.levels(b)
	valid := e.clean(b, l)
	if valid == 0 && !e.nullItems(b, l) || b.Type.Kind == level.Nothing {
		page, err := e.allNull(l)
		return page, nil, err
	}
	if e.opts.IndexBits > 0 {
		codec, dict, err := e.arrowDictionary(b, l)
		if err != nil {
			return EncodedPage{}, nil, err
		}
		return e.miniBlock(b, l, codec, dict)
	}
	if b.Type.Parts != "" {
		return e.packedPage(b, l)
	}
	if e.opts.Version.Planar() {
		if page, ok := e.planarConstant(b, l); ok {
			return page, nil, nil
		}
	} else if page, ok := e.constant(b, l, valid); ok {
		return page, nil, nil
	}
	if e.opts.Zip && canZip(b, l) {
		page, err := e.fullZip(b, l, widestValue(b))
		return page, nil, err
	}
	if codec, dict := e.dictionary(b); codec != nil {
		page, at, err := e.blocksPage(b, l, codec, dict)
		if at == nil || err != nil {
			return page, at, err
		}
	}
	widest := widestValue(b)
	if e.zipsSparse(b, l, valid, widest) {
		page, err := e.sparseZip(b, l, widest)
		return page, nil, err
	}
	if widest >= wideValue && canZip(b, l) && !e.opts.Mini {
		page, err := e.fullZip(b, l, widest)
		return page, nil, err
	}
	codec, err := e.chooseCodec(b)
	if err != nil {
		return EncodedPage{}, nil, err
	}
	page, at, err := e.blocksPage(b, l, codec, nil)
	if err == nil && at != nil && b.Rows == 1 && canZip(b, l) {
		page, err = e.fullZip(b, l, widest)
		at = nil
	}
	return page, at, err
}

// nullItems says whether lists have items of which all are null. Lance up to 6, at
// least, fails to read a page without values of them, whatever the format.
func (e *Encoder) nullItems(b *level.Block, l *levels) bool {
	return !e.opts.Version.Planar() && e.opts.IndexBits == 0 && l.rep != nil && b.Values.N > 0
}

// canZip says whether the values can stand in a full-zip page. Lists of bits are
// not put there even where they are whole bytes.
func canZip(b *level.Block, l *levels) bool {
	return b.Type.Bits%8 == 0 && (!l.nullableOutsideList() || l.visible == nil || len(l.visible) == l.entries)
}

// widestValue returns the bytes of b's largest value.
func widestValue(b *level.Block) int {
	if b.Type.Kind != level.Variable {
		return b.Type.ValueBits() / 8
	}
	widest := uint32(0)
	for i := 1; i < len(b.Values.Offsets); i++ {
		widest = max(widest, b.Values.Offsets[i]-b.Values.Offsets[i-1])
	}
	return int(widest)
}
