package rows

import (
	"context"

	"github.com/rehome-db/rehome/lance/datafile"
	"github.com/rehome-db/rehome/lance/datafile/level"
	"github.com/rehome-db/rehome/lance/schema"
	"github.com/rehome-db/rehome/table"
)

// A rewrite copies the blobs that descriptions refer to together with them, each
// into the same kind of place: from the old data file into the new one, from files
// beside the old one into files beside the new one. Blobs that are external stay
// where they are. Other than the file's own pages these are not decoded or held in
// memory.

// blobMover copies the blobs of one column into one new data file.
type blobMover struct {
	*blobPlacer
	rows *level.Builder
	// copied is told of the bytes that were read, and of those that were written
	// beside the data file.
	copied func(read, beside uint64)
}

func newBlobMover(leaf schema.Leaf, to *datafile.ColumnWriter, all *sidecars, copied func(read, beside uint64)) (*blobMover, error) {
	rows, err := level.NewBuilder(leaf.Type, leaf.Layers)
	return &blobMover{newBlobPlacer(leaf, to, all), rows, copied}, err
}

// take is a takeRows that moves the blobs of the rows from source.
func (m *blobMover) take(ctx context.Context, source *blobSource) takeRows {
	return func(c *level.Cursor, n int) error {
		m.rows.Reset()
		if err := m.rows.Take(c, n); err != nil {
			return err
		}
		b := m.rows.Block()
		moved := level.Values{N: b.Values.N, Offsets: []uint32{0}}
		err := eachBlob(b, func(d *datafile.BlobDescription) error {
			if d != nil {
				at, err := m.move(ctx, source, *d)
				if err != nil {
					return err
				}
				moved.Data = at.Append(moved.Data)
			}
			moved.Offsets = append(moved.Offsets, uint32(len(moved.Data)))
			return nil
		})
		if err != nil {
			return err
		}
		b.Values = moved
		return m.to.Append(b)
	}
}

// move copies one blob and describes where it is now.
func (m *blobMover) move(ctx context.Context, source *blobSource, d datafile.BlobDescription) (datafile.BlobDescription, error) {
	if err := ctx.Err(); err != nil {
		return d, err
	}
	if d.Kind == datafile.BlobExternal {
		if source.file.Base != "" && d.ID != 0 {
			return d, table.Unsupportedf("a blob at %s relative to a base path of another table", d.URI)
		}
		return d, nil
	}
	r, err := source.holder(ctx, d)
	if err == nil {
		d, err = m.place(ctx, d.Kind, r, d.Position, d.Size)
	}
	if err != nil {
		return d, err
	}
	beside := d.Size
	if d.Kind == datafile.BlobInline {
		beside = 0
	}
	m.copied(d.Size, beside)
	return d, nil
}
