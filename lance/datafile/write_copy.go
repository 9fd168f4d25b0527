package datafile

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/rehome-db/rehome/lance/datafile/encoding"
	"github.com/rehome-db/rehome/lance/datafile/level"
	file2pb "github.com/rehome-db/rehome/lance/internal/pb/file2"
	"github.com/rehome-db/rehome/lance/readat"
)

// maxCopyPiece bounds what is held of a page while it is copied. Most pages have
// less.
const maxCopyPiece = 16 << 20

var copyBuffers = sync.Pool{New: func() any { return new([]byte) }}

// CanCopy says whether page i of src, or part (see [Column.NumParts]), can be taken
// over as it is stored: everything in a page is relative to the page, so that any page
// of the same format version can, except one whose values lie elsewhere in its file, and
// one that readers cannot take together with others of the column. That the page can be
// read as the column's leaf is for [Column.Check] to find out.
func (c *ColumnWriter) CanCopy(src *Column, i int) bool {
	if src.blob || !src.fits(i, c.w.version) {
		return false
	}
	if c.leaf.Described {
		return false // what they describe has to be copied too
	}
	if c.leaf.Indexes() > 0 {
		return false // the distinct values of all pages have to be counted
	}
	if c.array != nil {
		return c.array.canCopy(c, src, i)
	}
	page := src.page(i)
	layers, def := encoding.PageLayers(page)
	same, levels := level.SameItems(c.leaf.Layers, layers, page.Layout.GetFullZip() != nil)
	return layers != nil && same && (def || !levels)
}

// CopyPage appends page i of src, byte for byte, as a page of its own: what was
// gathered before it is written first. Only for pages that CanCopy allows. It calls
// done when it has read what it needs of src, which may be after it has returned.
func (c *ColumnWriter) CopyPage(ctx context.Context, src *Column, i int, done func()) error {
	if c.array != nil {
		defer done()
		return c.array.copy(ctx, c, src, i)
	}
	if err := c.startCopy(); err != nil {
		done()
		return err
	}
	p := &src.pages[i]
	c.rows += p.Rows
	s := c.stretch(p.Rows)
	work := func() error {
		defer done()
		if err := s.copy(ctx, src.file.r, p); err != nil {
			return src.file.wrap(fmt.Errorf("copy of page %d: %w", i, err))
		}
		return nil
	}
	if c.handOver(work) {
		return c.asideError()
	}
	if err := work(); err != nil {
		return c.fail(err)
	}
	return nil
}

// startCopy writes what was gathered.
func (c *ColumnWriter) startCopy() error {
	if c.err == nil && c.closed {
		return c.fail(errColumnClosed)
	}
	if c.err == nil && c.gathered() {
		return c.flush()
	}
	return c.err
}

// copy writes a page as it lies in r.
func (s *stretch) copy(ctx context.Context, r readat.ReaderAt, p *Page) error {
	layout, err := s.w.layout(p.Layout, p.Planar, len(p.Buffers))
	if err != nil {
		return err
	}
	page := &file2pb.ColumnMetadata_Page{Length: p.Rows, Encoding: layout}
	for _, b := range p.Buffers {
		page.BufferSizes = append(page.BufferSizes, b.Size)
	}
	if page.BufferOffsets, err = s.w.copyPage(ctx, r, p.Buffers); err != nil {
		return err
	}
	s.add(page)
	return nil
}

// copyPage writes the buffers of a page that lie in r, and returns where each lies
// now.
func (w *Writer) copyPage(ctx context.Context, r readat.ReaderAt, buffers []encoding.Buffer) ([]uint64, error) {
	piece := copyBuffers.Get().(*[]byte)
	defer copyBuffers.Put(piece)
	offsets := make([]uint64, len(buffers))
	for i, b := range buffers {
		var err error
		if offsets[i], err = w.copyBuffer(ctx, r, b, piece); err != nil {
			return nil, err
		}
	}
	return offsets, nil
}

// copyBuffer copies one buffer through piece, which it may replace by a larger one.
func (w *Writer) copyBuffer(ctx context.Context, r readat.ReaderAt, b encoding.Buffer, piece *[]byte) (offset uint64, err error) {
	if b.Size <= maxCopyPiece {
		// Whole, so that other columns can be written while this one is read.
		*piece = slices.Grow((*piece)[:0], int(b.Size))[:b.Size]
		if err := readat.Full(ctx, r, *piece, b.Offset); err != nil {
			return 0, err
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		offset = w.pos
		w.write(*piece)
		w.align()
		return offset, w.err
	}
	*piece = slices.Grow((*piece)[:0], maxCopyPiece)[:maxCopyPiece]
	w.mu.Lock()
	defer w.mu.Unlock()
	offset = w.pos
	for at := b.Offset; at < b.Offset+b.Size; at += maxCopyPiece {
		part := (*piece)[:min(b.Offset+b.Size-at, maxCopyPiece)]
		if err := readat.Full(ctx, r, part, at); err != nil {
			return 0, err // the column cannot be completed: what was written does no harm
		}
		w.write(part)
	}
	w.align()
	return offset, w.err
}
