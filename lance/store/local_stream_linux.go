//go:build linux

package store

import (
	"errors"
	"fmt"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// startWriteback asks the kernel to begin writing a range of the file to the disk,
// without waiting for it. It is advice: a sync at the end is still what makes the
// file safe, and finds less left to do.
func startWriteback(f *os.File, off, n int64) {
	_ = unix.SyncFileRange(int(f.Fd()), off, n, unix.SYNC_FILE_RANGE_WRITE)
}

// rwfDontCache is RWF_DONTCACHE of pwritev2(2): the kernel writes to the disk at once,
// without waiting, and lets go of the memory when that is done.
const rwfDontCache = 0x80

// canWriteUncached says whether the kernel can be trusted with it. Linux has the flag
// since 6.14; before 6.16 it could let go of memory that was written to again
// meanwhile.
var canWriteUncached = sync.OnceValue(func() bool {
	var u unix.Utsname
	var major, minor int
	if unix.Uname(&u) != nil {
		return false
	}
	if n, _ := fmt.Sscanf(unix.ByteSliceToString(u.Release[:]), "%d.%d", &major, &minor); n < 2 {
		return false
	}
	return major > 6 || major == 6 && minor >= 16
})

// writeUncached writes buffers at an offset so that they do not stay in the page cache.
// It writes less, or nothing, where the file system does not know how.
func writeUncached(f *os.File, buffers [][]byte, off int64) (int, error) {
	for {
		n, err := unix.Pwritev2(int(f.Fd()), buffers, off, rwfDontCache)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case errors.Is(err, unix.EOPNOTSUPP), errors.Is(err, unix.ENOSYS), errors.Is(err, unix.EINVAL):
			return 0, nil
		case err != nil:
			return max(n, 0), os.NewSyscallError("pwritev2", err)
		}
		return n, nil
	}
}
