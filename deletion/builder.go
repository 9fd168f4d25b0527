package deletion

import "github.com/RoaringBitmap/roaring/v2"

// Builder makes a [Vector] of offsets that are added mostly in ascending order. It joins
// consecutive offsets into runs at once, so its memory grows with the runs and not with
// the offsets, and is at most a bit for each offset. The zero Builder is empty and ready
// to use. It is not safe for concurrent use.
type Builder struct {
	// start and end are the run that is being added to.
	start, end uint64
	// rows are offsets of short runs, to be added together.
	rows []uint32
	// recent has what was added last; done has what was added before, in its smallest
	// form.
	recent, done *roaring.Bitmap
	// unsettled is the number of times that recent was added to.
	unsettled int
}

const (
	// To add a range costs a merge with its whole block of 65536 offsets, so many short
	// ranges cost the square of their number. Short ones are added row by row.
	shortRun, heldRows = 1024, 4096
	// settleAfter bounds the containers of recent, which take up to 8 KiB each.
	settleAfter = 256
)

// Add adds an offset.
func (b *Builder) Add(offset uint32) {
	if o := uint64(offset); o == b.end && b.start < b.end {
		b.end++
	} else {
		b.close()
		b.start, b.end = o, o+1
	}
}

// AddRun adds the offsets in [start, end). It adds none if start is not below end;
// end is at most 2^32.
func (b *Builder) AddRun(start, end uint64) {
	switch end = min(end, 1<<32); {
	case start >= end:
	case start == b.end && b.start < b.end:
		b.end = end
	default:
		b.close()
		b.start, b.end = start, end
	}
}

// close ends the run that is being added to.
func (b *Builder) close() {
	start, end := b.start, b.end
	b.start, b.end = 0, 0
	if end-start >= shortRun {
		b.flush()
		b.bits().AddRange(start, end)
		b.settle(int((end-start)>>16) + 1)
		return
	}
	for ; start < end; start++ {
		b.rows = append(b.rows, uint32(start))
	}
	if len(b.rows) >= heldRows {
		b.flush()
	}
}

func (b *Builder) bits() *roaring.Bitmap {
	if b.recent == nil {
		b.recent = roaring.New()
	}
	return b.recent
}

// flush adds the short runs.
func (b *Builder) flush() {
	if len(b.rows) == 0 {
		return
	}
	b.bits().AddMany(b.rows)
	b.rows = b.rows[:0]
	b.settle(1)
}

// settle brings what was added into its smallest form, now and then.
func (b *Builder) settle(n int) {
	if b.unsettled += n; b.unsettled < settleAfter || b.recent == nil {
		return
	}
	b.recent.RunOptimize()
	if b.done == nil {
		b.done = b.recent
	} else {
		b.done.Or(b.recent)
	}
	b.recent, b.unsettled = nil, 0
}

// Vector returns the set of all that was added, and leaves the Builder empty.
func (b *Builder) Vector() *Vector {
	b.close()
	b.flush()
	b.settle(settleAfter)
	done := b.done
	*b = Builder{rows: b.rows[:0]}
	if done == nil {
		return &Vector{bits: roaring.New()}
	}
	return compact(done)
}
