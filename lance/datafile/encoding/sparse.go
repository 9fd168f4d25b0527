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

// planSparse checks a sparse page as Lance writes it from 14 on.
func (d *Decoder) planSparse(l *enc23pb.PlanarLayout, p Page) (*sparse, error) {
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
			if layer.nonEmpty, err = d.plannedSequence(x.List.GetNonEmptyPositions(), n); err == nil {
				layer.counts, err = d.plannedSequence(x.List.GetCounts(), n)
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
		if layer.marked, err = d.plannedSequence(validity.GetPositions(), validity.GetNumPositions()); err != nil {
			return nil, err
		}
		slots = layer.children
		s.layers = append(s.layers, layer)
	}
	s.slots = slots
	if err := s.plan(d, p.Rows); err != nil {
		return nil, err
	}
	values, taken, err := valuePlanner{decoder: d, page: p, slots: slots}.plan(l.GetValues())
	if err != nil {
		return nil, err
	}
	s.values, s.buffers = values, p.Buffers[taken:]
	return s, s.checkBuffers()
}

func (d *Decoder) plannedSequence(e *enc21pb.CompressiveEncoding, n uint64) (sparseSequence, error) {
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

// run implements plan.
func (x *sparse) run(ctx context.Context, d *Decoder, p Page, e *emitter) error {
	w, err := x.load(ctx, d, p)
	if err != nil {
		return err
	}
	d.out.begin(d.typ, x.path)
	if err := w.skipTo(e.from); err != nil {
		return err
	}
	e.row = e.from
	return w.emit(ctx, d, p, e, e.to)
}

// take implements sparsePlan.
func (x *sparse) take(ctx context.Context, d *Decoder, p Page, t *taker) error {
	w, err := x.load(ctx, d, p)
	if err != nil {
		return err
	}
	d.out.begin(d.typ, x.path)
	t.all()
	for _, r := range append([]Range(nil), t.ranges...) { // t's own get fewer as rows are picked
		if err := w.skipTo(r.From); err != nil {
			return err
		}
		t.e.row = r.From
		if err := w.emit(ctx, d, p, &t.e, r.To); err != nil {
			return err
		}
	}
	return nil
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

// sparseBehind is sparsePage with the buffers of the values before those of the
// structure.
func (e *Encoder) sparseBehind(l *levels, values *enc23pb.ValuePlane, buffers [][]byte) EncodedPage {
	page := e.sparsePage(l, values)
	page.Buffers = append(buffers[:len(buffers):len(buffers)], page.Buffers...)
	return page
}
