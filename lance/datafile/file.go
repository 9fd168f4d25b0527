package datafile

import (
	"context"
	"fmt"
	"sync"

	"google.golang.org/protobuf/proto"

	"github.com/rehome-db/rehome/lance/datafile/encoding"
	file2pb "github.com/rehome-db/rehome/lance/internal/pb/file2"
	"github.com/rehome-db/rehome/lance/readat"
	"github.com/rehome-db/rehome/lance/schema"
	"github.com/rehome-db/rehome/table"
)

// tailSize is how much of the end of a file is read at first. It holds all
// metadata of most files.
const tailSize = 64 << 10

var tails = sync.Pool{New: func() any { return new([tailSize]byte) }}

// maxRows bounds the rows of a file, as fragments are bounded.
const maxRows = 1 << 32

// File is an open data file. Its metadata is in memory; column data is read when
// asked for. It is safe for concurrent use if the reader is.
type File struct {
	name    string
	r       readat.ReaderAt
	size    int64
	version Version
	rows    uint64
	schema  *schema.Schema
	columns []*Column
	buffers []span // global buffers; the first is the schema
	kind    kind   // what pages tell of the version
	// limits are the defaults, except where tests want less.
	limits encoding.Limits
}

// Open reads the metadata of a file of the given size. name is for messages: the
// file's path in the table. Formats other than 2.0 to 2.3 are ErrUnsupported, a
// file that is cut off or damaged is ErrCorrupt. The file does not close r.
func Open(ctx context.Context, r readat.ReaderAt, size int64, name string) (*File, error) {
	f := &File{name: name, r: r, size: size}
	if err := f.open(ctx); err != nil {
		return nil, f.wrap(err)
	}
	return f, nil
}

// Version returns the file's format version.
func (f *File) Version() Version { return f.version }

// Rows returns the number of rows, deleted ones included.
func (f *File) Rows() uint64 { return f.rows }

// Schema returns the schema that the file was written with. A table's own schema
// may have moved on: columns are found by the field ids in the table's manifest.
func (f *File) Schema() *schema.Schema { return f.schema }

// Size returns the file's size in bytes.
func (f *File) Size() int64 { return f.size }

// NumColumns returns the number of columns.
func (f *File) NumColumns() int { return len(f.columns) }

// Column returns column i, or ErrCorrupt if there is none: column numbers come
// from a table's manifest.
func (f *File) Column(i int) (*Column, error) {
	if i < 0 || i >= len(f.columns) {
		return nil, f.wrap(table.Corruptf("there is no column %d: the file has %d", i, len(f.columns)))
	}
	return f.columns[i], nil
}

func (f *File) wrap(err error) error { return fmt.Errorf("datafile: %s: %w", f.name, err) }

func (f *File) open(ctx context.Context) error {
	if f.size < footerSize {
		return table.Corruptf("the file of %d bytes is too short for a footer", f.size)
	}
	m := metadataReader{ctx: ctx, r: f.r, offset: max(f.size-tailSize, 0)}
	buffer := tails.Get().(*[tailSize]byte)
	defer tails.Put(buffer) // what is decoded of it is copied
	m.tail = buffer[:f.size-m.offset]
	err := readat.Full(ctx, f.r, m.tail, uint64(m.offset))
	if err != nil {
		return err
	}
	foot, err := parseFooter(m.tail, f.size)
	if err != nil {
		return err
	}
	if f.version, err = foot.version(); err != nil {
		return err
	}
	if err := foot.check(f.size); err != nil {
		return err
	}
	end := uint64(f.size) - footerSize
	raw, err := m.read(span{foot.bufferTable, 16 * uint64(foot.buffers)})
	if err != nil {
		return err
	}
	buffers, err := parseTable(raw, end, "global buffer")
	if err != nil {
		return err
	}
	f.buffers = buffers
	if err := m.prefetch(buffers[0], foot); err != nil {
		return err
	}
	if err := f.readSchema(&m, buffers[0]); err != nil {
		return err
	}
	if err := f.readColumns(&m, foot); err != nil {
		return err
	}
	if f.kind.known && f.kind.version == V2_2Narrow {
		f.version = V2_2Narrow
	}
	return nil
}

func (f *File) readSchema(m *metadataReader, at span) error {
	raw, err := m.read(at)
	if err != nil {
		return err
	}
	var d file2pb.FileDescriptor
	if err := proto.Unmarshal(raw, &d); err != nil {
		return table.Corruptf("the schema cannot be decoded: %w", err)
	}
	if d.GetLength() > maxRows {
		return table.Corruptf("the file claims to have %d rows", d.GetLength())
	}
	f.rows = d.GetLength()
	f.schema, err = schema.FromProto(d.GetSchema().GetFields(), d.GetSchema().GetMetadata())
	return err
}

func (f *File) readColumns(m *metadataReader, foot footer) error {
	raw, err := m.read(span{foot.columnTable, 16 * uint64(foot.columns)})
	if err != nil {
		return err
	}
	at, err := parseTable(raw, uint64(f.size)-footerSize, "the metadata of column")
	if err != nil {
		return err
	}
	// If columns share bytes, a little metadata could take unbounded time.
	total := uint64(0)
	for _, s := range at {
		if total += s.size; total > uint64(f.size) {
			return table.Corruptf("the metadata of %d columns is larger than the file", len(at))
		}
	}
	f.columns = make([]*Column, len(at))
	for i, s := range at {
		raw, err := m.read(s)
		if err != nil {
			return err
		}
		if f.columns[i], err = f.parseColumn(i, raw); err != nil {
			return fmt.Errorf("column %d: %w", i, err)
		}
	}
	return nil
}

// metadataReader serves reads from the end of the file that is in memory.
type metadataReader struct {
	ctx    context.Context
	r      readat.ReaderAt
	offset int64 // of tail
	tail   []byte
}

// prefetch reads all metadata at once if it does not lie in the tail, provided
// that it stands together as writers put it: schema, columns, tables.
func (m *metadataReader) prefetch(schema span, foot footer) error {
	from := int64(min(schema.offset, foot.columnMetadata))
	if gap := m.offset - from; gap > 0 && gap <= 16<<20 {
		head, err := readat.All(m.ctx, m.r, uint64(from), uint64(gap))
		if err != nil {
			return err
		}
		m.tail, m.offset = append(head, m.tail...), from
	}
	return nil
}

// read returns bytes that lie in the file.
func (m *metadataReader) read(s span) ([]byte, error) {
	if from := int64(s.offset) - m.offset; from >= 0 && from+int64(s.size) <= int64(len(m.tail)) {
		return m.tail[from : from+int64(s.size)], nil
	}
	return readat.All(m.ctx, m.r, s.offset, s.size)
}
