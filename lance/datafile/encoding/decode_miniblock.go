package encoding

import (
	"context"
	"encoding/binary"

	enc21pb "github.com/rehome-db/rehome/lance/internal/pb/enc21"
	"github.com/rehome-db/rehome/table"
)

// miniBlock decodes pages that are cut into small chunks. Buffers: chunk
// metadata, chunks, the dictionary if there is one, the repetition index if
// there are lists. The repetition index is for random access and not needed here.
type miniBlock struct {
	path     path
	rep, def fixedDecoder // nil if the page has no such levels
	values   valueDecoder
	dict     *dictionaryValues // values, if they are a dictionary's
	large    bool              // chunk metadata and buffer sizes of 32 bits
	items    uint64            // visible entries
	// counted says that chunk metadata is a size and a number of values, 32 bits each.
	counted bool
}

func (d *Decoder) planMiniBlock(l *enc21pb.MiniBlockLayout, p Page) (*miniBlock, error) {
	out := &miniBlock{large: l.GetHasLargeChunk(), items: l.GetNumItems()}
	var err error
	if out.path, err = d.path(l.GetLayers()); err != nil {
		return nil, err
	}
	if out.rep, err = compileLevels(l.GetRepCompression(), d.limits.Expanded); err != nil {
		return nil, err
	}
	if out.def, err = compileLevels(l.GetDefCompression(), d.limits.Expanded); err != nil {
		return nil, err
	}
	if (out.rep != nil) != (out.path.maxRep > 0) {
		return nil, table.Corruptf("encoding: repetition levels and list layers do not go together")
	}
	if out.def == nil {
		out.path = out.path.allPresent()
	}
	buffers := 2
	if l.GetDictionary() != nil {
		buffers++
		if out.dict, err = compileDictionary(l, d.typ, d.limits.Expanded); err != nil {
			return nil, err
		}
		out.values = out.dict
	} else if out.values, err = compileValues(l.GetValueCompression(), d.typ, inChunk, d.limits.Expanded); err != nil {
		return nil, err
	}
	if l.GetNumBuffers() != uint64(out.values.buffers()) {
		return nil, table.Corruptf("encoding: %d value buffers a chunk for %s", l.GetNumBuffers(), Name(l.GetValueCompression()))
	}
	if len(p.Buffers) < buffers {
		return nil, table.Corruptf("encoding: a mini-block page has %d buffers, want %d", len(p.Buffers), buffers)
	}
	if size := p.Buffers[0].Size; size%uint64(out.word()) != 0 {
		return nil, table.Corruptf("encoding: chunk metadata of %d bytes", size)
	}
	return out, nil
}

// compileLevels checks the encoding of levels, which are 16-bit words in block
// form. Without an encoding there are no levels.
func compileLevels(e *enc21pb.CompressiveEncoding, limit int) (fixedDecoder, error) {
	if e == nil {
		return nil, nil
	}
	return compileFixed(e, 16, inBlock, limit, 0)
}

// word is the size of a chunk's metadata, and of a value buffer's size.
func (m *miniBlock) word() int {
	if m.large {
		return 4
	}
	return 2
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

func (m *miniBlock) run(ctx context.Context, d *Decoder, p Page, e *emitter) error {
	meta, err := read(ctx, p, d.aux, p.Buffers[0])
	if err != nil {
		return err
	}
	d.aux = meta
	data := p.Buffers[1]
	chunks, err := m.chunks(meta, data.Size)
	if err != nil {
		return err
	}
	if m.dict != nil {
		if err := m.dict.load(ctx, d, p, p.Buffers[2]); err != nil {
			return err
		}
	}
	d.out.begin(d.typ, m.path)
	if bits := d.typ.ValueBits(); bits > 0 {
		d.out.reserve(min(m.items, uint64(d.limits.BlockBytes))*uint64(bits)/8, d.limits)
	} else {
		d.out.reserve(4*data.Size, d.limits) // compressed strings give about as much
	}
	if m.path.maxRep == 0 {
		// A value is a row, so whole chunks can be passed over.
		for len(chunks) > 0 && uint64(chunks[0].values) <= e.from-e.row {
			e.row += uint64(chunks[0].values)
			chunks = chunks[1:]
		}
	}
	for len(chunks) > 0 && !e.done() {
		n := window(chunks, uint64(d.limits.BlockBytes))
		first, last := chunks[0], chunks[n-1]
		d.in, err = read(ctx, p, d.in, Buffer{data.Offset + first.offset, last.offset + last.size - first.offset})
		if err != nil {
			return err
		}
		in := d.in
		for _, c := range chunks[:n] {
			if err := m.chunk(d, in[:c.size], c.values); err != nil {
				return err
			}
			in = in[c.size:]
			if d.out.full(d.limits) {
				if err := d.out.close(e, false); err != nil {
					return err
				}
			}
			if e.done() {
				return nil
			}
		}
		chunks = chunks[n:]
	}
	if err := d.out.close(e, true); err != nil {
		return err
	}
	if e.row != p.Rows && !e.done() {
		return table.Corruptf("encoding: the chunks hold %d rows, the page %d", e.row, p.Rows)
	}
	return nil
}

// window returns how many chunks to read at a time: at least one.
func window(chunks []chunkSpan, limit uint64) int {
	n, size := 1, chunks[0].size
	for n < len(chunks) && size+chunks[n].size <= limit {
		size += chunks[n].size
		n++
	}
	return n
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

func pad8(n int) int { return (n + 7) &^ 7 }
