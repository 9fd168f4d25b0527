package lance

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/rehome-db/rehome/lance/datafile"
	"github.com/rehome-db/rehome/lance/datafile/level"
	"github.com/rehome-db/rehome/lance/schema"
	"github.com/rehome-db/rehome/lance/store"
	"github.com/rehome-db/rehome/table"
)

// columnMemory is what working on one column takes, roughly: a page as it is
// read, decoded, gathered and encoded, each about 8 MiB, and what the garbage
// collector has not got to yet.
const columnMemory = 64 << 20

// uncachedFrom is the size, roughly, of files that are written past the page cache.
// Smaller ones take nobody's place.
const uncachedFrom = 64 << 20

// rewriteRun writes the outputs of a rewrite. Its tasks are columns of outputs, see
// [rewriteTask]: workers take them in order, the largest columns of an output first, so
// that files are finished one after the other and the work left at the end is small.
type rewriteRun struct {
	group    *rewriteGroup
	req      table.RewriteRequest
	files    []*rewriteFile
	tasks    []rewriteTask
	workers  int
	nextTask atomic.Int64
	read     atomic.Uint64
	// spare holds a token for each worker that has no task left: it encodes and
	// writes pages for the others.
	spare chan struct{}
	aside *errgroup.Group
	// hiddenText are the leaves that have text which is not UTF-8 in no live row.
	textMu     sync.Mutex
	hiddenText map[textKey]bool
}

// rewriteFile is one output. It exists from its first task on, and the last task
// to be done completes it.
type rewriteFile struct {
	plan *rewriteOutput

	mu       sync.Mutex
	file     *newDataFile // nil before it is created
	left     int          // columns that are not done
	reported uint64       // bytes written, as told to Progress
	fragment table.NewFragment
	finished bool
	beside   *sidecars // with the file
}

func newRewriteRun(g *rewriteGroup, outputs []rewriteOutput, req table.RewriteRequest) *rewriteRun {
	r := &rewriteRun{group: g, req: req, workers: max(req.Threads, 1)}
	if req.MemoryLimit > 0 {
		r.workers = min(r.workers, int(max(req.MemoryLimit/columnMemory, 1)))
	}
	for i := range outputs {
		r.files = append(r.files, &rewriteFile{plan: &outputs[i], left: len(g.leaves)})
	}
	r.tasks = r.rewriteTasks()
	r.spare = make(chan struct{}, r.workers)
	return r
}

func (r *rewriteRun) run(ctx context.Context) (table.Written, error) {
	workers, ctx := errgroup.WithContext(ctx)
	r.aside = workers
	for range r.workers {
		workers.Go(func() error {
			for {
				task := int(r.nextTask.Add(1)) - 1
				if task >= len(r.tasks) {
					r.spare <- struct{}{}
					return nil
				}
				if err := r.write(ctx, r.tasks[task]); err != nil {
					return err
				}
			}
		})
	}
	err := workers.Wait()
	out := table.Written{BytesRead: r.read.Load()}
	for _, f := range r.files {
		if f.file == nil {
			continue
		}
		if !f.finished {
			err = errors.Join(err, f.file.abort())
		}
		object := f.file.object
		if f.finished {
			object.Bytes = f.fragment.Files[0].Bytes
			out.Fragments = append(out.Fragments, f.fragment)
		}
		out.Objects = append(append(out.Objects, object), f.beside.objects...)
		out.BytesWritten += object.Bytes
		for _, o := range f.beside.objects {
			out.BytesWritten += o.Bytes
		}
	}
	if err != nil {
		out.Fragments = nil
	}
	return out, err
}

// helped does work of a column in the place of a worker that has no column left, if
// there is one.
func (r *rewriteRun) helped(work func()) bool {
	select {
	case <-r.spare:
	default:
		return false
	}
	r.aside.Go(func() error {
		work()
		r.spare <- struct{}{}
		return nil
	})
	return true
}

// storage says how new files are written.
func (r *rewriteRun) storage(f *rewriteFile) store.WriteOptions {
	opts := r.req.Options
	return store.WriteOptions{NoSync: opts.NoSync, Uncached: !opts.KeepCached && f.plan.bytes >= uncachedFrom}
}

// create starts the file, unless another of its columns has.
func (r *rewriteRun) create(ctx context.Context, f *rewriteFile) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.file != nil {
		return nil
	}
	var err error
	storage := r.storage(f)
	if f.file, err = r.group.engine.createData(ctx, r.group.format, r.group.schema, storage, datafile.WriterOptions{Aside: r.helped}); err == nil {
		r.group.declare(f.file)
		f.beside = &sidecars{engine: r.group.engine, path: f.file.object.Path, opts: storage}
	}
	return err
}

// columnsDone completes the file if these were its last columns.
func (r *rewriteRun) columnsDone(f *rewriteFile, n int) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.left -= n; f.left > 0 {
		return nil
	}
	var err error
	if f.fragment, err = f.file.finish(); err != nil {
		return err
	}
	f.finished = true
	r.progress(0, f.fragment.Files[0].Bytes-f.reported)
	return nil
}

