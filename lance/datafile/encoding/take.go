package encoding

import (
	"context"
	"math"

	"github.com/rehome-db/rehome/lance/datafile/level"
	"github.com/rehome-db/rehome/table"
)

// Range is the rows [From, To) of a page or a column.
type Range struct{ From, To uint64 }

const (
	// takeGap is how many bytes that nobody wants are read rather than read
	// around: about what another read costs.
	takeGap = 4 << 10
	// takeRead bounds what is read at a time for scattered rows.
	takeRead = 1 << 20
)

// Gathering is where [Decoder.Take] puts rows.
type Gathering struct {
	// Into gathers the rows of any number of pages.
	Into *level.Builder
	// Full is called when Into holds a block's worth; it empties it.
	Full func() error
}

// Take gathers the rows of the page that are in ranges, which ascend and do not
// overlap. What it reads and decodes grows with the rows and not with the page:
// the mini-block chunks that they are in, of a full-zip page the entries. Where a
// page's encoding allows nothing better, everything between the first and the last
// row is decoded.
func (d *Decoder) Take(ctx context.Context, p Page, ranges []Range, g Gathering) error {
	end := uint64(0)
	for _, r := range ranges {
		if r.From < end || r.From >= r.To || r.To > p.Rows {
			return table.Corruptf("encoding: rows %d to %d of a page of %d, after %d", r.From, r.To, p.Rows, end)
		}
		end = r.To
	}
	if len(ranges) == 0 {
		return nil
	}
	plan, err := d.plan(p)
	if err != nil {
		return err
	}
	return d.takePlan(ctx, plan, p, ranges, g)
}

func (d *Decoder) takePlan(ctx context.Context, plan plan, p Page, ranges []Range, g Gathering) (err error) {
	t := &taker{Gathering: g, ranges: ranges, limit: d.limits.BlockBytes}
	t.e.yield = t.pick
	if some, ok := plan.(sparsePlan); ok {
		err = some.take(ctx, d, p, t)
	} else {
		err = t.run(ctx, plan, d, p, ranges[0].From, ranges[len(ranges)-1].To)
	}
	switch {
	case t.err != nil:
		return t.err
	case err != nil && err != errStop:
		return err
	case len(t.ranges) > 0:
		return table.Corruptf("encoding: the page ends before row %d of %d", t.ranges[0].From, p.Rows)
	}
	return nil
}

// sparsePlan is a plan that can decode some rows without those between them.
type sparsePlan interface {
	plan
	// take decodes the rows of t.ranges, and others if it likes, in ascending order.
	// Before each block it sees to it that t.e.row is the row that the block begins
	// with.
	take(ctx context.Context, d *Decoder, p Page, t *taker) error
}

// taker picks the rows that are wanted out of blocks.
type taker struct {
	Gathering
	// ranges are those that are left; rows before from are done already.
	ranges []Range
	from   uint64
	limit  int
	err    error
	// e is what plans hand their blocks to; it comes back to pick.
	e emitter
}

// next returns the next row that is wanted.
func (t *taker) next() uint64 { return max(t.ranges[0].From, t.from) }

// run lets a plan decode the rows [from, to) as if they were all wanted.
func (t *taker) run(ctx context.Context, plan plan, d *Decoder, p Page, from, to uint64) error {
	t.e.from, t.e.row, t.e.to = from, 0, to
	t.e.cut = nil // plans may declare other layers by the page
	return plan.run(ctx, d, p, &t.e)
}

// all lets blocks through whole, wherever they begin.
func (t *taker) all() {
	t.e.from, t.e.to = 0, math.MaxUint64
}

// pick gathers what is wanted of a block that was emitted.
func (t *taker) pick(b *level.Block) bool {
	at := min(t.e.row, t.e.to) - uint64(b.Rows)
	t.err = t.pickFrom(b, at)
	return t.err == nil && len(t.ranges) > 0
}

func (t *taker) pickFrom(b *level.Block, at uint64) error {
	end := at + uint64(b.Rows)
	if len(t.ranges) == 0 || t.next() >= end {
		return nil
	}
	cursor, err := level.NewCursor(b)
	if err != nil {
		return err
	}
	for len(t.ranges) > 0 && t.next() < end {
		from, to := t.next(), min(t.ranges[0].To, end)
		if from < at {
			return table.Corruptf("encoding: row %d was passed over", from)
		}
		if err := cursor.Skip(int(from - at)); err != nil {
			return err
		}
		if err := t.Into.Take(cursor, int(to-from)); err != nil {
			return err
		}
		at, t.from = to, to
		if to == t.ranges[0].To {
			t.ranges = t.ranges[1:]
		}
		if t.Into.Bytes() >= t.limit {
			if err := t.Full(); err != nil {
				return err
			}
		}
	}
	return nil
}

// windows cuts ranges into stretches that are worth reading at once: gaps of up to
// so many rows are read along, up to most rows.
func windows(ranges []Range, gap, most uint64, read func(Range) error) error {
	for len(ranges) > 0 {
		w := ranges[0]
		n := 1
		for n < len(ranges) && ranges[n].From-w.To <= gap && ranges[n].To-w.From <= most {
			w.To = ranges[n].To
			n++
		}
		if err := read(w); err != nil {
			return err
		}
		ranges = ranges[n:]
	}
	return nil
}
