package fri

import (
	"cmp"
	"encoding/binary"
	"slices"

	"github.com/rehome-db/rehome/internal/roaringbytes"
	"github.com/rehome-db/rehome/table"
)

// The survivor bitmap is the portable 64-bit Roaring format: a u64 count, then
// for each fragment that has survivors, ascending, its id as a u32 and the 32-bit
// bitmap of their offsets. So each source's part is a piece of the bytes that can
// be read without the others.

// splitTreemap finds each source's part of a survivor bitmap and compares what its
// headers say with the source's digest. What is in the containers stays unread
// until the part is used or [History.Validate] asks. The parts keep pointing into
// data.
func splitTreemap(data []byte, sources []Digest) ([]*part, error) {
	if len(data) < 8 {
		return nil, broken(RuleBitmap, "a survivor bitmap of %d bytes", len(data))
	}
	position := positions(sources)
	parts := make([]*part, len(sources))
	made := make([]part, len(sources)) // one allocation for all
	count, rest := binary.LittleEndian.Uint64(data), data[8:]
	for n, prev := uint64(0), int64(-1); n < count; n++ {
		if len(rest) < 4 {
			return nil, broken(RuleBitmap, "the survivor bitmap ends after %d of %d fragments", n, count)
		}
		id := table.FragmentID(binary.LittleEndian.Uint32(rest))
		if int64(id) <= prev {
			return nil, broken(RuleBitmap, "survivors of fragment %d follow those of fragment %d", id, prev)
		}
		prev = int64(id)
		i, ok := position(id)
		if !ok {
			return nil, broken(RuleOwnAddresses, "fragment %d has survivors and is not a source", id)
		}
		shape, err := roaringbytes.Measure(rest[4:])
		if err != nil {
			return nil, broken(RuleBitmap, "survivors of fragment %d: %w", id, err)
		}
		if s := sources[i]; shape.Cardinality != s.LiveRows() {
			return nil, broken(RuleSurvivors, "%d rows of fragment %d survive, its digest says %d", shape.Cardinality, id, s.LiveRows())
		}
		parts[i] = &made[i]
		made[i].source, made[i].bits = sources[i], rest[4:4+shape.Size:4+shape.Size]
		rest = rest[4+shape.Size:]
	}
	if len(rest) > 0 {
		return nil, broken(RuleConsumed, "%d bytes follow the survivor bitmap", len(rest))
	}
	for i, s := range sources {
		if parts[i] != nil {
			continue
		}
		if s.LiveRows() != 0 {
			return nil, broken(RuleSurvivors, "no row of fragment %d survives, its digest says %d", s.ID, s.LiveRows())
		}
		parts[i] = &made[i]
		made[i].source = s
	}
	return parts, nil
}

// positions returns a lookup of sources by id. They ascend, and so do the bitmap's
// fragments, in all that compactions write: then it is a merge and takes no memory.
func positions(sources []Digest) func(table.FragmentID) (int, bool) {
	if slices.IsSortedFunc(sources, func(a, b Digest) int { return cmp.Compare(a.ID, b.ID) }) {
		next := 0
		return func(id table.FragmentID) (int, bool) {
			for next < len(sources) && sources[next].ID < id {
				next++
			}
			return next, next < len(sources) && sources[next].ID == id
		}
	}
	position := make(map[table.FragmentID]int, len(sources))
	for i, s := range sources {
		position[s.ID] = i
	}
	return func(id table.FragmentID) (int, bool) {
		i, ok := position[id]
		return i, ok
	}
}

// joinTreemap writes the survivor bitmap of the sources, whose bitmaps are given
// in the same order; a source without survivors has none.
func joinTreemap(sources []Digest, bitmaps [][]byte) []byte {
	order := make([]int, 0, len(sources))
	size := 8
	for i, b := range bitmaps {
		if len(b) > 0 {
			order = append(order, i)
			size += 4 + len(b)
		}
	}
	// The format wants keys ascending, whatever the order of the sources.
	slices.SortFunc(order, func(a, b int) int { return int(int64(sources[a].ID) - int64(sources[b].ID)) })
	out := make([]byte, 0, size)
	out = binary.LittleEndian.AppendUint64(out, uint64(len(order)))
	for _, i := range order {
		out = binary.LittleEndian.AppendUint32(out, uint32(sources[i].ID))
		out = append(out, bitmaps[i]...)
	}
	return out
}
