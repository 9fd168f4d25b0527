package rows

import (
	"context"
	"errors"
	"io"
	"strconv"
	"sync"

	"github.com/rehome-db/rehome/lance/datafile"
	"github.com/rehome-db/rehome/lance/readat"
	"github.com/rehome-db/rehome/lance/schema"
	"github.com/rehome-db/rehome/lance/store"
	"github.com/rehome-db/rehome/table"
)

const (
	// maxBlobPack is the size of a shared file that blobs are not to take it beyond,
	// and maxBlobPackKey what a field can have instead.
	maxBlobPack    = 1 << 30
	maxBlobPackKey = "lance-encoding:blob-pack-file-size-threshold"
)

// sidecars are the files of blobs beside one new data file.
type sidecars struct {
	table *Table
	path  string // of the data file
	opts  store.WriteOptions

	mu      sync.Mutex
	last    uint32
	objects []table.Object
}

// create starts the next file.
func (s *sidecars) create(ctx context.Context) (*sidecar, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last++
	path := datafile.SidecarPath(s.path, s.last)
	w, err := s.table.root.Store.Create(ctx, path, s.opts)
	if err != nil {
		return nil, err
	}
	s.objects = append(s.objects, table.Object{Kind: table.ObjectData, Path: path})
	return &sidecar{all: s, id: s.last, object: len(s.objects) - 1, w: w}, nil
}

// sidecar is one such file, being written.
type sidecar struct {
	all    *sidecars
	id     uint32
	object int
	w      store.Writer
	bytes  uint64
}

// append copies a blob and returns where it begins.
func (s *sidecar) append(ctx context.Context, r readat.ReaderAt, offset, size uint64) (position uint64, err error) {
	position = s.bytes
	n, err := io.Copy(s.w, readat.Section(ctx, r, offset, size))
	if err == nil && uint64(n) != size {
		err = table.Corruptf("a blob of %d bytes ends after %d", size, n)
	}
	s.bytes += uint64(n)
	return position, err
}

func (s *sidecar) close() error {
	if err := s.w.Close(); err != nil {
		return err
	}
	s.all.mu.Lock()
	defer s.all.mu.Unlock()
	s.all.objects[s.object].Bytes = s.bytes
	return nil
}

// blobPlacer puts the blobs of one column of a new data file into their places.
type blobPlacer struct {
	to   *datafile.ColumnWriter
	all  *sidecars
	most uint64   // of a shared file
	pack *sidecar // open, or nil
}

func newBlobPlacer(leaf schema.Leaf, to *datafile.ColumnWriter, all *sidecars) *blobPlacer {
	return &blobPlacer{to: to, all: all, most: max(blobThreshold(leaf, maxBlobPackKey, maxBlobPack), 1)}
}

// blobThreshold returns what the field asks for under a key, or the default.
func blobThreshold(leaf schema.Leaf, key string, otherwise uint64) uint64 {
	if n, err := strconv.ParseUint(leaf.Field.Metadata[key], 10, 63); err == nil {
		return n
	}
	return otherwise
}

// place copies a blob of size bytes at offset of r into a place of the given kind,
// and describes where that is.
func (p *blobPlacer) place(ctx context.Context, kind datafile.BlobKind, r readat.ReaderAt, offset, size uint64) (datafile.BlobDescription, error) {
	d := datafile.BlobDescription{Kind: kind, Size: size}
	var err error
	switch kind {
	case datafile.BlobInline:
		if size > 0 {
			d.Position, err = p.to.AppendBlob(ctx, r, offset, size)
		}
	case datafile.BlobDedicated:
		var s *sidecar
		if s, err = p.all.create(ctx); err != nil {
			return d, err
		}
		if _, err = s.append(ctx, r, offset, size); err != nil {
			return d, errors.Join(err, s.w.Abort())
		}
		d.ID, err = s.id, s.close()
	default:
		if p.pack != nil && p.pack.bytes > 0 && p.pack.bytes+size > p.most {
			if err := p.close(); err != nil {
				return d, err
			}
		}
		if p.pack == nil {
			if p.pack, err = p.all.create(ctx); err != nil {
				return d, err
			}
		}
		d.ID = p.pack.id
		d.Position, err = p.pack.append(ctx, r, offset, size)
	}
	return d, err
}

// close completes the shared file that is open, if one is.
func (p *blobPlacer) close() error {
	if p.pack == nil {
		return nil
	}
	pack := p.pack
	p.pack = nil
	return pack.close()
}

// abort gives up what is open.
func (p *blobPlacer) abort() error {
	if p.pack == nil {
		return nil
	}
	pack := p.pack
	p.pack = nil
	return pack.w.Abort()
}
