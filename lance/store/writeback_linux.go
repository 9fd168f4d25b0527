//go:build linux

package store

import (
	"os"

	"golang.org/x/sys/unix"
)

// startWriteback asks the kernel to begin writing a range of the file to the disk,
// without waiting for it. It is advice: a sync at the end is still what makes the
// file safe, and finds less left to do.
func startWriteback(f *os.File, off, n int64) {
	_ = unix.SyncFileRange(int(f.Fd()), off, n, unix.SYNC_FILE_RANGE_WRITE)
}
