//go:build unix

package main

import (
	"os"
	"runtime"
	"syscall"
)

// maxRSSOf returns the most resident memory that an ended process had, in bytes.
func maxRSSOf(p *os.ProcessState) int64 {
	u, ok := p.SysUsage().(*syscall.Rusage)
	if !ok {
		return 0
	}
	if runtime.GOOS == "darwin" {
		return int64(u.Maxrss)
	}
	return int64(u.Maxrss) << 10 // Linux counts kilobytes
}
