package remap

import (
	"math/bits"
	"unsafe"

	"github.com/rehome-db/rehome/table"
)

// Addr is how a slice holds addresses. Stable row ids are another type on
// purpose: they stay with their rows and are never translated.
type Addr interface {
	uint64 | table.RowAddr
}

// rowAddrs is the same slice as row addresses.
func rowAddrs[A Addr](s []A) []table.RowAddr {
	// Both types that A can be are eight bytes of the same meaning.
	return unsafe.Slice((*table.RowAddr)(unsafe.Pointer(unsafe.SliceData(s))), len(s))
}

// Mask marks entries of a slice by position: entry i is bit i%64 of word i/64.
type Mask []uint64

// NewMask returns a mask for n entries, none of them marked.
func NewMask(n int) Mask { return make(Mask, (n+63)/64) }

// Get says whether entry i is marked.
func (m Mask) Get(i int) bool { return m[i/64]>>(i%64)&1 != 0 }

// Count returns the number of marked entries.
func (m Mask) Count() int {
	n := 0
	for _, w := range m {
		n += bits.OnesCount64(w)
	}
	return n
}

func (m Mask) set(i int) { m[i/64] |= 1 << (i % 64) }

// Slice translates addrs in place, leaves out those whose rows were deleted, and
// returns what is left, a prefix of addrs. They may be in any order and occur more
// than once; their order stays. What lies behind the returned prefix means nothing.
//
// Stretches that ascend are translated by a walk along the change of address, other
// addresses one by one. On an error addrs is unchanged: it is an
// [*UntranslatableError], or an [*OutsideError] with [Options.Strict].
func Slice[A Addr](r *Remapper, addrs []A) ([]A, Counts, error) {
	n, c, err := r.inPlace(rowAddrs(addrs), nil)
	return addrs[:n], c, err
}

// SliceMask translates addrs in place without moving entries, for addresses that
// stand beside something else. It returns a mask of the entries whose rows were
// deleted; such an entry keeps its old address. Otherwise it is like [Slice].
func SliceMask[A Addr](r *Remapper, addrs []A) (deleted Mask, c Counts, err error) {
	deleted = NewMask(len(addrs))
	if _, c, err = r.inPlace(rowAddrs(addrs), deleted); err != nil {
		return nil, c, err
	}
	return deleted, c, nil
}

// Sorted is [Slice] for addresses that ascend (the same address may follow
// itself), and an [*OrderError] if they do not: one merge walk, whatever the number
// of rewrites in between, so that an address of a dense batch costs a few
// nanoseconds.
//
// The result ascends too as long as every rewrite numbered its destinations in the
// order of its rows, and no fragment overtook another. A table's life does not
// promise that; where order matters, sort the result.
func Sorted[A Addr](r *Remapper, addrs []A) ([]A, Counts, error) {
	for i := 1; i < len(addrs); i++ {
		if addrs[i] < addrs[i-1] {
			return addrs, Counts{}, &OrderError{Index: i, Before: table.RowAddr(addrs[i-1]), After: table.RowAddr(addrs[i])}
		}
	}
	return Slice(r, addrs)
}
