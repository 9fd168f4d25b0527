package datafile

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"sync"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/rehome-db/rehome/lance/datafile/encoding"
	"github.com/rehome-db/rehome/lance/datafile/encoding20"
	"github.com/rehome-db/rehome/lance/datafile/level"
	enc20pb "github.com/rehome-db/rehome/lance/internal/pb/enc20"
	enc21pb "github.com/rehome-db/rehome/lance/internal/pb/enc21"
	enc23pb "github.com/rehome-db/rehome/lance/internal/pb/enc23"
	file2pb "github.com/rehome-db/rehome/lance/internal/pb/file2"
	"github.com/rehome-db/rehome/lance/schema"
	"github.com/rehome-db/rehome/table"
)

const (
	pageTypeURL   = "/lance.encodings21.PageLayout"
	planarTypeURL = "/lance.encodings23.PlanarLayout"
	arrayTypeURL  = "/lance.encodings.ArrayEncoding"
	columnTypeURL = "/lance.encodings.ColumnEncoding"
)

// decoders keeps the memory of decoders, some megabytes each, for the next column.
var decoders = sync.Pool{New: func() any { return new(encoding.Decoder) }}

// Column is one column of a file: the pages of one leaf.
type Column struct {
	file  *File
	index int
	pages []Page
	rows  uint64
	bytes uint64
	// blob says that the column keeps its values elsewhere.
	blob bool
	// lists are the columns of the lists around the leaf, outermost first, in format
	// 2.0. See [File.LeafColumn].
	lists []*Column
	parts []part // of a column within lists, once they were asked for
}

// Page describes a stored page.
type Page struct {
	// FirstRow is the row number of the page's first row in the file, and Rows
	// the number of its top-level rows.
	FirstRow, Rows uint64
	// Layout says how the page is encoded. Do not change it.
	Layout *enc21pb.PageLayout
	// Planar says so instead in format 2.3 where the structure is sparse.
	Planar *enc23pb.PlanarLayout
	// Array says so in format 2.0, where Layout is nil and rows are what the column
	// itself has: items, in a list.
	Array *enc20pb.ArrayEncoding
	// Buffers lie in the file.
	Buffers []encoding.Buffer
}

// Bytes returns the size of the page's buffers.
func (p Page) Bytes() uint64 {
	var n uint64
	for _, b := range p.Buffers {
		n += b.Size
	}
	return n
}

// Encoding names the page's layout and value encoding, for people.
func (p Page) Encoding() string {
	if p.Array != nil {
		return encoding20.Name(p.Array)
	}
	if p.Planar != nil {
		return encoding.PlanarName(p.Planar)
	}
	return encoding.LayoutName(p.Layout)
}

func (f *File) parseColumn(index int, raw []byte) (*Column, error) {
	var m file2pb.ColumnMetadata
	if err := proto.Unmarshal(raw, &m); err != nil {
		return nil, table.Corruptf("the metadata cannot be decoded: %w", err)
	}
	c := &Column{file: f, index: index, pages: make([]Page, len(m.GetPages()))}
	var enc file2pb.ColumnEncoding
	if m.GetEncoding() != nil {
		if err := unpack(m.GetEncoding(), columnTypeURL, &enc); err != nil {
			return nil, err
		}
	}
	c.blob = enc.GetBlob() != nil
	for i, p := range m.GetPages() {
		page := &c.pages[i]
		page.FirstRow, page.Rows = c.rows, p.GetLength()
		if page.Rows > maxRows {
			return nil, table.Corruptf("page %d claims to have %d rows", i, page.Rows)
		}
		c.rows += page.Rows
		if len(p.GetBufferOffsets()) != len(p.GetBufferSizes()) {
			return nil, table.Corruptf("page %d: %d buffer offsets but %d sizes", i, len(p.GetBufferOffsets()), len(p.GetBufferSizes()))
		}
		page.Buffers = make([]encoding.Buffer, len(p.GetBufferOffsets()))
		for k := range page.Buffers {
			s := span{p.GetBufferOffsets()[k], p.GetBufferSizes()[k]}
			if err := s.check(uint64(f.size)); err != nil {
				return nil, fmt.Errorf("page %d: %w", i, err)
			}
			page.Buffers[k] = encoding.Buffer{Offset: s.offset, Size: s.size}
		}
		c.bytes += page.Bytes()
		if err := page.parseLayout(f, p.GetEncoding()); err != nil {
			return nil, fmt.Errorf("page %d: %w", i, err)
		}
		f.kind.add(f.version, c.page(i))
	}
	return c, nil
}

