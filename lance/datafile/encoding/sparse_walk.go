package encoding

import (
	"context"

	"github.com/rehome-db/rehome/table"
)

// sparseCursor goes over the slots of a layer.
type sparseCursor struct {
	*sparseLayer
	marked, nonEmpty, counts sequence

	slot          uint64 // the next
	mark, element uint64 // indices of the next position
}

// check checks the layer's positions and counts.
func (c *sparseCursor) check() error {
	for _, q := range []*sequence{&c.marked, &c.nonEmpty} {
		if q.n == 0 {
			continue
		}
		if last := q.at(q.n - 1); last >= c.slots {
			return table.Corruptf("encoding: position %d of %d slots", last, c.slots)
		}
		if q.values == nil {
			if q.step == 0 && q.n > 1 {
				return table.Corruptf("encoding: the position %d, %d times", q.start, q.n)
			}
			continue
		}
		for i := uint64(1); i < q.n; i++ {
			if q.values[i] <= q.values[i-1] {
				return table.Corruptf("encoding: position %d after %d", q.values[i], q.values[i-1])
			}
		}
	}
	if !c.list {
		return nil
	}
	for i, n := range c.counts.values {
		if n == 0 {
			return table.Corruptf("encoding: list %d of those that are not empty is", i)
		}
	}
	if c.counts.values == nil && c.counts.n > 0 && c.counts.start == 0 {
		return table.Corruptf("encoding: a list of those that are not empty is")
	}
	sum, err := c.counts.sum()
	if err == nil && sum != c.children {
		err = table.Corruptf("encoding: lists of %d slots, want %d", sum, c.children)
	}
	return err
}

// next returns whether the next slot is valid and how many slots it has in the next
// layer, and goes on to the one after it.
func (c *sparseCursor) next() (valid bool, children uint64, err error) {
	if c.slot >= c.slots {
		return false, 0, table.Corruptf("encoding: a layer of %d slots ends too early", c.slots)
	}
	marked := c.mark < c.marked.n && c.marked.at(c.mark) == c.slot
	if marked {
		c.mark++
	}
	valid, children = marked != c.nulls, 1
	if c.list {
		children = 0
		if c.element < c.nonEmpty.n && c.nonEmpty.at(c.element) == c.slot {
			children = c.counts.at(c.element)
			c.element++
			if !valid {
				return false, 0, table.Corruptf("encoding: list %d is null and not empty", c.slot)
			}
		}
	}
	c.slot++
	return valid, children, nil
}

// skip goes on by n slots and returns how many slots they have in the next layer.
func (c *sparseCursor) skip(n uint64) (children uint64, err error) {
	if n > c.slots-c.slot {
		return 0, table.Corruptf("encoding: a layer of %d slots ends too early", c.slots)
	}
	c.slot += n
	c.mark = c.marked.from(c.mark, c.slot)
	if !c.list {
		return n, nil
	}
	for to := c.nonEmpty.from(c.element, c.slot); c.element < to; c.element++ {
		children += c.counts.at(c.element)
	}
	return children, nil
}

// slotRun is numbers of values that are wanted, one after the other, or (empty) so many
// slots of which nothing is stored.
type slotRun struct {
	from, to uint64
	empty    int
}

// sparseWalk turns the slots of a page into levels, row by row.
type sparseWalk struct {
	*sparse
	layers []sparseCursor
	row    uint64
	next   uint64 // the next value that is stored

	runs []slotRun
	// most is how many entries a row may have.
	most int
}

// skipTo goes on to a row.
func (w *sparseWalk) skipTo(row uint64) error {
	n := row - w.row
	w.row = row
	if _, any := w.values.(*oneValue); any || w.values.storesNulls() {
		return w.skip(0, n)
	}
	if len(w.layers) == 1 {
		c := &w.layers[0]
		mark := c.mark
		if _, err := c.skip(n); err != nil {
			return err
		}
		if c.nulls {
			w.next += n - (c.mark - mark)
		} else {
			w.next += c.mark - mark
		}
		return nil
	}
	for range n {
		if err := w.visit(0, 0, nil); err != nil {
			return err
		}
	}
	return nil
}

