package encoding

import (
	"encoding/binary"

	"github.com/rehome-db/rehome/lance/datafile/level"
	enc21pb "github.com/rehome-db/rehome/lance/internal/pb/enc21"
)

const (
	// maxChunkSlots is the most values that writers put into a chunk.
	maxChunkSlots = 4096
	// softLevels is the most level entries of a chunk, unless two values have
	// more between them; hardLevels is what the count's 16 bits hold.
	softLevels = 8192
	hardLevels = 1<<16 - 1
	// hardChunk is the largest chunk that 2.1 can describe: 12 bits of words.
	hardChunk = 1 << 15
	chunkPad  = 0xfe
	alignment = 8
)

// valueCodec encodes the value slots of a page chunk by chunk.
type valueCodec interface {
	// describe returns the encoding and how many buffers a chunk has.
	describe() (*enc21pb.CompressiveEncoding, int)
	// limits returns the most slots of a chunk, and the bytes to stay below if
	// more than two slots remain.
	limits() (slots, bytes int)
	// size returns the bytes of the buffers for the slots [from, to), or an
	// upper bound.
	size(from, to int) int
	// append appends the buffers for the slots [from, to) to dst, each padded,
	// and their sizes without padding to sizes. dst is aligned.
	append(dst []byte, sizes []int, from, to int) ([]byte, []int)
}

// dictionaryPage is what a page with a dictionary has besides indices.
type dictionaryPage struct {
	encoding *enc21pb.CompressiveEncoding
	items    int
	buffer   []byte
}

// chunkPlan is a range of value slots and the entries that go with them.
type chunkPlan struct {
	slot, slotEnd   int
	entry, entryEnd int
	last            bool
}

// miniBlock encodes a page in small chunks, or says where it has to be cut.
func (e *Encoder) miniBlock(b *level.Block, l *levels, codec valueCodec, dict *dictionaryPage) (EncodedPage, *gap, error) {
	if at := e.planChunks(l, codec, b.Values.N); at != nil {
		return EncodedPage{}, at, nil
	}
	var rep, def levelCodec
	layout := &enc21pb.MiniBlockLayout{Layers: layersProto(l.layers), NumItems: uint64(b.Values.N),
		HasLargeChunk: e.opts.Version.wideWords()}
	if l.rep != nil {
		rep = e.chooseLevelCodec(l.rep, l.maxRep)
		layout.RepCompression = rep.describe()
		layout.RepetitionIndexDepth = 1
	}
	if l.def != nil {
		def = e.chooseLevelCodec(l.def, l.maxDef)
		layout.DefCompression = def.describe()
	}
	encoding, buffers := codec.describe()
	layout.ValueCompression, layout.NumBuffers = encoding, uint64(buffers)

	e.meta, e.data = e.meta[:0], e.data[:0]
	for i := range e.chunks {
		e.appendChunk(&e.chunks[i], l, codec, rep, def, buffers)
	}
	out := [][]byte{e.meta, e.data}
	if dict != nil {
		layout.Dictionary, layout.NumDictionaryItems = dict.encoding, uint64(dict.items)
		out = append(out, dict.buffer)
	}
	if l.rep != nil {
		out = append(out, e.repetitionIndex(l))
	}
	return EncodedPage{
		Layout:  &enc21pb.PageLayout{Layout: &enc21pb.PageLayout_MiniBlock{MiniBlock: layout}},
		Buffers: out,
	}, nil, nil
}

// planChunks cuts the page into e.chunks, or says where no cut is possible. All
// chunks but the last hold a power of two of value slots, at least two; invisible
// entries go with the value that follows them, those at the end with the last
// chunk, so that a long stretch of them may not fit.
func (e *Encoder) planChunks(l *levels, codec valueCodec, slots int) *gap {
	e.chunks = e.chunks[:0]
	maxSlots, softBytes := codec.limits()
	repBits, defBits := levelWidth(l.maxRep), levelWidth(l.maxDef)
	_, buffers := codec.describe()
	fits := func(slot, slotEnd, entry, entryEnd, maxLevels, maxBytes int) bool {
		n := 0
		if l.rep != nil || l.def != nil {
			if n = entryEnd - entry; n > maxLevels {
				return false
			}
		}
		size := codec.size(slot, slotEnd)
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
		return size+6+2*buffers+alignment*(1+buffers) <= hardChunk
	}
	hardBytes := 1 << 30
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

func (e *Encoder) appendChunk(c *chunkPlan, l *levels, codec valueCodec, rep, def levelCodec, buffers int) {
	start := len(e.data)
	large := e.opts.Version.wideWords()
	header := 2 + 2*buffers
	if large {
		header += 2 * buffers
	}
	if rep != nil {
		header += 2
	}
	if def != nil {
		header += 2
	}
	for range header {
		e.data = append(e.data, 0)
	}
	e.data = padTo(e.data, alignment, chunkPad)

	at := start
	put16 := func(v int) {
		binary.LittleEndian.PutUint16(e.data[at:], uint16(v))
		at += 2
	}
	if rep == nil && def == nil {
		put16(0)
	} else {
		put16(c.entryEnd - c.entry)
	}
	if rep != nil {
		put16(e.appendLevels(rep, l.rep[c.entry:c.entryEnd]))
	}
	if def != nil {
		put16(e.appendLevels(def, l.def[c.entry:c.entryEnd]))
	}
	e.data, e.sizes = codec.append(e.data, e.sizes[:0], c.slot, c.slotEnd)
	for _, n := range e.sizes {
		if large {
			binary.LittleEndian.PutUint32(e.data[at:], uint32(n))
			at += 4
		} else {
			put16(n)
		}
	}
	words := (len(e.data) - start) / alignment
	word := uint32(words-1) << 4
	if !c.last {
		word |= uint32(log2(c.slotEnd - c.slot))
	}
	if large {
		e.meta = binary.LittleEndian.AppendUint32(e.meta, word)
	} else {
		e.meta = binary.LittleEndian.AppendUint16(e.meta, uint16(word))
	}
}

func (e *Encoder) appendLevels(c levelCodec, levels []uint16) int {
	have := len(e.data)
	e.data = c.append(e.data, levels)
	n := len(e.data) - have
	e.data = padTo(e.data, alignment, chunkPad)
	return n
}

// repetitionIndex writes, for each chunk, how many rows end in it, and how many
// entries at its end belong to a row that continues.
func (e *Encoder) repetitionIndex(l *levels) []byte {
	e.repIndex = e.repIndex[:0]
	for i := range e.chunks {
		c := &e.chunks[i]
		starts, lastStart := 0, c.entry
		for k := c.entry; k < c.entryEnd; k++ {
			if l.rep[k] == l.maxRep {
				starts++
				lastStart = k
			}
		}
		ended, open := starts, 0
		if l.rep[c.entry] != l.maxRep {
			ended++ // the row that the chunk begins in
		}
		if !c.last && l.rep[c.entryEnd] != l.maxRep {
			ended--
			open = c.entryEnd - lastStart
		}
		e.repIndex = binary.LittleEndian.AppendUint64(e.repIndex, uint64(ended))
		e.repIndex = binary.LittleEndian.AppendUint64(e.repIndex, uint64(open))
	}
	return e.repIndex
}

// padTo appends fill until the length of b is a multiple of n.
func padTo(b []byte, n int, fill byte) []byte {
	for len(b)%n != 0 {
		b = append(b, fill)
	}
	return b
}

func log2(n int) int {
	l := 0
	for n > 1 {
		n /= 2
		l++
	}
	return l
}