// parseLayout decodes the description of the page. The first page with a planar layout
// says that the file is of that kind.
func (p *Page) parseLayout(f *File, e *file2pb.Encoding) error {
	if f.version == V2_0 {
		p.Array = new(enc20pb.ArrayEncoding)
		return unpack(e, arrayTypeURL, p.Array)
	}
	wrapped, err := unwrap(e)
	if err != nil {
		return err
	}
	if f.version.Minor() < V2_3.Minor() || wrapped.GetTypeUrl() != planarTypeURL {
		p.Layout = new(enc21pb.PageLayout)
		if err := unpackAs(wrapped, pageTypeURL, p.Layout); err != nil {
			return err
		}
		return checkKnown(f, p.Layout)
	}
	f.version = V2_3Planar
	planar := new(enc23pb.PlanarLayout)
	if err := unpackAs(wrapped, planarTypeURL, planar); err != nil {
		return err
	}
	if err := checkKnown(f, planar); err != nil {
		return err
	}
	if p.Layout, err = encoding.Dense(planar); p.Layout == nil {
		p.Planar = planar
	}
	return err
}

// checkKnown refuses descriptions in format 2.3, which changes between engine versions,
// that say more than is known here.
func checkKnown(f *File, m proto.Message) error {
	if f.version.Minor() < V2_3.Minor() || known(m.ProtoReflect()) {
		return nil
	}
	return table.Unsupportedf("format 2.3 describes it in terms that are not known: its pages change between engine versions")
}

// unpack decodes the message that is wrapped in an Any in an Encoding.
func unpack(e *file2pb.Encoding, typeURL string, into proto.Message) error {
	wrapped, err := unwrap(e)
	if err != nil {
		return err
	}
	return unpackAs(wrapped, typeURL, into)
}

func unwrap(e *file2pb.Encoding) (*file2pb.Any, error) {
	direct, ok := e.GetLocation().(*file2pb.Encoding_Direct)
	if !ok {
		return nil, table.Unsupportedf("an encoding that is described elsewhere in the file is not supported")
	}
	wrapped := new(file2pb.Any)
	if err := proto.Unmarshal(direct.Direct.GetEncoding(), wrapped); err != nil {
		return nil, table.Corruptf("an encoding cannot be decoded: %w", err)
	}
	return wrapped, nil
}

func unpackAs(wrapped *file2pb.Any, typeURL string, into proto.Message) error {
	if wrapped.GetTypeUrl() != typeURL {
		return table.Unsupportedf("an encoding of type %q where %q belongs", wrapped.GetTypeUrl(), typeURL)
	}
	if err := proto.Unmarshal(wrapped.GetValue(), into); err != nil {
		return table.Corruptf("an encoding cannot be decoded: %w", err)
	}
	return nil
}

// known says whether a message and those inside it have no fields that are not known
// here.
func known(m protoreflect.Message) bool {
	ok := len(m.GetUnknown()) == 0
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case f.Message() == nil:
		case f.IsList():
			for i := range v.List().Len() {
				ok = ok && known(v.List().Get(i).Message())
			}
		default:
			ok = ok && known(v.Message())
		}
		return ok
	})
	return ok
}

// Index returns the column's number in the file.
func (c *Column) Index() int { return c.index }

// Pages returns what is known of the pages without reading them. Do not change
// it.
func (c *Column) Pages() []Page { return c.pages }

// Bytes returns the size of the column's page buffers.
func (c *Column) Bytes() uint64 { return c.bytes }

