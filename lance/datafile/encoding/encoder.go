package encoding

import (
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
