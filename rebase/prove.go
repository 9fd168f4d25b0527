package rebase

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"slices"
	"sort"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"golang.org/x/sync/errgroup"

	"github.com/rehome-db/rehome/table"
)

// The size of a piece that is held in memory, on each side: a number of stored bytes,
// between a least and a most number of rows. Each piece decodes its pages anew, so many
// rows are read in large pieces.
const (
	proofBytes             = 16 << 20
	proofRows, proofAtMost = 2048, 1 << 17
)

// proofPiece is the number of rows to be held at a time.
func proofPiece(s *table.Snapshot, rows RowSet) uint64 {
	var stored, physical uint64
	for _, id := range rows.Fragments() {
		f, _ := s.Fragment(id)
		stored, physical = stored+f.Bytes(), physical+f.PhysicalRows
	}
	if stored == 0 { // it is not recorded
		return proofRows
	}
	each := max(stored/max(physical, 1), 1)
	return min(max(proofBytes/each, proofRows), proofAtMost)
}

// prove reads the rows at their old addresses in before, and at their new addresses
// according to c in after, and compares all columns. It returns an unknownAddress if a
// row is missing or differs.
func (r *rebasing) prove(ctx context.Context, before, after *table.Snapshot, c *ChangeOfAddress, rows RowSet) error {
	columns := sharedColumns(before.Schema, after.Schema)
	if len(columns) == 0 {
		return unknownf("versions %d and %d have no column in common by which rows could be compared", before.Version, after.Version)
	}
	piece := proofPiece(before, rows)
	pairs := c.runs(rows, piece)
	for len(pairs) > 0 {
		n, held := 0, uint64(0)
		for n < len(pairs) && held+pairs[n].rows <= piece {
			held += pairs[n].rows
			n++
		}
		if err := r.provePairs(ctx, before, after, columns, pairs[:n]); err != nil {
			return err
		}
		pairs = pairs[n:]
	}
	return nil
}

// sharedColumns are the top-level columns that both versions have, under the same
// name.
func sharedColumns(a, b table.Schema) (names []string) {
	for _, f := range b.Fields {
		if g, ok := a.Field(f.Name); ok && g.ID == f.ID && arrow.TypeEqual(g.Type, f.Type) {
			names = append(names, f.Name)
		}
	}
	return names
}

func (r *rebasing) provePairs(ctx context.Context, before, after *table.Snapshot, columns []string, pairs []movedRun) error {
	var from, to []table.RowAddr
	for _, p := range pairs {
		for i := range table.RowAddr(p.rows) {
			from = append(from, p.from+i)
			to = append(to, p.to+i)
		}
	}
	// from ascends; so does to, unless fragments were not read in the order of their
	// ids.
	sorted, at := ascending(to)
	var old, now fetched
	defer old.release()
	defer now.release()
	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() error { return old.fetch(gctx, r.engine, before, from, columns) })
	g.Go(func() error { return now.fetch(gctx, r.engine, after, sorted, columns) })
	if err := g.Wait(); err != nil {
		return err
	}
	for i := 0; i < len(from); {
		n := 1
		for i+n < len(from) && at(i+n) == at(i)+n {
			n++
		}
		l, x := old.find(i)
		m, y := now.find(at(i))
		n = min(n, l.rest(x), m.rest(y))
		switch {
		case n == 0:
			return unknownf("the rows at %s in version %d and at %s in version %d are not both alive", from[i], before.Version, to[i], after.Version)
		case !equalRows(l.record, x, m.record, y, int64(n)):
			for equalRows(l.record, x, m.record, y, 1) { // up to the one that is not
				i, x, y = i+1, x+1, y+1
			}
			return unknownf("the rewrite did not keep the order of rows: what was at %s in version %d is not at %s in version %d", from[i], before.Version, to[i], after.Version)
		}
		i += n
	}
	return nil
}

// ascending returns addresses in ascending order, and where each of them is in it.
func ascending(addrs []table.RowAddr) (sorted []table.RowAddr, at func(i int) int) {
	if slices.IsSorted(addrs) {
		return addrs, func(i int) int { return i }
	}
	order := make([]int, len(addrs))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(addrs[a], addrs[b]) })
	place := make([]int, len(addrs))
	for i, from := range order {
		sorted = append(sorted, addrs[from])
		place[from] = i
	}
	return sorted, func(i int) int { return place[i] }
}

