package rows

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/rehome-db/rehome/lance/datafile"
	"github.com/rehome-db/rehome/lance/datafile/assemble"
	"github.com/rehome-db/rehome/lance/datafile/level"
	"github.com/rehome-db/rehome/lance/objects"
	"github.com/rehome-db/rehome/lance/readat"
	"github.com/rehome-db/rehome/lance/schema"
	"github.com/rehome-db/rehome/lance/store"
	"github.com/rehome-db/rehome/table"
)

// blobSource reads the blobs that descriptions in a data file refer to. Files beside
// the data file are opened once. It is not safe for concurrent use.
type blobSource struct {
	table  *Table
	file   table.DataFile
	data   *objects.DataFile
	beside map[uint32]store.File
}

func newBlobSource(t *Table, d table.DataFile, of *objects.DataFile) *blobSource {
	return &blobSource{table: t, file: d, data: of, beside: map[uint32]store.File{}}
}

func (b *blobSource) close() error {
	var err error
	for _, f := range b.beside {
		err = errors.Join(err, f.Close())
	}
	b.beside = nil
	return err
}

// holder returns what the bytes of a blob lie in, after checking that they do.
func (b *blobSource) holder(ctx context.Context, d datafile.BlobDescription) (readat.ReaderAt, error) {
	var r readat.ReaderAt
	size, name := uint64(0), b.file.Path
	switch d.Kind {
	case datafile.BlobInline:
		r, size = b.data, uint64(b.data.Size())
	case datafile.BlobPacked, datafile.BlobDedicated:
		name = datafile.SidecarPath(b.file.Path, d.ID)
		f := b.beside[d.ID]
		if f == nil {
			s, err := b.table.root.StoreOf(b.file.Base)
			if err != nil {
				return nil, err
			}
			if f, err = s.Open(ctx, name); err != nil {
				return nil, fmt.Errorf("%s: %w", name, objects.Missing(err))
			}
			b.beside[d.ID] = f
		}
		r, size = f, uint64(f.Size())
	default:
		return nil, table.Unsupportedf("a blob at %s is not the table's own", d.URI)
	}
	if d.Position > size || d.Size > size-d.Position {
		return nil, table.Corruptf("%s: a blob of %d bytes at %d in a file of %d", name, d.Size, d.Position, size)
	}
	return r, nil
}

// eachBlob calls f for each value slot of a block of descriptions, with nil for a
// slot that is null.
func eachBlob(b *level.Block, f func(d *datafile.BlobDescription) error) error {
	maxVisible := level.MaxVisibleDef(b.Layers)
	slot := 0
	for i := range b.Entries() {
		def := uint16(0)
		if b.Def != nil {
			def = b.Def[i]
		}
		if def > maxVisible {
			continue
		}
		if slot >= b.Values.N {
			return table.Corruptf("a block of %d values has more visible entries", b.Values.N)
		}
		value := b.Values.Data[b.Values.Offsets[slot]:b.Values.Offsets[slot+1]]
		slot++
		if def > 0 {
			if err := f(nil); err != nil {
				return err
			}
			continue
		}
		d, err := datafile.ParseBlobDescription(value)
		if err == nil {
			err = f(&d)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// blobBatch bounds the bytes of blobs that are in memory at a time, unless a single
// row has more.
const blobBatch = 8 << 20

// blobValues turns blocks of descriptions into blocks of the blobs that they are of.
func blobValues(ctx context.Context, blocks assemble.Source, leaf schema.Leaf, source *blobSource) assemble.Source {
	return func(yield func(*level.Block, error) bool) {
		stop := errors.New("stop")
		for block, err := range blocks {
			if err == nil {
				err = splitBlobs(block, leaf, func(b *level.Block) error {
					values, err := source.values(ctx, b)
					if err == nil && !yield(values, nil) {
						err = stop
					}
					return err
				})
			}
			if err == stop {
				return
			}
			if err != nil {
				yield(nil, fmt.Errorf("column %q: %w", leaf.Path, err))
				return
			}
		}
	}
}

// splitBlobs passes a block of descriptions on in parts whose blobs fit in memory.
func splitBlobs(b *level.Block, leaf schema.Leaf, f func(*level.Block) error) error {
	total := uint64(0)
	err := eachBlob(b, func(d *datafile.BlobDescription) error {
		if d != nil && d.Kind != datafile.BlobExternal {
			total += min(d.Size, 1<<32)
		}
		return nil
	})
	if err != nil || total <= blobBatch || b.Rows <= 1 {
		if err == nil {
			err = f(b)
		}
		return err
	}
	c, err := level.NewCursor(b)
	if err != nil {
		return err
	}
	for _, n := range []int{b.Rows / 2, b.Rows - b.Rows/2} {
		half, err := level.NewBuilder(b.Type, leaf.Layers)
		if err != nil {
			return err
		}
		if err := half.Take(c, n); err != nil {
			return err
		}
		if err := splitBlobs(half.Block(), leaf, f); err != nil {
			return err
		}
	}
	return nil
}

// values reads the blobs of a block of descriptions.
func (b *blobSource) values(ctx context.Context, in *level.Block) (*level.Block, error) {
	out := *in
	out.Type = schema.BlobValues
	out.Values = level.Values{N: in.Values.N, Offsets: []uint32{0}}
	v := &out.Values
	err := eachBlob(in, func(d *datafile.BlobDescription) error {
		if d != nil {
			if err := b.append(ctx, v, *d); err != nil {
				return err
			}
		}
		v.Offsets = append(v.Offsets, uint32(len(v.Data)))
		return nil
	})
	return &out, err
}

// append appends a blob in the form of schema.BlobValues.
func (b *blobSource) append(ctx context.Context, v *level.Values, d datafile.BlobDescription) error {
	if d.Kind == datafile.BlobExternal {
		v.Data = append(v.Data, 1)
		v.Data = binary.LittleEndian.AppendUint64(v.Data, 0)
		v.Data = binary.LittleEndian.AppendUint32(v.Data, uint32(len(d.URI)))
		v.Data = append(v.Data, d.URI...)
		v.Data = binary.LittleEndian.AppendUint64(v.Data, d.Position)
		v.Data = binary.LittleEndian.AppendUint64(v.Data, d.Size)
		return nil
	}
	if uint64(len(v.Data))+d.Size > 1<<32-64 {
		return table.Unsupportedf("a blob of %d bytes: a row holds at most 4 GiB", d.Size)
	}
	r, err := b.holder(ctx, d)
	if err != nil {
		return err
	}
	v.Data = append(v.Data, 0)
	v.Data = binary.LittleEndian.AppendUint64(v.Data, d.Size)
	have := len(v.Data)
	v.Data = append(v.Data, make([]byte, d.Size)...)
	if err := readat.Full(ctx, r, v.Data[have:], d.Position); err != nil {
		return fmt.Errorf("%s: a blob: %w", b.file.Path, err)
	}
	v.Data = append(v.Data, make([]byte, 4+8+8)...) // no URI, no range
	return nil
}
