package encoding

import (
	"github.com/rehome-db/rehome/lance/datafile/level"
	"github.com/rehome-db/rehome/table"
)

// strategies are the ways to encode a page, in the order in which they are asked: the
// first that takes the page encodes it. The last takes every page.
var strategies = []strategy{
	(*Encoder).withoutValues,
	(*Encoder).arrowDictionaryPage,
	(*Encoder).packedStructPage,
	(*Encoder).oneValuePage,
	(*Encoder).zippedOnRequest,
	(*Encoder).repeatedValues,
	(*Encoder).wideSparseValues,
	(*Encoder).wideValues,
	(*Encoder).smallValues,
}

// strategy encodes a block as one page or says where it has to be cut. If the block is not
// for it, it says so by ok, and the next one is asked.
type strategy func(e *Encoder, b *draft) (p result, ok bool, err error)

// draft is a block that is about to become a page, with what strategies go by.
type draft struct {
	*level.Block
	levels *levels
	// valid is the number of slots that are not null.
	valid int

	widest int // once asked for, see [draft.widestValue]
	known  bool
}

// result is a page, or where to cut the block because it fits no single page.
type result struct {
	page EncodedPage
	cut  *gap
}

// encodePage encodes b as one page, or says where it has to be cut.
func (e *Encoder) encodePage(b *level.Block) (EncodedPage, *gap, error) {
	l := e.levels(b)
	d := &draft{Block: b, levels: l, valid: e.clean(b, l)}
	for _, s := range strategies {
		if out, ok, err := s(e, d); ok || err != nil {
			return out.page, out.cut, err
		}
	}
	return EncodedPage{}, nil, table.Unsupportedf("encoding: no layout takes the page")
}

// withoutValues takes pages in which no value is there.
func (e *Encoder) withoutValues(d *draft) (result, bool, error) {
	if (d.valid > 0 || e.nullItems(d)) && d.Type.Kind != level.Nothing {
		return result{}, false, nil
	}
	page, err := e.allNull(d.levels)
	return result{page: page}, true, err
}

// nullItems says whether lists have items of which all are null. Lance up to 6, at
// least, fails to read a page without values of them, whatever the format.
func (e *Encoder) nullItems(d *draft) bool {
	return !e.opts.Version.Planar() && e.opts.IndexBits == 0 && d.levels.rep != nil && d.Values.N > 0
}

// arrowDictionaryPage takes the pages of columns of Arrow dictionaries: that a page has a
// dictionary is what tells readers to make one.
func (e *Encoder) arrowDictionaryPage(d *draft) (result, bool, error) {
	if e.opts.IndexBits == 0 {
		return result{}, false, nil
	}
	indices, dict, err := e.arrowDictionary(d.Block, d.levels)
	if err != nil {
		return result{}, false, err
	}
	out, err := e.miniBlock(d.Block, d.levels, indices, dict)
	return out, true, err
}

// packedStructPage takes packed structs. Rows of fixed width are values like any other,
// and so are kept as they are in mini-blocks or full-zip; rows that vary have full-zip to
// themselves.
func (e *Encoder) packedStructPage(d *draft) (result, bool, error) {
	if d.Type.Parts == "" {
		return result{}, false, nil
	}
	out, err := e.packedPage(d.Block, d.levels)
	return out, true, err
}

// oneValuePage takes pages of one value, where the version can say so.
func (e *Encoder) oneValuePage(d *draft) (result, bool, error) {
	if e.opts.Version.Planar() {
		page, ok := e.planarConstant(d.Block, d.levels)
		return result{page: page}, ok, nil
	}
	page, ok := e.constant(d.Block, d.levels, d.valid)
	return result{page: page}, ok, nil
}

// zippedOnRequest takes pages of columns that ask for full-zip.
func (e *Encoder) zippedOnRequest(d *draft) (result, bool, error) {
	if !e.opts.Zip || !d.canZip() {
		return result{}, false, nil
	}
	page, err := e.fullZip(d.Block, d.levels, d.widestValue())
	return result{page: page}, true, err
}

// repeatedValues takes pages of few distinct values, unless their indices would have to be
// cut: then the other strategies may do without.
func (e *Encoder) repeatedValues(d *draft) (result, bool, error) {
	indices, dict := e.dictionary(d.Block)
	if indices == nil {
		return result{}, false, nil
	}
	out, err := e.blocksPage(d.Block, d.levels, indices, dict)
	return out, out.cut == nil, err
}

// wideSparseValues takes pages of wide values that are better off without the levels of
// a full-zip page, or cannot have them.
func (e *Encoder) wideSparseValues(d *draft) (result, bool, error) {
	if !e.zipsSparse(d) {
		return result{}, false, nil
	}
	page, err := e.sparseZip(d.Block, d.levels, d.widestValue())
	return result{page: page}, true, err
}

// wideValue is the size from which on a value is not put into mini-blocks: the stock
// engines draw the line there. A chunk is a few kilobytes, and reading one row of it
// decodes them all.
const wideValue = 256

// wideValues takes pages with a wide value.
func (e *Encoder) wideValues(d *draft) (result, bool, error) {
	if d.widestValue() < wideValue || !d.canZip() || e.opts.Mini {
		return result{}, false, nil
	}
	page, err := e.fullZip(d.Block, d.levels, d.widestValue())
	return result{page: page}, true, err
}

// smallValues takes every page. A row that can neither stay whole in mini-blocks nor be
// cut is put into full-zip, if that can be.
func (e *Encoder) smallValues(d *draft) (result, bool, error) {
	values, err := e.chooseEncoder(d.Block)
	if err != nil {
		return result{}, true, err
	}
	out, err := e.blocksPage(d.Block, d.levels, values, nil)
	if err == nil && out.cut != nil && d.Rows == 1 && d.canZip() {
		out.cut = nil
		out.page, err = e.fullZip(d.Block, d.levels, d.widestValue())
	}
	return out, true, err
}

// canZip says whether the values can stand in a full-zip page. Lists of bits are
// not put there even where they are whole bytes.
func (d *draft) canZip() bool {
	l := d.levels
	return d.Type.Bits%8 == 0 && (!l.nullableOutsideList() || l.visible == nil || len(l.visible) == l.entries)
}

// widestValue returns the bytes of the largest value.
func (d *draft) widestValue() int {
	if !d.known {
		d.widest, d.known = widestValue(d.Block), true
	}
	return d.widest
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
