package encoding

import (
	"encoding/binary"

	"github.com/rehome-db/rehome/table"
)

// A chunk of a mini-block page is a header of sizes and then parts, each filled up to
// whole words of eight bytes. Four nullable int32, the third of them null, in format 2.1:
//
//	04 00                    4 level entries
//	08 00                    the definition levels take 8 bytes
//	10 00                    the values take 16 bytes
//	fe fe                    filler
//	00 00 00 00 01 00 00 00  the definition levels
//	07 00 00 00 08 00 00 00  the values, that of the null too
//	08 00 00 00 09 00 00 00
//
// Repetition levels, and their size, come before definition levels. A chunk without levels
// says that it has 0 entries. From format 2.2 on the sizes of values are 32 bits wide.
//
// The page's first buffer has a word for each chunk, as wide as the sizes of values: the
// words of eight bytes that the chunk takes, less one, above four bits for the logarithm
// of the number of its values. The last chunk, of which that is 0, has the values that are
// left. The chunk above is the word 0x0030.
const (
	// maxChunkSlots is the most values that writers put into a chunk.
	maxChunkSlots = 4096
	// maxChunkValues bounds the values of a chunk that is read. The four bits of the
	// logarithm allow 2^15 in all but the last.
	maxChunkValues = 1 << 16
	// softLevels is the most level entries of a chunk, unless two values have
	// more between them; hardLevels is what the count's 16 bits hold.
	softLevels = 8192
	hardLevels = 1<<16 - 1
	// hardChunk is the largest chunk that 2.1 can describe: 12 bits of words.
	hardChunk = 1 << 15
	// fixedChunkBytes is what chunks of fixed-width values are kept below, since reading
	// one row decodes a chunk: 8 KiB with the header of a chunk that has both levels.
	fixedChunkBytes = 8*1024 - 6
	// chunkPad fills up parts. Nothing reads it; a value of its own tells it from data.
	chunkPad  = 0xfe
	alignment = 8
)

// chunkForm is what the chunks of a page have in common.
type chunkForm struct {
	rep, def bool // has levels
	buffers  int  // of values
	word     int  // bytes of the size of such a buffer, and of what the page says of a chunk
}

// wordBytes returns the bytes of a size of values: large ones are of format 2.2.
func wordBytes(large bool) int {
	if large {
		return 4
	}
	return 2
}

// levelWord is the bytes of the number of levels, and of their sizes.
const levelWord = 2

// header returns the bytes of the sizes that a chunk begins with.
func (f chunkForm) header() int {
	n := levelWord + f.buffers*f.word
	if f.rep {
		n += levelWord
	}
	if f.def {
		n += levelWord
	}
	return n
}

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

// form returns the form of the page's chunks.
func (m *miniBlock) form() chunkForm {
	return chunkForm{rep: m.rep != nil, def: m.def != nil, buffers: m.values.buffers(), word: m.word()}
}

