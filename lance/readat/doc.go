// Package readat reads parts of files that may be far away. [ReaderAt] is io.ReaderAt
// under a context: a read that waits for a network, or hangs, ends when its caller no
// longer wants it.
//
// # Example
//
//	ctx, cancel := context.WithTimeout(ctx, time.Minute)
//	defer cancel()
//	head := make([]byte, 64)
//	err := readat.Full(ctx, file, head, 0) // all 64 bytes, or an error that says why not
package readat
