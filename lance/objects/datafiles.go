package objects

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/rehome-db/rehome/lance/cache"
	"github.com/rehome-db/rehome/lance/datafile"
	"github.com/rehome-db/rehome/lance/store"
	"github.com/rehome-db/rehome/table"
)

// DataFile is a data file that is open, with its metadata. It is closed when its
// last user and the cache have let go of it.
type DataFile struct {
	*datafile.File
	object store.File
	refs   atomic.Int32
}

// Retain adds a user of the file, who is to release it.
func (f *DataFile) Retain() { f.refs.Add(1) }

// Release lets go of the file. The error of closing a file that was only read
// says nothing that anybody could act on.
func (f *DataFile) Release() {
	if f.refs.Add(-1) == 0 {
		_ = f.object.Close()
	}
}

// newFileCache returns a cache that keeps data files open between reads. Closing it
// lets go of all of them; those in use are closed by their users.
func newFileCache(files int) *cache.LRU[*DataFile] {
	return cache.NewLRU(int64(files), (*DataFile).Release)
}

// OpenData opens a data file of a fragment, or returns it if it is open. The
// caller releases it.
func (r *Root) OpenData(ctx context.Context, f table.Fragment, d table.DataFile) (*DataFile, error) {
	return r.OpenDataWith(ctx, f, d, r.Metadata)
}

// MetadataOf gives the metadata of an open data file.
type MetadataOf func(ctx context.Context, o store.File, d table.DataFile) (*datafile.File, error)

// OpenDataWith is OpenData, with the metadata had by the given function.
func (r *Root) OpenDataWith(ctx context.Context, f table.Fragment, d table.DataFile, metadata MetadataOf) (*DataFile, error) {
	of, err := r.OpenFile(ctx, d, metadata)
	if err != nil {
		return nil, fmt.Errorf("fragment %d: data file %s: %w", f.ID, d.Path, err)
	}
	// The metadata may have been checked against another version's record of it.
	switch n := uint64(of.Size()); {
	case d.Bytes != 0 && n != d.Bytes:
		err = table.Corruptf("it has %d bytes, the version records %d", n, d.Bytes)
	case of.Rows() != f.PhysicalRows:
		err = table.Corruptf("it has %d rows, the fragment %d", of.Rows(), f.PhysicalRows)
	}
	if err != nil {
		of.Release()
		return nil, fmt.Errorf("fragment %d: data file %s: %w", f.ID, d.Path, err)
	}
	return of, nil
}

// OpenFile is OpenDataWith for a file that is no fragment's: nothing is compared but its
// size.
func (r *Root) OpenFile(ctx context.Context, d table.DataFile, metadata MetadataOf) (*DataFile, error) {
	key := d.Base + "\x00" + d.Path
	if of, ok := r.files.Get(key, (*DataFile).Retain); ok {
		return of, nil
	}
	of, err := r.open(ctx, d, metadata) // retained for the cache
	if err != nil {
		return nil, err
	}
	got, added := r.files.GetOrAdd(key, of, 1, (*DataFile).Retain)
	if !added {
		of.Release() // somebody else was faster, or the engine is being closed
	}
	return got, nil
}

// OpenUncached opens a data file for the caller alone, and reads all of its metadata.
func (r *Root) OpenUncached(ctx context.Context, d table.DataFile) (*DataFile, error) {
	return r.open(ctx, d, readMetadata)
}

// open opens a data file whose metadata is had by the given function.
func (r *Root) open(ctx context.Context, d table.DataFile, metadata MetadataOf) (*DataFile, error) {
	s, err := r.StoreOf(d.Base)
	if err != nil {
		return nil, err
	}
	object, err := s.Open(ctx, d.Path)
	if err != nil {
		return nil, Missing(err)
	}
	// A truncated file has no footer to say so; its size says it better.
	if n := uint64(object.Size()); d.Bytes != 0 && n != d.Bytes {
		return nil, errors.Join(table.Corruptf("it has %d bytes, the version records %d", n, d.Bytes), object.Close())
	}
	file, err := metadata(ctx, object, d)
	if err != nil {
		return nil, errors.Join(err, object.Close())
	}
	of := &DataFile{File: file, object: object}
	of.Retain()
	return of, nil
}

func readMetadata(ctx context.Context, o store.File, d table.DataFile) (*datafile.File, error) {
	return datafile.Open(ctx, o, o.Size(), d.Path)
}

// Metadata reads an open file's metadata, if it is not known.
func (r *Root) Metadata(ctx context.Context, o store.File, d table.DataFile) (*datafile.File, error) {
	m, err := Cached(ctx, r, cache.Files, d.Base, d.Path, o, func() (*datafile.Metadata, int64, error) {
		f, err := readMetadata(ctx, o, d)
		if err != nil {
			return nil, 0, err
		}
		m := f.Metadata()
		return m, m.Bytes(), nil
	})
	if err != nil {
		return nil, err
	}
	return m.Open(o), nil
}
