package encoding

import (
	"context"

	"github.com/rehome-db/rehome/lance/datafile/level"
	enc21pb "github.com/rehome-db/rehome/lance/internal/pb/enc21"
	enc23pb "github.com/rehome-db/rehome/lance/internal/pb/enc23"
	"github.com/rehome-db/rehome/table"
)

// sparse decodes pages of format 2.3 that have no levels. Of each layer, outermost
// first, they say instead which of its slots are null and, of a list, which are not
// empty and how many slots of the next layer those have. The slots of the innermost
// layer are those of the values.
//
// What is said of a layer below a null struct does not matter but has its slots all
// the same.
//
// Buffers: those of the values, then those of each layer's sequences that have any:
// where a list is not empty, how many slots it has there, where it is null.
type sparse struct {
	path   path
	layers []sparseLayer // outermost first
	values sparseValues
	// buffers are those of the layers.
	buffers []Buffer
	slots   uint64 // of values
}

// sparseLayer is a layer's description.
type sparseLayer struct {
	list            bool
	slots, children uint64
	// nulls says that marked are the slots that are null, not those that are not.
	nulls            bool
	marked           sparseSequence
	nonEmpty, counts sparseSequence
	// nullNumber and emptyNumber are the definition levels, rank the repetition level
	// of a further element.
	nullNumber, emptyNumber, rank uint16
}

// sparseSequence is a sequence of n numbers that is still to be loaded.
type sparseSequence struct {
	codec sequenceCodec
	n     uint64
	// steps says that what is stored after the first number is differences.
	steps bool
}

func (s *sparseSequence) payload() bool { return s.codec.payload() }

// planSparse21 checks a sparse page as Lance 9 to 13 write it.
func (d *Decoder) planSparse21(l *enc21pb.SparseLayout, p Page) (*sparse, error) {
	if len(p.Buffers) < 2 {
		return nil, table.Corruptf("encoding: a sparse page of %d buffers", len(p.Buffers))
	}
	s := &sparse{buffers: p.Buffers[2:], slots: l.GetNumVisibleItems()}
	for i, in := range l.GetLayers() {
		layer := sparseLayer{}
		var validity *enc21pb.SparseValidity
		var err error
		switch x := in.GetLayer().(type) {
		case *enc21pb.SparseLayer_Validity:
			layer.slots, validity = x.Validity.GetNumSlots(), x.Validity.GetValidity()
			layer.children = layer.slots
		case *enc21pb.SparseLayer_List:
			layer.list, layer.slots, layer.children = true, x.List.GetNumSlots(), x.List.GetNumChildSlots()
			validity = x.List.GetValidity()
			if layer.nonEmpty, err = d.positions21(x.List.GetNonEmptyPositions(), layer.slots); err == nil {
				layer.counts, err = d.counts21(x.List.GetCounts(), layer.nonEmpty.n)
			}
		case *enc21pb.SparseLayer_FixedSizeList:
			err = table.Unsupportedf("encoding: fixed-size lists around other types are not supported")
		default:
			err = table.Unsupportedf("encoding: layer %d of a sparse page is of a kind that is not known", i)
		}
		if err != nil {
			return nil, err
		}
		if layer.nulls, err = markedNulls(validity.GetMeaning()); err != nil {
			return nil, err
		}
		if layer.marked, err = d.positions21(validity.GetPositions(), layer.slots); err != nil {
			return nil, err
		}
		s.layers = append(s.layers, layer)
	}
	if err := s.plan(d, p.Rows); err != nil {
		return nil, err
	}
	flat := &enc21pb.MiniBlockLayout{
		ValueCompression: l.GetValueCompression(), NumBuffers: l.GetNumBuffers(), NumItems: s.slots,
		Layers: []enc21pb.RepDefLayer{enc21pb.RepDefLayer_REPDEF_ALL_VALID_ITEM}, HasLargeChunk: l.GetHasLargeChunk(),
	}
	page := Page{Rows: s.slots, Buffers: p.Buffers[:2], File: p.File, Size: p.Size}
	inner, err := d.flat().planMiniBlock(flat, page)
	if err != nil {
		return nil, err
	}
	inner.counted = true
	s.values = &storedValues{plan: inner, page: page, all: true}
	return s, s.checkBuffers()
}

func markedNulls(m enc21pb.SparseMeaning) (bool, error) {
	switch m {
	case enc21pb.SparseMeaning_SPARSE_NULL:
		return true, nil
	case enc21pb.SparseMeaning_SPARSE_VALID:
		return false, nil
	default:
		return false, table.Corruptf("encoding: validity that is neither of nulls nor of values")
	}
}

