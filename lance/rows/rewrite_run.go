package rows

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/rehome-db/rehome/lance/datafile"
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
	if f.file, err = r.group.table.createData(ctx, r.group.format, r.group.schema, storage, datafile.WriterOptions{Aside: r.helped}); err == nil {
		r.group.declare(f.file)
		f.beside = &sidecars{table: r.group.table, path: f.file.object.Path, opts: storage}
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
