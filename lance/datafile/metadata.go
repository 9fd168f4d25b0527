package datafile

import (
	"github.com/rehome-db/rehome/lance/datafile/encoding"
	"github.com/rehome-db/rehome/lance/readat"
)

// Metadata is what [Open] reads of a file, apart from the file: it is had once and
// used over any number of open files with the same bytes. It is immutable and safe for
// concurrent use.
type Metadata struct{ file File }

// Metadata returns the file's metadata. It does not hold on to the file's reader.
func (f *File) Metadata() *Metadata { return &Metadata{file: *f.over(nil)} }

// Open returns an open file with this metadata, which reads nothing. r must have the
// bytes that the metadata was read from. The file does not close r.
func (m *Metadata) Open(r readat.ReaderAt) *File { return m.file.over(r) }

// over returns the same file read through r.
func (f *File) over(r readat.ReaderAt) *File {
	out := *f
	out.r = r
	columns := make([]Column, len(f.columns))
	out.columns = make([]*Column, len(f.columns))
	for i, c := range f.columns {
		columns[i] = *c
		columns[i].file = &out
		out.columns[i] = &columns[i]
	}
	return &out
}

// WithLimits returns the same file, of which blocks are kept to limits other than the
// defaults.
func (f *File) WithLimits(l encoding.Limits) *File {
	out := f.over(f.r)
	out.limits = l
	return out
}

// Bytes is about how much memory the metadata takes.
func (m *Metadata) Bytes() int64 {
	const file, column, page, buffer, field = 300, 120, 450, 30, 500
	n := int64(file + field*len(m.file.columns))
	for _, c := range m.file.columns {
		n += column
		for _, p := range c.pages {
			n += page + buffer*int64(len(p.Buffers))
		}
	}
	return n
}
