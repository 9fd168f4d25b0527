package rows

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/rehome-db/rehome/lance/datafile"
	"github.com/rehome-db/rehome/table"
)

// A column of an output is written from all its sources before the next one is begun:
// memory is then a few pages, however many columns there are. But each column opens
// every source anew, and with thousands of small sources, whose metadata is not all
// kept, that takes longer than what is read of them. Then a few columns are written side
// by side, and a source is opened once for all of them.

const (
	// sideBySide is how many columns are written together at most. Each holds the page
	// that it gathers.
	sideBySide = 4
	// smallColumn is how many bytes a column of a source has at most, on average, for
	// that to be worth while.
	smallColumn = 64 << 10
)

// rewriteTask is columns of one output, written side by side.
type rewriteTask struct {
	file   *rewriteFile
	leaves []int
}

// rewriteTasks lists the tasks: file by file, the largest columns of a file first.
func (r *rewriteRun) rewriteTasks() []rewriteTask {
	order := make([]int, len(r.group.leaves))
	var bytes uint64
	for i := range order {
		order[i] = i
		bytes += r.group.bytes[i]
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(r.group.bytes[b], r.group.bytes[a]) })
	perColumn := bytes / uint64(max(len(order)*len(r.group.sources), 1))
	var tasks []rewriteTask
	for _, f := range r.files {
		width := 1
		if r.group.forgotten && perColumn <= smallColumn {
			width = r.columnsTogether()
		}
		for part := range slices.Chunk(order, width) {
			tasks = append(tasks, rewriteTask{file: f, leaves: part})
		}
	}
	return tasks
}

// columnsTogether is how many columns a worker may write side by side: so few that all
// workers have something to do, and that they keep to the limit of memory.
func (r *rewriteRun) columnsTogether() int {
	all := len(r.files) * len(r.group.leaves)
	n := min(sideBySide, (all+r.workers-1)/r.workers)
	if r.req.MemoryLimit > 0 {
		n = min(n, int(r.req.MemoryLimit/(columnMemory*uint64(r.workers))))
	}
	return max(n, 1)
}

// columnTask is a column that a task writes.
type columnTask struct {
	leaf  int
	to    *datafile.ColumnWriter
	blobs *blobMover // of a column of blobs with descriptions
}

// write writes the columns of a task.
func (r *rewriteRun) write(ctx context.Context, t rewriteTask) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := r.create(ctx, t.file); err != nil {
		return err
	}
	columns := make([]columnTask, len(t.leaves))
	for i, leaf := range t.leaves {
		columns[i] = columnTask{leaf: leaf, to: t.file.file.Column(leaf)}
		columns[i].to.Expect(t.file.plan.rows)
	}
	if err := r.fill(ctx, t.file, columns); err != nil {
		return err
	}
	for _, c := range columns {
		if err := c.to.Close(); err != nil {
			return err
		}
		if c.to.Rows() != t.file.plan.rows {
			return table.Corruptf("column %q has %d live rows, %d were expected", r.group.leaves[c.leaf].Path, c.to.Rows(), t.file.plan.rows)
		}
	}
	return r.columnsDone(t.file, len(columns))
}

// fill copies the rows of columns, and the blobs that they refer to.
func (r *rewriteRun) fill(ctx context.Context, f *rewriteFile, columns []columnTask) (err error) {
	defer func() {
		for _, c := range columns {
			if err != nil && c.blobs != nil {
				err = errors.Join(err, c.blobs.abort())
			}
		}
	}()
	for i := range columns {
		c := &columns[i]
		if !r.group.leaves[c.leaf].Described {
			continue
		}
		if c.blobs, err = newBlobMover(r.group.leaves[c.leaf], c.to, f.beside, r.blobCopied); err != nil {
			return err
		}
	}
	for i := range f.plan.slices {
		for _, c := range columns {
			if err := r.slice(ctx, f, &f.plan.slices[i], c.leaf, c.to, c.blobs); err != nil {
				return err
			}
		}
	}
	for i := range columns {
		if blobs := columns[i].blobs; blobs != nil {
			columns[i].blobs = nil
			if err := blobs.close(); err != nil {
				return err
			}
		}
	}
	return nil
}
