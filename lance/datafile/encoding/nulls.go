package encoding

import (
	"github.com/rehome-db/rehome/lance/datafile/level"
)

// clean makes the content of null slots cheap and independent of where the block
// came from: strings become empty, fixed values repeat the one before, lists are
// zero. It returns the number of slots that are not null.
func (e *Encoder) clean(b *level.Block, l *levels) (valid int) {
	v := &b.Values
	switch {
	case b.Type.Kind == level.Variable:
		junk := false
		valid = l.nullSlots(v.N, func(i int) { junk = junk || v.Offsets[i] != v.Offsets[i+1] })
		if junk {
			dropStrings(v, l)
		}
	case b.Type.ValueBits()%8 != 0 || b.Type.Kind == level.Nothing:
		valid = l.nullSlots(v.N, func(int) {})
	default:
		w := b.Type.ValueBits() / 8
		valid = l.nullSlots(v.N, func(i int) {
			slot := v.Data[i*w : (i+1)*w]
			if i == 0 || b.Type.Kind == level.FixedList {
				clear(slot)
			} else {
				copy(slot, v.Data[(i-1)*w:])
			}
		})
	}
	if v.ItemValid != nil {
		dropItemValidity(b, l)
	}
	return valid
}

// dropItemValidity makes all items of null lists valid, and forgets the validity
// of items if then none is null.
func dropItemValidity(b *level.Block, l *levels) {
	v, dim := &b.Values, b.Type.ValidBits()
	l.nullSlots(v.N, func(i int) {
		for k := i * dim; k < (i+1)*dim; k++ {
			v.ItemValid[k/8] |= 1 << (k % 8)
		}
	})
	items := v.N * dim
	for _, x := range v.ItemValid[:items/8] {
		if x != 0xff {
			return
		}
	}
	if tail := byte(1)<<(items%8) - 1; tail != 0 && v.ItemValid[items/8]&tail != tail {
		return
	}
	v.ItemValid = nil
}

// dropStrings empties the null slots of v, moving the rest down.
func dropStrings(v *level.Values, l *levels) {
	end, from := uint32(0), v.Offsets[0]
	slot := 0
	v.Offsets[0] = 0
	for _, d := range l.def {
		if d > l.maxVisible {
			continue
		}
		to := v.Offsets[slot+1]
		if d == 0 {
			end += uint32(copy(v.Data[end:], v.Data[from:to]))
		}
		v.Offsets[slot+1] = end
		from = to
		slot++
	}
	v.Data = v.Data[:end]
}
