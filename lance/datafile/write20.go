package datafile

import (
	"encoding/binary"
	"sync"

	"github.com/apache/arrow-go/v18/arrow"
	"google.golang.org/protobuf/proto"

	"github.com/rehome-db/rehome/lance/datafile/encoding20"
	"github.com/rehome-db/rehome/lance/datafile/level"
	file2pb "github.com/rehome-db/rehome/lance/internal/pb/file2"
	"github.com/rehome-db/rehome/lance/schema"
)

// arrays is the columns of a file of format 2.0, where every field has one. The
// column of a list is written by the writer of the first leaf inside it.
type arrays struct {
	columns []*arrayColumn
	leaves  []*arrayLeaf
}

// arrayColumn is one column of such a file.
type arrayColumn struct {
	owner
	blob  bool
	pages []*file2pb.ColumnMetadata_Page
	paged uint64 // values in pages
	items uint64 // of lists in pages
}

// arrayLeaf is what the writer of a leaf has to do in format 2.0.
type arrayLeaf struct {
	column *arrayColumn
	// lists are the columns of the lists around the leaf, outermost first; owned says
	// which of them this leaf writes.
	lists []*arrayColumn
	owned []bool
	opts  encoding20.Options

	ends encoding20.Lists
	// cuts is shared by all leaves inside the outermost list; cut counts those that
	// are behind.
	cuts *cuts
	cut  int
}

func newArrays(s *schema.Schema) *arrays {
	leaves := s.Leaves()
	a := &arrays{leaves: make([]*arrayLeaf, len(leaves))}
	for _, o := range owners(s.Fields, leaves) {
		a.columns = append(a.columns, &arrayColumn{owner: o})
	}
	shared := map[*arrayColumn]*cuts{}
	for _, c := range a.columns {
		if c.leaf < 0 {
			continue
		}
		c.blob = leaves[c.leaf].Blob
		l := &arrayLeaf{column: c, opts: arrayOptions(leaves[c.leaf])}
		for k := c.around; k >= 0; k = a.columns[k].around {
			l.lists = append([]*arrayColumn{a.columns[k]}, l.lists...)
			l.owned = append([]bool{a.columns[k].first == c.leaf}, l.owned...)
		}
		if len(l.lists) > 0 {
			if l.cuts = shared[l.lists[0]]; l.cuts == nil {
				l.cuts = new(cuts)
				shared[l.lists[0]] = l.cuts
			}
		}
		a.leaves[c.leaf] = l
	}
	return a
}

// arrayOptions takes what the leaf's type and the field's metadata ask for.
func arrayOptions(leaf schema.Leaf) encoding20.Options {
	general := encodeOptions(V2_0, leaf)
	opts := encoding20.Options{Dims: general.Dims, IndexBits: general.IndexBits, IndexSigned: general.IndexSigned,
		Text: leaf.Arrow != nil && leaf.Arrow.ID() == arrow.STRING}
	if 0 < opts.IndexBits && opts.IndexBits <= 16 {
		opts.Seen = map[string]struct{}{}
	}
	switch general.Compression {
	case "zstd", "lz4":
		opts.Scheme, opts.Level = general.Compression, general.CompressionLevel
	case "fsst":
		opts.Symbols = leaf.Arrow != nil && (leaf.Arrow.ID() == arrow.STRING || leaf.Arrow.ID() == arrow.BINARY)
	}
	return opts
}

// cuts are the rows at which pages of all columns inside a list end: the items of two
// pages of lists are never in one page. Leaves are filled independently of each other,
// so whichever comes first decides, and a cut is never behind a row that another leaf
// has taken already.
type cuts struct {
	mu    sync.Mutex
	rows  []uint64 // ascending
	taken uint64   // no leaf has taken more rows
}

// reserve returns how many of the next n rows a leaf may take, which has taken row of
// them, with cut cuts behind it.
func (c *cuts) reserve(cut int, row uint64, n int) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if cut < len(c.rows) {
		return int(min(uint64(n), c.rows[cut]-row))
	}
	c.taken = max(c.taken, row+uint64(n))
	return n
}

// due says whether a leaf has reached the next cut.
func (c *cuts) due(cut int, row uint64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return cut < len(c.rows) && c.rows[cut] == row
}

// ask has a cut made as soon as it can be, if there is none to come.
func (c *cuts) ask(cut int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if cut == len(c.rows) {
		c.rows = append(c.rows, c.taken)
	}
}

// reserve returns how many of the next n rows may be taken at once.
func (a *arrayLeaf) reserve(row uint64, n int) int {
	if a.cuts == nil {
		return n
	}
	return a.cuts.reserve(a.cut, row, n)
}

