package encoding

import (
	"context"

	"github.com/rehome-db/rehome/lance/datafile/level"
	enc21pb "github.com/rehome-db/rehome/lance/internal/pb/enc21"
	"github.com/rehome-db/rehome/table"
)

const (
	// maxEncodingDepth bounds how deep encodings are nested; writers use three.
	maxEncodingDepth = 8
	// maxRows bounds the rows of a page, as fragments are bounded.
	maxRows = 1 << 32
)

// Limits bounds the memory that decoding takes.
type Limits struct {
	// BlockBytes is the size of values after which a block is closed; a block is
	// larger only if a single row or chunk is. The default is 8 MiB.
	BlockBytes int
	// BlockEntries is the same for level entries. The default is 1,048,576.
	BlockEntries int
	// Expanded bounds the bytes that one compressed buffer or one chunk may
	// become. The default is 1 GiB.
	Expanded int
}

// EnsureDefaults fills in what is not set.
func (l *Limits) EnsureDefaults() {
	if l.BlockBytes <= 0 {
		l.BlockBytes = 8 << 20
	}
	if l.BlockEntries <= 0 {
		l.BlockEntries = 1 << 20
	}
	if l.Expanded <= 0 {
		l.Expanded = 1 << 30
	}
}

// Decoder turns the pages of one leaf column into blocks. It keeps its memory
// from page to page and is not safe for concurrent use.
type Decoder struct {
	typ    level.Type
	shape  []level.Layer
	limits Limits

	out sink
	// in holds what was read of the page's main buffer, aux the small buffers.
	in, aux []byte
	// levels holds levels while they are still bytes.
	levels []byte
	// inner decodes values that a page has apart from its structure.
	inner *Decoder
}

// NewDecoder returns a decoder for values of type t below a path with the given
// shape; which absences a page has is the page's own business.
func NewDecoder(t level.Type, shape []level.Layer, limits Limits) *Decoder {
	d := new(Decoder)
	d.Reset(t, shape, limits)
	return d
}

// Reset makes the decoder one for another leaf, as NewDecoder does, and keeps its
// memory.
func (d *Decoder) Reset(t level.Type, shape []level.Layer, limits Limits) {
	limits.EnsureDefaults()
	d.typ, d.shape, d.limits = t, shape, limits
}

// Check says whether the page's layout and encodings are supported for the leaf
// (ErrUnsupported) and make sense (ErrCorrupt). It reads no data.
func (d *Decoder) Check(p Page) error {
	_, err := d.plan(p)
	return err
}

// Decode yields the rows [from, to) of the page, in order, as blocks. A block and
// everything in it is valid until yield returns. If yield returns false, Decode
// stops and returns nil.
func (d *Decoder) Decode(ctx context.Context, p Page, from, to uint64, yield func(*level.Block) bool) error {
	if from > to || to > p.Rows {
		return table.Corruptf("encoding: rows %d to %d of a page of %d", from, to, p.Rows)
	}
	plan, err := d.plan(p)
	if err != nil || from == to {
		return err
	}
	e := &emitter{from: from, to: to, yield: yield}
	if err := plan.run(ctx, d, p, e); err != nil && err != errStop {
		return err
	}
	return nil
}

// plan is a page whose description was checked against the leaf.
type plan interface {
	// run decodes the rows that e wants. It may pass others to e too, and passes
	// all after the first in order.
	run(ctx context.Context, d *Decoder, p Page, e *emitter) error
}

func (d *Decoder) plan(p Page) (plan, error) {
	if p.Rows > maxRows {
		return nil, table.Corruptf("encoding: a page of %d rows", p.Rows)
	}
	if p.Planar != nil {
		return d.planSparse(p.Planar, p)
	}
	switch l := p.Layout.GetLayout().(type) {
	case *enc21pb.PageLayout_MiniBlock:
		return d.planMiniBlock(l.MiniBlock, p)
	case *enc21pb.PageLayout_Constant:
		return d.planConstant(l.Constant, p)
	case *enc21pb.PageLayout_FullZip:
		return d.planFullZip(l.FullZip, p)
	case *enc21pb.PageLayout_Blob:
		return d.planBlob(l.Blob, p)
	case *enc21pb.PageLayout_Sparse:
		return d.planEarlySparse(l.Sparse, p)
	default:
		return nil, table.Unsupportedf("encoding: the page has a layout that is not known")
	}
}

// path is the layers of a page, with the numbers that follow from them.
type path struct {
	layers         []level.Layer
	maxRep, maxDef uint16
	maxVisible     uint16
}

// allPresent returns the path of a page without definition levels: whatever its
// layers declare, nothing in it is absent.
func (p path) allPresent() path {
	out := path{layers: make([]level.Layer, len(p.layers)), maxRep: p.maxRep}
	for i, l := range p.layers {
		out.layers[i] = level.AllValidItem
		if l.IsList() {
			out.layers[i] = level.AllValidList
		}
	}
	return out
}

// path checks the page's layers against the leaf's.
func (d *Decoder) path(in []enc21pb.RepDefLayer) (path, error) {
	if len(in) != len(d.shape) {
		return path{}, table.Corruptf("encoding: the page has %d layers, the schema %d", len(in), len(d.shape))
	}
	p := path{layers: layersOf(in)}
	for i, l := range p.layers {
		if l < level.AllValidItem || l > level.NullAndEmptyList || l.IsList() != d.shape[i].IsList() {
			return path{}, table.Corruptf("encoding: layer %d of the page is %d, the schema has %d there", i, l, d.shape[i])
		}
	}
	p.maxRep, p.maxDef = level.MaxRep(p.layers), level.MaxDef(p.layers)
	p.maxVisible = level.MaxVisibleDef(p.layers)
	return p, nil
}
