package datafile

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"sync"

	"google.golang.org/protobuf/proto"

	filepb "github.com/rehome-db/rehome/lance/internal/pb/file"
	file2pb "github.com/rehome-db/rehome/lance/internal/pb/file2"
	"github.com/rehome-db/rehome/lance/schema"
	"github.com/rehome-db/rehome/table"
)

const (
	// filler is what writers put between buffers; readers never look at it.
	filler = 0x48

	defaultPageBytes = 8 << 20
)

// WriterOptions tunes a Writer.
type WriterOptions struct {
	// PageBytes is the size, not encoded, at which a page is closed. The default
	// is 8 MiB.
	PageBytes int
	// Aside, if not nil, is offered the encoding of each page that is full: it does
	// the work in another goroutine, if there is one to spare, and returns true at
	// once, or returns false. So columns that are filled one after the other by few
	// goroutines use those that are idle, for a page of memory each. May be called by
	// all columns at a time.
	Aside func(work func()) bool
}

// Writer writes one data file. Each column is filled through its [ColumnWriter];
// different columns may be filled by different goroutines, at the same time or
// one after the other. The Writer itself writes pages as they come and holds
// nothing but their descriptions.
type Writer struct {
	version Version
	schema  *schema.Schema
	columns []*ColumnWriter
	arrays  *arrays // in format 2.0
	aside   func(work func()) bool

	mu      sync.Mutex // guards the rest
	out     *bufio.Writer
	pos     uint64
	buffers []span // global buffers, but for the first, which is the schema
	err     error  // the first, which every later call returns
}

// FileInfo is what a table has to record of a file that was written.
type FileInfo struct {
	Rows, Bytes uint64
	// Fields are the ids of the fields that own columns, Columns the numbers of
	// these columns.
	Fields, Columns []int32
}

// NewWriter returns a writer of a file in the given version for the leaves of s,
// whose field ids it records: the table's schema, not that of files that the rows
// come from. A schema with a type that cannot be written is ErrUnsupported.
func NewWriter(w io.Writer, version Version, s *schema.Schema, opts WriterOptions) (*Writer, error) {
	if version.Minor() > V2_3.Minor() {
		return nil, table.Unsupportedf("datafile: writing format %s is not supported", version)
	}
	if opts.PageBytes <= 0 {
		opts.PageBytes = defaultPageBytes
	}
	out := &Writer{version: version, schema: s, aside: opts.Aside, out: bufio.NewWriterSize(w, 64<<10)}
	for i, leaf := range s.Leaves() {
		c, err := newColumnWriter(out, leaf, opts.PageBytes)
		if err != nil {
			return nil, fmt.Errorf("datafile: column %d: %w", i, err)
		}
		out.columns = append(out.columns, c)
	}
	if version == V2_0 {
		out.arrays = newArrays(s)
		for i, c := range out.columns {
			c.array = out.arrays.leaves[i]
		}
	}
	return out, nil
}

// NumColumns returns the number of columns: one for each leaf of the schema.
func (w *Writer) NumColumns() int { return len(w.columns) }

// Column returns the writer of column i, which is that of leaf i of the schema.
func (w *Writer) Column(i int) *ColumnWriter { return w.columns[i] }

// Bytes returns how many bytes were written so far.
func (w *Writer) Bytes() uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.pos
}

// writePage writes the buffers of a page and returns where each lies. A page is
// written whole before another begins.
func (w *Writer) writePage(buffers [][]byte) (offsets []uint64, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	offsets = make([]uint64, len(buffers))
	for i, b := range buffers {
		offsets[i] = w.pos
		w.write(b)
		w.align()
	}
	return offsets, w.err
}

// write and align record an error in w.err; w.mu is held.
func (w *Writer) write(b []byte) {
	if w.err != nil {
		return
	}
	n, err := w.out.Write(b)
	w.pos += uint64(n)
	if err != nil {
		w.err = fmt.Errorf("datafile: write: %w", err)
	}
}

var fillers = func() (b [alignment]byte) {
	for i := range b {
		b[i] = filler
	}
	return b
}()

func (w *Writer) align() {
	if rest := w.pos % alignment; rest != 0 {
		w.write(fillers[rest:])
	}
}

