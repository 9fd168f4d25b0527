package encoding

import (
	"context"
	"slices"

	"github.com/rehome-db/rehome/lance/datafile/level"
	enc21pb "github.com/rehome-db/rehome/lance/internal/pb/enc21"
	enc23pb "github.com/rehome-db/rehome/lance/internal/pb/enc23"
	"github.com/rehome-db/rehome/table"
)

// sparseValues is the values of a sparse page.
type sparseValues interface {
	// storesNulls says that there is a value for every slot, not only for those that
	// are there together with all around them.
	storesNulls() bool
	// append appends the values of runs to s.
	append(ctx context.Context, d *Decoder, s *sink, runs []slotRun) error
	// slotBytes is about how large a value is.
	slotBytes() float64
}

// valuePlanner checks the values of a sparse page. Their buffers are the page's first ones.
type valuePlanner struct {
	decoder *Decoder
	page    Page
	slots   uint64
}

// plan returns the values and how many buffers they take.
func (v valuePlanner) plan(l *enc23pb.ValuePlane) (values sparseValues, buffers int, err error) {
	switch c := l.GetCodec().(type) {
	case *enc23pb.ValuePlane_Chunked:
		return v.chunked(c.Chunked)
	case *enc23pb.ValuePlane_Zipped:
		return v.zipped(c.Zipped, 0)
	case *enc23pb.ValuePlane_Indexed:
		return v.indexed(c.Indexed)
	case *enc23pb.ValuePlane_Constant:
		value, err := inlineValue(c.Constant.GetScalar(), v.decoder.typ)
		return &oneValue{constant: constant{inline: value}, value: value}, 0, err
	case *enc23pb.ValuePlane_None:
		return &oneValue{constant: constant{allNull: true}}, 0, nil
	default:
		return nil, 0, table.Unsupportedf("encoding: the page has values in a form that is not known")
	}
}

// chunked checks mini-blocks: chunks and what the page says of them, and a dictionary if
// there is one.
func (v valuePlanner) chunked(c *enc23pb.ChunkedValues) (sparseValues, int, error) {
	if c.GetLevels() != nil || c.GetNumItems() != 0 {
		return nil, 0, table.Corruptf("encoding: chunks of a sparse page with levels of their own")
	}
	buffers := 2
	if c.GetDictionary() != nil {
		buffers++
	}
	inside, err := v.inside(0, buffers, v.slots)
	if err != nil {
		return nil, 0, err
	}
	plan, err := v.decoder.flat().planMiniBlock(&enc21pb.MiniBlockLayout{
		ValueCompression: c.GetCompression(), Dictionary: c.GetDictionary(),
		NumDictionaryItems: c.GetNumDictionaryItems(), NumBuffers: c.GetNumBuffers(),
		NumItems: v.slots, Layers: withoutStructure, HasLargeChunk: true,
	}, inside)
	return &storedValues{plan: plan, page: inside, all: true}, buffers, err
}

// zipped checks full-zip values whose buffers begin with the page's given one: the values,
// and where each begins if they differ in size.
func (v valuePlanner) zipped(z *enc23pb.ZippedValues, first int) (*storedValues, int, error) {
	if z.GetLevels() != nil || z.GetNumVisibleItems() != z.GetNumItems() {
		return nil, 0, table.Corruptf("encoding: values of a sparse page with levels of their own")
	}
	buffers := 1
	if z.GetBitsPerOffset() > 0 {
		buffers = 2
	}
	inside, err := v.inside(first, buffers, z.GetNumItems())
	if err != nil {
		return nil, 0, err
	}
	layout, err := denseZip(z, withoutStructure)
	if err != nil {
		return nil, 0, err
	}
	plan, err := v.decoder.flat().planFullZip(layout.GetFullZip(), inside)
	return &storedValues{plan: plan, page: inside}, buffers, err
}

// indexed checks full-zip values that are stored once, and in front of them an index a
// slot.
func (v valuePlanner) indexed(x *enc23pb.IndexedValues) (sparseValues, int, error) {
	items, buffers, err := v.zipped(x.GetItems(), 1)
	if err != nil {
		return nil, 0, err
	}
	if t := v.decoder.typ; t.Kind != level.Variable || t.Parts != "" {
		return nil, 0, table.Unsupportedf("encoding: indices of other values than strings are not supported")
	}
	indices, err := compileSequence(x.GetIndices(), 32, v.decoder.limits.Expanded, false)
	if err != nil {
		return nil, 0, err
	}
	return &indexedValues{indices: sparseSequence{codec: indices, n: v.slots}, in: v.page.Buffers[0], items: items, file: v.page}, 1 + buffers, nil
}

// withoutStructure is the layers of the page that values are by themselves.
var withoutStructure = []enc21pb.RepDefLayer{enc21pb.RepDefLayer_REPDEF_ALL_VALID_ITEM}

// inside returns such a page of so many values and buffers.
func (v valuePlanner) inside(first, buffers int, values uint64) (Page, error) {
	if len(v.page.Buffers) < first+buffers {
		return Page{}, table.Corruptf("encoding: a sparse page of %d buffers", len(v.page.Buffers))
	}
	if values > maxRows {
		return Page{}, table.Corruptf("encoding: %d values of a sparse page", values)
	}
	return Page{Rows: values, Buffers: v.page.Buffers[first : first+buffers], File: v.page.File, Size: v.page.Size}, nil
}

