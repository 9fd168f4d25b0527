package remap

import (
	"cmp"
	"iter"
	"maps"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/rehome-db/rehome/fri"
	"github.com/rehome-db/rehome/internal/roaringbytes"
	"github.com/rehome-db/rehome/table"
)

// Bitmaps are translated as ranges. A set of a fragment's rows is cut along the
// fragment's runs, and each piece lands as a range of a destination. For every
// destination the ranges are collected and written as Roaring bytes. A fragment
// that nothing rewrote keeps its bytes.

// rowSet is some rows of one fragment as a container format stores them.
type rowSet struct {
	id   table.FragmentID
	bits []byte // portable Roaring bitmap of the offsets, checked
	rows uint64 // number of the offsets
	last uint32 // the highest of them
	// whole says that all rows of the fragment are meant, whatever their number,
	// which nothing here may know; bits is empty and rows is 0.
	whole bool
}

// translateSets translates sets that ascend by fragment into such sets.
func (r *Remapper) translateSets(sets []rowSet) ([]rowSet, Counts, error) {
	var c Counts
	var bad refusals
	stay := make(map[table.FragmentID]rowSet)
	arrive := collectors{of: make(map[table.FragmentID]*collector)}
	for _, s := range sets {
		before := c.Unaffected
		if r.history.Touched(s.id) {
			if err := r.translateSet(s, &arrive, &c); err != nil {
				bad.add(s.id, err)
				continue
			}
		} else {
			stay[s.id] = s
			c.Unaffected += s.rows
		}
		if r.opts.Strict && (c.Unaffected != before || stay[s.id].whole) {
			return nil, c, &OutsideError{Addr: table.NewRowAddr(s.id, s.first(r.physicalRows(s.id)))}
		}
	}
	for id, s := range stay {
		if last := table.NewRowAddr(id, s.last); !r.stands(last, fri.Unaffected) {
			bad.add(id, r.doubt(last, last))
		}
	}
	for id, k := range arrive.of {
		last, state := table.NewRowAddr(id, k.last), fri.Moved
		if r.history.Touched(id) { // rows beyond those that the fragment had
			state = fri.Unaffected
		}
		if !r.stands(last, state) {
			bad.add(id, r.doubt(last, last))
		}
	}
	if err := bad.err(); err != nil {
		return nil, Counts{}, err
	}

	ids := slices.Collect(maps.Keys(stay))
	for id := range arrive.of {
		if _, ok := stay[id]; !ok {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	out := make([]rowSet, 0, len(ids))
	for _, id := range ids {
		s, stays := stay[id]
		if col := arrive.of[id]; col != nil && !s.whole {
			if stays {
				for start, end := range roaringbytes.Ranges(s.bits) {
					col.add(start, uint32(end-1))
				}
			}
			bits, err := col.bytes()
			if err != nil {
				return nil, Counts{}, err
			}
			s = rowSet{id: id, bits: bits}
		}
		out = append(out, s)
	}
	return out, c, nil
}

// physicalRows returns the number of rows that a fragment had when it was
// rewritten, 0 if it was not.
func (r *Remapper) physicalRows(id table.FragmentID) uint64 {
	if i, ok := r.history.Consumer(id); ok {
		for _, d := range r.history.At(i).Sources() {
			if d.ID == id {
				return d.PhysicalRows
			}
		}
	}
	return 0
}

// sparse is how many rows a fragment has for each that is asked for if looking
// those up costs less than passing all of its runs.
const sparse = 16

// translateSet translates rows of a fragment that was rewritten.
func (r *Remapper) translateSet(s rowSet, out *collectors, c *Counts) error {
	if s.whole {
		for run, err := range r.translator.Runs(s.id) {
			if err != nil {
				return err
			}
			r.arrive(run, run.Len, out, c)
		}
		return nil
	}
	if s.rows < r.physicalRows(s.id)/sparse {
		return r.lookUpSet(s, out, c)
	}

	var in []span
	for start, end := range roaringbytes.Ranges(s.bits) {
		in = append(in, span{start, uint32(end - 1)})
	}
	before := *c
	for run, err := range r.translator.Runs(s.id) {
		if err != nil {
			// It may be about rows that nobody asked for. What arrived already
			// arrives again, which makes no difference to a set.
			*c = before
			return r.lookUpSet(s, out, c)
		}
		if len(in) == 0 {
			return nil
		}
		first := run.From.Offset()
		last := first + uint32(run.Len-1)
		for len(in) > 0 && in[0].first <= last {
			piece := span{in[0].first, min(in[0].last, last)}
			cut := run
			cut.To += table.RowAddr(piece.first - first)
			r.arrive(cut, piece.len(), out, c)
			if in[0].last > last {
				in[0].first = last + 1
				break
			}
			in = in[1:]
		}
	}
	// What is left lies beyond the fragment's rows.
	for _, p := range in {
		c.Unaffected += p.len()
		out.add(table.NewRowAddr(s.id, p.first), p.len())
	}
	return nil
}

// arrive accounts for n rows from the start of a run.
func (r *Remapper) arrive(run fri.Run, n uint64, out *collectors, c *Counts) {
	if run.Deleted {
		c.Deleted += n
		return
	}
	c.Moved += n
	out.add(run.To, n)
}

// lookUpSet is translateSet one row at a time.
func (r *Remapper) lookUpSet(s rowSet, out *collectors, c *Counts) error {
	var addrs [chunkAddrs]table.RowAddr
	var states [chunkAddrs]fri.State
	n := 0
	flush := func() error {
		if err := r.translator.TranslateSorted(addrs[:n], states[:n]); err != nil {
			return err
		}
		for i, to := range addrs[:n] {
			switch states[i] {
			case fri.Deleted:
				c.Deleted++
				continue
			case fri.Moved:
				c.Moved++
			default:
				c.Unaffected++
			}
			out.add(to, 1)
		}
		n = 0
		return nil
	}
	for start, end := range roaringbytes.Ranges(s.bits) {
		for o := uint64(start); o < end; o++ {
			addrs[n] = table.NewRowAddr(s.id, uint32(o))
			if n++; n == chunkAddrs {
				if err := flush(); err != nil {
					return err
				}
			}
		}
	}
	return flush()
}

// span is the rows from first to last of a fragment.
type span struct{ first, last uint32 }

func (s span) len() uint64 { return uint64(s.last) - uint64(s.first) + 1 }

// first returns the set's first row from the given one on.
func (s rowSet) first(from uint64) uint32 {
	for start, end := range roaringbytes.Ranges(s.bits) {
		if end > from {
			return uint32(max(uint64(start), from))
		}
	}
	return 0
}

// collector collects ranges of one fragment's rows, in any order.
type collector struct {
	spans    []span
	last     uint32 // the highest row
	unsorted bool
	// folded is what was collected before the spans became too many.
	folded *roaring.Bitmap
	err    error
}

// mostSpans bounds the memory for each fragment that is being collected, to half
// a megabyte beside the bitmap.
const mostSpans = 1 << 16

func (k *collector) add(first, last uint32) {
	k.last = max(k.last, last)
	if n := len(k.spans); n > 0 {
		end := &k.spans[n-1].last
		if uint64(first) == uint64(*end)+1 {
			*end = last
			return
		}
		k.unsorted = k.unsorted || first <= *end
		if n == mostSpans {
			k.fold()
		}
	}
	k.spans = append(k.spans, span{first, last})
}

// ranges yields the spans ascending and apart, as half-open ranges.
func (k *collector) ranges() iter.Seq2[uint32, uint64] {
	if k.unsorted {
		slices.SortFunc(k.spans, func(a, b span) int { return cmp.Compare(a.first, b.first) })
		k.unsorted = false
	}
	return func(yield func(uint32, uint64) bool) {
		for i := 0; i < len(k.spans); {
			first, end := k.spans[i].first, uint64(k.spans[i].last)+1
			for i++; i < len(k.spans) && uint64(k.spans[i].first) <= end; i++ {
				end = max(end, uint64(k.spans[i].last)+1)
			}
			if !yield(first, end) {
				return
			}
		}
	}
}

// fold turns the spans into a bitmap.
func (k *collector) fold() {
	bm := roaring.New()
	if _, err := bm.FromUnsafeBytes(roaringbytes.Append(nil, k.ranges(), roaringbytes.WithRuns)); err != nil {
		k.err = err
	}
	if k.folded == nil {
		k.folded = bm
	} else {
		k.folded.Or(bm)
	}
	k.spans = k.spans[:0]
}

// bytes returns the set as a portable Roaring bitmap.
func (k *collector) bytes() ([]byte, error) {
	if k.folded == nil {
		return roaringbytes.Append(nil, k.ranges(), roaringbytes.WithRuns), nil
	}
	k.fold()
	return roaringbytes.Append(nil, k.folded.Ranges(), roaringbytes.WithRuns), k.err
}

// collectors are the collectors of several fragments.
type collectors struct {
	of     map[table.FragmentID]*collector
	lastID table.FragmentID
	last   *collector
}

// add adds n rows from the address on, all of one fragment.
func (s *collectors) add(from table.RowAddr, n uint64) {
	if id := from.Fragment(); s.last == nil || s.lastID != id {
		s.lastID, s.last = id, s.of[id]
		if s.last == nil {
			s.last = &collector{}
			s.of[id] = s.last
		}
	}
	s.last.add(from.Offset(), from.Offset()+uint32(n-1))
}
