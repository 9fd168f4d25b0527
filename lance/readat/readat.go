package readat

import (
	"bytes"
	"context"
	"errors"
	"io"

	"github.com/rehome-db/rehome/table"
)

// ReaderAt is something whose bytes are read in any order. Its methods may be called
// concurrently.
type ReaderAt interface {
	// ReadAt fills p with the bytes from off on, as io.ReaderAt does: n < len(p) comes
	// with an error, and io.EOF may come with n == len(p). It returns soon after ctx
	// has ended, with an error that wraps ctx.Err() if p is not full, and does not
	// touch p after that.
	ReadAt(ctx context.Context, p []byte, off int64) (n int, err error)
}

// Full fills p with what r has at off. It is [table.ErrCorrupt] if r ends before that:
// offsets come from files, which are said to be long enough. Other errors are r's own.
func Full(ctx context.Context, r ReaderAt, p []byte, off uint64) error {
	if len(p) == 0 {
		return ctx.Err()
	}
	n, err := r.ReadAt(ctx, p, int64(off))
	switch {
	case n == len(p):
		return nil // io.EOF may come together with all that was asked for
	case err == nil || errors.Is(err, io.EOF):
		return table.Corruptf("the file ends at %d, within %d bytes at %d", off+uint64(n), len(p), off)
	default:
		return err
	}
}

// piece bounds one allocation: a damaged length must not decide how much that is.
const piece = 64 << 20

// All reads size bytes at off, which r is said to have; see [Full].
func All(ctx context.Context, r ReaderAt, off, size uint64) ([]byte, error) {
	out := make([]byte, min(size, piece))
	for have := uint64(0); ; {
		if err := Full(ctx, r, out[have:], off+have); err != nil {
			return nil, err
		}
		if have = uint64(len(out)); have == size {
			return out, nil
		}
		out = append(out, make([]byte, min(size-have, piece))...)
	}
}

// Section returns a reader of the n bytes of r from off on, for one goroutine. Its reads
// are under ctx.
func Section(ctx context.Context, r ReaderAt, off, n uint64) io.Reader {
	return io.NewSectionReader(under{ctx, r}, int64(off), int64(n))
}

// under is an io.ReaderAt whose reads are under one context.
type under struct {
	ctx context.Context
	r   ReaderAt
}

func (u under) ReadAt(p []byte, off int64) (int, error) { return u.r.ReadAt(u.ctx, p, off) }

// Local returns a ReaderAt of something that is near, whose reads do not wait: it asks
// for the end of the context only before each.
func Local(r io.ReaderAt) ReaderAt { return local{r} }

type local struct{ r io.ReaderAt }

func (l local) ReadAt(ctx context.Context, p []byte, off int64) (int, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	return l.r.ReadAt(p, off)
}

// Bytes returns a ReaderAt of b, which must not change.
func Bytes(b []byte) ReaderAt { return Local(bytes.NewReader(b)) }
