package rows

import (
	"context"
	"errors"
	"fmt"

	"github.com/rehome-db/rehome/lance/datafile"
	"github.com/rehome-db/rehome/lance/datafile/level"
	"github.com/rehome-db/rehome/lance/objects"
	"github.com/rehome-db/rehome/lance/schema"
	"github.com/rehome-db/rehome/table"
)

// columnReading is one column of a source, open to be read from for a part of an output.
type columnReading struct {
	run    *rewriteRun
	file   *rewriteFile // that is written
	of     *objects.DataFile
	column *datafile.Column
	// leaf is what blocks of the column are read as, and take what appends their rows.
	leaf schema.Leaf
	take takeRows
	// check looks at each block; nil if nothing has to be looked at.
	check func(*level.Block) error
}

// takeRows is what appends the next n rows at a cursor to a column.
type takeRows func(c *level.Cursor, n int) error

// slice copies the live rows of a part of a source.
func (r *rewriteRun) slice(ctx context.Context, f *rewriteFile, s *rewriteSlice, leaf int, to *datafile.ColumnWriter, blobs *blobMover) (err error) {
	source := &r.group.sources[s.source]
	place := source.places[leaf]
	if place.file < 0 {
		return r.takeAbsent(ctx, f, s, source.absent[leaf], to)
	}
	of, err := r.group.open(ctx, source, place.file)
	if err != nil {
		return err
	}
	defer of.Release()
	column, err := place.Open(of)
	if err != nil {
		return source.wrap(err)
	}
	from := &columnReading{run: r, file: f, of: of, column: column}
	from.leaf, from.take = r.rowsOf(ctx, column, leaf, to)
	if blobs != nil {
		values := newBlobSource(r.group.table, source.fragment.Files[place.file], of)
		defer func() { err = errors.Join(err, values.close()) }()
		from.take = blobs.take(ctx, values)
	}
	may, err := r.copies(f, source, of, leaf, column)
	if err != nil {
		return source.wrap(err)
	}
	return from.copyRuns(ctx, s, leaf, to, may)
}

// rowsOf returns what a column is read as for a leaf, and what takes its rows. Blobs that
// lie in the file of the column are copied as bytes, place by place.
func (r *rewriteRun) rowsOf(ctx context.Context, column *datafile.Column, leaf int, to *datafile.ColumnWriter) (schema.Leaf, takeRows) {
	as := r.group.leaves[leaf]
	places, ok := column.BlobPlaces(as)
	if !ok || r.group.format < datafile.V2_1 {
		return as, to.Take
	}
	return places, func(c *level.Cursor, n int) error {
		copied, err := to.TakeBlobs(ctx, c, n, column)
		r.blobCopied(copied, 0)
		return err
	}
}

// copyRuns copies the runs of a part of a source: pages as they are where that may be, and
// what is between them row by row.
func (c *columnReading) copyRuns(ctx context.Context, s *rewriteSlice, leaf int, to *datafile.ColumnWriter, may func(part int) bool) (err error) {
	r, source := c.run, &c.run.group.sources[s.source]
	key := textKey{s.source, leaf}
	if isText(c.leaf) {
		c.check = func(b *level.Block) error { return r.checkText(ctx, key, b) }
	}
	// In a file of one fragment text that is copied need not be looked at.
	checked := c.check != nil && len(c.file.plan.slices) > 1
	checks := pageChecks{run: r}
	defer func() {
		if failed := checks.wait(); err == nil {
			err = source.wrap(failed)
		}
	}()
	for _, p := range copyParts(c.column, s.runs, may) {
		if err := ctx.Err(); err != nil {
			return err
		}
		if p.page < 0 {
			err = c.reencode(ctx, p.runs)
		} else {
			if checked {
				checks.page(ctx, key, c.column, p.page)
			}
			err = c.copyPage(ctx, p.page, to)
		}
		if err != nil {
			return source.wrap(err)
		}
	}
	return nil
}

// copyPage copies a page, or other part of the column, as bytes.
func (c *columnReading) copyPage(ctx context.Context, page int, to *datafile.ColumnWriter) error {
	c.of.Retain() // until the page was read
	err := to.CopyPage(ctx, c.column, page, c.of.Release)
	c.run.blockDone(c.file, to.CopyBytes(c.column, page))
	return err
}

// reencode decodes the pages that runs lie in, and takes the rows of the runs.
func (c *columnReading) reencode(ctx context.Context, runs []rowRun) error {
	rowBytes := float64(c.column.Bytes()) / float64(max(c.of.Rows(), 1))
	row := runs[0].start // the next block's first
	for block, err := range c.column.BlocksRange(ctx, c.leaf, row, runs[len(runs)-1].end) {
		if err == nil {
			runs, err = c.takeBlock(ctx, block, row, runs)
		}
		if err != nil {
			return err
		}
		row += uint64(block.Rows)
		c.run.blockDone(c.file, uint64(float64(block.Rows)*rowBytes))
	}
	if len(runs) > 0 {
		return table.Corruptf("column %q ends at row %d", c.leaf.Path, row)
	}
	return nil
}

// takeBlock takes the rows of a block, whose first is row, and returns the runs that go on
// after it.
func (c *columnReading) takeBlock(ctx context.Context, block *level.Block, row uint64, runs []rowRun) ([]rowRun, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if c.check != nil {
		if err := c.check(block); err != nil {
			return nil, err
		}
	}
	return takeRuns(c.take, block, row, runs)
}

// wrap adds to an error, if it is one, which fragment it is about.
func (s *rewriteSource) wrap(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("fragment %d: %w", s.fragment.ID, err)
}

// takeRuns appends the rows of a block that are in runs, ascending ranges none of
// which ends before the block; row is the number of the block's first row. It
// returns the runs that go on after the block.
func takeRuns(take takeRows, block *level.Block, row uint64, runs []rowRun) ([]rowRun, error) {
	cursor, err := level.NewCursor(block)
	if err != nil {
		return nil, err
	}
	end := row + uint64(block.Rows)
	for len(runs) > 0 && runs[0].start < end {
		start, stop := max(runs[0].start, row), min(runs[0].end, end)
		if err := cursor.Skip(int(start - row)); err != nil {
			return nil, err
		}
		if err := take(cursor, int(stop-start)); err != nil {
			return nil, err
		}
		row = stop
		if stop < runs[0].end {
			break
		}
		runs = runs[1:]
	}
	return runs, nil
}
