package dml

import (
	"context"
	"fmt"
	"iter"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"golang.org/x/sync/errgroup"

	"github.com/rehome-db/rehome/commit"
	"github.com/rehome-db/rehome/deletion"
	"github.com/rehome-db/rehome/internal/gather"
	"github.com/rehome-db/rehome/rebase"
	"github.com/rehome-db/rehome/table"
)

// reader reads one version of a table for a change.
type reader struct {
	engine   table.Engine
	snapshot *table.Snapshot
	events   Events // without nils
	// threads is the number of fragments to be looked at at a time.
	threads int
	// dry says that nothing is to be written.
	dry bool
}

// errorf says where the reader is.
func (r reader) errorf(format string, args ...any) error {
	return fmt.Errorf("dml: table %s version %d: %w", r.snapshot.Table, r.snapshot.Version, fmt.Errorf(format, args...))
}

// scan yields the live rows of the given fragments, or of all, with their addresses, in
// table order. With no columns the records have some column: all that can be told from
// them is how many rows there are.
func (r reader) scan(ctx context.Context, columns []string, ids ...table.FragmentID) iter.Seq2[table.Batch, error] {
	if len(columns) == 0 {
		columns = narrowest(r.snapshot.Schema)
	}
	if len(ids) == 0 {
		for _, f := range r.snapshot.Fragments {
			ids = append(ids, f.ID)
		}
	}
	return r.engine.Rows(ctx, r.snapshot, ids, table.ReadOptions{Columns: columns, WithAddrs: true})
}

// narrowest is the column that is least work to read.
func narrowest(s table.Schema) []string {
	if len(s.Fields) == 0 {
		return nil
	}
	best, width := 0, 0
	for i, f := range s.Fields {
		if fixed, ok := f.Type.(arrow.FixedWidthDataType); ok && (width == 0 || fixed.BitWidth() < width) {
			best, width = i, fixed.BitWidth()
		}
	}
	return []string{s.Fields[best].Name}
}

