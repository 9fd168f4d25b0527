package rowids

import (
	"iter"
	"math"
)

// stats are what the choice of a form depends on.
type stats struct {
	n         uint64
	low, high uint64
	ascending bool
}

func statsOf(runs iter.Seq2[uint64, uint64]) stats {
	s := stats{low: math.MaxUint64, ascending: true}
	for first, last := range runs {
		if s.n > 0 && first <= s.high {
			s.ascending = false
		}
		s.n += last - first + 1
		s.low, s.high = min(s.low, first), max(s.high, last)
	}
	return s
}

// form chooses as stock engines do: by an estimate of the bytes that each form
// takes, with 4 for a hole and 2 for a number of an array, and the earlier form
// where two take the same.
func (s stats) form() form {
	switch {
	case !s.ascending:
		return formArray
	case s.high == math.MaxUint64:
		return formSorted // the end of a range would not be a number of 64 bits
	}
	slots := s.high - s.low + 1
	holes := slots - s.n
	if holes == 0 {
		return formRange
	}
	asHoles, asBitmap, asArray := saturate(4, holes), (slots-1)/8+1, saturate(2, s.n)
	switch {
	case asHoles <= asBitmap && asHoles <= asArray:
		return formHoles
	case asBitmap <= asArray:
		return formBitmap
	default:
		return formSorted
	}
}

func saturate(a, b uint64) uint64 {
	if b > math.MaxUint64/a {
		return math.MaxUint64
	}
	return a * b
}

// build makes a segment of ids that are given as runs [first, last]. The runs are
// asked for twice. False means that there were none.
func build(runs iter.Seq2[uint64, uint64]) (segment, bool) {
	st := statsOf(runs)
	if st.n == 0 {
		return segment{}, false
	}
	s := segment{form: st.form(), n: st.n, low: st.low, high: st.high}
	switch s.form {
	case formRange:
	case formHoles:
		s.array = holesOf(runs, st)
	case formBitmap:
		b := make([]byte, (st.high-st.low)/8+1)
		for first, last := range runs {
			setBits(b, first-st.low, last-st.low)
		}
		s.bitmap = newBitmap(b)
	default:
		b := newArrayBuilder(int(st.n), st.low, st.high)
		for first, last := range runs {
			for v := first; ; v++ {
				b.add(v)
				if v == last {
					break
				}
			}
		}
		s.array = b.array
	}
	return s, true
}

// holesOf packs the numbers between the runs, of which there are some.
func holesOf(runs iter.Seq2[uint64, uint64], st stats) array {
	gaps := func(yield func(first, end uint64) bool) {
		next := st.low
		for first, last := range runs {
			if first > next && !yield(next, first) {
				return
			}
			next = last + 1
		}
	}
	var low, high uint64
	any := false
	for first, end := range gaps {
		if !any {
			low, any = first, true
		}
		high = end - 1
	}
	b := newArrayBuilder(int(st.high-st.low+1-st.n), low, high)
	for first, end := range gaps {
		for v := first; v < end; v++ {
			b.add(v)
		}
	}
	return b.array
}

// setBits sets the bits first to last, both included.
func setBits(b []byte, first, last uint64) {
	for v := first; v <= last; {
		if v%8 == 0 && last-v >= 7 {
			b[v/8] = 0xff
			v += 8
			continue
		}
		b[v/8] |= 1 << (v % 8)
		v++
	}
}
