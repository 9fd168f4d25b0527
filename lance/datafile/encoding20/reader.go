package encoding20

import (
	"context"
	"errors"
	"fmt"

	"github.com/rehome-db/rehome/lance/datafile/encoding"
	"github.com/rehome-db/rehome/lance/datafile/level"
	enc20pb "github.com/rehome-db/rehome/lance/internal/pb/enc20"
	"github.com/rehome-db/rehome/table"
)

// Reader reads one leaf through the columns of its path. It keeps its memory from
// block to block, and what was compressed of the page that it read last. It is not
// safe for concurrent use.
type Reader struct {
	leaf   Leaf
	source Source
	limits encoding.Limits

	lists []*listReader // outermost first
	// wide are the layers of blocks with lists: everything that can be stored.
	wide []level.Layer

	out   sink
	page  int // that values is of
	plan  values
	block level.Block
	walk  walk
	// step is how many rows with lists are tried for a block.
	step uint64
	// spans is memory for which items a block has.
	spans [2][]span

	ends, spare, bits []byte
	levelBits         [][]byte
}

// NewReader returns a reader of a leaf. It reads no data, and checks the numbers of
// rows and items against each other (ErrCorrupt).
func NewReader(leaf Leaf, source Source, limits encoding.Limits) (*Reader, error) {
	limits.EnsureDefaults()
	r := &Reader{leaf: leaf, source: source, limits: limits, page: -1, step: 4096}
	if n := level.MaxRep(leaf.Layers); int(n) != len(source.Lists) {
		return nil, table.Corruptf("encoding: %d columns of lists for a path with %d", len(source.Lists), n)
	}
	n := source.Rows
	for i, pages := range source.Lists {
		l, err := newListReader(pages, limits.Expanded)
		if err != nil {
			return nil, fmt.Errorf("list %d: %w", i, err)
		}
		if l.lists != n && !surplus(i, l.lists, n) {
			return nil, table.Corruptf("encoding: pages of %d lists where there are %d", l.lists, n)
		}
		n = l.items
		r.lists = append(r.lists, l)
	}
	if have := count(source.Pages); have != n && !surplus(len(source.Lists), have, n) {
		return nil, table.Corruptf("encoding: pages of %d values where there are %d", have, n)
	}
	r.wide = make([]level.Layer, len(leaf.Layers))
	for i, l := range leaf.Layers {
		switch {
		case l.IsList():
			r.wide[i] = level.NullAndEmptyList
		case i == 0:
			r.wide[i] = level.NullableItem
		default:
			r.wide[i] = level.AllValidItem // structs are never null
		}
	}
	return r, nil
}

// surplus says whether a column may have more than there are rows. Versions of Lance
// before 1.0 wrote all values of the fields of a struct of which they were given a
// part; readers take the first ones for the rows. Within lists that does not add up.
func surplus(lists int, have, rows uint64) bool { return lists == 0 && have > rows }

// count returns how many values pages have together.
func count(pages []Page) uint64 {
	if len(pages) == 0 {
		return 0
	}
	last := pages[len(pages)-1]
	return last.First + last.Values
}

// Check says whether every page can be read (ErrUnsupported, ErrCorrupt). It looks at
// descriptions and reads no data.
func (r *Reader) Check() error {
	for i, l := range r.lists {
		for p := range l.pages {
			if _, err := l.ends(p); err != nil {
				return fmt.Errorf("list %d, page %d: %w", i, p, err)
			}
		}
	}
	for i := range r.source.Pages {
		if _, err := r.compile(i); err != nil {
			return err
		}
	}
	return nil
}

// compile checks the description of a page of values.
func (r *Reader) compile(i int) (values, error) {
	p := &r.source.Pages[i]
	if p.Values == 0 {
		return nothing{r.leaf.Type}, nil // writers leave what there is to say about it out
	}
	if p.Values > maxValues {
		return nil, table.Corruptf("encoding: a page of %d values", p.Values)
	}
	c := compiler{page: p, limit: r.limits.Expanded}
	var v values
	var err error
	if r.source.Blob {
		v, err = c.blobs(p.Encoding, r.leaf.Type, p.Values)
	} else {
		v, err = c.compile(p.Encoding, r.leaf, p.Values, 0)
	}
	if err != nil {
		return nil, fmt.Errorf("page %d, %s: %w", i, Name(p.Encoding), err)
	}
	return v, nil
}

// at makes a page the one that is read.
func (r *Reader) at(i int) (values, error) {
	if r.page != i {
		var err error
		r.page = -1
		if r.plan, err = r.compile(i); err != nil {
			return nil, err
		}
		r.page = i
	}
	return r.plan, nil
}

// Read yields the rows [from, to), in order, as blocks. A block and everything in it
// is valid until yield returns. If yield returns false, Read stops and returns nil.
func (r *Reader) Read(ctx context.Context, from, to uint64, yield func(*level.Block) bool) error {
	if from > to || to > r.source.Rows {
		return table.Corruptf("encoding: rows %d to %d of %d", from, to, r.source.Rows)
	}
	read := r.flatRows
	if len(r.lists) > 0 {
		read = r.listRows
	}
	for from < to {
		n, err := read(ctx, from, to)
		if err != nil {
			return err
		}
		if !yield(&r.block) {
			return nil
		}
		from += n
	}
	return nil
}

