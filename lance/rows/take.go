package rows

import (
	"context"
	"fmt"
	"io"
	"iter"

	"github.com/apache/arrow-go/v18/arrow/memory"
	"golang.org/x/sync/errgroup"

	"github.com/rehome-db/rehome/lance/datafile"
	"github.com/rehome-db/rehome/lance/datafile/assemble"
	"github.com/rehome-db/rehome/lance/schema"
	"github.com/rehome-db/rehome/lance/version"
	"github.com/rehome-db/rehome/table"
)

const (
	// takeThreads is how many portions of rows are fetched at a time. More than
	// there are processors, because on a cold disk fetching is waiting.
	takeThreads = 4
	// A portion is so many rows of one fragment: few enough that all threads have
	// some, not so few that finding the pages is most of the work.
	minPortion, maxPortion = 128, defaultBatchRows
)

// Take returns the rows at given addresses of a version, which ascend. Portions of the rows are fetched by a few
// goroutines at a time, which are done when the iteration is.
func (t *Table) Take(ctx context.Context, s *table.Snapshot, addrs []table.RowAddr, columns []string) iter.Seq2[table.Batch, error] {
	return func(yield func(table.Batch, error) bool) {
		err := t.take(ctx, s, addrs, columns, func(b table.Batch) bool { return yield(b, nil) })
		if err != nil && err != errStopped {
			yield(table.Batch{}, fmt.Errorf("lance: table %s version %d: %w", t.root.Store, s.Version, err))
		}
	}
}

func (t *Table) take(ctx context.Context, s *table.Snapshot, addrs []table.RowAddr, columns []string, yield func(table.Batch) bool) error {
	if err := t.root.Ready(ctx); err != nil {
		return err
	}
	v, err := version.Of(s)
	if err != nil {
		return err
	}
	sch := v.Schema
	if len(columns) > 0 {
		if sch, err = v.Schema.Select(columns); err != nil {
			return err
		}
	}
	portions, err := takePortions(s, addrs)
	if err != nil || len(portions) == 0 {
		return err
	}
	if len(portions) == 1 {
		return t.takePortion(ctx, sch, portions[0], yield)
	}
	return t.takeAll(ctx, sch, portions, yield)
}

// portion is some rows of one fragment.
type portion struct {
	fragment table.Fragment
	addrs    []table.RowAddr
}

// takePortions checks addresses and cuts them into portions.
func takePortions(s *table.Snapshot, addrs []table.RowAddr) ([]portion, error) {
	size := min(max(len(addrs)/takeThreads, minPortion), maxPortion)
	var out []portion
	for i, a := range addrs {
		if i > 0 && a <= addrs[i-1] {
			return nil, fmt.Errorf("take: the address %v comes after %v: they must ascend", a, addrs[i-1])
		}
		last := len(out) - 1
		if last < 0 || out[last].fragment.ID != a.Fragment() {
			f, ok := s.Fragment(a.Fragment())
			if !ok {
				return nil, fmt.Errorf("take: there is no row at %v, and no such fragment: %w", a, table.ErrNotFound)
			}
			out = append(out, portion{fragment: f})
			last++
		} else if len(out[last].addrs) == size {
			out = append(out, portion{fragment: out[last].fragment})
			last++
		}
		if uint64(a.Offset()) >= out[last].fragment.PhysicalRows {
			return nil, fmt.Errorf("take: there is no row at %v: the fragment has %d: %w", a, out[last].fragment.PhysicalRows, table.ErrNotFound)
		}
		// The addresses of a portion follow each other in addrs.
		out[last].addrs = addrs[i-len(out[last].addrs) : i+1]
	}
	return out, nil
}

