package store

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/rehome-db/rehome/table"
)

// localWriter writes straight to the final name, which is unique and which
// nothing refers to yet: renaming afterwards would buy nothing but a listing
// without the file, and it is only ever found through a manifest.
type localWriter struct {
	ctx    context.Context
	f      *os.File
	stream *localStream
	w      *bufio.Writer
	path   string
	name   string
	noSync bool
	done   bool
}

// Create implements [Store].
func (l *Local) Create(ctx context.Context, name string, opts WriteOptions) (Writer, error) {
	p, err := l.path(name)
	if err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := l.makeDir(p, opts.NoSync); err != nil {
		return nil, localError("create", name, err)
	}
	f, err := os.OpenFile(p, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return nil, exists(name)
	}
	if err != nil {
		return nil, localError("create", name, err)
	}
	s := newLocalStream(f, opts)
	return &localWriter{ctx: ctx, f: f, stream: s, w: bufio.NewWriterSize(s, 256<<10), path: p, name: name, noSync: opts.NoSync}, nil
}

func (w *localWriter) Write(p []byte) (int, error) {
	if err := w.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := w.w.Write(p)
	if err != nil {
		return n, localError("write", w.name, err)
	}
	return n, nil
}

func (w *localWriter) Close() error {
	if w.done {
		return nil
	}
	w.done = true
	err := w.ctx.Err()
	if err == nil {
		err = w.w.Flush()
	}
	if err == nil {
		err = w.stream.finish()
	}
	if err == nil && !w.noSync {
		err = w.f.Sync()
	}
	if cerr := w.f.Close(); err == nil {
		err = cerr
	}
	if err == nil && !w.noSync {
		err = syncDir(filepath.Dir(w.path))
	}
	if err != nil {
		return errors.Join(localError("write", w.name, err), removeQuietly(w.path))
	}
	return nil
}

func (w *localWriter) Abort() error {
	if w.done {
		return nil
	}
	w.done = true
	w.f.Close()
	return removeQuietly(w.path)
}

func removeQuietly(p string) error {
	if err := os.Remove(p); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("store: could not remove what was written: %w", err)
	}
	return nil
}

// writeTemp writes data under a temporary name beside p.
func (l *Local) writeTemp(p string, data []byte, opts WriteOptions) (temp string, err error) {
	if err := l.makeDir(p, opts.NoSync); err != nil {
		return "", err
	}
	temp = tempName(p)
	f, err := os.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return "", err
	}
	_, err = f.Write(data)
	if err == nil && !opts.NoSync {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return "", errors.Join(err, removeQuietly(temp))
	}
	return temp, nil
}

// Put implements [Store]: a rename, so that readers see the old bytes or the new.
func (l *Local) Put(ctx context.Context, name string, data []byte, opts WriteOptions) error {
	p, err := l.path(name)
	if err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	temp, err := l.writeTemp(p, data, opts)
	if err != nil {
		return localError("put", name, err)
	}
	if err := os.Rename(temp, p); err != nil {
		return errors.Join(localError("put", name, err), removeQuietly(temp))
	}
	if opts.NoSync {
		return nil
	}
	if err := syncDir(filepath.Dir(p)); err != nil {
		return localError("put", name, err)
	}
	return nil
}

// PutIfAbsent implements [Store].
func (l *Local) PutIfAbsent(ctx context.Context, name string, data []byte) error {
	p, err := l.path(name)
	if err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	temp, err := l.writeTemp(p, data, WriteOptions{})
	if err != nil {
		return localError("put", name, err)
	}
	moved, err := publish(temp, p)
	if !moved {
		// After a successful link this takes away the temporary name only, and
		// if it fails nobody minds: such names are not listed.
		_ = os.Remove(temp)
	}
	switch {
	case err == nil:
	case errors.Is(err, fs.ErrExist):
		return taken(p, name)
	case errors.Is(err, errNoAtomicPublish):
		return table.Unsupportedf("store: cannot publish %s: the file system under %s has neither hard links nor a rename that refuses to replace, so two writers could both believe they committed", name, l.root)
	default:
		return localError("put", name, err)
	}
	if err := syncDir(filepath.Dir(p)); err != nil {
		// Visible to everybody now, but a power failure may still take it back.
		return fmt.Errorf("%w: %w", localError("sync the directory of", name, err), ErrAmbiguous)
	}
	return nil
}

// taken is [ErrExists], or says what else than an object has the name: nobody will ever
// read it or take it away.
func taken(p, name string) error {
	st, err := os.Stat(p)
	if errors.Is(err, fs.ErrNotExist) || err == nil && st.Mode().IsRegular() {
		if l, lerr := os.Lstat(p); lerr != nil || l.Mode()&fs.ModeSymlink == 0 || err == nil {
			return exists(name)
		}
	}
	if st, err = os.Lstat(p); err != nil {
		return exists(name) // gone since
	}
	return fmt.Errorf("store: cannot write %s: what has the name is %s; move it away", name, kindOf(st.Mode()))
}

var errNoAtomicPublish = errors.New("no atomic publish")

// publish gives the file temp the name p unless that is taken (fs.ErrExist).
// moved says that temp is gone because it was renamed.
func publish(temp, p string) (moved bool, err error) {
	err = os.Link(temp, p)
	if err == nil {
		return false, nil
	}
	// A network file system may lose the answer to a link that worked and report
	// the retransmission's error. The link count tells.
	if linked(temp) {
		return false, nil
	}
	if errors.Is(err, fs.ErrExist) {
		return false, err
	}
	if !linkUnsupported(err) {
		return false, err
	}
	if err := renameNoReplace(temp, p); err != nil {
		return false, err
	}
	return true, nil
}
