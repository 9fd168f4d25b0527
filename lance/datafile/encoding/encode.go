package encoding

import (
	"sort"

	"github.com/rehome-db/rehome/lance/datafile/fsst"
	"github.com/rehome-db/rehome/lance/datafile/level"
	enc21pb "github.com/rehome-db/rehome/lance/internal/pb/enc21"
	enc23pb "github.com/rehome-db/rehome/lance/internal/pb/enc23"
	"github.com/rehome-db/rehome/table"
)

// EncodeOptions says how a column's pages are encoded.
type EncodeOptions struct {
	Version Version
	// Layers are those that the column's pages are to agree on as far as they have to,
	// see [level.SameItems]. The default is those that each page needs.
	Layers []level.Layer
	// Dims are the dimensions of a FixedList column, outermost first; their
	// product is the type's Dim. The default is one dimension.
	Dims []int
	// IndexBits is set for a column of Arrow dictionaries: every page has a
	// dictionary, whose indices have so many bits, the uppermost of them unused if
	// IndexSigned. The default is no such column.
	IndexBits   int
	IndexSigned bool
	// Compression is what the field's metadata asks for under
	// "lance-encoding:compression": "lz4", "zstd", "fsst" or "none". The default
	// is to choose by the data.
	Compression string
	// CompressionLevel is for zstd; the default is 3.
	CompressionLevel int
	// Zip puts values into full-zip pages, and Mini into mini-blocks, whatever
	// their width, as far as the format can. The default is to choose by width.
	Zip, Mini bool
	// RunThreshold is the most runs, as a fraction of the values, that are stored
	// as runs. The default is to store them so whenever it is smaller.
	RunThreshold float64
	// SplitBytes stores the first bytes of all 32 and 64-bit values together, then
	// the second ones, and so on. It is for values that are compressed with lz4 or
	// zstd after that, and without effect otherwise.
	SplitBytes bool
	// DictionaryDivisor bounds the distinct values of a dictionary to the number of
	// values divided by it; the default is 2. DictionaryRatio is what fraction of
	// the plain values a dictionary with its indices may take; the default is 0.8.
	DictionaryDivisor int
	DictionaryRatio   float64
	// DictionaryCompression is the compression of dictionaries: "lz4", "zstd" or
	// "none". The default is lz4 in format 2.2 and none in 2.1.
	DictionaryCompression string
	// EmptyStructs says that values of no type at all are structs without fields, which
	// are there even though nothing is stored of them.
	EmptyStructs bool
	// ChunkBytes is the size of mini-blocks of strings; the default is 4 KiB.
	ChunkBytes int
}

// EncodedPage is a page to be written: its buffers in order, and the layout that
// describes them.
type EncodedPage struct {
	Layout *enc21pb.PageLayout
	// Planar describes the page instead in V2_3Planar.
	Planar  *enc23pb.PlanarLayout
	Rows    int
	Buffers [][]byte
}

// Encoder turns blocks of one leaf column into pages. What it chooses depends on
// the blocks and the options only: equal input gives equal bytes. It keeps its
// memory from page to page and is not safe for concurrent use.
type Encoder struct {
	opts EncodeOptions

	visible  []uint32 // entries that own a value slot
	chunks   []chunkPlan
	meta     []byte
	data     []byte
	repIndex []byte
	dict     []byte
	levelBuf []byte
	sizes    []int
	indices  []byte
	indexOf  map[string]uint32
	key      []byte              // of a value that is no whole bytes
	distinct map[string]struct{} // of a column of dictionaries with narrow indices
	strings  []byte              // encoded strings
	ends     []uint32
	scratch  []byte
	trainer  fsst.Trainer
	symbols  *fsst.Encoder
	compress compressor
}

// NewEncoder returns an encoder. Options that make no sense are found out when
// a page is encoded.
func NewEncoder(opts EncodeOptions) *Encoder { return &Encoder{opts: opts} }

// Reset makes e what [NewEncoder] returns, with the memory that it has.
func (e *Encoder) Reset(opts EncodeOptions) {
	if opts.CompressionLevel != e.opts.CompressionLevel {
		e.compress.values = nil // it is for one level
	}
	// Maps keep the size of the largest column, and are cleared with each page.
	e.opts, e.symbols, e.distinct, e.indexOf = opts, nil, nil, nil
}

// Encode passes b to emit as one page, or as several, cut on row boundaries, if
// the format cannot hold it in one. Pages are valid until emit returns; they may
// share b's memory. Encode overwrites the value slots of b that are null.
//
// A row that no page can hold is ErrUnsupported.
func (e *Encoder) Encode(b *level.Block, emit func(EncodedPage) error) error {
	if b.Rows == 0 {
		return nil
	}
	page, at, err := e.encodePage(b)
	if err != nil {
		return err
	}
	if at == nil {
		if e.opts.Version.Planar() {
			page = e.planarPage(e.levels(b), page)
		}
		page.Rows = b.Rows
		return emit(page)
	}
	cuts := at.rows(b)
	if len(cuts) == 0 {
		return table.Unsupportedf("encoding: a row with %d level entries fits no page of format %s", b.Entries(), e.opts.Version)
	}
	return e.encodeParts(b, cuts, emit)
}

// encodeParts encodes b cut before the given rows.
func (e *Encoder) encodeParts(b *level.Block, cuts []int, emit func(EncodedPage) error) error {
	part, err := level.NewBuilder(b.Type, b.Layers)
	if err != nil {
		return err
	}
	c, err := level.NewCursor(b)
	if err != nil {
		return err
	}
	row := 0
	for _, cut := range append(cuts, b.Rows) {
		part.Reset()
		if err := part.Take(c, cut-row); err != nil {
			return err
		}
		if err := e.Encode(part.Block(), emit); err != nil {
			return err
		}
		row = cut
	}
	return nil
}

