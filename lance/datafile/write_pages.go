package datafile

import (
	"sync"

	"github.com/rehome-db/rehome/lance/datafile/encoding"
	"github.com/rehome-db/rehome/lance/datafile/level"
	file2pb "github.com/rehome-db/rehome/lance/internal/pb/file2"
)

// A column is filled by one goroutine: rows follow each other. Its pages need not be
// encoded, copied or written by the same one, as a page may lie anywhere in the file.
// So whenever a page is full and somebody has nothing to do, the page is handed over
// together with its memory, and the column goes on with other memory.

// stretch is the pages that stand for rows that follow each other. It is filled by
// one goroutine, which need not be the column's.
type stretch struct {
	w     *Writer
	next  uint64 // row that the next page begins with
	pages []*file2pb.ColumnMetadata_Page
}

// gathering is the memory of a page: what its rows are gathered in, and what encodes
// them.
type gathering struct {
	builder level.Builder
	encoder encoding.Encoder
}

// gatherings keeps that memory, some tens of megabytes, for the next column.
var gatherings = sync.Pool{New: func() any { return new(gathering) }}

// gathered says whether there are rows that are in no page yet.
func (c *ColumnWriter) gathered() bool { return c.gathering != nil && c.builder.Rows() > 0 }

// asidePages is what a column shares with those who write pages for it.
type asidePages struct {
	pending sync.WaitGroup
	mu      sync.Mutex
	free    []*gathering
	err     error // the first
}

// stretch begins the pages of the next rows.
func (c *ColumnWriter) stretch(rows uint64) *stretch {
	s := &stretch{w: c.w, next: c.paged}
	c.stretches = append(c.stretches, s)
	c.paged += rows
	return s
}

// write writes a page.
func (s *stretch) write(p encoding.EncodedPage) error {
	layout, err := s.w.layout(p.Layout, p.Planar, len(p.Buffers))
	if err != nil {
		return err
	}
	page := &file2pb.ColumnMetadata_Page{Length: uint64(p.Rows), Encoding: layout}
	for _, b := range p.Buffers {
		page.BufferSizes = append(page.BufferSizes, uint64(len(b)))
	}
	if page.BufferOffsets, err = s.w.writePage(p.Buffers); err != nil {
		return err
	}
	s.add(page)
	return nil
}

// add adds a page that was written.
func (s *stretch) add(page *file2pb.ColumnMetadata_Page) {
	page.Priority = s.next
	s.pages = append(s.pages, page)
	s.next += page.Length
}

// encode encodes and writes the page that was gathered.
func (c *ColumnWriter) encode() error {
	g := c.gathering
	s := c.stretch(uint64(g.builder.Rows()))
	work := func() error {
		err := g.encoder.Encode(g.builder.Block(), s.write)
		g.builder.Reset()
		return err
	}
	// The values of all pages of a dictionary column are counted together.
	if c.leaf.Indexes() == 0 && c.handOver(work, g) {
		c.gathering = nil
		return c.asideError()
	}
	if err := work(); err != nil {
		return c.fail(err)
	}
	return nil
}

// handOver has work done aside, and the memory that it needs given back after that.
// It returns false if there is nobody to do it.
func (c *ColumnWriter) handOver(work func() error, memory ...*gathering) bool {
	if c.w.aside == nil {
		return false
	}
	a := &c.aside
	a.pending.Add(1)
	ok := c.w.aside(func() {
		defer a.pending.Done()
		err := work()
		a.mu.Lock()
		defer a.mu.Unlock()
		a.free = append(a.free, memory...)
		if a.err == nil {
			a.err = err
		}
	})
	if !ok {
		a.pending.Done()
	}
	return ok
}

// reuse takes memory that was given back.
func (c *ColumnWriter) reuse() bool {
	a := &c.aside
	a.mu.Lock()
	defer a.mu.Unlock()
	last := len(a.free) - 1
	if last < 0 {
		return false
	}
	c.gathering = a.free[last]
	a.free = a.free[:last]
	return true
}

// asideError fails if a page that was handed over did.
func (c *ColumnWriter) asideError() error {
	c.aside.mu.Lock()
	err := c.aside.err
	c.aside.mu.Unlock()
	if err != nil {
		return c.fail(err)
	}
	return nil
}

// wait waits for the pages that were handed over.
func (c *ColumnWriter) wait() error {
	c.aside.pending.Wait()
	if err := c.asideError(); err != nil {
		return err
	}
	if c.gathering != nil {
		c.aside.free = append(c.aside.free, c.gathering)
	}
	for _, g := range c.aside.free {
		gatherings.Put(g)
	}
	c.gathering, c.aside.free = nil, nil
	return nil
}

// pages are those of all stretches, in the order of rows.
func (c *ColumnWriter) pages() []*file2pb.ColumnMetadata_Page {
	var out []*file2pb.ColumnMetadata_Page
	for _, s := range c.stretches {
		out = append(out, s.pages...)
	}
	return out
}
