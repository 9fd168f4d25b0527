package rows

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"

	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/rehome-db/rehome/deletion"
	"github.com/rehome-db/rehome/lance/datafile/assemble"
	"github.com/rehome-db/rehome/lance/datafile/level"
	"github.com/rehome-db/rehome/lance/objects"
	"github.com/rehome-db/rehome/lance/schema"
	"github.com/rehome-db/rehome/lance/version"
	"github.com/rehome-db/rehome/table"
)

const defaultBatchRows = 8192

// Rows returns the live rows of some fragments of a version.
func (t *Table) Rows(ctx context.Context, s *table.Snapshot, ids []table.FragmentID, opts table.ReadOptions) iter.Seq2[table.Batch, error] {
	return func(yield func(table.Batch, error) bool) {
		err := t.rows(ctx, s, ids, opts, func(b table.Batch) bool { return yield(b, nil) })
		if err != nil && !errors.Is(err, errStopped) {
			yield(table.Batch{}, fmt.Errorf("lance: table %s version %d: %w", t.root.Store, s.Version, err))
		}
	}
}

// errStopped ends a read whose consumer has enough.
var errStopped = errors.New("stopped")

func (t *Table) rows(ctx context.Context, s *table.Snapshot, ids []table.FragmentID, opts table.ReadOptions, yield func(table.Batch) bool) error {
	if err := t.root.Ready(ctx); err != nil {
		return err
	}
	v, err := version.Of(s)
	if err != nil {
		return err
	}
	sch := v.Schema
	if len(opts.Columns) > 0 {
		if sch, err = v.Schema.Select(opts.Columns); err != nil {
			return err
		}
	}
	if opts.BatchRows <= 0 {
		opts.BatchRows = defaultBatchRows
	}
	for _, id := range ids {
		f, ok := s.Fragment(id)
		if !ok {
			return fmt.Errorf("there is no fragment %d: %w", id, table.ErrNotFound)
		}
		if err := t.fragmentRows(ctx, sch, f, opts, yield); err != nil {
			return err
		}
	}
	return nil
}

func (t *Table) fragmentRows(ctx context.Context, sch *schema.Schema, f table.Fragment, opts table.ReadOptions, yield func(table.Batch) bool) error {
	r, err := t.openFragment(ctx, sch, f)
	if err != nil {
		return err
	}
	defer r.close()
	dead, err := t.root.Deletions(ctx, f)
	if err != nil {
		return err
	}
	sources, err := r.sources(ctx, dead)
	if err != nil {
		return err
	}
	reader, err := assemble.New(memory.DefaultAllocator, sch, sources, f.LiveRows())
	if err != nil {
		return fmt.Errorf("fragment %d: %w", f.ID, err)
	}
	defer reader.Close()
	addrs := newAddresses(f, dead)
	defer addrs.stop()
	for {
		if err := t.root.Ready(ctx); err != nil {
			return err
		}
		record, err := reader.Next(opts.BatchRows)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("fragment %d: %w", f.ID, err)
		}
		batch := table.Batch{Record: record}
		if opts.WithAddrs {
			batch.Addrs = addrs.next(int(record.NumRows()))
		}
		more := yield(batch)
		record.Release()
		if !more {
			return errStopped
		}
	}
}

// fragmentReader is a fragment's files, opened for some columns.
type fragmentReader struct {
	fragment table.Fragment
	leaves   []schema.Leaf
	// files and places are where each leaf lies; a nil file is a leaf that the
	// fragment does not have, because it is younger.
	files  []*objects.DataFile
	places []leafPlace
	open   map[string]*objects.DataFile
	// blobs read what lies beside the files, by leaf; nil for most leaves.
	blobs []*blobSource
}

// openFragment finds out where the leaves of sch lie and opens those files.
func (t *Table) openFragment(ctx context.Context, sch *schema.Schema, f table.Fragment) (*fragmentReader, error) {
	r := &fragmentReader{fragment: f, leaves: sch.Leaves(), open: map[string]*objects.DataFile{}}
	var err error
	if r.places, err = placeLeaves(f, r.leaves); err != nil {
		return nil, err
	}
	r.blobs = make([]*blobSource, len(r.leaves))
	for i, p := range r.places {
		if p.file < 0 {
			r.files = append(r.files, nil)
			continue
		}
		d := f.Files[p.file]
		of := r.open[d.Base+"\x00"+d.Path]
		if of == nil {
			if of, err = t.root.OpenData(ctx, f, d); err != nil {
				r.close()
				return nil, err
			}
			r.open[d.Base+"\x00"+d.Path] = of
		}
		r.files = append(r.files, of)
		if r.leaves[i].Described {
			r.blobs[i] = newBlobSource(t, d, of)
		}
	}
	return r, nil
}