// slice copies the live rows of a part of a source.
func (r *rewriteRun) slice(ctx context.Context, f *rewriteFile, s *rewriteSlice, leaf int, to *datafile.ColumnWriter, blobs *blobMover) (err error) {
	source := &r.group.sources[s.source]
	place := source.places[leaf]
	if place.file < 0 {
		return r.takeAbsent(ctx, f, s, source.absent[leaf], to)
	}
	of, err := r.group.open(ctx, source, place.file)
	if err != nil {
		return err
	}
	defer of.release()
	column, err := place.open(of)
	if err != nil {
		return fmt.Errorf("fragment %d: %w", source.fragment.ID, err)
	}
	as, take := r.group.leaves[leaf], takeRows(to.Take)
	if places, ok := column.BlobPlaces(as); ok && r.group.format >= datafile.V2_1 {
		as = places
		take = func(c *level.Cursor, n int) error {
			copied, err := to.TakeBlobs(ctx, c, n, column)
			r.blobCopied(copied, 0)
			return err
		}
	}
	if blobs != nil {
		from := newBlobSource(r.group.engine, source.fragment.Files[place.file], of)
		defer func() { err = errors.Join(err, from.close()) }()
		take = blobs.take(ctx, from)
	}
	perRow := float64(column.Bytes()) / float64(max(of.Rows(), 1))
	may, err := r.copies(f, source, of, leaf, column)
	if err != nil {
		return fmt.Errorf("fragment %d: %w", source.fragment.ID, err)
	}
	key := textKey{s.source, leaf}
	var check func(*level.Block) error
	if isText(as) {
		check = func(b *level.Block) error { return r.checkText(ctx, key, b) }
	}
	checks := pageChecks{run: r}
	defer func() {
		if failed := checks.wait(); err == nil && failed != nil {
			err = fmt.Errorf("fragment %d: %w", source.fragment.ID, failed)
		}
	}()
	for _, p := range copyParts(column, s.runs, may) {
		if err := ctx.Err(); err != nil {
			return err
		}
		if p.page >= 0 {
			if check != nil && len(f.plan.slices) > 1 {
				checks.page(ctx, key, column, p.page)
			}
			of.retain() // until the page was read
			err = to.CopyPage(ctx, column, p.page, of.release)
			r.blockDone(f, to.CopyBytes(column, p.page))
		} else {
			err = r.reencode(ctx, f, column, as, p.runs, perRow, check, take)
		}
		if err != nil {
			return fmt.Errorf("fragment %d: %w", source.fragment.ID, err)
		}
	}
	return nil
}

// takeRows is what appends the next n rows at a cursor to a column.
type takeRows func(c *level.Cursor, n int) error

// reencode decodes the pages that runs lie in, lets check, if any, look at each block, and
// gathers their rows.
func (r *rewriteRun) reencode(ctx context.Context, f *rewriteFile, column *datafile.Column, leaf schema.Leaf, runs []rowRun, perRow float64, check func(*level.Block) error, take takeRows) error {
	row := runs[0].start // the next block's first
	for block, err := range column.BlocksRange(ctx, leaf, row, runs[len(runs)-1].end) {
		if err == nil {
			err = ctx.Err()
		}
		if err == nil && check != nil {
			err = check(block)
		}
		if err == nil {
			runs, err = takeRuns(take, block, row, runs)
		}
		if err != nil {
			return err
		}
		row += uint64(block.Rows)
		r.blockDone(f, uint64(float64(block.Rows)*perRow))
	}
	if len(runs) > 0 {
		return table.Corruptf("column %q ends at row %d", leaf.Path, row)
	}
	return nil
}

// takeRuns appends the rows of a block that are in runs, ascending ranges none of
// which ends before the block; row is the number of the block's first row. It
// returns the runs that go on after the block.
func takeRuns(take takeRows, block *level.Block, row uint64, runs []rowRun) ([]rowRun, error) {
	cursor, err := level.NewCursor(block)
	if err != nil {
		return nil, err
	}
	end := row + uint64(block.Rows)
	for len(runs) > 0 && runs[0].start < end {
		start, stop := max(runs[0].start, row), min(runs[0].end, end)
		if err := cursor.Skip(int(start - row)); err != nil {
			return nil, err
		}
		if err := take(cursor, int(stop-start)); err != nil {
			return nil, err
		}
		row = stop
		if stop < runs[0].end {
			break
		}
		runs = runs[1:]
	}
	return runs, nil
}

// blockDone reports progress.
func (r *rewriteRun) blockDone(f *rewriteFile, read uint64) {
	r.read.Add(read)
	if r.req.Progress == nil {
		return
	}
	f.mu.Lock()
	written := f.file.Bytes()
	delta := written - f.reported
	f.reported = written
	f.mu.Unlock()
	r.progress(read, delta)
}

// blobCopied reports a blob, of which so many bytes went beside the data file.
func (r *rewriteRun) blobCopied(read, beside uint64) {
	r.read.Add(read)
	r.progress(read, beside)
}

func (r *rewriteRun) progress(read, written uint64) {
	if r.req.Progress != nil {
		r.req.Progress(read, written)
	}
}
