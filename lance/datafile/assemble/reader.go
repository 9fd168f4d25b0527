package assemble

import (
	"fmt"
	"io"
	"iter"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/rehome-db/rehome/lance/datafile/level"
	"github.com/rehome-db/rehome/lance/schema"
	"github.com/rehome-db/rehome/table"
)

// batchBytes is what one fixed-width column of a batch may take, about.
const batchBytes = 64 << 20

// Source yields the rows of a leaf in order, as datafile.Column.Blocks does: a
// block is valid until the next is asked for. Of a leaf of descriptions of blobs the
// blocks hold the blobs, in the form of [schema.BlobValues]. A nil Source is a leaf that is null
// in every row.
type Source = iter.Seq2[*level.Block, error]

// Reader builds record batches. It is not safe for concurrent use.
type Reader struct {
	mem    memory.Allocator
	schema *schema.Schema
	arrow  *arrow.Schema
	leaves []*leafReader
	left   uint64
}

// New returns a reader of rows rows of the columns of s. sources has one source
// for each of s.Leaves(), in that order. A leaf that is not supported is
// ErrUnsupported; one without a source that cannot be null is ErrCorrupt. Close
// the reader when done.
func New(mem memory.Allocator, s *schema.Schema, sources []Source, rows uint64) (*Reader, error) {
	leaves := s.Leaves()
	if len(leaves) != len(sources) {
		return nil, fmt.Errorf("assemble: %d sources for %d leaves", len(sources), len(leaves))
	}
	for _, l := range leaves {
		if l.Unsupported != nil {
			return nil, l.Unsupported
		}
	}
	r := &Reader{mem: mem, schema: s, arrow: s.Arrow(), left: rows}
	at := 0
	for _, f := range s.Fields {
		present, err := checkMissing(f, f.Name, sources, &at)
		if err != nil {
			return nil, err
		}
		if !present && !f.Nullable {
			return nil, missing(f.Name)
		}
	}
	for i, l := range leaves {
		r.leaves = append(r.leaves, newLeafReader(mem, l, sources[i]))
	}
	return r, nil
}

func missing(path string) error {
	return table.Corruptf("assemble: column %q is in no file and cannot be null", path)
}

// checkMissing reports whether f has a source at all. Below f it checks that what
// has none can be null: each outermost field all of whose leaves are missing.
func checkMissing(f *schema.Field, path string, sources []Source, at *int) (bool, error) {
	if f.IsLeaf() {
		*at++
		return sources[*at-1] != nil, nil
	}
	some := false
	var absent []*schema.Field
	for _, c := range f.Children {
		present, err := checkMissing(c, path+"."+c.Name, sources, at)
		if err != nil {
			return false, err
		}
		if some = some || present; !present {
			absent = append(absent, c)
		}
	}
	if some {
		for _, c := range absent {
			if !c.Nullable {
				return false, missing(path + "." + c.Name)
			}
		}
	}
	return some, nil
}

// Schema returns the batches' schema.
func (r *Reader) Schema() *arrow.Schema { return r.arrow }

// Next returns the next rows, at most n and at least one, or io.EOF after the
// last. The caller releases the batch, whose memory is the allocator's. There are
// fewer rows than n at the end, and where n would make the batch very large. After
// an error the reader is of no use.
func (r *Reader) Next(n int) (arrow.RecordBatch, error) {
	if r.left == 0 {
		return nil, io.EOF
	}
	n = int(min(uint64(max(n, 1)), r.left))
	for _, l := range r.leaves {
		var err error
		if n, err = l.atMost(n); err != nil {
			return nil, err
		}
	}
	for _, l := range r.leaves {
		if !l.present {
			continue
		}
		if err := l.take(n); err != nil {
			return nil, err
		}
	}
	columns := make([]arrow.Array, 0, len(r.schema.Fields))
	defer func() {
		for _, c := range columns {
			c.Release()
		}
	}()
	leaves := r.leaves
	for _, f := range r.schema.Fields {
		b := builder{mem: r.mem, leaves: leaves}
		data, err := b.field(f, 0, n)
		if err != nil {
			return nil, err
		}
		columns = append(columns, array.MakeFromData(data))
		data.Release()
		leaves = b.leaves
	}
	r.left -= uint64(n)
	return array.NewRecordBatch(r.arrow, columns, int64(n)), nil
}

// Close stops the sources. The reader must not be used any more.
func (r *Reader) Close() {
	for _, l := range r.leaves {
		l.stop()
		if l.present {
			l.values.reset()
		}
	}
	r.left = 0
}