// equalRows compares n rows. Floats that are no numbers are equal to each other: this
// is about whether values were copied.
func equalRows(a arrow.RecordBatch, x int, b arrow.RecordBatch, y int, n int64) bool {
	for i, left := range a.Columns() {
		right, lx, ry := b.Column(i), int64(x), int64(y)
		if array.SliceEqual(left, lx, lx+n, right, ry, ry+n) {
			continue
		}
		// Of types without floats this would overlook differences.
		if !hasFloats(left.DataType()) || !array.SliceApproxEqual(left, lx, lx+n, right, ry, ry+n, array.WithNaNsEqual(true), array.WithAbsTolerance(0)) {
			return false
		}
	}
	return true
}

func hasFloats(t arrow.DataType) bool {
	switch t := t.(type) {
	case arrow.ExtensionType:
		return hasFloats(t.StorageType())
	case *arrow.DictionaryType:
		return hasFloats(t.ValueType)
	case arrow.NestedType:
		return slices.ContainsFunc(t.Fields(), func(f arrow.Field) bool { return hasFloats(f.Type) })
	}
	return arrow.IsFloating(t.ID())
}

// fetched are the rows at a list of addresses, in ascending pieces.
type fetched struct{ pieces []piece }

// piece is the rows at consecutive addresses of the list.
type piece struct {
	first  int               // in the list
	record arrow.RecordBatch // nil for no rows
}

// rest is the number of rows of the piece from row i on.
func (p piece) rest(i int) int {
	if p.record == nil {
		return 0
	}
	return int(p.record.NumRows()) - i
}

// find returns the piece that has the row at the i-th address, and the row in it.
func (f *fetched) find(i int) (piece, int) {
	k := sort.Search(len(f.pieces), func(k int) bool { return f.pieces[k].first > i }) - 1
	if k < 0 || f.pieces[k].rest(i-f.pieces[k].first) <= 0 {
		return piece{}, 0
	}
	return f.pieces[k], i - f.pieces[k].first
}

func (f *fetched) release() {
	for _, p := range f.pieces {
		p.record.Release()
	}
}

// fetch reads the rows at ascending addresses. It leaves out rows that are dead if the
// engine reads only live ones. The caller releases what was fetched, also after an
// error.
func (f *fetched) fetch(ctx context.Context, e table.Engine, s *table.Snapshot, addrs []table.RowAddr, columns []string) error {
	next := 0 // the first address that was not met yet
	for b, err := range rowsAt(ctx, e, s, addrs, columns) {
		if errors.Is(err, table.ErrNotFound) {
			return unknownf("%v", err)
		}
		if err != nil {
			return err
		}
		for i := 0; i < len(b.Addrs); {
			for next < len(addrs) && addrs[next] < b.Addrs[i] {
				next++
			}
			if next == len(addrs) {
				return nil
			}
			n := 0 // rows of the batch that are wanted, one after the other
			for i+n < len(b.Addrs) && next+n < len(addrs) && b.Addrs[i+n] == addrs[next+n] {
				n++
			}
			if n > 0 {
				f.pieces = append(f.pieces, piece{next, b.Record.NewSlice(int64(i), int64(i+n))})
				next += n
			}
			i += max(n, 1)
		}
	}
	return nil
}

// rowsAt yields at least the rows at the addresses that are alive.
func rowsAt(ctx context.Context, e table.Engine, s *table.Snapshot, addrs []table.RowAddr, columns []string) iter.Seq2[table.Batch, error] {
	if taker, ok := table.As[table.RowTaker](e); ok {
		return taker.Take(ctx, s, addrs, columns)
	}
	var ids []table.FragmentID
	for _, a := range addrs {
		if id := a.Fragment(); len(ids) == 0 || ids[len(ids)-1] != id {
			ids = append(ids, id)
		}
	}
	return e.Rows(ctx, s, ids, table.ReadOptions{Columns: columns, WithAddrs: true})
}