// takeAll fetches portions ahead of the one that is being handed out.
func (t *Table) takeAll(ctx context.Context, sch *schema.Schema, portions []portion, yield func(table.Batch) bool) error {
	ctx, cancel := context.WithCancel(ctx)
	g, ctx := errgroup.WithContext(ctx)
	results := make([]chan table.Batch, len(portions))
	for i := range results {
		results[i] = make(chan table.Batch, 1)
	}
	// A portion begins when the one takeThreads before it was handed out whole, so
	// what is held is bounded, and the next one to be handed out is under way.
	slots := make(chan struct{}, takeThreads)
	g.Go(func() error {
		for i := range portions {
			select {
			case slots <- struct{}{}:
			case <-ctx.Done():
				return ctx.Err()
			}
			g.Go(func() error { return t.fetch(ctx, sch, portions[i], results[i]) })
		}
		return nil
	})
	var err error
	for _, r := range results {
		if err = handOut(ctx, r, yield); err != nil {
			break
		}
		<-slots
	}
	cancel()
	if failed := g.Wait(); err != nil && err != errStopped && failed != nil {
		err = failed // why the context was over
	}
	for _, r := range results {
		for len(r) > 0 {
			(<-r).Record.Release()
		}
	}
	return err
}

// fetch puts the batches of a portion into a channel, and closes it if that was all
// of them.
func (t *Table) fetch(ctx context.Context, sch *schema.Schema, p portion, into chan<- table.Batch) error {
	err := t.takePortion(ctx, sch, p, func(b table.Batch) bool {
		b.Record.Retain()
		select {
		case into <- b:
			return true
		case <-ctx.Done():
			b.Record.Release()
			return false
		}
	})
	switch err {
	case nil:
		close(into)
	case errStopped:
		err = ctx.Err()
	}
	return err
}

// handOut passes on the batches of a portion until its channel is closed.
func handOut(ctx context.Context, from <-chan table.Batch, yield func(table.Batch) bool) error {
	for {
		select {
		case b, more := <-from:
			if !more {
				return nil
			}
			ok := yield(b)
			b.Record.Release()
			if !ok {
				return errStopped
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// takePortion fetches some rows of one fragment.
func (t *Table) takePortion(ctx context.Context, sch *schema.Schema, p portion, yield func(table.Batch) bool) error {
	r, err := t.openFragment(ctx, sch, p.fragment)
	if err != nil {
		return err
	}
	defer r.close()
	sources, err := r.take(ctx, rangesOf(p.addrs))
	if err != nil {
		return err
	}
	reader, err := assemble.New(memory.DefaultAllocator, sch, sources, uint64(len(p.addrs)))
	if err != nil {
		return fmt.Errorf("fragment %d: %w", p.fragment.ID, err)
	}
	defer reader.Close()
	for addrs := p.addrs; ; {
		if err := t.root.Ready(ctx); err != nil {
			return err
		}
		record, err := reader.Next(defaultBatchRows)
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return fmt.Errorf("fragment %d: %w", p.fragment.ID, err)
		}
		n := record.NumRows()
		more := yield(table.Batch{Record: record, Addrs: addrs[:n:n]})
		record.Release()
		if !more {
			return errStopped
		}
		addrs = addrs[n:]
	}
}

// take are the sources of some rows of the leaves, deleted or not; nil for a leaf
// that the fragment does not have.
func (r *fragmentReader) take(ctx context.Context, ranges []datafile.Range) ([]assemble.Source, error) {
	out := make([]assemble.Source, len(r.leaves))
	for i, leaf := range r.leaves {
		if r.files[i] == nil {
			continue
		}
		column, err := r.places[i].Open(r.files[i])
		if err != nil {
			return nil, fmt.Errorf("fragment %d: %w", r.fragment.ID, err)
		}
		out[i] = column.Take(ctx, leaf, ranges)
		if leaf.Described {
			out[i] = blobValues(ctx, out[i], leaf, r.blobs[i])
		}
	}
	return out, nil
}

// rangesOf puts addresses in one fragment, which ascend, as ranges of offsets.
func rangesOf(addrs []table.RowAddr) []datafile.Range {
	var out []datafile.Range
	for _, a := range addrs {
		row := uint64(a.Offset())
		if n := len(out); n > 0 && out[n-1].To == row {
			out[n-1].To++
			continue
		}
		out = append(out, datafile.Range{From: row, To: row + 1})
	}
	return out
}
