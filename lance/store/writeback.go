package store

import "os"

// writebackStep is how much is written between two calls of startWriteback.
const writebackStep = 8 << 20

// writebackFile writes to a file that will be synced, and keeps the disk busy
// meanwhile: left alone, the kernel collects everything until the sync, and then
// the writer waits for all of it at once.
type writebackFile struct {
	f                *os.File
	written, started int64
}

// Write implements io.Writer.
func (w *writebackFile) Write(p []byte) (int, error) {
	n, err := w.f.Write(p)
	w.written += int64(n)
	if left := w.written - w.started; left >= writebackStep {
		startWriteback(w.f, w.started, left)
		w.started = w.written
	}
	return n, err
}