// flush writes a page of the values that were gathered, and at a cut pages of lists.
func (a *arrayLeaf) flush(c *ColumnWriter, b *level.Block) error {
	if isStruct(a.column.field) && c.leaf.Type.Kind == level.Nothing {
		return nil // a struct without fields, whose only page is written at the end
	}
	null, err := a.ends.Add(b)
	if err != nil {
		return err
	}
	if b.Values.N > 0 {
		var page encoding20.Encoded
		if c.leaf.Blob {
			page, err = c.blobPage(&b.Values, null)
		} else {
			page, err = encoding20.EncodeValues(b.Type, &b.Values, null, a.opts)
		}
		if err == nil {
			err = c.w.writeArray(a.column, page)
		}
	}
	return err
}

// full is called when as much was gathered as a page is to have, and flushed.
func (a *arrayLeaf) full() {
	if a.cuts != nil {
		a.cuts.ask(a.cut)
	}
}

// due says whether pages have to end at a row.
func (a *arrayLeaf) due(row uint64) bool { return a.cuts != nil && a.cuts.due(a.cut, row) }

// endLists writes pages of the lists that were gathered.
func (a *arrayLeaf) endLists(c *ColumnWriter) error {
	a.cut++
	for k, list := range a.lists {
		if a.owned[k] && a.ends.Len(k) > 0 {
			page := a.ends.Page(k)
			if err := c.w.writeArray(list, page); err != nil {
				return err
			}
			list.items += page.Encoding.GetList().GetNumItems()
		}
		a.ends.Drop(k)
	}
	return nil
}

// blobPage writes values into the file and makes a page of where they are.
func (c *ColumnWriter) blobPage(v *level.Values, null []uint16) (encoding20.Encoded, error) {
	where := make([]byte, 16*v.N)
	for i := range v.N {
		value := v.Data[v.Offsets[i]:v.Offsets[i+1]]
		switch {
		case null != nil && null[i] != 0:
			binary.LittleEndian.PutUint64(where[16*i:], 1)
		case len(value) > 0:
			at, err := c.w.writePage([][]byte{value})
			if err != nil {
				return encoding20.Encoded{}, err
			}
			binary.LittleEndian.PutUint64(where[16*i:], at[0])
			binary.LittleEndian.PutUint64(where[16*i+8:], uint64(len(value)))
		}
	}
	return encoding20.BlobPage(where)
}

// writeArray writes a page of a column.
func (w *Writer) writeArray(c *arrayColumn, p encoding20.Encoded) error {
	description, err := proto.MarshalOptions{Deterministic: true}.Marshal(p.Encoding)
	if err != nil {
		return err
	}
	page := &file2pb.ColumnMetadata_Page{Length: p.Values, Encoding: direct(arrayTypeURL, description)}
	for _, b := range p.Buffers {
		page.BufferSizes = append(page.BufferSizes, uint64(len(b)))
	}
	if page.BufferOffsets, err = w.writePage(p.Buffers); err != nil {
		return err
	}
	c.pages = append(c.pages, page)
	c.paged += p.Values
	return nil
}

// finish writes the pages of structs: one each, as readers want, of as many as there
// are.
func (a *arrays) finish(w *Writer, rows uint64) error {
	for _, c := range a.columns {
		if !isStruct(c.field) || c.leaf >= 0 && w.columns[c.leaf].leaf.Type.Kind != level.Nothing {
			continue
		}
		n := rows
		if c.around >= 0 {
			n = a.columns[c.around].items
		}
		if err := w.writeArray(c, encoding20.StructPage(n)); err != nil {
			return err
		}
	}
	return nil
}

func isStruct(f *schema.Field) bool { return f != nil && f.LogicalType == "struct" }

// fields are the ids of all columns' fields.
func (a *arrays) fields() []int32 {
	var out []int32
	for _, c := range a.columns {
		out = append(out, c.field.ID)
	}
	return out
}

func (a *arrays) metadata() []*file2pb.ColumnMetadata {
	var out []*file2pb.ColumnMetadata
	for _, c := range a.columns {
		encoding := []byte{0x0a, 0x00} // serialised ColumnEncoding{values: {}}
		if c.blob {
			encoding = []byte{0x1a, 0x04, 0x0a, 0x02, 0x0a, 0x00} // {blob: {inner: {values: {}}}}
		}
		out = append(out, &file2pb.ColumnMetadata{Encoding: direct(columnTypeURL, encoding), Pages: c.pages})
	}
	return out
}
