package store

import "os"

const (
	// writebackStep is how much is written between two calls of startWriteback.
	writebackStep = 8 << 20
	// uncachedPiece is how much is written with one call of writeUncached, from a
	// multiple of it on. Smaller ones cost calls, larger ones wait for each other:
	// measured. They are aligned so that no page of memory is written to again while
	// the kernel lets go of it.
	uncachedPiece = 1 << 20
)

// localStream writes a file from its beginning to its end, in the way that
// [WriteOptions] ask for.
type localStream struct {
	f       *os.File
	opts    WriteOptions
	held    []byte // what fills no piece yet, if Uncached
	written int64  // without held
	started int64  // up to where the kernel was asked to write to the disk
}

func newLocalStream(f *os.File, opts WriteOptions) *localStream {
	opts.Uncached = opts.Uncached && canWriteUncached()
	return &localStream{f: f, opts: opts}
}

// Write implements io.Writer.
func (s *localStream) Write(p []byte) (int, error) {
	if !s.opts.Uncached {
		return s.writeCached(p)
	}
	done := 0
	for len(s.held)+len(p)-done >= uncachedPiece {
		next := p[done : done+uncachedPiece-len(s.held)]
		if err := s.writePiece(next); err != nil {
			return done, err
		}
		done += len(next)
		if !s.opts.Uncached {
			n, err := s.writeCached(p[done:])
			return done + n, err
		}
	}
	s.held = append(s.held, p[done:]...)
	return len(p), nil
}

// writePiece writes a piece: what is held, and next.
func (s *localStream) writePiece(next []byte) error {
	n, err := writeUncached(s.f, [][]byte{s.held, next}, s.written)
	s.written += int64(n)
	if err != nil {
		return err
	}
	if n == uncachedPiece {
		s.held = s.held[:0]
		return nil
	}
	// The file system does not know how, or has stopped within the piece. From here on
	// the file is written as ever.
	s.opts.Uncached = false
	rest := append(s.held, next...)[n:]
	s.held = nil
	_, err = s.writeCached(rest)
	return err
}

// finish writes what is held: the end of the file, with its metadata, stays in the page
// cache.
func (s *localStream) finish() error {
	rest := s.held
	s.held = nil
	_, err := s.writeCached(rest)
	return err
}

// writeCached writes through the page cache, and keeps the disk busy while a file that
// will be synced is written: left alone, the kernel collects everything until the sync,
// and then the writer waits for all of it at once.
func (s *localStream) writeCached(p []byte) (int, error) {
	n, err := s.f.WriteAt(p, s.written)
	s.written += int64(n)
	if left := s.written - s.started; left >= writebackStep && !s.opts.NoSync {
		startWriteback(s.f, s.started, left)
		s.started = s.written
	}
	return n, err
}
