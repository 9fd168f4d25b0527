package store

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/rehome-db/rehome/lance/readat"
)

// Local is a [Store] of files under a directory. Files are readable by all and
// writable by their owner (0644), as stock engines leave manifests.
type Local struct{ root string }

// NewLocal returns the store rooted at dir, which need not exist yet.
func NewLocal(dir string) (*Local, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("store: %s: %w", dir, err)
	}
	return &Local{root: abs}, nil
}

// String implements [Store].
func (l *Local) String() string { return l.root }

func (l *Local) path(name string) (string, error) {
	if err := CheckName(name); err != nil {
		return "", err
	}
	return filepath.Join(l.root, filepath.FromSlash(name)), nil
}

// ID implements [Store]: the directory. Links in the way to it are not followed, so
// a directory that is reached in two ways has two.
func (l *Local) ID() string { return "file:" + l.root }

type localFile struct {
	f     *os.File
	name  string
	size  int64
	token string
}

func (f *localFile) Size() int64 { return f.size }

func (f *localFile) Token() string { return f.token }

// ReadAt implements [readat.ReaderAt]. The system cannot be asked to give up a read of a
// disk: a context that has ended stops the next one.
func (f *localFile) ReadAt(ctx context.Context, p []byte, off int64) (int, error) {
	return readat.Local(f.f).ReadAt(ctx, p, off)
}

func (f *localFile) Close() error { return f.f.Close() }

// Open implements [Store].
func (l *Local) Open(ctx context.Context, name string) (File, error) {
	p, err := l.path(name)
	if err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	now := time.Now()
	// A plain open of a FIFO without a writer, or of a device, may never return.
	f, err := os.OpenFile(p, os.O_RDONLY|openNonBlocking, 0)
	if err != nil {
		return nil, openError(p, name, err)
	}
	st, err := f.Stat()
	if err == nil && !st.Mode().IsRegular() {
		err = notObject(name, st.Mode())
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return &localFile{f: f, name: name, size: st.Size(), token: token(st, now)}, nil
}

// Stat implements [Store].
func (l *Local) Stat(ctx context.Context, name string) (uint64, error) {
	p, err := l.path(name)
	if err != nil {
		return 0, err
	}
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	st, err := os.Stat(p)
	if err != nil {
		return 0, localError("stat", name, err)
	}
	if !st.Mode().IsRegular() {
		return 0, notFound(name)
	}
	return uint64(st.Size()), nil
}

// List implements [Store].
func (l *Local) List(ctx context.Context, dir string) ([]Info, error) {
	p, err := l.path(dir)
	if err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	now := time.Now()
	entries, err := os.ReadDir(p)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, localError("list", dir, err)
	}
	out := make([]Info, 0, len(entries))
	for _, e := range entries {
		if isTemp(e.Name()) {
			continue
		}
		// Follows a symbolic link, as Open does.
		st, err := os.Stat(filepath.Join(p, e.Name()))
		if errors.Is(err, fs.ErrNotExist) || err != nil && e.Type()&fs.ModeSymlink != 0 {
			continue // deleted since the directory was read, or a link that leads nowhere
		}
		if err != nil {
			return nil, localError("list", dir, err)
		}
		if st.Mode().IsRegular() {
			out = append(out, Info{Name: e.Name(), Size: uint64(st.Size()), Modified: st.ModTime(), Token: token(st, now)})
		}
	}
	return out, nil
}

// ListAll implements [Store]. A link to a directory is followed if it is dir
// itself, and not below it.
func (l *Local) ListAll(ctx context.Context, dir string) ([]Info, error) {
	p, err := l.path(dir)
	if err != nil {
		return nil, err
	}
	var out []Info
	now := time.Now()
	if real, rerr := filepath.EvalSymlinks(p); rerr == nil {
		p = real // a walk does not follow its own root
	}
	// Not through an fs.FS, which has no names that are not UTF-8.
	err = filepath.WalkDir(p, func(full string, e fs.DirEntry, err error) error {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil || e.IsDir() {
			return gone(err)
		}
		st, err := os.Stat(full)
		if err != nil && e.Type()&fs.ModeSymlink != 0 {
			return nil // it leads nowhere
		}
		if err != nil {
			return gone(err)
		}
		if st.Mode().IsRegular() {
			name, err := filepath.Rel(p, full)
			if err != nil {
				return err
			}
			out = append(out, Info{Name: filepath.ToSlash(name), Size: uint64(st.Size()), Modified: st.ModTime(), Token: token(st, now)})
		}
		return nil
	})
	if err != nil {
		if ctx.Err() != nil {
			return nil, err
		}
		return nil, localError("list", dir, err)
	}
	return out, nil
}

// gone forgives what was deleted since its directory was read, the directory that
// was to be listed included.
func gone(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// Delete implements [Store].
func (l *Local) Delete(ctx context.Context, name string) error {
	p, err := l.path(name)
	if err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := os.Remove(p); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return localError("delete", name, err)
	}
	// A directory of its own (_indices/<uuid>/) has no use without the object, and
	// fails to be removed while it has others. The shared ones at the top stay: an
	// object may be about to be created in them.
	if strings.Count(name, "/") > 1 {
		_ = os.Remove(filepath.Dir(p))
	}
	return nil
}

// tempName returns an unused temporary name beside the file p.
func tempName(p string) string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return filepath.Join(filepath.Dir(p), tempPrefix+filepath.Base(p)+"_"+hex.EncodeToString(b[:]))
}

// makeDir creates the directory of the file p, and syncs the parents of what it
// made: a new directory is lost in a power failure like a new file.
func (l *Local) makeDir(p string, noSync bool) error {
	dir := filepath.Dir(p)
	if _, err := os.Stat(dir); err == nil {
		return nil
	}
	var made []string
	for d := dir; ; d = filepath.Dir(d) {
		if _, err := os.Stat(d); err == nil || d == filepath.Dir(d) {
			break
		}
		made = append(made, filepath.Dir(d))
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if noSync {
		return nil
	}
	for _, parent := range made {
		if err := syncDir(parent); err != nil {
			return err
		}
	}
	return nil
}

// openError says what lies under a name that cannot be opened, if that is the reason.
func openError(p, name string, err error) error {
	st, lerr := os.Lstat(p)
	if lerr == nil && !st.Mode().IsRegular() && !errors.Is(err, fs.ErrPermission) {
		return notObject(name, st.Mode())
	}
	return localError("open", name, err)
}

// notObject is for a name that something else has than an object: for readers it is
// not there ([table.ErrNotFound]), and no writer gets it.
func notObject(name string, mode fs.FileMode) error {
	return fmt.Errorf("%w: what lies there is %s", notFound(name), kindOf(mode))
}

func kindOf(mode fs.FileMode) string {
	switch {
	case mode.IsDir():
		return "a directory"
	case mode&fs.ModeSymlink != 0:
		return "a symbolic link that leads to no file"
	case mode&fs.ModeNamedPipe != 0:
		return "a FIFO"
	case mode&fs.ModeSocket != 0:
		return "a socket"
	case mode&fs.ModeDevice != 0:
		return "a device"
	default:
		return "no regular file"
	}
}

func localError(verb, name string, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return notFound(name)
	}
	// The path in a PathError repeats the name, with the machine's root before it.
	var pe *fs.PathError
	if errors.As(err, &pe) {
		err = pe.Err
	}
	return ioError(verb, path.Clean(name), err)
}

var _ Store = (*Local)(nil)
