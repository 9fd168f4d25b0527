package encoding

import (
	"context"
	"slices"

	"github.com/rehome-db/rehome/lance/datafile/level"
)

// take implements sparsePlan: it takes the descriptions of the rows that are wanted,
// and reads the values of these and no others.
func (b *blob) take(ctx context.Context, d *Decoder, p Page, t *taker) error {
	rows, err := level.NewBuilder(descriptions, []level.Layer{level.AllValidItem})
	if err != nil {
		return err
	}
	s := &d.out
	s.begin(d.typ, b.path)
	t.all()
	wanted := slices.Clone(t.ranges) // t's own get fewer as rows are picked
	full := func() error {
		described := rows.Block()
		for i := range described.Rows {
			if s.entries == 0 {
				t.e.row = wanted[0].From
			}
			at, size := description(described, i)
			if err := b.append(ctx, d, s, p, at, size); err != nil {
				return err
			}
			wanted[0].From++
			over := wanted[0].From == wanted[0].To // what follows is elsewhere
			if over {
				wanted = wanted[1:]
			}
			if over || s.full(d.limits) {
				if err := s.finish(&t.e, s.entries); err != nil {
					return err
				}
			}
		}
		rows.Reset()
		return nil
	}
	if err := b.descriptions(d).Take(ctx, b.inner, t.ranges, Gathering{Into: rows, Full: full}); err != nil {
		return err
	}
	return full()
}