// Finish closes the columns that are still open and writes the metadata. All
// columns must have the same number of rows; if not, it is a mistake in what they
// were filled from, reported as ErrCorrupt. The underlying writer is flushed but
// not closed.
func (w *Writer) Finish() (FileInfo, error) {
	var info FileInfo
	for i, c := range w.columns {
		if err := c.Close(); err != nil {
			return info, err
		}
		if i == 0 {
			info.Rows = c.rows
		}
		if c.rows != info.Rows {
			return info, table.Corruptf("datafile: column %q has %d rows, column %q has %d",
				w.columns[0].leaf.Path, info.Rows, c.leaf.Path, c.rows)
		}
		info.Fields = append(info.Fields, c.leaf.FieldID)
		info.Columns = append(info.Columns, int32(i))
	}
	if w.arrays != nil {
		if err := w.arrays.finish(w, info.Rows); err != nil {
			return info, err
		}
		info.Fields, info.Columns = w.arrays.fields(), nil
		for i := range info.Fields {
			info.Columns = append(info.Columns, int32(i))
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.writeTail(info.Rows); err != nil {
		return info, err
	}
	info.Bytes = w.pos
	return info, nil
}

// metadata is that of the columns, in order.
func (w *Writer) metadata() []*file2pb.ColumnMetadata {
	if w.arrays != nil {
		return w.arrays.metadata()
	}
	var out []*file2pb.ColumnMetadata
	for _, c := range w.columns {
		out = append(out, c.metadata())
	}
	return out
}

// writeTail writes everything after the pages. A reader finds it from the end of
// the file and takes what lies between the descriptor and the end for metadata,
// so the order matters and nothing else may come between.
func (w *Writer) writeTail(rows uint64) error {
	marshal := proto.MarshalOptions{Deterministic: true}
	descriptor, err := marshal.Marshal(&file2pb.FileDescriptor{
		Schema: &filepb.Schema{Fields: w.schema.FileProto(), Metadata: w.schema.ProtoMetadata()},
		Length: rows,
	})
	if err != nil {
		return fmt.Errorf("datafile: encode the file descriptor: %w", err)
	}
	w.align()
	descriptorAt := w.pos
	w.write(descriptor)

	columnsAt := w.pos
	var columnTable []byte
	columns := w.metadata()
	for i, c := range columns {
		metadata, err := marshal.Marshal(c)
		if err != nil {
			return fmt.Errorf("datafile: encode the metadata of column %d: %w", i, err)
		}
		columnTable = binary.LittleEndian.AppendUint64(columnTable, w.pos)
		columnTable = binary.LittleEndian.AppendUint64(columnTable, uint64(len(metadata)))
		w.write(metadata)
	}
	columnTableAt := w.pos
	w.write(columnTable)

	bufferTableAt := w.pos
	tail := binary.LittleEndian.AppendUint64(nil, descriptorAt)
	tail = binary.LittleEndian.AppendUint64(tail, uint64(len(descriptor)))
	for _, b := range w.buffers {
		tail = binary.LittleEndian.AppendUint64(tail, b.offset)
		tail = binary.LittleEndian.AppendUint64(tail, b.size)
	}

	tail = binary.LittleEndian.AppendUint64(tail, columnsAt)
	tail = binary.LittleEndian.AppendUint64(tail, columnTableAt)
	tail = binary.LittleEndian.AppendUint64(tail, bufferTableAt)
	tail = binary.LittleEndian.AppendUint32(tail, 1+uint32(len(w.buffers))) // the schema first
	tail = binary.LittleEndian.AppendUint32(tail, uint32(len(columns)))
	major, minor := uint16(2), w.version.Minor()
	if w.version == V2_0 {
		major, minor = 0, 3 // what files of 2.0 call themselves
	}
	tail = binary.LittleEndian.AppendUint16(tail, major)
	tail = binary.LittleEndian.AppendUint16(tail, minor)
	tail = append(tail, magic...)
	w.write(tail)
	if w.err == nil {
		if err := w.out.Flush(); err != nil {
			w.err = fmt.Errorf("datafile: write: %w", err)
		}
	}
	return w.err
}
