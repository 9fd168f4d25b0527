package encoding

import (
	"encoding/binary"

	"github.com/rehome-db/rehome/table"
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

// chunkSpan is where a chunk lies in the chunk buffer and how many values it has.
type chunkSpan struct {
	offset, size uint64
	values       int
}

// chunks reads the chunk metadata: size in words of eight bytes, less one, above
// four bits of log2 of the number of values. The last chunk has the values that
// are left.
func (m *miniBlock) chunks(meta []byte, dataSize uint64) ([]chunkSpan, error) {
	word := m.word()
	if m.counted {
		word = 8
	}
	if len(meta)%word != 0 {
		return nil, table.Corruptf("encoding: chunk metadata of %d bytes", len(meta))
	}
	out := make([]chunkSpan, len(meta)/word)
	offset, left := uint64(0), m.items
	for i := range out {
		w := loadWord(meta[i*word:], word)
		c := chunkSpan{offset: offset, size: (w>>4 + 1) * 8}
		n := uint64(1) << (w & 15)
		if m.counted {
			c.size, n = (w&(1<<32-1)+1)*8, w>>32
		} else if i == len(out)-1 {
			n = left
		}
		if n > left || n > maxChunkValues {
			return nil, table.Corruptf("encoding: chunk %d has %d values where %d are left", i, n, left)
		}
		c.values = int(n)
		left -= n
		offset += c.size
		out[i] = c
	}
	if offset != dataSize || left != 0 {
		return nil, table.Corruptf("encoding: %d chunks of %d bytes lack %d values and are stored in %d bytes", len(out), offset, left, dataSize)
	}
	return out, nil
}

// chunk decodes one chunk of n values: the number of levels, the sizes of its
// parts, then the parts, each filled up to eight bytes.
func (m *miniBlock) chunk(d *Decoder, in []byte, n int) error {
	buffers := m.values.buffers()
	header := 2 + buffers*m.word()
	if m.rep != nil {
		header += 2
	}
	if m.def != nil {
		header += 2
	}
	if header > len(in) {
		return table.Corruptf("encoding: a chunk of %d bytes with a header of %d", len(in), header)
	}
	levels := int(binary.LittleEndian.Uint16(in))
	if at := 2; m.rep != nil || m.def != nil {
		rest := pad8(header)
		visible := levels
		for _, part := range []struct {
			decoder fixedDecoder
			def     bool
		}{{m.rep, false}, {m.def, true}} {
			if part.decoder == nil {
				continue
			}
			size := int(binary.LittleEndian.Uint16(in[at:]))
			at += 2
			words, err := m.levels(d, in, rest, size, levels, part.decoder)
			if err != nil {
				return err
			}
			rest = pad8(rest + size)
			if !part.def {
				err = d.out.addRep(words, levels)
			} else if m.path.maxDef > 0 {
				visible, err = d.out.addDef(words, levels)
			} else {
				err = allZero(words)
			}
			if err != nil {
				return err
			}
		}
		if visible != n {
			return table.Corruptf("encoding: a chunk of %d values has %d visible entries", n, visible)
		}
		d.out.entries += levels
		return m.chunkValues(d, in, at, rest, n)
	}
	d.out.entries += n
	return m.chunkValues(d, in, 2, pad8(header), n)
}

// levels decodes size bytes of in from at on into n 16-bit words.
func (m *miniBlock) levels(d *Decoder, in []byte, at, size, n int, decoder fixedDecoder) ([]byte, error) {
	if at+size > len(in) {
		return nil, table.Corruptf("encoding: levels of %d bytes at %d in a chunk of %d", size, at, len(in))
	}
	var err error
	d.levels, err = decoder.decode(d.levels[:0], n, [][]byte{in[at : at+size]})
	return d.levels, err
}

// chunkValues decodes the value buffers of a chunk. Their sizes are at sizes, the
// first of them is at rest.
func (m *miniBlock) chunkValues(d *Decoder, in []byte, sizes, rest, n int) error {
	var bufs [maxEncodingDepth + 4][]byte // of nested lists, one a level
	count, word := m.values.buffers(), m.word()
	for i := range count {
		size := loadWord(in[sizes+i*word:], word)
		if uint64(rest)+size > uint64(len(in)) {
			return table.Corruptf("encoding: a value buffer of %d bytes at %d in a chunk of %d", size, rest, len(in))
		}
		bufs[i] = in[rest : rest+int(size) : rest+int(size)]
		rest = pad8(rest + int(size))
	}
	return m.values.appendTo(&d.out, n, bufs[:count])
}

// allZero checks levels that are written although no layer has a number.
func allZero(words []byte) error {
	for _, b := range words {
		if b != 0 {
			return table.Corruptf("encoding: a definition level where every layer is always there")
		}
	}
	return nil
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
