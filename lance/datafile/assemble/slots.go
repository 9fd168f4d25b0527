package assemble

import (
	"math/bits"
	"slices"

	"github.com/rehome-db/rehome/lance/datafile/level"
)

// What an entry with a certain definition level does to a layer if it opens a
// slot there.
type opening uint8

const (
	cutOff opening = iota // no slot: a list further out is absent
	absent                // a null
	empty                 // a list without items
	filled                // a value, a struct, or a list with a first item
)

// slots gathers one layer of a leaf's path: which slots it has, and for a list
// how long each is.
type slots struct {
	list bool
	// inner is the number of lists below the layer.
	inner uint16

	n, nulls int
	valid    []byte  // a bit a slot
	ends     []int64 // of a list: where each slot's items end

	// By definition level, for the layers of the current block.
	opens []opening
	adds  []bool // the entry is an item of this list
}

func newSlots(shape []level.Layer) []slots {
	out := make([]slots, len(shape))
	inner := uint16(0)
	for i, l := range shape {
		out[i] = slots{list: l.IsList(), inner: inner}
		if l.IsList() {
			inner++
		}
	}
	return out
}

func (s *slots) reset() { s.n, s.nulls, s.valid, s.ends = 0, 0, s.valid[:0], s.ends[:0] }

// interpret prepares every layer for blocks that declare the given layers.
func interpret(all []slots, layers []level.Layer) {
	// absentAt is the layer that a definition level says is absent.
	absentAt, isEmpty := []int{-1}, []bool{false}
	for i, l := range layers {
		switch l {
		case level.NullableItem, level.NullableList:
			absentAt, isEmpty = append(absentAt, i), append(isEmpty, false)
		case level.EmptyableList:
			absentAt, isEmpty = append(absentAt, i), append(isEmpty, true)
		case level.NullAndEmptyList:
			absentAt, isEmpty = append(absentAt, i, i), append(isEmpty, false, true)
		}
	}
	for l := range all {
		s := &all[l]
		s.opens, s.adds = s.opens[:0], s.adds[:0]
		for d, x := range absentAt {
			o := filled
			switch {
			case x > l && slices.ContainsFunc(layers[l+1:x+1], level.Layer.IsList):
				o = cutOff
			case x == l && isEmpty[d]:
				o = empty
			case x >= l:
				o = absent
			}
			s.opens = append(s.opens, o)
			s.adds = append(s.adds, x < l)
		}
	}
}

// add walks the entries. rep or def may be nil: then all are 0. n is their
// number.
func (s *slots) add(rep, def []uint16, n int) {
	if rep == nil && def == nil {
		s.addFilled(n)
		return
	}
	for i := range n {
		var r, d uint16
		if rep != nil {
			r = rep[i]
		}
		if def != nil {
			d = def[i]
		}
		if s.list && r <= s.inner {
			if r == s.inner && s.adds[d] && s.n > 0 {
				s.ends[s.n-1]++
			}
			continue
		}
		if r < s.inner || s.opens[d] == cutOff {
			continue
		}
		s.open(s.opens[d])
	}
}

// open appends a slot.
func (s *slots) open(o opening) {
	if s.n%8 == 0 {
		s.valid = append(s.valid, 0)
	}
	if o == absent {
		s.nulls++
	} else {
		s.valid[s.n/8] |= 1 << (s.n % 8)
	}
	if s.list {
		end := int64(0)
		if s.n > 0 {
			end = s.ends[s.n-1]
		}
		if o == filled {
			end++
		}
		s.ends = append(s.ends, end)
	}
	s.n++
}

// addFilled appends n items that are there.
func (s *slots) addFilled(n int) {
	s.valid = level.AppendOnes(s.valid, s.n, n)
	s.n += n
}

// addItems is add for the leaf of a path without lists, where every entry is an
// item: def 0 is one that is there.
func (s *slots) addItems(def []uint16) {
	i := 0
	for ; i < len(def) && s.n%8 != 0; i++ {
		s.open(s.opens[def[i]])
	}
	for ; i+8 <= len(def); i += 8 {
		var b byte
		for k, d := range def[i : i+8] {
			if s.opens[d] == filled {
				b |= 1 << k
			}
		}
		s.valid = append(s.valid, b)
		s.nulls += 8 - bits.OnesCount8(b)
		s.n += 8
	}
	for ; i < len(def); i++ {
		s.open(s.opens[def[i]])
	}
}

// countBits counts the ones of a bit stream whose last byte is filled up with
// zeros.
func countBits(b []byte) int {
	n := 0
	for _, x := range b {
		n += bits.OnesCount8(x)
	}
	return n
}
