package encoding

import (
	"sort"

	"github.com/rehome-db/rehome/lance/datafile/level"
)

// chunkPlan is a range of value slots and the entries that go with them.
type chunkPlan struct {
	slot, slotEnd   int
	entry, entryEnd int
	last            bool
}

// hardBytes is what two values may take in a chunk, where sizes of 32 bits allow 4 GiB:
// decoders bound by the same, see [Limits].
const hardBytes = 1 << 30

// planChunks cuts the page into e.chunks, or says where no cut is possible. All
// chunks but the last hold a power of two of value slots, at least two; invisible
// entries go with the value that follows them, those at the end with the last
// chunk, so that a long stretch of them may not fit.
func (e *Encoder) planChunks(l *levels, values valueEncoder, slots int) *gap {
	e.chunks = e.chunks[:0]
	maxSlots, softBytes := values.limits()
	repBits, defBits := levelWidth(l.maxRep), levelWidth(l.maxDef)
	_, buffers := values.describe()
	fits := func(slot, slotEnd, entry, entryEnd, maxLevels, maxBytes int) bool {
		n := 0
		if l.rep != nil || l.def != nil {
			if n = entryEnd - entry; n > maxLevels {
				return false
			}
		}
		size := values.size(slot, slotEnd)
		if size > maxBytes {
			return false
		}
		if e.opts.Version.wideWords() {
			return true
		}
		if l.rep != nil {
			size += packedSize(n, repBits) + alignment
		}
		if l.def != nil {
			size += packedSize(n, defBits) + alignment
		}
		// The header, with what its and the buffers' padding can take.
		header := chunkForm{rep: true, def: true, buffers: buffers, word: wordBytes(false)}.header()
		return size+header+alignment*(1+buffers) <= hardChunk
	}
	slot, entry := 0, 0
	for {
		rest := slots - slot
		if rest <= maxSlots && fits(slot, slots, entry, l.entries, softLevels, softBytes) ||
			rest <= 2 && fits(slot, slots, entry, l.entries, hardLevels, hardBytes) {
			e.chunks = append(e.chunks, chunkPlan{slot, slots, entry, l.entries, true})
			return nil
		}
		n := 1
		for 2*n <= maxSlots && 2*n < rest {
			n *= 2
		}
		for n > 2 && !fits(slot, slot+n, entry, l.end(slot+n), softLevels, softBytes) {
			n /= 2
		}
		if n < 2 || !fits(slot, slot+n, entry, l.end(slot+n), hardLevels, hardBytes) {
			return l.gapAfter(slot, slots, entry)
		}
		e.chunks = append(e.chunks, chunkPlan{slot, slot + n, entry, l.end(slot + n), false})
		slot, entry = slot+n, l.end(slot+n)
	}
}

// gapAfter finds the longest stretch of invisible entries around the next two
// slots. If there is none worth the name the values themselves are too large for
// one chunk, and the page is cut between them.
func (l *levels) gapAfter(slot, slots, entry int) *gap {
	longest := &gap{}
	at := entry
	for s := slot; s < min(slot+2, slots); s++ {
		next := l.end(s+1) - 1
		if next-at > longest.to-longest.from {
			longest = &gap{at, next}
		}
		at = next + 1
	}
	if slots-slot <= 2 && l.entries-at > longest.to-longest.from {
		longest = &gap{at, l.entries}
	}
	if longest.to == longest.from {
		between := l.end(min(slot+2, slots)) - 1
		longest = &gap{between, between}
	}
	return longest
}

// gap is where a page has to be cut: the range of entries, none of them visible,
// that is too long for a chunk; from equals to if what is before the visible
// entry there and what is after do not go together.
type gap struct{ from, to int }

// rows returns the rows before which to cut b: around the rows that lie in the
// gap, so that they get a page without values, which can be of any length; or,
// if there are none, around the row that the gap lies in.
func (g *gap) rows(b *level.Block) []int {
	first, last := g.from, g.to // row numbers, without lists
	if b.Rep != nil {
		maxRep := level.MaxRep(b.Layers)
		first, last = b.Rows, -1
		row := 0
		for i, r := range b.Rep {
			if r != maxRep {
				continue
			}
			if i >= g.from && first == b.Rows {
				first = row
			}
			if i <= g.to {
				last = row
			}
			row++
		}
		if g.to == len(b.Rep) {
			last = b.Rows
		}
	}
	cuts := []int{first, last}
	sort.Ints(cuts)
	out := cuts[:0]
	for _, c := range cuts {
		if c > 0 && c < b.Rows && (len(out) == 0 || out[len(out)-1] != c) {
			out = append(out, c)
		}
	}
	return out
}