func (d *Decoder) positions21(p *enc21pb.SparsePositions, slots uint64) (sparseSequence, error) {
	out := sparseSequence{codec: noSequence{}, n: p.GetNumPositions()}
	switch x := p.GetPositions().(type) {
	case *enc21pb.SparsePositions_Explicit:
		fixed, err := compileFixed(x.Explicit, 64, inBlock, d.limits.Expanded, 0)
		if err != nil {
			return out, err
		}
		out.codec, out.steps = plainSequence{decoder: fixed, width: 64, limit: d.limits.Expanded}, true
		if fixed.buffers() != 1 {
			return out, unsupported(x.Explicit)
		}
	case *enc21pb.SparsePositions_Range:
		out.codec = arithmetic{width: 64, start: x.Range.GetStart(), step: 1}
		if out.n != x.Range.GetLength() || out.n == 0 {
			return out, table.Corruptf("encoding: %d positions in a range of %d", out.n, x.Range.GetLength())
		}
	case *enc21pb.SparsePositions_All:
		if out.n != slots {
			return out, table.Corruptf("encoding: %d positions for all of %d slots", out.n, slots)
		}
		if out.n > 0 {
			out.codec = arithmetic{width: 64, step: 1}
		}
	case *enc21pb.SparsePositions_Empty:
		if out.n != 0 {
			return out, table.Corruptf("encoding: %d positions of none", out.n)
		}
	default:
		return out, table.Unsupportedf("encoding: positions in a form that is not known")
	}
	return out, nil
}

func (d *Decoder) counts21(c *enc21pb.SparseCounts, n uint64) (sparseSequence, error) {
	out := sparseSequence{codec: noSequence{}, n: n}
	switch x := c.GetCounts().(type) {
	case *enc21pb.SparseCounts_Explicit:
		fixed, err := compileFixed(x.Explicit, 64, inBlock, d.limits.Expanded, 0)
		if err != nil {
			return out, err
		}
		out.codec = plainSequence{decoder: fixed, width: 64, limit: d.limits.Expanded}
		if fixed.buffers() != 1 {
			return out, unsupported(x.Explicit)
		}
	case *enc21pb.SparseCounts_Constant:
		out.codec = arithmetic{width: 64, start: x.Constant.GetValue()}
	case *enc21pb.SparseCounts_Empty:
	default:
		return out, table.Unsupportedf("encoding: counts in a form that is not known")
	}
	return out, nil
}

// planSparse23 checks a sparse page as Lance writes it from 14 on.
func (d *Decoder) planSparse23(l *enc23pb.PlanarLayout, p Page) (*sparse, error) {
	s := &sparse{}
	slots := p.Rows
	for i, in := range l.GetStructure().GetSparse().GetLayers() {
		layer := sparseLayer{slots: slots, children: slots}
		var validity *enc23pb.SparseValidity
		var err error
		switch x := in.GetLayer().(type) {
		case *enc23pb.SparseLayer_Validity:
			validity = x.Validity
		case *enc23pb.SparseLayer_List:
			layer.list, layer.children, validity = true, x.List.GetNumChildSlots(), x.List.GetValidity()
			n := x.List.GetNumNonEmptyPositions()
			if layer.nonEmpty, err = d.sequence23(x.List.GetNonEmptyPositions(), n); err == nil {
				layer.counts, err = d.sequence23(x.List.GetCounts(), n)
			}
		case *enc23pb.SparseLayer_FixedSizeList:
			err = table.Unsupportedf("encoding: fixed-size lists around other types are not supported")
		default:
			err = table.Unsupportedf("encoding: layer %d of a sparse page is of a kind that is not known", i)
		}
		if err != nil {
			return nil, err
		}
		if layer.nulls, err = markedNulls(validity.GetMeaning()); err != nil {
			return nil, err
		}
		if layer.marked, err = d.sequence23(validity.GetPositions(), validity.GetNumPositions()); err != nil {
			return nil, err
		}
		slots = layer.children
		s.layers = append(s.layers, layer)
	}
	s.slots = slots
	if err := s.plan(d, p.Rows); err != nil {
		return nil, err
	}
	taken, err := s.planValues23(d, l.GetValues(), p)
	if err != nil {
		return nil, err
	}
	s.buffers = p.Buffers[taken:]
	return s, s.checkBuffers()
}

func (d *Decoder) sequence23(e *enc21pb.CompressiveEncoding, n uint64) (sparseSequence, error) {
	codec, err := compileSequence(e, 64, d.limits.Expanded, false)
	return sparseSequence{codec: codec, n: n}, err
}