// flatRows makes a block of rows without lists and returns how many it has.
func (r *Reader) flatRows(ctx context.Context, from, to uint64) (uint64, error) {
	i := pageOf(r.source.Pages, from)
	p := &r.source.Pages[i]
	v, err := r.at(i)
	if err != nil {
		return 0, err
	}
	lo := from - p.First
	hi := min(to-p.First, p.Values, lo+uint64(r.limits.BlockEntries))
	for hi-lo > 1 {
		size, err := v.size(ctx, r, lo, hi)
		if err != nil {
			return 0, r.inPage(i, err)
		}
		if size <= uint64(r.limits.BlockBytes) {
			break
		}
		// As many as fit if all are alike, and no more than half, to get there.
		share := float64(r.limits.BlockBytes) / float64(size) * float64(hi-lo)
		hi = lo + max(min(uint64(share), (hi-lo)/2), 1)
	}
	s := &r.out
	s.begin(r.leaf.Type)
	if err := v.appendTo(ctx, r, s, lo, hi); err != nil {
		return 0, r.inPage(i, err)
	}
	r.block = level.Block{Type: r.leaf.Type, Rows: int(hi - lo), Layers: make([]level.Layer, len(r.wide)), Values: s.v}
	for k := range r.wide {
		r.block.Layers[k] = level.AllValidItem
	}
	if s.nulls > 0 {
		r.block.Layers[0], r.block.Def = level.NullableItem, s.def
	}
	return hi - lo, nil
}

func (r *Reader) inPage(i int, err error) error {
	return fmt.Errorf("page %d, %s: %w", i, Name(r.source.Pages[i].Encoding), err)
}

// errLarge says that rows do not fit in a block.
var errLarge = errors.New("too large for a block")

// listRows makes a block of rows with lists and returns how many it has.
func (r *Reader) listRows(ctx context.Context, from, to uint64) (uint64, error) {
	for {
		n := min(r.step, to-from)
		err := r.expand(ctx, from, from+n)
		if err == nil {
			if r.walk.entries() < r.limits.BlockEntries/4 && len(r.out.v.Data) < r.limits.BlockBytes/4 {
				r.step = min(2*r.step, uint64(r.limits.BlockEntries))
			}
			return n, nil
		}
		if err != errLarge {
			return 0, err
		}
		r.step = max(n/2, 1)
	}
}

// expand makes a block of the rows [from, to), or returns errLarge if that would be
// too large and is more than one row.
func (r *Reader) expand(ctx context.Context, from, to uint64) error {
	single := to-from == 1
	// A single row is what it is, unless it is far more than there is data for.
	most := uint64(r.limits.BlockEntries)
	if single {
		most = (uint64(r.limits.Expanded) + r.source.Size) / uint64(4+(r.leaf.Type.ValueBits()+7)/8)
	}
	spans, next := append(r.spans[0][:0], span{from, to}), r.spans[1]
	for i, l := range r.lists {
		items, err := l.read(ctx, r, spans, next)
		if err != nil {
			return fmt.Errorf("list %d: %w", i, err)
		}
		spans, next = items, spans
		switch n := total(spans); {
		case n <= most:
		case single:
			return table.Unsupportedf("encoding: a row of %d items", n)
		default:
			return errLarge
		}
	}
	r.spans = [2][]span{spans, next}
	if err := r.items(ctx, spans, single); err != nil {
		return err
	}
	r.walk.run(r.lists, r.out.def)
	r.block = level.Block{Type: r.leaf.Type, Rows: int(to - from), Layers: r.wide, Rep: r.walk.rep, Def: r.walk.def, Values: r.out.v}
	return nil
}

// items gathers the values that are in spans.
func (r *Reader) items(ctx context.Context, spans []span, single bool) error {
	r.out.begin(r.leaf.Type)
	size := uint64(0)
	for _, s := range spans {
		if err := r.gather(ctx, s.from, s.to, single, &size); err != nil {
			return err
		}
	}
	return nil
}

// gather appends the values [lo, hi), of which total is the size so far.
func (r *Reader) gather(ctx context.Context, lo, hi uint64, single bool, total *uint64) error {
	s := &r.out
	for lo < hi {
		i := pageOf(r.source.Pages, lo)
		p := &r.source.Pages[i]
		v, err := r.at(i)
		if err != nil {
			return err
		}
		from, to := lo-p.First, min(hi-p.First, p.Values)
		if !single {
			size, err := v.size(ctx, r, from, to)
			if err != nil {
				return r.inPage(i, err)
			}
			if *total += size; *total > uint64(r.limits.BlockBytes) {
				return errLarge
			}
		}
		if err := v.appendTo(ctx, r, s, from, to); err != nil {
			return r.inPage(i, err)
		}
		lo = p.First + to
	}
	return nil
}

// listOf returns the list that a page is of.
func listOf(p *Page) (*enc20pb.List, error) {
	l, ok := p.Encoding.GetArrayEncoding().(*enc20pb.ArrayEncoding_List)
	if !ok {
		return nil, unsupported(p.Encoding)
	}
	return l.List, nil
}
