package datafile

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/apache/arrow-go/v18/arrow"
	"google.golang.org/protobuf/proto"

	"github.com/rehome-db/rehome/lance/datafile/encoding"
	"github.com/rehome-db/rehome/lance/datafile/level"
	file2pb "github.com/rehome-db/rehome/lance/internal/pb/file2"
	"github.com/rehome-db/rehome/lance/schema"
)

// What a field's metadata can ask for.
const (
	compressionKey      = "lance-encoding:compression"
	compressionLevelKey = "lance-encoding:compression-level"
)

var errColumnClosed = errors.New("the column is closed")

// ColumnWriter gathers the rows of one column into pages and writes them. It
// holds about one page. It is not safe for concurrent use; the writers of
// different columns of a file are independent.
type ColumnWriter struct {
	w         *Writer
	leaf      schema.Leaf
	pageBytes int

	builder *level.Builder
	encoder *encoding.Encoder
	rows    uint64 // in pages and builder
	paged   uint64 // in pages
	pages   []*file2pb.ColumnMetadata_Page
	closed  bool
	err     error
}

func newColumnWriter(w *Writer, leaf schema.Leaf, pageBytes int) (*ColumnWriter, error) {
	if leaf.Unsupported != nil {
		return nil, leaf.Unsupported
	}
	return &ColumnWriter{w: w, leaf: leaf, pageBytes: pageBytes}, nil
}

// Leaf returns the leaf that the column holds.
func (c *ColumnWriter) Leaf() schema.Leaf { return c.leaf }

// Rows returns the number of rows appended.
func (c *ColumnWriter) Rows() uint64 { return c.rows }

// Append appends all rows of b, whose layers may be any of the leaf's shape. b is
// not kept.
func (c *ColumnWriter) Append(b *level.Block) error {
	cursor, err := level.NewCursor(b)
	if err != nil {
		return c.fail(err)
	}
	return c.Take(cursor, b.Rows)
}

// Take appends the next n rows at the cursor, or what is left if that is less.
func (c *ColumnWriter) Take(cursor *level.Cursor, n int) error {
	for n = min(n, cursor.Remaining()); n > 0; {
		if err := c.open(); err != nil {
			return err
		}
		k := min(n, c.room(cursor.RowBytes()))
		if err := c.builder.Take(cursor, k); err != nil {
			return c.fail(err)
		}
		n -= k
		if err := c.appended(k); err != nil {
			return err
		}
	}
	return nil
}

// TakeNulls appends n null rows.
func (c *ColumnWriter) TakeNulls(n int) error {
	rowBytes := 2 + c.leaf.Type.ValueBits()/8
	if c.leaf.Type.Kind == level.Variable {
		rowBytes += 4
	}
	for n > 0 {
		if err := c.open(); err != nil {
			return err
		}
		k := min(n, c.room(float64(rowBytes)))
		if err := c.builder.TakeNulls(k); err != nil {
			return c.fail(err)
		}
		n -= k
		if err := c.appended(k); err != nil {
			return err
		}
	}
	return nil
}

// open makes the builder and the encoder, which a column needs only while it is
// being filled.
func (c *ColumnWriter) open() error {
	if c.err != nil || c.builder != nil {
		return c.err
	}
	if c.closed {
		return c.fail(errColumnClosed)
	}
	var err error
	if c.builder, err = level.NewBuilder(c.leaf.Type, c.leaf.Layers); err != nil {
		return c.fail(err)
	}
	c.encoder = encoding.NewEncoder(encodeOptions(c.w.version, c.leaf))
	return nil
}

// encodeOptions takes what the field's metadata asks for.
func encodeOptions(version Version, leaf schema.Leaf) encoding.EncodeOptions {
	opts := encoding.EncodeOptions{Version: version}
	for t, ok := leaf.Arrow.(*arrow.FixedSizeListType); ok; t, ok = t.Elem().(*arrow.FixedSizeListType) {
		opts.Dims = append(opts.Dims, int(t.Len()))
	}
	if leaf.Field == nil {
		return opts
	}
	switch s := leaf.Field.Metadata[compressionKey]; s {
	case "lz4", "zstd", "fsst", "none":
		opts.Compression = s
	}
	if n, err := strconv.Atoi(leaf.Field.Metadata[compressionLevelKey]); err == nil {
		opts.CompressionLevel = n
	}
	return opts
}

// room returns how many rows of about the given size the page still takes, at
// least one.
func (c *ColumnWriter) room(rowBytes float64) int {
	left := float64(c.pageBytes - c.builder.Bytes())
	if rowBytes <= 0 || left/rowBytes > 1<<30 {
		return 1 << 30
	}
	return max(int(left/rowBytes), 1)
}

// appended closes the page if it is full, or so nearly that one more row would
// make it so.
func (c *ColumnWriter) appended(rows int) error {
	c.rows += uint64(rows)
	if c.room(c.builder.RowBytes()) > 1 {
		return nil
	}
	return c.flush()
}

// flush encodes and writes the page that was gathered.
func (c *ColumnWriter) flush() error {
	if err := c.encoder.Encode(c.builder.Block(), c.writePage); err != nil {
		return c.fail(err)
	}
	c.builder.Reset()
	return nil
}

func (c *ColumnWriter) writePage(p encoding.EncodedPage) error {
	layout, err := proto.MarshalOptions{Deterministic: true}.Marshal(p.Layout)
	if err != nil {
		return err
	}
	page := &file2pb.ColumnMetadata_Page{Length: uint64(p.Rows), Priority: c.paged, Encoding: direct(pageTypeURL, layout)}
	for _, b := range p.Buffers {
		page.BufferSizes = append(page.BufferSizes, uint64(len(b)))
	}
	if page.BufferOffsets, err = c.w.writePage(p.Buffers); err != nil {
		return err
	}
	c.pages = append(c.pages, page)
	c.paged += uint64(p.Rows)
	return nil
}

// direct wraps an encoding as metadata stores it: an Any, serialised again.
func direct(url string, value []byte) *file2pb.Encoding {
	// Marshalling two plain fields cannot fail.
	b, _ := proto.Marshal(&file2pb.Any{TypeUrl: url, Value: value})
	return &file2pb.Encoding{Location: &file2pb.Encoding_Direct{Direct: &file2pb.DirectEncoding{Encoding: b}}}
}

// Close writes the last page and lets go of the column's memory. Closing twice is
// fine.
func (c *ColumnWriter) Close() error {
	if c.err != nil {
		return c.err
	}
	if c.builder != nil && c.builder.Rows() > 0 {
		if err := c.flush(); err != nil {
			return err
		}
	}
	c.builder, c.encoder, c.closed = nil, nil, true
	return nil
}

func (c *ColumnWriter) fail(err error) error {
	if c.err == nil {
		c.err = fmt.Errorf("datafile: column %q (%s): %w", c.leaf.Path, c.leaf.Arrow, err)
	}
	return c.err
}

func (c *ColumnWriter) metadata() *file2pb.ColumnMetadata {
	// Serialised ColumnEncoding{values: {}}.
	return &file2pb.ColumnMetadata{Encoding: direct(columnTypeURL, []byte{0x0a, 0x00}), Pages: c.pages}
}
