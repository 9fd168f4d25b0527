package encoding20

import (
	"context"

	"github.com/rehome-db/rehome/table"
)

// listReader reads a column of lists.
type listReader struct {
	pages []Page
	limit int
	lists uint64 // in all pages
	items uint64
	// firstItem is the number of each page's first item.
	firstItem []uint64

	page   int // that of is of
	of     ends
	counts []int // of what was read last: items of a list, or nullList
}

const nullList = -1

func newListReader(pages []Page, limit int) (*listReader, error) {
	l := &listReader{pages: pages, limit: limit, lists: count(pages), firstItem: make([]uint64, len(pages)), page: -1}
	for i := range pages {
		l.firstItem[i] = l.items
		if pages[i].Values == 0 {
			continue
		}
		list, err := listOf(&pages[i])
		if err != nil {
			return nil, err
		}
		if n := list.GetNumItems(); n > maxItems-l.items {
			return nil, table.Corruptf("encoding: a page of %d items", n)
		}
		l.items += list.GetNumItems()
	}
	return l, nil
}

// ends checks the description of page i.
func (l *listReader) ends(i int) (ends, error) {
	if l.page == i {
		return l.of, nil
	}
	p := &l.pages[i]
	if p.Values == 0 {
		return ends{}, nil
	}
	if p.Values > maxValues {
		return ends{}, table.Corruptf("encoding: a page of %d lists", p.Values)
	}
	list, err := listOf(p)
	if err != nil {
		return ends{}, err
	}
	c := compiler{page: p, limit: l.limit}
	out, err := c.ends(list.GetOffsets(), list.GetNullOffsetAdjustment(), p.Values)
	if err != nil {
		return ends{}, err
	}
	if out.null <= list.GetNumItems() {
		return ends{}, table.Corruptf("encoding: lists that end at up to %d, and from %d on are null", list.GetNumItems(), out.null)
	}
	l.page, l.of = i, out
	return out, nil
}

// span is the numbers [from, to) of lists or items.
type span struct{ from, to uint64 }

// addSpan appends a span that begins where the last one ends, or after it.
func addSpan(spans []span, s span) []span {
	switch n := len(spans); {
	case s.from == s.to:
	case n > 0 && spans[n-1].to == s.from:
		spans[n-1].to = s.to
	default:
		spans = append(spans, s)
	}
	return spans
}

// total returns how many numbers spans have together.
func total(spans []span) (n uint64) {
	for _, s := range spans {
		n += s.to - s.from
	}
	return n
}

// read reads the given lists into counts and returns which items they have, in dst's
// memory. Null lists may be stored with items, which nobody is to see: they are between
// the spans.
func (l *listReader) read(ctx context.Context, r *Reader, lists, dst []span) ([]span, error) {
	l.counts = l.counts[:0]
	dst = dst[:0]
	for _, s := range lists {
		var err error
		if dst, err = l.readSpan(ctx, r, s, dst); err != nil {
			return nil, err
		}
	}
	return dst, nil
}

func (l *listReader) readSpan(ctx context.Context, r *Reader, s span, dst []span) ([]span, error) {
	for at := s.from; at < s.to; {
		i := pageOf(l.pages, at)
		p := &l.pages[i]
		stored, err := l.ends(i)
		if err != nil {
			return nil, err
		}
		first, last := at-p.First, min(s.to-p.First, p.Values)
		start, raw, err := stored.readEnds(ctx, r, first, last)
		if err != nil {
			return nil, err
		}
		base := l.firstItem[i]
		items := l.end(i) - base
		if start > items {
			return nil, table.Corruptf("encoding: a list that ends at %d of %d items", start, items)
		}
		shown := start // the first item that is not in dst
		for k := range int(last - first) {
			end, null := stored.at(raw, k)
			if end < start || end > items {
				return nil, table.Corruptf("encoding: a list from %d to %d of %d items", start, end, items)
			}
			n := int(end - start)
			if null {
				n = nullList
				if end > start {
					dst = addSpan(dst, span{base + shown, base + start})
					shown = end
				}
			}
			l.counts = append(l.counts, n)
			start = end
		}
		if last == p.Values && start != items {
			return nil, table.Corruptf("encoding: lists of %d items in a page of %d", start, items)
		}
		dst = addSpan(dst, span{base + shown, base + start})
		at = p.First + last
	}
	return dst, nil
}

// end returns the number of the item after the last of page i.
func (l *listReader) end(i int) uint64 {
	if i+1 < len(l.pages) {
		return l.firstItem[i+1]
	}
	return l.items
}

// walk makes levels of the counts of lists.
type walk struct {
	rep, def []uint16
	lists    []*listReader
	at       []int    // the next list of each
	item     []uint16 // definition levels of the items that are left
}

func (w *walk) entries() int { return len(w.rep) }

// run makes the levels of all rows that the outermost of lists has counts of; item has
// the definition levels of the innermost items.
func (w *walk) run(lists []*listReader, item []uint16) {
	w.lists, w.item = lists, item
	w.rep, w.def = w.rep[:0], w.def[:0]
	w.at = append(w.at[:0], make([]int, len(lists))...)
	clear(w.at)
	for range lists[0].counts {
		w.list(0, uint16(len(lists)))
	}
	w.item = nil
}

// list makes the levels of the next list of lists[k], which begins with rep.
func (w *walk) list(k int, rep uint16) {
	n := w.lists[k].counts[w.at[k]]
	w.at[k]++
	inner := len(w.lists) - 1 - k // lists inside, and the level of one more element
	if n <= 0 {
		def := uint16(2 + 2*inner) // null
		if n == 0 {
			def++
		}
		w.rep, w.def = append(w.rep, rep), append(w.def, def)
		return
	}
	if inner == 0 {
		w.rep = append(w.rep, rep)
		for range n - 1 {
			w.rep = append(w.rep, 0)
		}
		w.def = append(w.def, w.item[:n]...)
		w.item = w.item[n:]
		return
	}
	for range n {
		w.list(k+1, rep)
		rep = uint16(inner)
	}
}
