package roaringbytes

import "iter"

// Container is one container's place in the bytes of a bitmap.
type Container struct {
	Kind Kind
	// Base is the first value of the container's block.
	Base uint32
	// Cardinality is the number of values as the header claims it.
	Cardinality int
	// Body is where the contents begin in the bitmap's bytes and Size how many
	// bytes they take; the count before the runs of a run container is no part of
	// them. So an array has Size/2 values and a run container Size/4 runs.
	Body, Size int
}

// Containers yields the containers of the bitmap at the start of data, ascending,
// and reads headers only, like [Measure]. The bytes must have passed Measure or
// [Check]; on others it ends early.
func Containers(data []byte) iter.Seq[Container] {
	return func(yield func(Container) bool) {
		c, err := newCursor(data)
		if err != nil {
			return
		}
		for c.i < c.n {
			k, err := c.next()
			if err != nil || !yield(Container{Kind: k.kind, Base: k.base, Cardinality: k.card, Body: c.pos - len(k.body), Size: len(k.body)}) {
				return
			}
		}
	}
}
