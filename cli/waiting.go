package cli

import (
	"context"
	"io"
	"os"
	"time"
)

// openInput opens a file to read. A FIFO that nobody writes to is waited for until the
// context ends.
func openInput(ctx context.Context, path string) (*os.File, error) {
	if info, err := os.Stat(path); err != nil || info.Mode()&os.ModeNamedPipe == 0 {
		return os.Open(path)
	}
	type result struct {
		f   *os.File
		err error
	}
	opened := make(chan result, 1)
	go func() {
		f, err := os.Open(path)
		opened <- result{f, err}
	}()
	select {
	case r := <-opened:
		return r.f, r.err
	case <-ctx.Done():
	}
	// A writer that comes and goes ends the open, once it has begun.
	for range 100 {
		if w, err := os.OpenFile(path, os.O_WRONLY|writeNonBlocking, 0); err == nil {
			w.Close()
		}
		select {
		case r := <-opened:
			if r.err == nil {
				r.f.Close()
			}
			return nil, ctx.Err()
		case <-time.After(10 * time.Millisecond):
		}
	}
	return nil, ctx.Err()
}

// waiting reads from what may keep a reader waiting: a pipe, a terminal, a device. A
// read ends with the context; the one that is under way then goes on alone until the
// source gives something or is closed. It is for one goroutine.
type waiting struct {
	ctx  context.Context
	r    io.Reader
	buf  []byte
	rest []byte // what was read and not yet taken
	err  error  // that comes after it
	done chan int
}

func newWaiting(ctx context.Context, r io.Reader) *waiting {
	return &waiting{ctx: ctx, r: r, buf: make([]byte, 64<<10), done: make(chan int, 1)}
}

func (w *waiting) Read(p []byte) (int, error) {
	for len(w.rest) == 0 && w.err == nil {
		if err := w.ctx.Err(); err != nil {
			w.err = err // for good: a read may be under way
			break
		}
		var err error
		go func() {
			var n int
			n, err = w.r.Read(w.buf)
			w.done <- n
		}()
		select {
		case n := <-w.done:
			w.rest, w.err = w.buf[:n], err
		case <-w.ctx.Done():
			w.err = w.ctx.Err()
		}
	}
	if len(w.rest) == 0 {
		return 0, w.err
	}
	n := copy(p, w.rest)
	w.rest = w.rest[n:]
	return n, nil
}
