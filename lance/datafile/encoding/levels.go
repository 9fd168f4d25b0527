package encoding

import (
	"context"
	"math/bits"
	"slices"

	"github.com/rehome-db/rehome/lance/datafile/level"
	enc21pb "github.com/rehome-db/rehome/lance/internal/pb/enc21"
	"github.com/rehome-db/rehome/table"
)

// levels is the level streams of a block, with the numbers that follow.
type levels struct {
	layers     []level.Layer
	rep, def   []uint16
	maxRep     uint16
	maxDef     uint16
	maxVisible uint16
	entries    int
	// visible is the entry of each value slot; nil if slot i is entry i.
	visible []uint32
}

// end returns the entry after that of the last of the first n > 0 value slots.
func (l *levels) end(n int) int {
	if l.visible == nil {
		return n
	}
	return int(l.visible[n-1]) + 1
}

// nullSlots calls f for every value slot that is null, in order, and returns how
// many are not.
func (l *levels) nullSlots(slots int, f func(slot int)) (valid int) {
	if l.def == nil || l.maxVisible == 0 {
		return slots
	}
	slot := 0
	for _, d := range l.def {
		if d > l.maxVisible {
			continue
		}
		if d == 0 {
			valid++
		} else {
			f(slot)
		}
		slot++
	}
	return valid
}

// nullableOutsideList says whether a struct that can be null lies around a list.
// Readers up to Lance 12 take the wrong entries of such a full-zip page for
// visible, unless all are.
func (l *levels) nullableOutsideList() bool {
	list := false
	for _, x := range l.layers {
		list = list || x.IsList()
		if list && x == level.NullableItem {
			return true
		}
	}
	return false
}

// declared returns levels that say the same and declare what is nullable in asked.
func (l *levels) declared(asked []level.Layer) (*levels, error) {
	layers := level.Declared(l.layers, asked)
	if slices.Equal(layers, l.layers) {
		return l, nil
	}
	numbers, err := level.Mapping(l.layers, layers)
	if err != nil {
		return nil, err
	}
	out := *l
	out.layers, out.def = layers, make([]uint16, l.entries)
	for i, d := range l.def {
		out.def[i] = numbers[d]
	}
	out.maxDef, out.maxVisible = level.MaxDef(layers), level.MaxVisibleDef(layers)
	return &out, nil
}

func (e *Encoder) levels(b *level.Block) *levels {
	l := &levels{
		layers: b.Layers, rep: b.Rep, def: b.Def, entries: b.Entries(),
		maxRep: level.MaxRep(b.Layers), maxDef: level.MaxDef(b.Layers), maxVisible: level.MaxVisibleDef(b.Layers),
	}
	if b.Def != nil && l.maxVisible < l.maxDef {
		e.visible = e.visible[:0]
		for i, d := range b.Def {
			if d <= l.maxVisible {
				e.visible = append(e.visible, uint32(i))
			}
		}
		l.visible = e.visible
	}
	return l
}

// levelEncoder encodes repetition or definition levels in block form.
type levelEncoder interface {
	describe() *enc21pb.CompressiveEncoding
	size(levels []uint16) int
	append(dst []byte, levels []uint16) []byte
}

func levelWidth(maxLevel uint16) int { return bits.Len16(maxLevel) }

// compileLevels checks the encoding of levels, which are 16-bit words in block
// form. Without an encoding there are no levels.
func compileLevels(e *enc21pb.CompressiveEncoding, limit int) (fixedDecoder, error) {
	if e == nil {
		return nil, nil
	}
	return compileFixed(e, 16, inBlock, limit, 0)
}

// chooseLevelEncoder returns the codec that makes the levels of all of e.chunks
// smallest.
func (e *Encoder) chooseLevelEncoder(levels []uint16, maxLevel uint16) levelEncoder {
	candidates := []levelEncoder{outOfLineLevels{width: levelWidth(maxLevel), scratch: &e.levelBuf}, flatLevels{}}
	if e.opts.Version.finished() {
		candidates = append(candidates, rleLevels{})
	}
	var best levelEncoder
	bestSize := 0
	for _, c := range candidates {
		total, ok := 0, true
		for _, k := range e.chunks {
			n := c.size(levels[k.entry:k.entryEnd])
			ok = ok && n <= hardLevels // its size is stored in 16 bits
			total += n
		}
		if ok && (best == nil || total < bestSize) {
			best, bestSize = c, total
		}
	}
	return best
}

// blockLevels appends the levels of a whole page to e.scratch, as small as can be.
func (e *Encoder) blockLevels(levels []uint16, maxLevel uint16) *enc21pb.CompressiveEncoding {
	var best levelEncoder = flatLevels{}
	for _, c := range []levelEncoder{outOfLineLevels{width: levelWidth(maxLevel), scratch: &e.levelBuf}, rleLevels{}} {
		if c.size(levels) < best.size(levels) {
			best = c
		}
	}
	e.scratch = best.append(e.scratch, levels)
	return best.describe()
}

// levelBuffer is the levels of a whole page.
type levelBuffer struct {
	buffer  *Buffer
	decoder fixedDecoder // nil for plain 16-bit words
	count   int
}

// read decodes the levels into little-endian 16-bit words, nil if there are none.
func (l *levelBuffer) read(ctx context.Context, d *Decoder, p Page) ([]byte, error) {
	if l.count == 0 {
		return nil, nil
	}
	in, err := read(ctx, p, nil, *l.buffer)
	if err != nil || l.decoder == nil {
		return in, err
	}
	return l.decoder.decode(nil, l.count, [][]byte{in})
}

// planLevels checks a buffer of levels. Compressed levels are at most so many
// that the memory they take stays in proportion to what is stored.
func planLevels(e *enc21pb.CompressiveEncoding, b *Buffer, count uint64, limit int) (levelBuffer, error) {
	if e == nil {
		if b.Size%2 != 0 || b.Size > uint64(limit) {
			return levelBuffer{}, table.Corruptf("encoding: levels of %d bytes", b.Size)
		}
		return levelBuffer{buffer: b, count: int(b.Size / 2)}, nil
	}
	if count > uint64(limit)/2 || count > 1<<20+512*b.Size {
		return levelBuffer{}, table.Corruptf("encoding: %d levels in %d bytes", count, b.Size)
	}
	decoder, err := compileLevels(e, limit)
	return levelBuffer{buffer: b, decoder: decoder, count: int(count)}, err
}