// Check says why the column cannot be read as leaf, or nil. It looks at every
// page's description and reads no data. A layout or encoding that is not
// supported is ErrUnsupported and named, together with the column and its type.
func (c *Column) Check(leaf schema.Leaf) error {
	if err := c.checkLeaf(leaf); err != nil {
		return err
	}
	if c.file.version == V2_0 {
		return c.check20(leaf)
	}
	d := encoding.NewDecoder(leaf.Type, leaf.Layers, encoding.Limits{})
	for i := range c.pages {
		if err := d.Check(c.page(i)); err != nil {
			return c.wrap(leaf, i, err)
		}
	}
	return nil
}

// checkLeaf checks what does not depend on pages.
func (c *Column) checkLeaf(leaf schema.Leaf) error {
	if leaf.Unsupported != nil {
		return c.file.wrap(leaf.Unsupported)
	}
	if c.file.version == V2_0 {
		return nil // a reader of the path checks the rest
	}
	if c.blob {
		return c.file.wrap(table.Unsupportedf("column %q (%s): blobs are not supported", leaf.Path, leaf.Field.LogicalType))
	}
	// Only now: some types that are not supported count otherwise than in rows.
	if c.rows != c.file.rows {
		return c.file.wrap(table.Corruptf("column %q (%s): pages of %d rows in a file of %d", leaf.Path, leaf.Field.LogicalType, c.rows, c.file.rows))
	}
	return nil
}

func (c *Column) page(i int) encoding.Page {
	p := &c.pages[i]
	return encoding.Page{Layout: p.Layout, Planar: p.Planar, Rows: p.Rows, Buffers: p.Buffers, File: c.file.r, Size: uint64(c.file.size)}
}

func (c *Column) wrap(leaf schema.Leaf, page int, err error) error {
	return c.file.wrap(fmt.Errorf("column %q (%s), page %d, %s: %w", leaf.Path, leaf.Field.LogicalType, page, c.pages[page].Encoding(), err))
}

// Blocks yields all rows of the column, in order, as blocks in level space. See
// [Column.BlocksRange].
func (c *Column) Blocks(ctx context.Context, leaf schema.Leaf) iter.Seq2[*level.Block, error] {
	return c.BlocksRange(ctx, leaf, 0, c.file.rows)
}

// BlocksRange yields the rows [from, to) of the column, in order, as blocks in
// level space. A block holds whole rows of one page and declares that page's
// layers; it is about 8 MiB of values at most, unless a single row is larger. A
// block and everything in it is valid until the next one is asked for. The first
// error ends the sequence.
//
// Pages outside the range are not read, and of the pages at its edges no more
// than their encoding asks for.
func (c *Column) BlocksRange(ctx context.Context, leaf schema.Leaf, from, to uint64) iter.Seq2[*level.Block, error] {
	return func(yield func(*level.Block, error) bool) {
		if err := c.checkLeaf(leaf); err != nil {
			yield(nil, err)
			return
		}
		if c.file.version == V2_0 {
			c.blocks20(ctx, leaf, from, to, yield)
			return
		}
		if from > to || to > c.rows {
			yield(nil, c.file.wrap(fmt.Errorf("column %q: rows %d to %d of %d", leaf.Path, from, to, c.rows)))
			return
		}
		d := decoders.Get().(*encoding.Decoder)
		defer decoders.Put(d)
		d.Reset(leaf.Type, leaf.Layers, c.file.limits)
		first, _ := slices.BinarySearchFunc(c.pages, from, func(p Page, row uint64) int {
			if p.FirstRow+p.Rows <= row {
				return -1
			}
			return 1
		})
		for i := first; i < len(c.pages) && c.pages[i].FirstRow < to; i++ {
			p := &c.pages[i]
			low, high := max(from, p.FirstRow)-p.FirstRow, min(to, p.FirstRow+p.Rows)-p.FirstRow
			more := true
			err := d.Decode(ctx, c.page(i), low, high, func(b *level.Block) bool {
				more = yield(b, nil)
				return more
			})
			if err != nil && more {
				yield(nil, c.wrap(leaf, i, err))
				return
			}
			if !more {
				return
			}
		}
	}
}
