//go:build unix

package cli

import (
	"os"

	"golang.org/x/sys/unix"
)

// pipeBroken says whether f is a pipe that nobody reads any more.
func pipeBroken(f *os.File) bool {
	fds := []unix.PollFd{{Fd: int32(f.Fd()), Events: unix.POLLOUT}}
	n, err := unix.Poll(fds, 0)
	return err == nil && n > 0 && fds[0].Revents&(unix.POLLERR|unix.POLLHUP|unix.POLLNVAL) != 0
}

// writeNonBlocking makes opening a FIFO for writing fail if nobody reads it.
const writeNonBlocking = unix.O_NONBLOCK
