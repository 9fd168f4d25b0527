package datafile

import (
	"context"
	"encoding/binary"
	"errors"

	"github.com/rehome-db/rehome/lance/datafile/encoding"
	"github.com/rehome-db/rehome/lance/datafile/level"
	enc21pb "github.com/rehome-db/rehome/lance/internal/pb/enc21"
	"github.com/rehome-db/rehome/lance/schema"
	"github.com/rehome-db/rehome/table"
)

// blobColumn is what a column of blobs gathers: its values go straight into the
// file, and what pages hold is where they went.
type blobColumn struct {
	where *level.Builder
}

func newBlobColumn(leaf schema.Leaf) (*blobColumn, error) {
	where, err := level.NewBuilder(encoding.BlobDescriptions(), leaf.Layers)
	return &blobColumn{where}, err
}

// add writes the values of b.
func (a *blobColumn) add(c *ColumnWriter, b *level.Block) error {
	v := &b.Values
	where := &level.Block{Type: encoding.BlobDescriptions(), Rows: b.Rows, Layers: b.Layers, Rep: b.Rep, Def: b.Def,
		Values: level.Values{N: v.N, Data: make([]byte, 16*v.N)}}
	for i := range v.N {
		value := v.Data[v.Offsets[i]:v.Offsets[i+1]]
		if len(value) == 0 || b.Def != nil && b.Def[i] > 0 {
			continue
		}
		at, err := c.w.writePage([][]byte{value})
		if err != nil {
			return err
		}
		binary.LittleEndian.PutUint64(where.Values.Data[16*i:], at[0])
		binary.LittleEndian.PutUint64(where.Values.Data[16*i+8:], uint64(len(value)))
	}
	return a.added(c, where)
}

// added takes in where the values of some rows are.
func (a *blobColumn) added(c *ColumnWriter, where *level.Block) error {
	cursor, err := level.NewCursor(where)
	if err != nil {
		return err
	}
	if err := a.where.Take(cursor, where.Rows); err != nil {
		return err
	}
	if a.where.Bytes() < c.pageBytes {
		return nil
	}
	return a.flush(c)
}

// BlobPlaces returns leaf, a leaf of blobs that lie in the file, as one whose blocks
// say where they lie, for [ColumnWriter.TakeBlobs]; false if there is no such thing.
func (c *Column) BlobPlaces(leaf schema.Leaf) (schema.Leaf, bool) {
	ok := leaf.Blob && c.file.version >= V2_1
	for _, p := range c.pages {
		_, blob := p.Layout.GetLayout().(*enc21pb.PageLayout_Blob)
		ok = ok && blob
	}
	leaf.Type = encoding.BlobDescriptions()
	return leaf, ok
}

// TakeBlobs appends the next n rows at the cursor, or what is left if that is less.
// The cursor is over blocks of where blobs lie in src, and they are copied without
// being held in memory. It returns the bytes that were copied.
func (c *ColumnWriter) TakeBlobs(ctx context.Context, cursor *level.Cursor, n int, src *Column) (uint64, error) {
	if err := c.open(); err != nil {
		return 0, err
	}
	if c.blobs == nil {
		return 0, c.fail(errNoBlobs)
	}
	if c.builder.Rows() > 0 {
		if err := c.flush(); err != nil {
			return 0, err
		}
	}
	rows, err := level.NewBuilder(encoding.BlobDescriptions(), c.leaf.Layers)
	if err == nil {
		err = rows.Take(cursor, n)
	}
	if err != nil {
		return 0, c.fail(err)
	}
	b := rows.Block()
	copied := uint64(0)
	for i := range b.Values.N {
		at := b.Values.Data[16*i : 16*i+16]
		offset, size := binary.LittleEndian.Uint64(at), binary.LittleEndian.Uint64(at[8:])
		if b.Def != nil && b.Def[i] > 0 || size == 0 {
			continue
		}
		if offset > uint64(src.file.size) || size > uint64(src.file.size)-offset {
			return copied, c.fail(table.Corruptf("a blob of %d bytes at %d in a file of %d", size, offset, src.file.size))
		}
		position, err := c.AppendBlob(ctx, src.file, offset, size)
		if err != nil {
			return copied, c.fail(err)
		}
		binary.LittleEndian.PutUint64(at, position)
		copied += size
	}
	c.rows += uint64(b.Rows)
	if err := c.blobs.added(c, b); err != nil {
		return copied, c.fail(err)
	}
	return copied, nil
}

var errNoBlobs = errors.New("the column keeps its values in its pages")

// flush writes the page of what was gathered.
func (a *blobColumn) flush(c *ColumnWriter) error {
	if a.where.Rows() == 0 {
		return nil
	}
	if err := c.encoder.EncodeBlobs(a.where.Block(), c.stretch(uint64(a.where.Rows())).write); err != nil {
		return err
	}
	a.where.Reset()
	return nil
}