// gap is where a page has to be cut: the range of entries, none of them visible,
// that is too long for a chunk; from equals to if what is before the visible
// entry there and what is after do not go together.
type gap struct{ from, to int }

// rows returns the rows before which to cut b: around the rows that lie in the
// gap, so that they get a page without values, which can be of any length; or,
// if there are none, around the row that the gap lies in.
func (g *gap) rows(b *level.Block) []int {
	first, last := g.from, g.to // row numbers, without lists
	if b.Rep != nil {
		maxRep := level.MaxRep(b.Layers)
		first, last = b.Rows, -1
		row := 0
		for i, r := range b.Rep {
			if r != maxRep {
				continue
			}
			if i >= g.from && first == b.Rows {
				first = row
			}
			if i <= g.to {
				last = row
			}
			row++
		}
		if g.to == len(b.Rep) {
			last = b.Rows
		}
	}
	cuts := []int{first, last}
	sort.Ints(cuts)
	out := cuts[:0]
	for _, c := range cuts {
		if c > 0 && c < b.Rows && (len(out) == 0 || out[len(out)-1] != c) {
			out = append(out, c)
		}
	}
	return out
}

// levels is the level streams of a block, with the numbers that follow.
type levels struct {
	layers     []level.Layer
	rep, def   []uint16
	maxRep     uint16
	maxDef     uint16
	maxVisible uint16
	entries    int
	// visible is the entry of each value slot; nil if slot i is entry i.
	visible []uint32
}

func (e *Encoder) levels(b *level.Block) *levels {
	l := &levels{
		layers: b.Layers, rep: b.Rep, def: b.Def, entries: b.Entries(),
		maxRep: level.MaxRep(b.Layers), maxDef: level.MaxDef(b.Layers), maxVisible: level.MaxVisibleDef(b.Layers),
	}
	if b.Def != nil && l.maxVisible < l.maxDef {
		e.visible = e.visible[:0]
		for i, d := range b.Def {
			if d <= l.maxVisible {
				e.visible = append(e.visible, uint32(i))
			}
		}
		l.visible = e.visible
	}
	return l
}

// end returns the entry after that of the last of the first n > 0 value slots.
func (l *levels) end(n int) int {
	if l.visible == nil {
		return n
	}
	return int(l.visible[n-1]) + 1
}

// nullSlots calls f for every value slot that is null, in order, and returns how
// many are not.
func (l *levels) nullSlots(slots int, f func(slot int)) (valid int) {
	if l.def == nil || l.maxVisible == 0 {
		return slots
	}
	slot := 0
	for _, d := range l.def {
		if d > l.maxVisible {
			continue
		}
		if d == 0 {
			valid++
		} else {
			f(slot)
		}
		slot++
	}
	return valid
}

// nullableOutsideList says whether a struct that can be null lies around a list.
// Readers up to Lance 12 take the wrong entries of such a full-zip page for
// visible, unless all are.
func (l *levels) nullableOutsideList() bool {
	list := false
	for _, x := range l.layers {
		list = list || x.IsList()
		if list && x == level.NullableItem {
			return true
		}
	}
	return false
}

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

// clean makes the content of null slots cheap and independent of where the block
// came from: strings become empty, fixed values repeat the one before, lists are
// zero. It returns the number of slots that are not null.
func (e *Encoder) clean(b *level.Block, l *levels) (valid int) {
	v := &b.Values
	switch {
	case b.Type.Kind == level.Variable:
		junk := false
		valid = l.nullSlots(v.N, func(i int) { junk = junk || v.Offsets[i] != v.Offsets[i+1] })
		if junk {
			dropStrings(v, l)
		}
	case b.Type.ValueBits()%8 != 0 || b.Type.Kind == level.Nothing:
		valid = l.nullSlots(v.N, func(int) {})
	default:
		w := b.Type.ValueBits() / 8
		valid = l.nullSlots(v.N, func(i int) {
			slot := v.Data[i*w : (i+1)*w]
			if i == 0 || b.Type.Kind == level.FixedList {
				clear(slot)
			} else {
				copy(slot, v.Data[(i-1)*w:])
			}
		})
	}
	if v.ItemValid != nil {
		dropItemValidity(b, l)
	}
	return valid
}

// dropItemValidity makes all items of null lists valid, and forgets the validity
// of items if then none is null.
func dropItemValidity(b *level.Block, l *levels) {
	v, dim := &b.Values, b.Type.ValidBits()
	l.nullSlots(v.N, func(i int) {
		for k := i * dim; k < (i+1)*dim; k++ {
			v.ItemValid[k/8] |= 1 << (k % 8)
		}
	})
	items := v.N * dim
	for _, x := range v.ItemValid[:items/8] {
		if x != 0xff {
			return
		}
	}
	if tail := byte(1)<<(items%8) - 1; tail != 0 && v.ItemValid[items/8]&tail != tail {
		return
	}
	v.ItemValid = nil
}

// dropStrings empties the null slots of v, moving the rest down.
func dropStrings(v *level.Values, l *levels) {
	end, from := uint32(0), v.Offsets[0]
	slot := 0
	v.Offsets[0] = 0
	for _, d := range l.def {
		if d > l.maxVisible {
			continue
		}
		to := v.Offsets[slot+1]
		if d == 0 {
			end += uint32(copy(v.Data[end:], v.Data[from:to]))
		}
		v.Offsets[slot+1] = end
		from = to
		slot++
	}
	v.Data = v.Data[:end]
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

func layersProto(in []level.Layer) []enc21pb.RepDefLayer {
	out := make([]enc21pb.RepDefLayer, len(in))
	for i, l := range in {
		out[i] = enc21pb.RepDefLayer(l)
	}
	return out
}
