package store

import (
	"io/fs"
	"strconv"
	"time"
)

// A file that is replaced, or even written over where it lies, gets another inode or
// another time of modification. But time goes in steps: a file that was written twice
// within one of them has the same time before and after. So a file has no token until
// it is older than a step of the clock that files are stamped by.
const (
	// stampStep is longer than what kernels round to, which is at most 1/100 s.
	stampStep = 20 * time.Millisecond
	// coarseStep is for file systems that keep no fractions of a second, of which
	// the worst keeps every other second.
	coarseStep = 3 * time.Second
)

// token makes the token of a file that was looked at no earlier than now.
func token(st fs.FileInfo, now time.Time) string {
	modified, step := st.ModTime(), stampStep
	if modified.Nanosecond() == 0 {
		step = coarseStep
	}
	if now.Sub(modified) < step {
		return ""
	}
	b := strconv.AppendUint(nil, inode(st), 36)
	b = append(b, '.')
	return string(strconv.AppendInt(b, modified.UnixNano(), 36))
}
