package datafile

import (
	"context"
	"fmt"

	"github.com/rehome-db/rehome/lance/readat"
	"github.com/rehome-db/rehome/table"
)

// A file can hold buffers that belong to no column, its global buffers. They are
// numbered; number 0 is the schema, which files of tables have alone.

// GlobalBuffer reads global buffer i, from 1, whole. It is ErrCorrupt if there is
// none or it has more than limit bytes: the number comes from somebody else's
// metadata.
func (f *File) GlobalBuffer(ctx context.Context, i uint64, limit int64) ([]byte, error) {
	if i == 0 || i >= uint64(len(f.buffers)) {
		return nil, f.wrap(table.Corruptf("there is no global buffer %d: the file has %d and the schema", i, len(f.buffers)-1))
	}
	s := f.buffers[i]
	if s.size > uint64(max(limit, 0)) {
		return nil, f.wrap(table.Corruptf("global buffer %d has %d bytes, more than the %d that it may have", i, s.size, limit))
	}
	b, err := readat.All(ctx, f.r, s.offset, s.size)
	if err != nil {
		return nil, f.wrap(fmt.Errorf("global buffer %d: %w", i, err))
	}
	return b, nil
}

// AddGlobalBuffer writes a global buffer and returns its number. It may be called at
// any time before Finish.
func (w *Writer) AddGlobalBuffer(b []byte) (uint64, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.align()
	w.buffers = append(w.buffers, span{w.pos, uint64(len(b))})
	w.write(b)
	w.align()
	return uint64(len(w.buffers)), w.err
}
