package store

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"strings"
	"time"

	"github.com/rehome-db/rehome/lance/readat"
	"github.com/rehome-db/rehome/table"
)

// The errors that callers act on. A missing object is [table.ErrNotFound].
var (
	// ErrExists: the name is taken, and what is there was not touched.
	ErrExists = errors.New("object exists")
	// ErrAmbiguous: the write was sent and its outcome cannot be known.
	ErrAmbiguous = errors.New("outcome of the write unknown")
)

// Store is an object store. Methods are safe for concurrent use.
type Store interface {
	// Open opens an object for reading; [table.ErrNotFound] if there is none. An
	// open file stays readable after the object was deleted, and after ctx, which is
	// that of the opening alone, has ended.
	Open(ctx context.Context, name string) (File, error)

	// Stat returns the object's size in bytes, or [table.ErrNotFound].
	Stat(ctx context.Context, name string) (uint64, error)

	// List returns the objects directly under dir, in no particular order.
	List(ctx context.Context, dir string) ([]Info, error)

	// ListAll returns the objects under dir at any depth, in no particular order,
	// each by its path below dir. Unlike List it also returns what unfinished
	// writes left behind, under names that mean nothing: it is for counting and
	// for cleaning up.
	ListAll(ctx context.Context, dir string) ([]Info, error)

	// Create starts a new object, whose name must be unused ([ErrExists]). It is
	// there for certain, and whole, when the writer was closed. Until then the writer
	// is under ctx: it fails once that has ended.
	Create(ctx context.Context, name string, opts WriteOptions) (Writer, error)

	// Put writes a whole object, replacing what is there.
	Put(ctx context.Context, name string, data []byte, opts WriteOptions) error

	// PutIfAbsent writes a whole object if the name is unused; see the package
	// comment. When it returns nil the object survives a power failure.
	PutIfAbsent(ctx context.Context, name string, data []byte) error

	// Delete removes an object. That it is gone already is no error.
	Delete(ctx context.Context, name string) error

	// String names the root, for messages.
	String() string

	// ID names the root, for caches that serve several stores: two stores have the
	// same ID only if they are views of the same objects. Empty if that cannot be
	// told.
	ID() string
}

// File is an object opened for reading. ReadAt may be called concurrently, and a read
// that waits ends with its context; Close may not be called while a read is under way.
type File interface {
	readat.ReaderAt
	io.Closer
	Size() int64
	// Token is [Info.Token] of what was opened.
	Token() string
}

// Writer is an object being written, by one goroutine. Exactly one of Close and
// Abort ends it; Abort after Close does nothing.
type Writer interface {
	io.Writer
	// Close completes the object. If it fails the object does not exist.
	Close() error
	// Abort gives the object up, whether the writer's context has ended or not.
	Abort() error
}

// WriteOptions says how durable an object must be, and how soon it is read.
type WriteOptions struct {
	// NoSync leaves flushing to the operating system. The default is false: once
	// the write is done the object survives a power failure.
	NoSync bool
	// Uncached asks that what is written by a [Writer] does not take the place of
	// other things in the operating system's page cache: it is large, and is not
	// known to be read soon. Stores that cannot do that ignore it.
	Uncached bool
}

// Info is one listed object.
type Info struct {
	// Name is the last element of the object's path; of ListAll the path below
	// the directory that was listed.
	Name string
	// Size in bytes.
	Size uint64
	// Modified is when the object was written, by the store's clock.
	Modified time.Time
	// Token tells contents apart that an object had under its name one after the
	// other: whoever finds the same name, size and token again finds the same bytes.
	// Empty if the store cannot promise that, or not yet.
	Token string
}

// CheckName refuses a path that could leave the root: such a name can only come
// from a damaged or hostile manifest.
func CheckName(name string) error {
	if name == "." || !fs.ValidPath(name) || strings.ContainsAny(name, "\x00\\") {
		return table.Corruptf("store: %q is not a relative object path", name)
	}
	return nil
}

// ReadAll reads a whole object, which must not be larger than limit bytes: a
// hostile size must not decide how much is allocated.
func ReadAll(ctx context.Context, s Store, name string, limit int64) ([]byte, error) {
	f, err := s.Open(ctx, name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return ReadFile(ctx, f, name, limit)
}

// ReadFile is [ReadAll] of an object that is open; name is for messages.
func ReadFile(ctx context.Context, f File, name string, limit int64) ([]byte, error) {
	size := f.Size()
	if size > limit {
		return nil, table.Corruptf("store: %s is %d bytes, more than the %d that such an object may have", name, size, limit)
	}
	data := make([]byte, size)
	if n, err := f.ReadAt(ctx, data, 0); n < len(data) {
		return nil, ioError("read", name, err)
	}
	return data, nil
}