// storedValues is values that are stored as a page without a structure is.
type storedValues struct {
	plan sparsePlan
	page Page
	all  bool
	into *level.Builder
}

func (v *storedValues) storesNulls() bool { return v.all }

func (v *storedValues) slotBytes() float64 {
	size := uint64(0)
	for _, b := range v.page.Buffers {
		size += b.Size
	}
	return float64(size) / float64(max(v.page.Rows, 1))
}

func (v *storedValues) append(ctx context.Context, d *Decoder, s *sink, runs []slotRun) error {
	var ranges []Range
	for _, r := range runs {
		switch n := len(ranges); {
		case r.empty > 0:
		case r.to > v.page.Rows:
			return table.Corruptf("encoding: value %d of %d", r.to-1, v.page.Rows)
		case n > 0 && ranges[n-1].To == r.from:
			ranges[n-1].To = r.to
		default:
			ranges = append(ranges, Range{r.from, r.to})
		}
	}
	values, err := v.take(ctx, d, ranges)
	if err != nil {
		return err
	}
	at := 0
	for _, r := range runs {
		if r.empty > 0 {
			s.addEmpty(r.empty)
			continue
		}
		n := int(r.to - r.from)
		if err := s.appendSlots(values, at, at+n); err != nil {
			return err
		}
		at += n
	}
	return nil
}

// take returns the values of ranges.
func (v *storedValues) take(ctx context.Context, d *Decoder, ranges []Range) (*level.Values, error) {
	if v.into == nil {
		var err error
		if v.into, err = level.NewBuilder(d.typ, []level.Layer{level.AllValidItem}); err != nil {
			return nil, err
		}
	}
	v.into.Reset()
	if len(ranges) > 0 {
		// Blocks are bounded by who asks for the values.
		full := func() error { return nil }
		if err := d.flat().takePlan(ctx, v.plan, v.page, ranges, Gathering{Into: v.into, Full: full}); err != nil {
			return nil, err
		}
	}
	return &v.into.Block().Values, nil
}

// indexedValues is an index a slot into values that are stored once.
type indexedValues struct {
	indices sparseSequence
	in      Buffer
	items   *storedValues
	file    Page

	loaded *sequence
}

func (*indexedValues) storesNulls() bool { return true }

func (v *indexedValues) slotBytes() float64 { return v.items.slotBytes() }

func (v *indexedValues) load(ctx context.Context, d *Decoder) error {
	if v.loaded != nil {
		return nil
	}
	var in []byte
	if v.indices.payload() {
		var err error
		if in, err = read(ctx, v.file, d.aux, v.in); err != nil {
			return err
		}
		d.aux = in
	} else if v.in.Size > 0 {
		return table.Corruptf("encoding: indices of %d bytes that need none", v.in.Size)
	}
	loaded, err := v.indices.load(in)
	v.loaded = &loaded
	return err
}

func (v *indexedValues) append(ctx context.Context, d *Decoder, s *sink, runs []slotRun) error {
	if err := v.load(ctx, d); err != nil {
		return err
	}
	var items []uint64
	for _, r := range runs {
		if r.to > v.loaded.n {
			return table.Corruptf("encoding: index %d of %d", r.to-1, v.loaded.n)
		}
		for i := r.from; i < r.to; i++ {
			items = append(items, v.loaded.at(i))
		}
	}
	distinct := slices.Clone(items)
	slices.Sort(distinct)
	distinct = slices.Compact(distinct)
	if n := len(distinct); n > 0 && distinct[n-1] >= v.items.page.Rows {
		return table.Corruptf("encoding: index %d into a dictionary of %d items", distinct[n-1], v.items.page.Rows)
	}
	var ranges []Range
	for _, item := range distinct {
		if n := len(ranges); n > 0 && ranges[n-1].To == item {
			ranges[n-1].To++
		} else {
			ranges = append(ranges, Range{item, item + 1})
		}
	}
	values, err := v.items.take(ctx, d, ranges)
	if err != nil {
		return err
	}
	have := len(s.v.Data)
	for _, item := range items {
		at, _ := slices.BinarySearch(distinct, item)
		if err := s.appendSlots(values, at, at+1); err != nil {
			return err
		}
		if len(s.v.Data)-have > d.limits.Expanded {
			return table.Unsupportedf("encoding: values of a dictionary expand to more than %d bytes", d.limits.Expanded)
		}
	}
	return nil
}

// oneValue is one value for all slots that have one, or no value at all.
type oneValue struct {
	constant
	value []byte
}

func (*oneValue) storesNulls() bool { return false }

func (v *oneValue) slotBytes() float64 { return float64(len(v.value)) }

func (v *oneValue) append(_ context.Context, d *Decoder, s *sink, runs []slotRun) error {
	if len(s.def) == 0 && s.entries > 0 {
		if err := v.checkNull(d.typ, []uint16{0}); err != nil {
			return err
		}
	}
	if err := v.checkNull(d.typ, s.def); err != nil {
		return err
	}
	for _, r := range runs {
		if r.empty > 0 {
			s.addEmpty(r.empty)
		} else {
			v.fill(s, v.value, int(r.to-r.from))
		}
	}
	return nil
}
