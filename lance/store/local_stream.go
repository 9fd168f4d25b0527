package store

import "os"

const (
	// writebackStep is how much is written between two calls of startWriteback.
	writebackStep = 8 << 20
	// uncachedPiece is how much is written with one call of writeUncached. Smaller
	// ones cost calls, larger ones wait for each other: measured.
	uncachedPiece = 1 << 20
)

// localStream writes a file from its beginning to its end, in the way that
// [WriteOptions] ask for.
type localStream struct {
	f       *os.File
	opts    WriteOptions
	written int64
	started int64 // up to where the kernel was asked to write to the disk
}

// Write implements io.Writer.
func (s *localStream) Write(p []byte) (int, error) {
	done := 0
	if s.opts.Uncached {
		n, ok, err := s.writeUncached(p)
		if err != nil || n == len(p) {
			return n, err
		}
		// The kernel or the file system does not know how. Others write as ever.
		done, s.opts.Uncached = n, ok
	}
	n, err := s.f.WriteAt(p[done:], s.written)
	s.written += int64(n)
	if !s.opts.NoSync {
		s.writeback()
	}
	return done + n, err
}

// writeUncached writes what it can of p; ok is false if it should not be tried again.
func (s *localStream) writeUncached(p []byte) (done int, ok bool, err error) {
	for done < len(p) {
		n, ok, err := writeUncached(s.f, p[done:min(done+uncachedPiece, len(p))], s.written)
		s.written += int64(n)
		done += n
		if err != nil || !ok {
			return done, ok, err
		}
	}
	return done, true, nil
}

// writeback keeps the disk busy while a file that will be synced is written: left
// alone, the kernel collects everything until the sync, and then the writer waits
// for all of it at once.
func (s *localStream) writeback() {
	if left := s.written - s.started; left >= writebackStep {
		startWriteback(s.f, s.started, left)
		s.started = s.written
	}
}
