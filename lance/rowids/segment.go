package rowids

import (
	"iter"
	"math"
	"sort"
)

// form is how a segment is stored.
type form int

const (
	formRange form = iota
	formHoles
	formBitmap
	formSorted
	formArray
)

// segment is a part of a sequence, never empty.
type segment struct {
	form form
	n    uint64 // ids
	// low and high are bounds of the ids, both inclusive; those of a range are its
	// ends whether or not they are in it.
	low, high uint64
	array     array  // the holes, or the ids
	bitmap    bitmap // of id-low
}

// runs yields the ids at the positions [from, to), as maximal runs [first, last] of
// consecutive numbers. The last is included because an id can be 2^64-1.
func (s *segment) runs(from, to uint64) iter.Seq2[uint64, uint64] {
	return func(yield func(uint64, uint64) bool) {
		if from >= to {
			return
		}
		switch s.form {
		case formRange:
			yield(s.low+from, s.low+to-1)
		case formHoles:
			s.holesRuns(from, to, yield)
		case formBitmap:
			s.bitmapRuns(from, to, yield)
		default:
			first := s.array.at(int(from))
			last := first
			for i := from + 1; i < to; i++ {
				v := s.array.at(int(i))
				if last != math.MaxUint64 && v == last+1 {
					last = v
					continue
				}
				if !yield(first, last) {
					return
				}
				first, last = v, v
			}
			yield(first, last)
		}
	}
}

func (s *segment) holesRuns(from, to uint64, yield func(uint64, uint64) bool) {
	id := s.at(from)
	hole := s.array.search(id)
	for left := to - from; left > 0; hole++ {
		end := s.high + 1 // no overflow: the format stores it
		if hole < s.array.len() {
			end = s.array.at(hole)
		}
		n := min(end-id, left)
		if n > 0 && !yield(id, id+n-1) {
			return
		}
		left -= n
		id = end + 1
	}
}

func (s *segment) bitmapRuns(from, to uint64, yield func(uint64, uint64) bool) {
	at := s.bitmap.selects(from)
	for left := to - from; left > 0; {
		start, end, ok := s.bitmap.run(at)
		if !ok {
			return
		}
		n := min(end-start, left)
		if !yield(s.low+start, s.low+start+n-1) {
			return
		}
		left -= n
		at = end
	}
}

// at returns the id at position i, which is below n.
func (s *segment) at(i uint64) uint64 {
	switch s.form {
	case formRange:
		return s.low + i
	case formHoles:
		// The id is low+i+k, where k holes come before it. Hole number k comes
		// before it exactly if hole-k, which does not descend, is at most low+i.
		target := s.low + i
		k := sort.Search(s.array.len(), func(k int) bool { return s.array.at(k)-uint64(k) > target })
		return target + uint64(k)
	case formBitmap:
		return s.low + s.bitmap.selects(i)
	default:
		return s.array.at(int(i))
	}
}

// position returns where an id between low and high is; false if it is missing. It
// is not for unsorted arrays.
func (s *segment) position(id uint64) (uint64, bool) {
	switch s.form {
	case formRange:
		return id - s.low, true
	case formHoles:
		k := s.array.search(id)
		if k < s.array.len() && s.array.at(k) == id {
			return 0, false
		}
		return id - s.low - uint64(k), true
	case formBitmap:
		if v := id - s.low; s.bitmap.contains(v) {
			return s.bitmap.rank(v), true
		}
		return 0, false
	default:
		k := s.array.search(id)
		return uint64(k), k < s.array.len() && s.array.at(k) == id
	}
}
