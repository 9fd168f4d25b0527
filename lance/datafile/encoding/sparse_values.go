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

// planValues23 checks the values and returns how many buffers they take.
func (s *sparse) planValues23(d *Decoder, l *enc23pb.ValuePlane, p Page) (taken int, err error) {
	items := []enc21pb.RepDefLayer{enc21pb.RepDefLayer_REPDEF_ALL_VALID_ITEM}
	page := func(first, buffers int, rows uint64) (Page, error) {
		if len(p.Buffers) < first+buffers {
			return Page{}, table.Corruptf("encoding: a sparse page of %d buffers", len(p.Buffers))
		}
		if rows > maxRows {
			return Page{}, table.Corruptf("encoding: %d values of a sparse page", rows)
		}
		return Page{Rows: rows, Buffers: p.Buffers[first : first+buffers], File: p.File, Size: p.Size}, nil
	}
	zipped := func(z *enc23pb.ZippedValues, first int) (*storedValues, error) {
		if z.GetLevels() != nil || z.GetNumVisibleItems() != z.GetNumItems() {
			return nil, table.Corruptf("encoding: values of a sparse page with levels of their own")
		}
		buffers := 1
		if z.GetBitsPerOffset() > 0 {
			buffers = 2
		}
		inside, err := page(first, buffers, z.GetNumItems())
		if err != nil {
			return nil, err
		}
		layout, err := denseZip(z, items)
		if err != nil {
			return nil, err
		}
		plan, err := d.flat().planFullZip(layout.GetFullZip(), inside)
		return &storedValues{plan: plan, page: inside}, err
	}
	switch v := l.GetCodec().(type) {
	case *enc23pb.ValuePlane_Chunked:
		if v.Chunked.GetLevels() != nil || v.Chunked.GetNumItems() != 0 {
			return 0, table.Corruptf("encoding: chunks of a sparse page with levels of their own")
		}
		buffers := 2
		if v.Chunked.GetDictionary() != nil {
			buffers++
		}
		inside, err := page(0, buffers, s.slots)
		if err != nil {
			return 0, err
		}
		plan, err := d.flat().planMiniBlock(&enc21pb.MiniBlockLayout{
			ValueCompression: v.Chunked.GetCompression(), Dictionary: v.Chunked.GetDictionary(),
			NumDictionaryItems: v.Chunked.GetNumDictionaryItems(), NumBuffers: v.Chunked.GetNumBuffers(),
			NumItems: s.slots, Layers: items, HasLargeChunk: true,
		}, inside)
		s.values = &storedValues{plan: plan, page: inside, all: true}
		return buffers, err
	case *enc23pb.ValuePlane_Zipped:
		values, err := zipped(v.Zipped, 0)
		if err != nil {
			return 0, err
		}
		s.values = values
		return len(values.page.Buffers), nil
	case *enc23pb.ValuePlane_Indexed:
		items, err := zipped(v.Indexed.GetItems(), 1)
		if err != nil {
			return 0, err
		}
		if d.typ.Kind != level.Variable || d.typ.Parts != "" {
			return 0, table.Unsupportedf("encoding: indices of other values than strings are not supported")
		}
		codec, err := compileSequence(v.Indexed.GetIndices(), 32, d.limits.Expanded, false)
		if err != nil {
			return 0, err
		}
		s.values = &indexedValues{indices: sparseSequence{codec: codec, n: s.slots}, in: p.Buffers[0], items: items, file: p}
		return 1 + len(items.page.Buffers), nil
	case *enc23pb.ValuePlane_Constant:
		value, err := inlineValue(v.Constant.GetScalar(), d.typ)
		s.values = &oneValue{constant: constant{inline: value}, value: value}
		return 0, err
	case *enc23pb.ValuePlane_None:
		s.values = &oneValue{constant: constant{allNull: true}}
		return 0, nil
	default:
		return 0, table.Unsupportedf("encoding: the page has values in a form that is not known")
	}
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
