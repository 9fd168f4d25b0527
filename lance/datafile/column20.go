package datafile

import (
	"context"
	"fmt"

	"github.com/rehome-db/rehome/lance/datafile/encoding20"
	"github.com/rehome-db/rehome/lance/datafile/level"
	"github.com/rehome-db/rehome/lance/schema"
	"github.com/rehome-db/rehome/table"
)

// LeafColumn returns the column of a leaf, number i, to be read through the columns of
// the lists around it, outermost first. Only files of format 2.0 have columns for
// those: in others lists must be empty, or is ignored.
func (f *File) LeafColumn(i int, lists []int) (*Column, error) {
	c, err := f.Column(i)
	if err != nil || f.version != V2_0 || len(lists) == 0 {
		return c, err
	}
	out := *c
	for _, k := range lists {
		list, err := f.Column(k)
		if err != nil {
			return nil, err
		}
		out.lists = append(out.lists, list)
		out.bytes += list.bytes
	}
	return &out, nil
}

// Lists returns the columns of the lists around the leaf, outermost first, of a column
// of format 2.0 that was made by LeafColumn.
func (c *Column) Lists() []*Column { return c.lists }

// array returns a reader of a column of format 2.0 as leaf.
func (c *Column) array(leaf schema.Leaf) (*encoding20.Reader, error) {
	r, err := encoding20.NewReader(
		encoding20.Leaf{Type: leaf.Type, Layers: leaf.Layers, Dictionary: leaf.Dictionary != nil},
		c.source(), c.file.limits)
	return r, c.wrap20(leaf, err)
}

func (c *Column) source() encoding20.Source {
	s := encoding20.Source{File: c.file.r, Size: uint64(c.file.size), Rows: c.file.rows, Pages: c.arrayPages(), Blob: c.blob}
	for _, l := range c.lists {
		s.Lists = append(s.Lists, l.arrayPages())
	}
	return s
}

func (c *Column) arrayPages() []encoding20.Page {
	out := make([]encoding20.Page, len(c.pages))
	for i, p := range c.pages {
		out[i] = encoding20.Page{First: p.FirstRow, Values: p.Rows, Encoding: p.Array, Buffers: p.Buffers}
	}
	return out
}

func (c *Column) wrap20(leaf schema.Leaf, err error) error {
	if err == nil {
		return nil
	}
	return c.file.wrap(fmt.Errorf("column %q (%s): %w", leaf.Path, leaf.Field.LogicalType, err))
}

// check20 is Check in format 2.0.
func (c *Column) check20(leaf schema.Leaf) error {
	if err := readable20(leaf); err != nil {
		return c.wrap20(leaf, err)
	}
	r, err := c.array(leaf)
	if err != nil {
		return err
	}
	return c.wrap20(leaf, r.Check())
}

// readable20 says why no file of format 2.0 has such a leaf.
func readable20(leaf schema.Leaf) error {
	switch {
	case leaf.Map:
		return table.Unsupportedf("format 2.0 has no maps")
	case leaf.Described:
		return table.Unsupportedf("format 2.0 has no blobs with descriptions")
	}
	return nil
}

// blocks20 is BlocksRange in format 2.0.
func (c *Column) blocks20(ctx context.Context, leaf schema.Leaf, from, to uint64, yield func(*level.Block, error) bool) {
	err := readable20(leaf)
	var r *encoding20.Reader
	if err == nil {
		r, err = c.array(leaf)
	}
	more := true
	if err == nil {
		err = c.wrap20(leaf, r.Read(ctx, from, to, func(b *level.Block) bool {
			more = yield(b, nil)
			return more
		}))
	}
	if err != nil && more {
		yield(nil, err)
	}
}

// take20 is Take in format 2.0: rows that lie together are read together.
func (c *Column) take20(ctx context.Context, leaf schema.Leaf, ranges []Range, into *level.Builder, flush func() error) error {
	if err := readable20(leaf); err != nil {
		return c.wrap20(leaf, err)
	}
	r, err := c.array(leaf)
	if err != nil {
		return err
	}
	limits := c.file.limits
	limits.EnsureDefaults()
	var failed error
	for _, rows := range ranges {
		err := r.Read(ctx, rows.From, rows.To, func(b *level.Block) bool {
			var cursor *level.Cursor
			if cursor, failed = level.NewCursor(b); failed == nil {
				failed = into.Take(cursor, b.Rows)
			}
			if failed == nil && into.Bytes() >= limits.BlockBytes {
				failed = flush()
			}
			return failed == nil
		})
		if failed == errTaken {
			return failed
		}
		if err == nil {
			err = failed
		}
		if err != nil {
			return c.wrap20(leaf, err)
		}
	}
	return flush()
}

// ColumnLeaves returns the leaf that each column of a file holds if it holds the whole
// of its own schema in order, as writers do it. A column that is not of a leaf, of which
// format 2.0 has some, has the zero Leaf.
func (f *File) ColumnLeaves() []schema.Leaf {
	leaves := f.schema.Leaves()
	if f.version != V2_0 {
		return leaves
	}
	var out []schema.Leaf
	for _, owner := range owners(f.schema.Fields, leaves) {
		if owner.leaf < 0 {
			out = append(out, schema.Leaf{})
		} else {
			out = append(out, leaves[owner.leaf])
		}
	}
	return out
}

// owner is a field that owns a column in format 2.0.
type owner struct {
	field *schema.Field
	leaf  int // its number, -1 if it is a list or a struct
	// first is the first leaf at or below the field.
	first int
	// around is the number of the innermost list around the field, -1 for none.
	around int
}

// owners lists the fields that own columns, in the order of these: pre-order.
func owners(fields []*schema.Field, leaves []schema.Leaf) []owner {
	var out []owner
	next := 0
	var walk func(f *schema.Field, around int)
	walk = func(f *schema.Field, around int) {
		o := owner{field: f, leaf: -1, first: next, around: around}
		if next < len(leaves) && leaves[next].Field == f {
			o.leaf = next
			next++
			out = append(out, o)
			return
		}
		out = append(out, o)
		if f.LogicalType != "struct" {
			around = len(out) - 1
		}
		for _, c := range f.Children {
			walk(c, around)
		}
	}
	for _, f := range fields {
		walk(f, -1)
	}
	return out
}

// OwnLeaf returns the column of leaf i of the file's own schema, for files that hold
// the whole of it in order, as writers do it.
func (f *File) OwnLeaf(i int) (*Column, error) {
	if f.version != V2_0 {
		return f.Column(i)
	}
	all := owners(f.schema.Fields, f.schema.Leaves())
	for at, o := range all {
		if o.leaf != i {
			continue
		}
		var lists []int
		for k := o.around; k >= 0; k = all[k].around {
			lists = append([]int{k}, lists...)
		}
		return f.LeafColumn(at, lists)
	}
	return nil, f.wrap(table.Corruptf("there is no leaf %d", i))
}