func (r *fragmentReader) close() {
	for _, b := range r.blobs {
		if b != nil {
			_ = b.close() // of files that were read
		}
	}
	for _, of := range r.open {
		of.Release()
	}
}

// sources are the leaves' live rows, nil for a leaf that the fragment does not
// have.
func (r *fragmentReader) sources(ctx context.Context, dead *deletion.Vector) ([]assemble.Source, error) {
	out := make([]assemble.Source, len(r.leaves))
	for i, leaf := range r.leaves {
		if r.files[i] == nil {
			continue
		}
		column, err := r.places[i].Open(r.files[i])
		if err == nil {
			err = column.Check(leaf)
		}
		if err != nil {
			return nil, fmt.Errorf("fragment %d: %w", r.fragment.ID, err)
		}
		out[i] = column.Blocks(ctx, leaf)
		if !dead.IsEmpty() {
			out[i] = liveOnly(out[i], leaf, dead, r.fragment.PhysicalRows)
		}
		if leaf.Described {
			out[i] = blobValues(ctx, out[i], leaf, r.blobs[i])
		}
	}
	return out, nil
}

// liveOnly drops the deleted rows from the blocks of a leaf.
func liveOnly(blocks assemble.Source, leaf schema.Leaf, dead *deletion.Vector, physicalRows uint64) assemble.Source {
	return func(yield func(*level.Block, error) bool) {
		builder, err := level.NewBuilder(leaf.Type, leaf.Layers)
		if err != nil {
			yield(nil, err)
			return
		}
		live := newRuns(dead, physicalRows)
		defer live.stop()
		row := uint64(0) // the block's first
		for block, err := range blocks {
			if err != nil {
				yield(nil, err)
				return
			}
			end := row + uint64(block.Rows)
			if start, stop := live.from(row); start <= row && end <= stop {
				// Untouched, which most blocks are.
				row = end
				if !yield(block, nil) {
					return
				}
				continue
			}
			builder.Reset()
			if err := takeLive(builder, block, row, live); err != nil {
				yield(nil, err)
				return
			}
			row = end
			if builder.Rows() > 0 && !yield(builder.Block(), nil) {
				return
			}
		}
	}
}

// takeLive appends the live rows of a block, whose first row is number row.
func takeLive(builder *level.Builder, block *level.Block, row uint64, live *runs) error {
	cursor, err := level.NewCursor(block)
	if err != nil {
		return err
	}
	end := row + uint64(block.Rows)
	for row < end {
		start, stop := live.from(row)
		start, stop = min(max(start, row), end), min(stop, end)
		if err := cursor.Skip(int(start - row)); err != nil {
			return err
		}
		if err := builder.Take(cursor, int(stop-start)); err != nil {
			return err
		}
		row = stop
	}
	return nil
}

// runs walks over the live rows of a fragment as ranges, ascending.
type runs struct {
	pull       func() (uint64, uint64, bool)
	stop       func()
	start, end uint64
}

func newRuns(dead *deletion.Vector, physicalRows uint64) *runs {
	r := &runs{}
	r.pull, r.stop = iter.Pull2(dead.Live(physicalRows))
	return r
}

// noMore is past every row.
const noMore = 1 << 63

// from returns the first range that ends after row, which must not be less than
// that of the call before; both ends are noMore if there is none.
func (r *runs) from(row uint64) (start, end uint64) {
	for r.end <= row {
		var ok bool
		if r.start, r.end, ok = r.pull(); !ok {
			r.start, r.end = noMore, noMore
		}
	}
	return r.start, r.end
}

// addresses makes up the addresses of a fragment's live rows, in order.
type addresses struct {
	*runs
	id  table.FragmentID
	row uint64
}

func newAddresses(f table.Fragment, dead *deletion.Vector) *addresses {
	return &addresses{runs: newRuns(dead, f.PhysicalRows), id: f.ID}
}

func (a *addresses) next(n int) []table.RowAddr {
	out := make([]table.RowAddr, 0, n)
	for len(out) < n {
		start, end := a.from(a.row)
		if start == noMore {
			break
		}
		a.row = max(a.row, start)
		for ; a.row < end && len(out) < n; a.row++ {
			out = append(out, table.NewRowAddr(a.id, uint32(a.row)))
		}
	}
	return out
}
