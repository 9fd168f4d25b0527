package datafile

import (
	"errors"
	"fmt"

	"google.golang.org/protobuf/proto"

	"github.com/rehome-db/rehome/lance/datafile/level"
	file2pb "github.com/rehome-db/rehome/lance/internal/pb/file2"
	"github.com/rehome-db/rehome/lance/schema"
)

var errColumnClosed = errors.New("the column is closed")

// ColumnWriter gathers the rows of one column into pages and writes them. It
// holds about one page, and one more for each that is encoded aside. It is not safe
// for concurrent use; the writers of different columns of a file are independent.
type ColumnWriter struct {
	w         *Writer
	leaf      schema.Leaf
	pageBytes int

	*gathering             // nil while there is nothing to hold
	blobs      *blobColumn // of a column of blobs
	array      *arrayLeaf  // in format 2.0
	rows       uint64      // in pages and builder
	paged      uint64      // in pages
	expected   uint64      // rows
	stretches  []*stretch
	aside      asidePages
	closed     bool
	err        error
}

func newColumnWriter(w *Writer, leaf schema.Leaf, pageBytes int) (*ColumnWriter, error) {
	if err := CanWrite(w.version, leaf); err != nil {
		return nil, err
	}
	if leaf.Dictionary != nil {
		// Rows are counted with the values that they stand for, which a page has once.
		pageBytes *= 2
	}
	return &ColumnWriter{w: w, leaf: leaf, pageBytes: pageBytes}, nil
}

// Leaf returns the leaf that the column holds.
func (c *ColumnWriter) Leaf() schema.Leaf { return c.leaf }

// Rows returns the number of rows appended.
func (c *ColumnWriter) Rows() uint64 { return c.rows }

// Expect says how many rows there will be, if that is known: memory need not grow step
// by step then.
func (c *ColumnWriter) Expect(rows uint64) { c.expected = rows }

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
		k := c.reserve(min(n, c.room(cursor.RowBytes())))
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
		k := c.reserve(min(n, c.room(float64(rowBytes))))
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

// TakeAbsent appends the next n rows at the cursor, or what is left if that is
// less, for a field that they do not have: the cursor is over another leaf of the
// same struct, shared layers down from the outermost. See
// [level.Builder.TakeAbsent].
func (c *ColumnWriter) TakeAbsent(cursor *level.Cursor, n, shared int) error {
	for n = min(n, cursor.Remaining()); n > 0; {
		if err := c.open(); err != nil {
			return err
		}
		// Levels, and a value's worth for each row.
		k := c.reserve(min(n, c.room(cursor.RowBytes()+float64(8+c.leaf.Type.ValueBits()/8))))
		if err := c.builder.TakeAbsent(cursor, k, shared); err != nil {
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
	if c.err != nil || c.gathering != nil {
		return c.err
	}
	if c.closed {
		return c.fail(errColumnClosed)
	}
	if c.reuse() {
		return nil
	}
	g := gatherings.Get().(*gathering)
	err := g.builder.Reuse(c.leaf.Type, c.leaf.Layers)
	if err != nil {
		return c.fail(err)
	}
	g.encoder.Reset(encodeOptions(c.w.version, c.leaf))
	if c.leaf.Type.Kind != level.Variable {
		g.builder.Grow(int(min(uint64(c.pageBytes), c.expected*uint64(c.leaf.Type.ValueBits())/8)))
	}
	c.gathering = g
	if c.leaf.Blob && c.array == nil {
		if c.blobs, err = newBlobColumn(c.leaf); err != nil {
			return c.fail(err)
		}
	}
	return nil
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

// reserve returns how many of the next n rows may be taken at once.
func (c *ColumnWriter) reserve(n int) int {
	if c.array == nil {
		return n
	}
	return c.array.reserve(c.rows, n)
}

// appended closes the page if it is full, or so nearly that one more row would
// make it so.
func (c *ColumnWriter) appended(rows int) error {
	c.rows += uint64(rows)
	if c.room(c.builder.RowBytes()) <= 1 {
		if err := c.flush(); err != nil {
			return err
		}
		if c.array != nil {
			c.array.full()
		}
	}
	if c.array == nil || !c.array.due(c.rows) {
		return nil
	}
	return c.endLists()
}

// endLists ends the pages of lists, after what was gathered of their items.
func (c *ColumnWriter) endLists() error {
	if c.gathered() {
		if err := c.flush(); err != nil {
			return err
		}
	}
	if err := c.array.endLists(c); err != nil {
		return c.fail(err)
	}
	return nil
}

// flush encodes and writes the page that was gathered.
func (c *ColumnWriter) flush() error {
	var err error
	if c.array != nil {
		err = c.array.flush(c, c.builder.Block())
	} else if c.blobs != nil {
		err = c.blobs.add(c, c.builder.Block())
	} else {
		return c.encode()
	}
	if err != nil {
		return c.fail(err)
	}
	c.builder.Reset()
	return nil
}

// direct wraps an encoding as metadata stores it: an Any, serialised again.
func direct(url string, value []byte) *file2pb.Encoding {
	// Marshalling two plain fields cannot fail.
	b, _ := proto.Marshal(&file2pb.Any{TypeUrl: url, Value: value})
	return &file2pb.Encoding{Location: &file2pb.Encoding_Direct{Direct: &file2pb.DirectEncoding{Encoding: b}}}
}

// Close writes the last page, waits for those that are encoded aside, and lets go of
// the column's memory. Closing twice is fine.
func (c *ColumnWriter) Close() error {
	if c.err != nil {
		return c.err
	}
	if c.gathered() {
		if c.rows == uint64(c.builder.Rows()) {
			c.builder.Alone()
		}
		if err := c.flush(); err != nil {
			return err
		}
	}
	if c.array != nil && !c.closed {
		if err := c.endLists(); err != nil {
			return err
		}
	}
	if c.blobs != nil {
		if err := c.blobs.flush(c); err != nil {
			return c.fail(err)
		}
	}
	if err := c.wait(); err != nil {
		return err
	}
	c.blobs, c.closed = nil, true
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
	return &file2pb.ColumnMetadata{Encoding: direct(columnTypeURL, []byte{0x0a, 0x00}), Pages: c.pages()}
}