// matching finds the live rows that a predicate matches. Of a condition that is the same for all rows none is read.
func (r reader) matching(ctx context.Context, where Predicate) (rebase.RowSet, error) {
	columns, err := where.Columns(r.snapshot.Schema)
	if err != nil {
		return nil, r.errorf("the condition: %w", err)
	}
	positions, columns, err := NewPositions(r.engine, r.snapshot, columns)
	if err != nil {
		return nil, err
	}
	find := func(ctx context.Context, f table.Fragment, m *meter) (*deletion.Vector, error) {
		return r.matchingOf(ctx, f.ID, columns, positions, where, m)
	}
	if d, ok := where.(Decider); ok {
		switch matches, decided := d.Decide(r.snapshot.Schema); {
		case decided && !matches:
			return rebase.RowSet{}, nil
		case decided:
			find = r.liveOf
		}
	}
	m := r.meter(Matching, r.snapshot.LiveRows())
	found := make([]*deletion.Vector, len(r.snapshot.Fragments))
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(r.threads)
	for i, f := range r.snapshot.Fragments {
		g.Go(func() (err error) {
			found[i], err = find(gctx, f, m)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	out := rebase.RowSet{}
	for i, f := range r.snapshot.Fragments {
		out.Add(f.ID, found[i])
	}
	return out, nil
}

// matchingOf is matching for one fragment.
func (r reader) matchingOf(ctx context.Context, id table.FragmentID, columns []string, positions Positions, where Predicate, m *meter) (*deletion.Vector, error) {
	var found deletion.Builder
	for batch, err := range r.scan(ctx, columns, id) {
		if err != nil {
			return nil, r.errorf("%w", err)
		}
		rec, err := positions.Add(ctx, batch)
		if err != nil {
			return nil, r.errorf("the condition: %w", err)
		}
		hit, err := r.match(ctx, where, rec)
		rec.Release()
		if err != nil {
			return nil, err
		}
		for i, addr := range batch.Addrs {
			if matches(hit, i) {
				found.Add(addr.Offset())
			}
		}
		hit.Release()
		m.add(int64(len(batch.Addrs)))
	}
	return found.Vector(), nil
}

// liveOf is every live row of a fragment. It reads no rows.
func (r reader) liveOf(ctx context.Context, f table.Fragment, m *meter) (*deletion.Vector, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	rows := deletion.Range(0, f.PhysicalRows)
	if f.Deletion != nil {
		dead, err := r.engine.ReadDeletions(ctx, r.snapshot, f)
		if err != nil {
			return nil, r.errorf("fragment %d: %w", f.ID, err)
		}
		rows = rows.Difference(commit.VectorOf(dead))
	}
	m.add(int64(rows.Cardinality()))
	return rows, nil
}

// match asks the predicate, and does not take its word for the number of rows.
func (r reader) match(ctx context.Context, where Predicate, rec arrow.RecordBatch) (*array.Boolean, error) {
	hit, err := where.Matches(ctx, rec)
	if err != nil {
		return nil, r.errorf("the condition: %w", err)
	}
	if int64(hit.Len()) != rec.NumRows() {
		defer hit.Release()
		return nil, r.errorf("the condition has answers for %d of %d rows", hit.Len(), rec.NumRows())
	}
	return hit, nil
}

func matches(hit *array.Boolean, i int) bool { return hit.IsValid(i) && hit.Value(i) }

const (
	// takeShare is the share of a fragment's rows up to which they are fetched one
	// by one rather than by reading the fragment.
	takeShare = 16
	// takeRows is the number of rows that are fetched by one call, about.
	takeRows = 8192
	// takeMost bounds the rows of one fragment that are fetched by one call.
	takeMost = 1 << 16
)

// at yields the given rows, which are alive, with their addresses, fragments in table
// order and rows by offset. It is an error if some are missing.
func (r reader) at(ctx context.Context, rows rebase.RowSet, columns []string) iter.Seq2[table.Batch, error] {
	return func(yield func(table.Batch, error) bool) {
		var seen uint64
		for batches := range r.reads(ctx, rows, columns) {
			for b, err := range batches {
				if err != nil {
					yield(table.Batch{}, r.errorf("%w", err))
					return
				}
				seen += uint64(len(b.Addrs))
				if b.Record.NumRows() > 0 && !yield(b, nil) {
					return
				}
			}
		}
		if want := rows.Rows(); seen != want {
			yield(table.Batch{}, table.Corruptf("dml: table %s version %d: %d rows are to be read again, and %d are there", r.snapshot.Table, r.snapshot.Version, want, seen))
		}
	}
}

// reads yields the ways to read the rows, one after the other: single rows are
// fetched together, fragments that more is read of are read.
func (r reader) reads(ctx context.Context, rows rebase.RowSet, columns []string) iter.Seq[iter.Seq2[table.Batch, error]] {
	return func(yield func(iter.Seq2[table.Batch, error]) bool) {
		taker, canTake := table.As[table.RowTaker](r.engine)
		var single []table.RowAddr
		flush := func() bool {
			if len(single) == 0 {
				return true
			}
			addrs := single
			single = nil
			return yield(taker.Take(ctx, r.snapshot, addrs, columns))
		}
		for _, f := range r.snapshot.Fragments {
			v := rows[f.ID]
			if v.IsEmpty() {
				continue
			}
			// Addresses that are fetched together have to ascend.
			if n := len(single); n > 0 && (n >= takeRows || single[n-1].Fragment() > f.ID) && !flush() {
				return
			}
			if canTake && v.Cardinality()*takeShare <= f.PhysicalRows {
				for offset := range v.All() {
					if len(single) == takeMost && !flush() {
						return
					}
					single = append(single, table.NewRowAddr(f.ID, offset))
				}
				continue
			}
			if !flush() || !yield(r.some(ctx, f.ID, v, columns)) {
				return
			}
		}
		flush()
	}
}

// inOrder yields the addresses of rows in table order.
func (r reader) inOrder(rows rebase.RowSet) iter.Seq[table.RowAddr] {
	return func(yield func(table.RowAddr) bool) {
		for _, f := range r.snapshot.Fragments {
			for offset := range rows[f.ID].All() {
				if !yield(table.NewRowAddr(f.ID, offset)) {
					return
				}
			}
		}
	}
}

// some reads a fragment and yields the given rows of it.
func (r reader) some(ctx context.Context, id table.FragmentID, rows *deletion.Vector, columns []string) iter.Seq2[table.Batch, error] {
	return func(yield func(table.Batch, error) bool) {
		opts := table.ReadOptions{Columns: columns, WithAddrs: true}
		for b, err := range r.engine.Rows(ctx, r.snapshot, []table.FragmentID{id}, opts) {
			if err != nil {
				yield(table.Batch{}, err)
				return
			}
			var keep []int
			var addrs []table.RowAddr
			for i, a := range b.Addrs {
				if rows.Contains(a.Offset()) {
					keep, addrs = append(keep, i), append(addrs, a)
				}
			}
			if len(keep) == 0 {
				continue
			}
			rec, err := gather.Record(memory.DefaultAllocator, b.Record, gather.Runs(keep))
			if err != nil {
				yield(table.Batch{}, err)
				return
			}
			more := yield(table.Batch{Record: rec, Addrs: addrs}, nil)
			rec.Release()
			if !more {
				return
			}
		}
	}
}

// rowCollector makes a set of rows out of addresses that come fragment by fragment.
type rowCollector struct {
	set     rebase.RowSet
	current table.FragmentID
	offsets deletion.Builder
}

func (c *rowCollector) add(a table.RowAddr) {
	if a.Fragment() != c.current {
		c.close()
		c.current = a.Fragment()
	}
	c.offsets.Add(a.Offset())
}

func (c *rowCollector) close() {
	if c.set == nil {
		c.set = rebase.RowSet{}
	}
	c.set.Add(c.current, c.offsets.Vector())
}

// rows is the set of what was added.
func (c *rowCollector) rows() rebase.RowSet {
	c.close()
	return c.set
}

// union puts columns together, every one once, in the order of the schema.
func union(s table.Schema, lists ...[]string) []string {
	var out []string
	for _, f := range s.Fields {
		if slices.ContainsFunc(lists, func(l []string) bool { return slices.Contains(l, f.Name) }) {
			out = append(out, f.Name)
		}
	}
	return out
}