// skip passes over n slots of a layer and all that they have below. They are not
// stored if something around them is null.
func (w *sparseWalk) skip(layer int, n uint64) error {
	for k := layer; k < len(w.layers) && n > 0; k++ {
		var err error
		if n, err = w.layers[k].skip(n); err != nil {
			return err
		}
	}
	if w.values.storesNulls() {
		w.next += n
	}
	return nil
}

// rows appends rows to s, up to row to, or fewer if they have more entries than most.
func (w *sparseWalk) rows(to uint64, s *sink, most int) error {
	w.runs = w.runs[:0]
	for w.row < to && s.entries < most {
		if err := w.visit(0, w.path.maxRep, s); err != nil {
			return err
		}
		w.row++
		s.rows++
	}
	return nil
}

// visit takes the next slot of a layer and all that it has below. rep is the level of
// the first entry. Without a sink it is only passed over.
func (w *sparseWalk) visit(layer int, rep uint16, s *sink) error {
	c := &w.layers[layer]
	valid, children, err := c.next()
	if err != nil {
		return err
	}
	leaf := layer == len(w.layers)-1
	switch {
	case !valid:
		if !leaf {
			if err := w.skipBelow(layer, children); err != nil {
				return err
			}
		}
		return w.entry(rep, c.nullNumber, s)
	case children == 0:
		return w.entry(rep, c.emptyNumber, s)
	case leaf:
		return w.entry(rep, 0, s)
	}
	for i := range children {
		if i > 0 {
			rep = c.rank
		}
		if err := w.visit(layer+1, rep, s); err != nil {
			return err
		}
	}
	return nil
}

// skipBelow passes over what is below a slot that is null. Where it is visible, its
// slot of values is left for the entry to take.
func (w *sparseWalk) skipBelow(layer int, children uint64) error {
	visible := !w.layers[layer].list
	for k := layer + 1; k < len(w.layers); k++ {
		visible = visible && !w.layers[k].list
	}
	next := w.next
	err := w.skip(layer+1, children)
	if visible {
		w.next = next
	}
	return err
}

// entry appends an entry.
func (w *sparseWalk) entry(rep, def uint16, s *sink) error {
	if s != nil {
		if w.path.maxRep > 0 {
			s.rep = append(s.rep, rep)
		}
		if w.path.maxDef > 0 {
			s.def = append(s.def, def)
		}
		if s.entries++; s.entries > w.most {
			return table.Unsupportedf("encoding: a row with more than %d entries", w.most)
		}
	}
	switch {
	case def > w.path.maxVisible:
	case def == 0, w.values.storesNulls():
		if s != nil {
			w.want(w.next)
		}
		w.next++
	case s != nil:
		if n := len(w.runs); n > 0 && w.runs[n-1].empty > 0 {
			w.runs[n-1].empty++
		} else {
			w.runs = append(w.runs, slotRun{empty: 1})
		}
	}
	return nil
}

func (w *sparseWalk) want(value uint64) {
	if n := len(w.runs); n > 0 && w.runs[n-1].empty == 0 && w.runs[n-1].to == value {
		w.runs[n-1].to++
		return
	}
	w.runs = append(w.runs, slotRun{from: value, to: value + 1})
}

// emit hands out the rows up to row to as blocks.
func (w *sparseWalk) emit(ctx context.Context, d *Decoder, p Page, e *emitter, to uint64) error {
	size := max(w.values.slotBytes(), float64(d.typ.ValueBits())/8, 1)
	most := max(min(d.limits.BlockEntries, int(float64(d.limits.BlockBytes)/size)), 1)
	w.most = max(int(float64(d.limits.Expanded)/(size+4)), most)
	for w.row < to {
		s := &d.out
		if err := w.rows(to, s, most); err != nil {
			return err
		}
		if err := w.values.append(ctx, d, s, w.runs); err != nil {
			return err
		}
		if err := s.finish(e, s.rows); err != nil {
			return err
		}
	}
	return nil
}
