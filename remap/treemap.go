package remap

import (
	"encoding/binary"

	"github.com/rehome-db/rehome/internal/roaringbytes"
	"github.com/rehome-db/rehome/table"
)

// RowAddrTreeMap translates a set of addresses in the form in which bitmap indexes
// of Lance tables store one for each value ("RowAddrTreeMap", which is not the
// 64-bit Roaring format): a u32 count, then for each fragment, ascending, its id as
// a u32, the size of what follows as a u32, and a portable 32-bit Roaring bitmap
// of that size. Size 0 stands for all rows of the fragment.
//
// The data is checked in full before anything is translated; what is wrong with it
// is ErrCorrupt of package table. A whole fragment that was rewritten becomes the
// rows that survived of it; one that was not stays whole, and its rows are not
// counted. An empty set is four zero bytes.
func (r *Remapper) RowAddrTreeMap(data []byte) ([]byte, Counts, error) {
	sets, err := parseTreeMap(data)
	if err != nil {
		return nil, Counts{}, err
	}
	sets, c, err := r.translateSets(sets)
	if err != nil {
		return nil, Counts{}, err
	}
	size := 4
	for _, s := range sets {
		size += 8 + len(s.bits)
	}
	out := binary.LittleEndian.AppendUint32(make([]byte, 0, size), uint32(len(sets)))
	for _, s := range sets {
		out = binary.LittleEndian.AppendUint32(out, uint32(s.id))
		out = binary.LittleEndian.AppendUint32(out, uint32(len(s.bits)))
		out = append(out, s.bits...)
	}
	return out, c, nil
}

func parseTreeMap(data []byte) ([]rowSet, error) {
	if len(data) < 4 {
		return nil, table.Corruptf("remap: row address map of %d bytes", len(data))
	}
	count, rest := binary.LittleEndian.Uint32(data), data[4:]
	if uint64(len(rest)) < 8*uint64(count) {
		return nil, table.Corruptf("remap: row address map: %d bytes for %d fragments", len(rest), count)
	}
	sets := make([]rowSet, 0, count)
	for i := range count {
		if len(rest) < 8 {
			return nil, table.Corruptf("remap: row address map: ends after %d of %d fragments", i, count)
		}
		id := table.FragmentID(binary.LittleEndian.Uint32(rest))
		size := binary.LittleEndian.Uint32(rest[4:])
		rest = rest[8:]
		switch {
		case id > table.MaxFragmentID:
			return nil, table.Corruptf("remap: row address map: fragment id %d is reserved", id)
		case i > 0 && id <= sets[i-1].id:
			return nil, table.Corruptf("remap: row address map: fragment %d follows fragment %d", id, sets[i-1].id)
		case uint64(size) > uint64(len(rest)):
			return nil, table.Corruptf("remap: row address map: fragment %d: %d bytes announced, %d left", id, size, len(rest))
		}
		s := rowSet{id: id, bits: rest[:size], whole: size == 0}
		if !s.whole {
			shape, err := roaringbytes.Check(s.bits)
			if err != nil {
				return nil, table.Corruptf("remap: row address map: fragment %d: %w", id, err)
			}
			if shape.Size != int(size) {
				return nil, table.Corruptf("remap: row address map: fragment %d: %d bytes after the bitmap", id, int(size)-shape.Size)
			}
			s.rows, s.last = shape.Cardinality, uint32(shape.Max)
		}
		sets = append(sets, s)
		rest = rest[size:]
	}
	if len(rest) > 0 {
		return nil, table.Corruptf("remap: row address map: %d bytes left over", len(rest))
	}
	return sets, nil
}
