package encoding

import (
	"github.com/rehome-db/rehome/lance/datafile/level"
	enc21pb "github.com/rehome-db/rehome/lance/internal/pb/enc21"
	enc23pb "github.com/rehome-db/rehome/lance/internal/pb/enc23"
	"github.com/rehome-db/rehome/table"
)

// sparseLayer is a layer's description.
type sparseLayer struct {
	list            bool
	slots, children uint64
	// nulls says that marked are the slots that are null, not those that are not.
	nulls            bool
	marked           sparseSequence
	nonEmpty, counts sparseSequence
	// nullNumber and emptyNumber are the definition levels, rank the repetition level
	// of a further element.
	nullNumber, emptyNumber, rank uint16
}

// sequences returns those of the layer in the order of their buffers.
func (l *sparseLayer) sequences() []*sparseSequence {
	if l.list {
		return []*sparseSequence{&l.nonEmpty, &l.counts, &l.marked}
	}
	return []*sparseSequence{&l.marked}
}

// sparseSequence is a sequence of n numbers that is still to be loaded.
type sparseSequence struct {
	codec sequenceDecoder
	n     uint64
	// steps says that what is stored after the first number is differences.
	steps bool
}

func (s *sparseSequence) payload() bool { return s.codec.payload() }

func (q *sparseSequence) load(in []byte) (sequence, error) {
	s, err := q.codec.load(q.n, in)
	if err != nil || !q.steps {
		return s, err
	}
	sum := uint64(0)
	for i, step := range s.values {
		if sum += step; sum < step {
			return s, table.Corruptf("encoding: position %d is too large", i)
		}
		s.values[i] = sum
	}
	return s, nil
}

func markedNulls(m enc21pb.SparseMeaning) (bool, error) {
	switch m {
	case enc21pb.SparseMeaning_SPARSE_NULL:
		return true, nil
	case enc21pb.SparseMeaning_SPARSE_VALID:
		return false, nil
	default:
		return false, table.Corruptf("encoding: validity that is neither of nulls nor of values")
	}
}

// slotLayer is the slots of one layer.
type slotLayer struct {
	list             bool
	slots            uint64
	nulls, valid     []uint64
	nonEmpty, counts []uint64
}

func (s *slotLayer) describe(buffers *[][]byte) *enc23pb.SparseLayer {
	sequence := func(values []uint64) *enc21pb.CompressiveEncoding {
		e, payload := encodeSequence(values)
		if payload != nil {
			*buffers = append(*buffers, payload)
		}
		return e
	}
	var list *enc23pb.SparseList
	if s.list {
		list = &enc23pb.SparseList{NumNonEmptyPositions: uint64(len(s.nonEmpty))}
		list.NonEmptyPositions, list.Counts = sequence(s.nonEmpty), sequence(s.counts)
		for _, n := range s.counts {
			list.NumChildSlots += n
		}
	}
	marked := s.nulls
	validity := &enc23pb.SparseValidity{Meaning: enc21pb.SparseMeaning_SPARSE_NULL}
	if len(s.valid) < len(s.nulls) {
		marked, validity.Meaning = s.valid, enc21pb.SparseMeaning_SPARSE_VALID
	}
	validity.Positions, validity.NumPositions = sequence(marked), uint64(len(marked))
	if list != nil {
		list.Validity = validity
		return &enc23pb.SparseLayer{Layer: &enc23pb.SparseLayer_List{List: list}}
	}
	return &enc23pb.SparseLayer{Layer: &enc23pb.SparseLayer_Validity{Validity: validity}}
}

// gatherLayer finds the slots of layer k, counted from the leaf, in the levels of a
// page.
func gatherLayer(l *levels, k int) slotLayer {
	out := slotLayer{list: l.layers[k].IsList()}
	// Below first are the levels of what is inside the layer, from after on those of
	// what is around it; hides is the first of those that leave it no slot.
	rank, number, hides := uint16(0), uint16(1), l.maxDef+1
	var first, after uint16
	for i, layer := range l.layers {
		if i == k {
			first = number
			after = number + uint16(layer.Numbers())
		}
		if i > k && layer.IsList() && hides > l.maxDef {
			hides = number
		}
		if i < k && layer.IsList() {
			rank++
		}
		number += uint16(layer.Numbers())
	}
	// What is null around a list leaves nothing either.
	null := l.layers[k] != level.EmptyableList
	for i := range l.entries {
		rep, def := l.maxRep, uint16(0)
		if l.rep != nil {
			rep = l.rep[i]
		}
		if l.def != nil {
			def = l.def[i]
		}
		switch {
		case def >= hides:
		case out.list && rep == rank && def < first:
			out.counts[len(out.counts)-1]++
		case rep < rank, out.list && rep == rank:
		default:
			slot := out.slots
			out.slots++
			switch {
			case def >= after, def == first && def < after && null:
				out.nulls = append(out.nulls, slot)
				continue
			case out.list && def < first:
				out.nonEmpty, out.counts = append(out.nonEmpty, slot), append(out.counts, 1)
			}
			out.valid = append(out.valid, slot)
		}
	}
	return out
}
