package deletion

import (
	"fmt"
	"iter"

	"github.com/RoaringBitmap/roaring/v2"
)

// Vector is a set of row offsets of one fragment. It is immutable and safe for
// concurrent use; the nil *Vector is the empty set. Vector implements the
// OffsetSet interface of package table.
type Vector struct {
	// bits is never changed after the Vector was made. It is not a copy-on-write
	// bitmap: those are written to by operations that only read them.
	bits *roaring.Bitmap
}

var nothing = roaring.New()

func (v *Vector) bitmap() *roaring.Bitmap {
	if v == nil || v.bits == nil {
		return nothing
	}
	return v.bits
}

// compact makes a Vector of bits that nobody else holds. It keeps long runs as runs, so
// the memory of a set grows with its runs, and is at most a bit for each offset up to the
// largest.
func compact(bits *roaring.Bitmap) *Vector {
	bits.RunOptimize()
	return &Vector{bits: bits}
}

// Of returns the set of the given offsets, in any order, duplicates allowed.
func Of(offsets ...uint32) *Vector { return compact(roaring.BitmapOf(offsets...)) }

// Collect returns the set of the offsets that seq yields, in any order,
// duplicates allowed.
func Collect(seq iter.Seq[uint32]) *Vector {
	var b Builder
	for o := range seq {
		b.Add(o)
	}
	return b.Vector()
}

// Range returns the set of the offsets in [start, end). It is empty if start is
// not below end; end is at most 2^32.
func Range(start, end uint64) *Vector {
	bm := roaring.New()
	if end = min(end, 1<<32); start < end {
		bm.AddRange(start, end)
	}
	return &Vector{bits: bm}
}

// CollectRuns returns the set of the offsets in the half-open ranges [start, end)
// that seq yields, in any order, overlaps allowed. Ends are at most 2^32.
func CollectRuns(seq iter.Seq2[uint64, uint64]) *Vector {
	var b Builder
	for start, end := range seq {
		b.AddRun(start, end)
	}
	return b.Vector()
}

// Cardinality returns the number of offsets in the set.
func (v *Vector) Cardinality() uint64 { return v.bitmap().GetCardinality() }

// containers is the number of blocks of 65536 offsets that have one in the set.
func (v *Vector) containers() uint64 { return v.bitmap().Stats().Containers }

// plainSize is the size of the set as a bitmap without run containers, headers apart.
func (v *Vector) plainSize() uint64 {
	s := v.bitmap().Stats()
	// Whether a run container would be a list or a bitmap is not known: a list has at
	// most 4096 offsets.
	return s.ArrayContainerBytes + s.BitmapContainerBytes + min(8192*s.RunContainers, 2*s.RunContainerValues)
}

// IsEmpty says whether the set is empty.
func (v *Vector) IsEmpty() bool { return v.bitmap().IsEmpty() }

// Contains says whether offset is in the set.
func (v *Vector) Contains(offset uint32) bool { return v.bitmap().Contains(offset) }

// Max returns the largest offset, false if the set is empty.
func (v *Vector) Max() (uint32, bool) {
	if v.IsEmpty() {
		return 0, false
	}
	return v.bitmap().Maximum(), true
}

// Rank returns the number of offsets in the set that are below offset. The row at
// a live offset is therefore survivor number offset - Rank(offset), from 0.
func (v *Vector) Rank(offset uint32) uint64 {
	if offset == 0 {
		return 0
	}
	return v.bitmap().Rank(offset - 1)
}

// All yields the offsets in ascending order.
func (v *Vector) All() iter.Seq[uint32] {
	return func(yield func(uint32) bool) { v.bitmap().Iterate(yield) }
}

// Runs yields the set as maximal half-open ranges of offsets [start, end), in
// ascending order. Both are 64 bits wide because end can be 2^32.
func (v *Vector) Runs() iter.Seq2[uint64, uint64] {
	return func(yield func(uint64, uint64) bool) {
		for start, end := range v.bitmap().Ranges() {
			if !yield(uint64(start), end) {
				return
			}
		}
	}
}

// Live yields what is not in the set of a fragment with the given number of
// physical rows, as maximal half-open ranges [start, end), in ascending order:
// the runs of rows that a compaction copies.
func (v *Vector) Live(physicalRows uint64) iter.Seq2[uint64, uint64] {
	return func(yield func(uint64, uint64) bool) {
		at := uint64(0)
		for start, end := range v.Runs() {
			if start >= physicalRows {
				break
			}
			if at < start && !yield(at, start) {
				return
			}
			at = end
		}
		if at < physicalRows {
			yield(at, physicalRows)
		}
	}
}

// Equal says whether v and w are the same set, however they are stored.
func (v *Vector) Equal(w *Vector) bool {
	return v.bitmap().Equals(w.bitmap())
}

// Union returns the offsets in v or w. It is how two deletes of one fragment
// merge.
func (v *Vector) Union(w *Vector) *Vector {
	return compact(roaring.Or(v.bitmap(), w.bitmap()))
}

// Intersect returns the offsets in both v and w.
func (v *Vector) Intersect(w *Vector) *Vector {
	return compact(roaring.And(v.bitmap(), w.bitmap()))
}

// Difference returns the offsets in v that are not in w. With v a later vector of
// a fragment and w an earlier one, that is what was deleted in between.
func (v *Vector) Difference(w *Vector) *Vector {
	return compact(roaring.AndNot(v.bitmap(), w.bitmap()))
}

// Intersects says whether v and w share an offset.
func (v *Vector) Intersects(w *Vector) bool { return v.bitmap().Intersects(w.bitmap()) }

// Validate checks the set against its fragment: every offset is below physicalRows and,
// unless recorded is 0, the set has recorded offsets. Formats write 0 if they did not
// count. The error wraps [ErrCorrupt].
func (v *Vector) Validate(physicalRows, recorded uint64) error {
	if m, ok := v.Max(); ok && uint64(m) >= physicalRows {
		return corruptf("deletion: offset %d is deleted in a fragment of %d rows", m, physicalRows)
	}
	if n := v.Cardinality(); recorded != 0 && n != recorded {
		return corruptf("deletion: %d rows are deleted, %d are recorded", n, recorded)
	}
	return nil
}

// String summarises the set for messages: its size and its first few runs.
func (v *Vector) String() string {
	s := fmt.Sprintf("%d deleted", v.Cardinality())
	n := 0
	for start, end := range v.Runs() {
		switch {
		case n == 8:
			return s + " ..."
		case end == start+1:
			s += fmt.Sprintf(" %d", start)
		default:
			s += fmt.Sprintf(" %d-%d", start, end-1)
		}
		n++
	}
	return s
}