// plan checks what the layers say together, and gives them their levels.
func (s *sparse) plan(d *Decoder, rows uint64) error {
	if len(s.layers) != len(d.shape) {
		return table.Corruptf("encoding: the page has %d layers, the schema %d", len(s.layers), len(d.shape))
	}
	s.path.layers = make([]level.Layer, len(s.layers))
	number, rank := uint16(1), uint16(0)
	for k := range s.layers { // leaf first
		l := &s.layers[len(s.layers)-1-k]
		if l.list != d.shape[k].IsList() {
			return table.Corruptf("encoding: layer %d of the page is a list on one side only", k)
		}
		if l.slots > maxRows || l.children > maxRows {
			return table.Unsupportedf("encoding: a page of %d slots of one layer", max(l.slots, l.children))
		}
		if l.marked.n > l.slots || l.nonEmpty.n > l.slots {
			return table.Corruptf("encoding: %d and %d positions in %d slots", l.marked.n, l.nonEmpty.n, l.slots)
		}
		nulls := l.marked.n
		if !l.nulls {
			nulls = l.slots - nulls
		}
		valid := l.slots - nulls
		if l.nonEmpty.n > valid {
			return table.Corruptf("encoding: %d lists that are not empty where %d are not null", l.nonEmpty.n, valid)
		}
		layer := level.AllValidItem
		if nulls > 0 {
			layer = level.NullableItem
		}
		if l.list {
			l.rank = rank
			rank++
			switch empty := valid > l.nonEmpty.n; {
			case nulls > 0 && empty:
				layer = level.NullAndEmptyList
			case nulls > 0:
				layer = level.NullableList
			case empty:
				layer = level.EmptyableList
			default:
				layer = level.AllValidList
			}
		}
		l.nullNumber, l.emptyNumber = number, number
		if layer == level.NullAndEmptyList {
			l.emptyNumber++
		}
		number += uint16(layer.Numbers())
		s.path.layers[k] = layer
	}
	want := rows
	for i := range s.layers {
		if s.layers[i].slots != want {
			return table.Corruptf("encoding: layer %d of the page has %d slots, want %d", i, s.layers[i].slots, want)
		}
		want = s.layers[i].children
	}
	if want != s.slots {
		return table.Corruptf("encoding: layers of %d slots for %d values", want, s.slots)
	}
	s.path.maxRep, s.path.maxDef = level.MaxRep(s.path.layers), level.MaxDef(s.path.layers)
	s.path.maxVisible = level.MaxVisibleDef(s.path.layers)
	return nil
}

// checkBuffers checks that there is one for each sequence that needs one.
func (s *sparse) checkBuffers() error {
	n := 0
	for i := range s.layers {
		for _, q := range s.layers[i].sequences() {
			if q.payload() {
				n++
			}
		}
	}
	if n != len(s.buffers) {
		return table.Corruptf("encoding: %d buffers for the %d sequences of a sparse page", len(s.buffers), n)
	}
	return nil
}

// sequences returns those of the layer in the order of their buffers.
func (l *sparseLayer) sequences() []*sparseSequence {
	if l.list {
		return []*sparseSequence{&l.nonEmpty, &l.counts, &l.marked}
	}
	return []*sparseSequence{&l.marked}
}

// flat returns the decoder for values without a structure.
func (d *Decoder) flat() *Decoder {
	if d.inner == nil {
		d.inner = new(Decoder)
	}
	d.inner.Reset(d.typ, []level.Layer{level.AllValidItem}, d.limits)
	return d.inner
}

// load reads the sequences of all layers, and checks what only they can say.
func (s *sparse) load(ctx context.Context, d *Decoder, p Page) (*sparseWalk, error) {
	w := &sparseWalk{sparse: s, layers: make([]sparseCursor, len(s.layers))}
	buffers := s.buffers
	for i := range s.layers {
		l := &s.layers[i]
		c := &w.layers[i]
		c.sparseLayer = l
		for k, q := range l.sequences() {
			var in []byte
			if q.payload() {
				var err error
				if in, err = read(ctx, p, d.aux, buffers[0]); err != nil {
					return nil, err
				}
				d.aux, buffers = in, buffers[1:]
			}
			loaded, err := q.load(in)
			if err != nil {
				return nil, err
			}
			switch {
			case l.list && k == 0:
				c.nonEmpty = loaded
			case l.list && k == 1:
				c.counts = loaded
			default:
				c.marked = loaded
			}
		}
		if err := c.check(); err != nil {
			return nil, err
		}
	}
	return w, nil
}

func (q *sparseSequence) load(in []byte) (sequence, error) {
	s, err := q.codec.load(q.n, in)
	if err != nil || !q.steps {
		return s, err
	}
	sum := uint64(0)
	for i, step := range s.values {
		if sum += step; sum < step {
			return s, table.Corruptf("encoding: position %d is too large", i)
		}
		s.values[i] = sum
	}
	return s, nil
}
