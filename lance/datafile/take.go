package datafile

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/rehome-db/rehome/lance/datafile/encoding"
	"github.com/rehome-db/rehome/lance/datafile/level"
	"github.com/rehome-db/rehome/lance/schema"
)

// Range is the rows [From, To) of a column.
type Range = encoding.Range

// errTaken ends a take whose consumer has enough.
var errTaken = errors.New("stopped")

// Take yields the rows of the column that are in ranges, which ascend and do not
// overlap, as blocks in level space: those of as many pages together as make a
// block. A block and everything in it is valid until the next one is asked for. The
// first error ends the sequence.
//
// Pages without such rows are not read, and of those with some only the parts that
// the rows are in, where the encoding has parts.
func (c *Column) Take(ctx context.Context, leaf schema.Leaf, ranges []Range) iter.Seq2[*level.Block, error] {
	return func(yield func(*level.Block, error) bool) {
		if err := c.take(ctx, leaf, ranges, func(b *level.Block) bool { return yield(b, nil) }); err != nil && err != errTaken {
			yield(nil, err)
		}
	}
}

func (c *Column) take(ctx context.Context, leaf schema.Leaf, ranges []Range, yield func(*level.Block) bool) error {
	if err := c.checkLeaf(leaf); err != nil {
		return err
	}
	end := uint64(0)
	for _, r := range ranges {
		if r.From < end || r.From >= r.To || r.To > c.file.rows {
			return c.file.wrap(fmt.Errorf("column %q: rows %d to %d of %d, after %d", leaf.Path, r.From, r.To, c.file.rows, end))
		}
		end = r.To
	}
	into, err := level.NewBuilder(leaf.Type, leaf.Layers)
	if err != nil {
		return c.file.wrap(err)
	}
	flush := func() error {
		more := into.Rows() == 0 || yield(into.Block())
		into.Reset()
		if !more {
			return errTaken
		}
		return nil
	}
	if c.file.version == V2_0 {
		return c.take20(ctx, leaf, ranges, into, flush)
	}
	d := decoders.Get().(*encoding.Decoder)
	defer decoders.Put(d)
	d.Reset(leaf.Type, leaf.Layers, c.file.limits)
	var inPage []Range
	for row := uint64(0); len(ranges) > 0; {
		i := c.pageOf(max(row, ranges[0].From))
		p := &c.pages[i]
		row = p.FirstRow + p.Rows
		inPage = inPage[:0]
		for len(ranges) > 0 && ranges[0].From < row {
			inPage = append(inPage, Range{From: max(ranges[0].From, p.FirstRow) - p.FirstRow, To: min(ranges[0].To, row) - p.FirstRow})
			if ranges[0].To > row {
				break // it goes on in the next page
			}
			ranges = ranges[1:]
		}
		switch err := d.Take(ctx, c.page(i), inPage, encoding.Gathering{Into: into, Full: flush}); {
		case err == errTaken:
			return err
		case err != nil:
			return c.wrap(leaf, i, err)
		}
	}
	return flush()
}

// pageOf returns the number of the page that a row is in.
func (c *Column) pageOf(row uint64) int {
	i, _ := slices.BinarySearchFunc(c.pages, row, func(p Page, row uint64) int {
		if p.FirstRow+p.Rows <= row {
			return -1
		}
		return 1
	})
	return i
}
