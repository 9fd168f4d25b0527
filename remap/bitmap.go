package remap

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"github.com/RoaringBitmap/roaring/v2/roaring64"

	"github.com/rehome-db/rehome/internal/roaringbytes"
	"github.com/rehome-db/rehome/table"
)

// Bitmap returns the set of what the addresses in bm are now, without those of
// deleted rows. bm is not changed, and the result shares nothing with it.
//
// It works by ranges: a million neighbouring rows that stayed together cost as much
// as one. Fragments that nothing rewrote are copied as bytes. Containers of the
// result are of the kind that takes the fewest bytes.
func (r *Remapper) Bitmap(bm *roaring64.Bitmap) (*roaring64.Bitmap, Counts, error) {
	// The library gives no access to the 32-bit bitmaps but through bytes.
	data, err := bm.ToPortableBytes()
	if err != nil {
		return nil, Counts{}, fmt.Errorf("remap: bitmap: %w", err)
	}
	sets, err := parseBitmap64(data)
	if err != nil {
		return nil, Counts{}, fmt.Errorf("remap: bitmap: %w", err)
	}
	sets, c, err := r.translateSets(sets)
	if err != nil {
		return nil, Counts{}, err
	}
	size := 8
	for _, s := range sets {
		size += 4 + len(s.bits)
	}
	data = binary.LittleEndian.AppendUint64(make([]byte, 0, size), uint64(len(sets)))
	for _, s := range sets {
		data = binary.LittleEndian.AppendUint32(data, uint32(s.id))
		data = append(data, s.bits...)
	}
	out := roaring64.New()
	if _, err := out.ReadPortableFrom(bytes.NewReader(data)); err != nil {
		return nil, Counts{}, fmt.Errorf("remap: bitmap: %w", err)
	}
	return out, c, nil
}

// parseBitmap64 splits the portable form of a 64-bit bitmap: a u64 count, then for
// each key of 32 bits, ascending, the key and a 32-bit bitmap.
func parseBitmap64(data []byte) ([]rowSet, error) {
	if len(data) < 8 {
		return nil, table.Corruptf("%d bytes", len(data))
	}
	count, rest := binary.LittleEndian.Uint64(data), data[8:]
	var sets []rowSet
	for uint64(len(sets)) < count {
		if len(rest) < 4 {
			return nil, table.Corruptf("ends after %d of %d fragments", len(sets), count)
		}
		id := table.FragmentID(binary.LittleEndian.Uint32(rest))
		shape, err := roaringbytes.Check(rest[4:])
		if err != nil {
			return nil, table.Corruptf("fragment %d: %w", id, err)
		}
		sets = append(sets, rowSet{id: id, bits: rest[4 : 4+shape.Size], rows: shape.Cardinality, last: uint32(shape.Max)})
		rest = rest[4+shape.Size:]
	}
	return sets, nil
}
