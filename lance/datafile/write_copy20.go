package datafile

import (
	"context"
	"fmt"

	"google.golang.org/protobuf/proto"

	"github.com/rehome-db/rehome/lance/datafile/encoding20"
	"github.com/rehome-db/rehome/lance/datafile/level"
	file2pb "github.com/rehome-db/rehome/lance/internal/pb/file2"
)

// In format 2.0 a leaf within lists has its pages counted in items, and the lists have
// columns of their own. What can be copied of it is all that a page of the outermost
// lists stands for: that page, the pages of the lists inside, and those of the items.
// That all of them begin and end together is what writers see to, and is checked here.
//
// The columns of other leaves inside the same lists need pages that end with those of
// the lists, too. So either all of them copy a part or none does: see
// [Column.NumParts].

// part is what can be copied of a column at once.
type part struct {
	ok bool // that it can
	// pages are those of each column of the path: of the lists around the leaf,
	// outermost first, and of the leaf.
	pages []pageRange
}

// pageRange is the pages [from, to).
type pageRange struct{ from, to int }

// NumParts returns how many parts the column has that can be copied at once. They are
// its pages, but for one within lists in format 2.0: there a part is what a page of the
// outermost lists stands for, and can only be copied together with the same part of all
// other leaves within these lists.
func (c *Column) NumParts() int { return len(c.outermost()) }

// PartRows returns the rows of part i: number of the first, and how many.
func (c *Column) PartRows(i int) (first, rows uint64) {
	p := &c.outermost()[i]
	return p.FirstRow, p.Rows
}

func (c *Column) outermost() []Page {
	if len(c.lists) > 0 {
		return c.lists[0].pages
	}
	return c.pages
}

// partition finds the parts of a column within lists.
func (c *Column) partition() []part {
	if c.parts != nil {
		return c.parts
	}
	path := append(append([]*Column{}, c.lists...), c)
	c.parts = make([]part, c.NumParts())
	next := make([]int, len(path))     // page of each column
	items := make([]uint64, len(path)) // before that page
	for i := range c.parts {
		p := &c.parts[i]
		p.ok = true
		rows := &path[0].pages[i]
		first, end := rows.FirstRow, rows.FirstRow+rows.Rows
		for k, column := range path {
			r := pageRange{from: next[k]}
			at := items[k]
			for next[k] < len(column.pages) && column.pages[next[k]].FirstRow+column.pages[next[k]].Rows <= end {
				if page := &column.pages[next[k]]; page.Rows > 0 {
					items[k] += page.Array.GetList().GetNumItems()
				}
				next[k]++
			}
			r.to = next[k]
			for r.from < r.to && column.pages[r.from].Rows == 0 {
				r.from++ // has nothing, and need not be in its place
			}
			p.pages = append(p.pages, r)
			p.ok = p.ok && column.covers(r, first, end)
			first, end = at, items[k]
		}
	}
	return c.parts
}

// covers says whether pages hold [first, end) and nothing else.
func (c *Column) covers(r pageRange, first, end uint64) bool {
	if r.from == r.to {
		return first == end
	}
	last := c.pages[r.to-1]
	return c.pages[r.from].FirstRow == first && last.FirstRow+last.Rows == end
}

// path returns the columns that part i of a column has pages of, and which these are.
func (c *Column) path(i int) (columns []*Column, p part) {
	if len(c.lists) == 0 {
		return []*Column{c}, part{ok: true, pages: []pageRange{{i, i + 1}}}
	}
	return append(append([]*Column{}, c.lists...), c), c.partition()[i]
}

// canCopy is CanCopy in format 2.0.
func (a *arrayLeaf) canCopy(c *ColumnWriter, src *Column, i int) bool {
	if len(src.lists) != len(a.lists) || c.leaf.Blob || c.leaf.Type.Kind == level.Nothing {
		return false
	}
	columns, p := src.path(i)
	if !p.ok {
		return false
	}
	for k, column := range columns {
		for _, page := range column.pages[p.pages[k].from:p.pages[k].to] {
			if page.Rows > 0 && !encoding20.Current(page.Array, a.opts.IndexBits) {
				return false
			}
		}
	}
	return true
}

// each calls do for each page that copying part i of src copies, with the column that it
// goes to.
func (a *arrayLeaf) each(src *Column, i int, do func(to *arrayColumn, p *Page) error) error {
	columns, parts := src.path(i)
	for k, column := range columns {
		to := a.column
		if k < len(a.lists) {
			if !a.owned[k] {
				continue // the writer of another leaf does it
			}
			to = a.lists[k]
		}
		for n := parts.pages[k].from; n < parts.pages[k].to; n++ {
			if p := &column.pages[n]; p.Rows > 0 {
				if err := do(to, p); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// CopyBytes returns how many bytes copying part i of src copies.
func (c *ColumnWriter) CopyBytes(src *Column, i int) (n uint64) {
	if c.array == nil {
		return src.pages[i].Bytes()
	}
	_ = c.array.each(src, i, func(_ *arrayColumn, p *Page) error {
		n += p.Bytes()
		return nil
	})
	return n
}

// copy is CopyPage in format 2.0.
func (a *arrayLeaf) copy(ctx context.Context, c *ColumnWriter, src *Column, i int) error {
	err := c.startCopy()
	if err == nil {
		err = a.cutHere(c)
	}
	if err != nil {
		return err
	}
	err = a.each(src, i, func(to *arrayColumn, p *Page) error {
		description, err := proto.MarshalOptions{Deterministic: true}.Marshal(p.Array)
		if err != nil {
			return err
		}
		page := &file2pb.ColumnMetadata_Page{Length: p.Rows, Encoding: direct(arrayTypeURL, description)}
		for _, b := range p.Buffers {
			page.BufferSizes = append(page.BufferSizes, b.Size)
		}
		if page.BufferOffsets, err = c.w.copyPage(ctx, src.file.r, p.Buffers); err != nil {
			return err
		}
		to.pages = append(to.pages, page)
		to.paged += p.Rows
		to.items += p.Array.GetList().GetNumItems()
		return nil
	})
	if err != nil {
		return c.fail(src.file.wrap(fmt.Errorf("copy of page %d: %w", i, err)))
	}
	_, rows := src.PartRows(i)
	c.rows += rows
	return a.cutHere(c)
}

// cutHere has the pages of all leaves within the same lists end here.
func (a *arrayLeaf) cutHere(c *ColumnWriter) error {
	if a.cuts == nil {
		return nil
	}
	due, err := a.cuts.force(a.cut, c.rows)
	if err != nil {
		return c.fail(err)
	}
	if due {
		return c.endLists()
	}
	return nil
}

// force makes a cut at a row that a leaf has reached, with cut cuts behind it, unless
// there is one. Every leaf does so at the same rows. It returns false if the cut is
// behind the leaf.
func (c *cuts) force(cut int, row uint64) (bool, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case cut == 0 && row == 0, cut > 0 && c.rows[cut-1] == row:
		return false, nil
	case cut == len(c.rows):
		c.rows = append(c.rows, row)
		c.taken = max(c.taken, row)
	case c.rows[cut] != row:
		return false, fmt.Errorf("pages within lists cannot end at row %d, as others end at row %d", row, c.rows[cut])
	}
	return true, nil
}
