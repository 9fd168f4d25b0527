package rowids

import (
	"iter"
	"math"
	"slices"
	"sort"

	"github.com/rehome-db/rehome/table"
)

// Sequence is the ids of a fragment's rows, in physical order. The zero value, and
// nil, have none.
type Sequence struct {
	segments []segment
	ends     []uint64 // positions at which each segment ends
}

// Range is the ids from first up to, not including, end.
func Range(first, end table.RowID) *Sequence {
	s := &Sequence{}
	if first < end {
		s.add(segment{form: formRange, n: uint64(end - first), low: uint64(first), high: uint64(end) - 1})
	}
	return s
}

// Of is the given ids, in that order.
func Of(ids ...table.RowID) *Sequence {
	s := &Sequence{}
	if g, ok := build(runsOf(ids)); ok {
		s.add(g)
	}
	return s
}

func runsOf(ids []table.RowID) iter.Seq2[uint64, uint64] {
	return func(yield func(uint64, uint64) bool) {
		for i := 0; i < len(ids); {
			k := i + 1
			for k < len(ids) && ids[k-1] != math.MaxUint64 && ids[k] == ids[k-1]+1 {
				k++
			}
			if !yield(uint64(ids[i]), uint64(ids[k-1])) {
				return
			}
			i = k
		}
	}
}

// add appends a segment. Two ranges of which one goes on where the other ended
// become one.
func (s *Sequence) add(g segment) {
	if g.n == 0 {
		return
	}
	if k := len(s.segments) - 1; k >= 0 {
		if last := &s.segments[k]; last.form == formRange && g.form == formRange && last.high+1 == g.low {
			last.high, last.n = g.high, last.n+g.n
			s.ends[k] += g.n
			return
		}
	}
	s.ends = append(s.ends, s.Len()+g.n)
	s.segments = append(s.segments, g)
}

// Len returns the number of ids.
func (s *Sequence) Len() uint64 {
	if s == nil || len(s.ends) == 0 {
		return 0
	}
	return s.ends[len(s.ends)-1]
}

// locate returns the segment that holds a position below Len, and where it begins.
func (s *Sequence) locate(position uint64) (segment int, start uint64) {
	k := sort.Search(len(s.ends), func(k int) bool { return s.ends[k] > position })
	return k, s.start(k)
}

func (s *Sequence) start(segment int) uint64 {
	if segment == 0 {
		return 0
	}
	return s.ends[segment-1]
}

// At returns the id at a position; false if the sequence ends before it.
func (s *Sequence) At(position uint64) (table.RowID, bool) {
	if position >= s.Len() {
		return 0, false
	}
	k, start := s.locate(position)
	return table.RowID(s.segments[k].at(position - start)), true
}

// Bounds returns ids that none of the sequence is below and above; false if it is
// empty. They need not be in it.
func (s *Sequence) Bounds() (low, high table.RowID, ok bool) {
	if s.Len() == 0 {
		return 0, 0, false
	}
	l, h := uint64(math.MaxUint64), uint64(0)
	for i := range s.segments {
		l, h = min(l, s.segments[i].low), max(h, s.segments[i].high)
	}
	return table.RowID(l), table.RowID(h), true
}

// Runs yields the ids in order, as runs of consecutive ones: the first and the last
// of each.
func (s *Sequence) Runs() iter.Seq2[table.RowID, table.RowID] {
	return func(yield func(table.RowID, table.RowID) bool) {
		if s == nil {
			return
		}
		for i := range s.segments {
			for first, last := range s.segments[i].runs(0, s.segments[i].n) {
				if !yield(table.RowID(first), table.RowID(last)) {
					return
				}
			}
		}
	}
}

// Find yields the places of those of the given ids that the sequence has: the index
// in ids, which must ascend strictly, and the position. An id that occurs more than
// once is yielded for each place. The order is of no meaning.
func (s *Sequence) Find(ids []table.RowID) iter.Seq2[int, uint64] {
	return func(yield func(int, uint64) bool) {
		if s == nil {
			return
		}
		for i := range s.segments {
			g := &s.segments[i]
			from, _ := slices.BinarySearch(ids, table.RowID(g.low))
			to, has := slices.BinarySearch(ids, table.RowID(g.high))
			if has {
				to++
			}
			if from < to && !g.find(ids, from, to, s.start(i), yield) {
				return
			}
		}
	}
}

// find looks for ids[from:to], which are within the segment's bounds.
func (s *segment) find(ids []table.RowID, from, to int, start uint64, yield func(int, uint64) bool) bool {
	if s.form != formArray {
		for k := from; k < to; k++ {
			if p, ok := s.position(uint64(ids[k])); ok && !yield(k, start+p) {
				return false
			}
		}
		return true
	}
	for p := range s.array.len() {
		k, ok := slices.BinarySearch(ids[from:to], table.RowID(s.array.at(p)))
		if ok && !yield(from+k, start+uint64(p)) {
			return false
		}
	}
	return true
}

// Select returns the ids at the positions that ranges yields, half-open [start, end)
// and ascending, as [deletion.Vector.Live] yields them. Positions past the end are
// left out. Each segment of the result holds ids of one segment of s.
func (s *Sequence) Select(ranges iter.Seq2[uint64, uint64]) *Sequence {
	out := &Sequence{}
	total := s.Len()
	var kept [][2]uint64 // of segment k, in its own positions
	k := 0
	flush := func() {
		if len(kept) > 0 {
			out.add(s.segments[k].keep(kept))
			kept = kept[:0]
		}
	}
	for start, end := range ranges {
		end = min(end, total)
		for start < end {
			if start >= s.ends[k] {
				flush()
				k, _ = s.locate(start)
			}
			base, to := s.start(k), min(end, s.ends[k])
			kept = append(kept, [2]uint64{start - base, to - base})
			start = to
		}
	}
	flush()
	return out
}

// keep returns a segment with the ids at some of the positions.
func (s *segment) keep(ranges [][2]uint64) segment {
	if len(ranges) == 1 && ranges[0] == [2]uint64{0, s.n} {
		return *s
	}
	out, _ := build(func(yield func(uint64, uint64) bool) {
		for _, r := range ranges {
			for first, last := range s.runs(r[0], r[1]) {
				if !yield(first, last) {
					return
				}
			}
		}
	})
	return out
}

// Slice returns the ids at the positions [from, to).
func (s *Sequence) Slice(from, to uint64) *Sequence {
	return s.Select(func(yield func(uint64, uint64) bool) { yield(from, to) })
}

// Concat returns the ids of all sequences, one after the other.
func Concat(sequences ...*Sequence) *Sequence {
	out := &Sequence{}
	for _, s := range sequences {
		if s == nil {
			continue
		}
		for _, g := range s.segments {
			out.add(g)
		}
	}
	return out
}

// Rechunk cuts the ids of all sequences, laid end to end, into sequences of the given
// lengths. False means that the lengths do not add up to the ids.
func Rechunk(sequences []*Sequence, lengths ...uint64) ([]*Sequence, bool) {
	all := Concat(sequences...)
	if !addsUp(all.Len(), lengths) {
		return nil, false
	}
	out := make([]*Sequence, len(lengths))
	at := uint64(0)
	for i, n := range lengths {
		out[i] = all.Slice(at, at+n)
		at += n
	}
	return out, true
}

func addsUp(total uint64, lengths []uint64) bool {
	for _, n := range lengths {
		if n > total {
			return false
		}
		total -= n
	}
	return total == 0
}
