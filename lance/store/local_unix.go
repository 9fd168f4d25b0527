//go:build unix

package store

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// openNonBlocking makes an open of a FIFO return at once. It changes nothing for files.
const openNonBlocking = syscall.O_NONBLOCK

// inode is the number of a file among those of its file system.
func inode(st fs.FileInfo) uint64 {
	if sys, ok := st.Sys().(*syscall.Stat_t); ok {
		return uint64(sys.Ino)
	}
	return 0
}

// syncDir makes the names in dir durable.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	err = d.Sync()
	if cerr := d.Close(); err == nil {
		err = cerr
	}
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.ENOTSUP) {
		return nil // the file system has no such thing, and needs none
	}
	return err
}

// linked says whether the file has a second name.
func linked(p string) bool {
	st, err := os.Stat(p)
	if err != nil {
		return false
	}
	sys, ok := st.Sys().(*syscall.Stat_t)
	return ok && sys.Nlink > 1
}

// linkUnsupported says whether a link failed because the file system has none:
// FAT and some FUSE file systems say EPERM.
func linkUnsupported(err error) bool {
	return errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.ENOTSUP) ||
		errors.Is(err, syscall.EOPNOTSUPP) || errors.Is(err, syscall.ENOSYS)
}