// chunk decodes one chunk of n values.
func (m *miniBlock) chunk(d *Decoder, in []byte, n int) error {
	header := m.form().header()
	if header > len(in) {
		return table.Corruptf("encoding: a chunk of %d bytes with a header of %d", len(in), header)
	}
	r := chunkReader{in: in, sizes: levelWord, part: pad8(header)}
	entries := int(binary.LittleEndian.Uint16(in))
	if m.rep == nil && m.def == nil {
		d.out.entries += n
		return m.chunkValues(d, &r, n)
	}
	visible := entries
	if m.rep != nil {
		words, err := m.levels(d, &r, entries, m.rep)
		if err != nil {
			return err
		}
		if err := d.out.addRep(words, entries); err != nil {
			return err
		}
	}
	if m.def != nil {
		words, err := m.levels(d, &r, entries, m.def)
		if err != nil {
			return err
		}
		if m.path.maxDef > 0 {
			visible, err = d.out.addDef(words, entries)
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
	d.out.entries += entries
	return m.chunkValues(d, &r, n)
}

// chunkReader goes through the sizes of a chunk and its parts side by side.
type chunkReader struct {
	in          []byte
	sizes, part int // where the next size and the next part are
}

// size returns the size of the next part, a number of so many bytes.
func (r *chunkReader) size(width int) uint64 {
	n := loadWord(r.in[r.sizes:], width)
	r.sizes += width
	return n
}

// has says whether the next part can be of that size.
func (r *chunkReader) has(size uint64) bool { return uint64(r.part)+size <= uint64(len(r.in)) }

// take returns the next part.
func (r *chunkReader) take(size int) []byte {
	part := r.in[r.part : r.part+size : r.part+size]
	r.part = pad8(r.part + size)
	return part
}

// levels decodes the next part into n 16-bit words.
func (m *miniBlock) levels(d *Decoder, r *chunkReader, n int, decoder fixedDecoder) ([]byte, error) {
	size := r.size(levelWord)
	if !r.has(size) {
		return nil, table.Corruptf("encoding: levels of %d bytes at %d in a chunk of %d", size, r.part, len(r.in))
	}
	var err error
	d.levels, err = decoder.decode(d.levels[:0], n, [][]byte{r.take(int(size))})
	return d.levels, err
}

// chunkValues decodes the parts that are left: the buffers of n values.
func (m *miniBlock) chunkValues(d *Decoder, r *chunkReader, n int) error {
	var bufs [maxEncodingDepth + 4][]byte // of nested lists, one a level
	count, word := m.values.buffers(), m.word()
	for i := range count {
		size := r.size(word)
		if !r.has(size) {
			return table.Corruptf("encoding: a value buffer of %d bytes at %d in a chunk of %d", size, r.part, len(r.in))
		}
		bufs[i] = r.take(int(size))
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

// chunkWriter writes the chunks of a page: their bytes to e.data, what the page says of
// them to e.meta.
type chunkWriter struct {
	e        *Encoder
	form     chunkForm
	levels   *levels
	rep, def levelEncoder // nil if the page has no such levels
	values   valueEncoder

	sizes int // where the next size goes in e.data
}

// chunk writes one chunk. Its header is left open until the sizes of its parts are known.
func (w *chunkWriter) chunk(c *chunkPlan) {
	e, start := w.e, len(w.e.data)
	e.data = append(e.data, make([]byte, w.form.header())...)
	e.data = padTo(e.data, alignment, chunkPad)
	w.sizes = start

	entries := 0
	if w.form.rep || w.form.def {
		entries = c.entryEnd - c.entry
	}
	w.size(entries, levelWord)
	if w.form.rep {
		w.appendLevels(w.rep, w.levels.rep[c.entry:c.entryEnd])
	}
	if w.form.def {
		w.appendLevels(w.def, w.levels.def[c.entry:c.entryEnd])
	}
	e.data, e.sizes = w.values.append(e.data, e.sizes[:0], c.slot, c.slotEnd)
	for _, n := range e.sizes {
		w.size(n, w.form.word)
	}
	w.describe(c, len(e.data)-start)
}

// size fills in the next size of the chunk's header, a number of so many bytes.
func (w *chunkWriter) size(n, width int) {
	storeWord(w.e.data[w.sizes:], width, uint64(n))
	w.sizes += width
}

// appendLevels writes the levels of the chunk and their size.
func (w *chunkWriter) appendLevels(levels levelEncoder, of []uint16) {
	have := len(w.e.data)
	w.e.data = levels.append(w.e.data, of)
	w.size(len(w.e.data)-have, levelWord)
	w.e.data = padTo(w.e.data, alignment, chunkPad)
}

// describe adds the chunk to what the page says of its chunks.
func (w *chunkWriter) describe(c *chunkPlan, bytes int) {
	word := uint64(bytes/alignment-1) << 4
	if !c.last {
		word |= uint64(log2(c.slotEnd - c.slot))
	}
	have := len(w.e.meta)
	w.e.meta = append(w.e.meta, make([]byte, w.form.word)...)
	storeWord(w.e.meta[have:], w.form.word, word)
}
