//go:build linux

package store

import (
	"errors"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// startWriteback asks the kernel to begin writing a range of the file to the disk,
// without waiting for it. It is advice: a sync at the end is still what makes the
// file safe, and finds less left to do.
func startWriteback(f *os.File, off, n int64) {
	_ = unix.SyncFileRange(int(f.Fd()), off, n, unix.SYNC_FILE_RANGE_WRITE)
}

// rwfDontCache is RWF_DONTCACHE of pwritev2(2), since Linux 6.14: the kernel writes
// to the disk at once, without waiting, and lets go of the memory when that is done.
const rwfDontCache = 0x80

// writeUncached writes p at an offset, or a part of it, so that it does not stay in
// the page cache; ok is false, and nothing is written, where that is not possible.
func writeUncached(f *os.File, p []byte, off int64) (n int, ok bool, err error) {
	for {
		n, err = unix.Pwritev2(int(f.Fd()), [][]byte{p}, off, rwfDontCache)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case errors.Is(err, unix.EOPNOTSUPP), errors.Is(err, unix.ENOSYS), errors.Is(err, unix.EINVAL):
			return 0, false, nil
		case err != nil:
			return max(n, 0), true, os.NewSyscallError("pwritev2", err)
		case n == 0:
			return 0, true, io.ErrShortWrite
		}
		return n, true, nil
	}
}
