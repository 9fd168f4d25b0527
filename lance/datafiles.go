package lance

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/rehome-db/rehome/lance/datafile"
	"github.com/rehome-db/rehome/lance/store"
	"github.com/rehome-db/rehome/table"
)

// openFile is a data file that is open, with its metadata. It is closed when its
// last user and the cache have let go of it.
type openFile struct {
	*datafile.File
	object store.File
	refs   atomic.Int32
}

func (f *openFile) retain() { f.refs.Add(1) }

// release lets go of the file. The error of closing a file that was only read
// says nothing that anybody could act on.
func (f *openFile) release() {
	if f.refs.Add(-1) == 0 {
		_ = f.object.Close()
	}
}

// newFileCache returns a cache that keeps data files open between reads. Closing it
// lets go of all of them; those in use are closed by their users.
func newFileCache(files int) *lru[*openFile] {
	return newLRU(int64(files), (*openFile).release)
}

// openData opens a data file of a fragment, or returns it if it is open. The
// caller releases it.
func (e *Engine) openData(ctx context.Context, f table.Fragment, d table.DataFile) (*openFile, error) {
	return e.openDataWith(ctx, f, d, e.metadata)
}

// metadataOf gives the metadata of an open data file.
type metadataOf func(ctx context.Context, o store.File, d table.DataFile) (*datafile.File, error)

// openDataWith is openData, with the metadata had by the given function.
func (e *Engine) openDataWith(ctx context.Context, f table.Fragment, d table.DataFile, metadata metadataOf) (*openFile, error) {
	of, err := e.openDataFile(ctx, d, metadata)
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
		of.release()
		return nil, fmt.Errorf("fragment %d: data file %s: %w", f.ID, d.Path, err)
	}
	return of, nil
}

func (e *Engine) openDataFile(ctx context.Context, d table.DataFile, metadata metadataOf) (*openFile, error) {
	key := d.Base + "\x00" + d.Path
	if of, ok := e.files.get(key, (*openFile).retain); ok {
		return of, nil
	}
	of, err := e.openFile(ctx, d, metadata) // retained for the cache
	if err != nil {
		return nil, err
	}
	got, added := e.files.getOrAdd(key, of, 1, (*openFile).retain)
	if !added {
		of.release() // somebody else was faster, or the engine is being closed
	}
	return got, nil
}

// openUncached opens a data file for the caller alone, and reads all of its metadata.
func (e *Engine) openUncached(ctx context.Context, d table.DataFile) (*openFile, error) {
	return e.openFile(ctx, d, readMetadata)
}

// openFile opens a data file whose metadata is had by the given function.
func (e *Engine) openFile(ctx context.Context, d table.DataFile, metadata metadataOf) (*openFile, error) {
	s, err := e.storeOf(d.Base)
	if err != nil {
		return nil, err
	}
	object, err := s.Open(ctx, d.Path)
	if err != nil {
		return nil, missing(err)
	}
	// A truncated file has no footer to say so; its size says it better.
	if n := uint64(object.Size()); d.Bytes != 0 && n != d.Bytes {
		return nil, errors.Join(table.Corruptf("it has %d bytes, the version records %d", n, d.Bytes), object.Close())
	}
	file, err := metadata(ctx, object, d)
	if err != nil {
		return nil, errors.Join(err, object.Close())
	}
	of := &openFile{File: file, object: object}
	of.retain()
	return of, nil
}

func readMetadata(ctx context.Context, o store.File, d table.DataFile) (*datafile.File, error) {
	return datafile.Open(ctx, o, o.Size(), d.Path)
}

// metadata reads an open file's metadata, if it is not known.
func (e *Engine) metadata(ctx context.Context, o store.File, d table.DataFile) (*datafile.File, error) {
	m, err := cachedFile(e, fileEntry, d.Base, d.Path, o, func() (*datafile.Metadata, int64, error) {
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
