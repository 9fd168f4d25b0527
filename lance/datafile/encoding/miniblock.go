package encoding

import (
	"context"

	"github.com/rehome-db/rehome/lance/datafile/level"
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

// word is the size of a chunk's metadata, and of a value buffer's size.
func (m *miniBlock) word() int { return wordBytes(m.large) }

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

// miniBlock encodes a page in small chunks, or says where it has to be cut.
func (e *Encoder) miniBlock(b *level.Block, l *levels, values valueEncoder, dict *dictionaryPage) (result, error) {
	if cut := e.planChunks(l, values, b.Values.N); cut != nil {
		return result{cut: cut}, nil
	}
	w := chunkWriter{e: e, levels: l, values: values}
	layout := &enc21pb.MiniBlockLayout{Layers: layersProto(l.layers), NumItems: uint64(b.Values.N),
		HasLargeChunk: e.opts.Version.wideWords()}
	if l.rep != nil {
		w.rep = e.chooseLevelEncoder(l.rep, l.maxRep)
		layout.RepCompression = w.rep.describe()
		layout.RepetitionIndexDepth = 1
	}
	if l.def != nil {
		w.def = e.chooseLevelEncoder(l.def, l.maxDef)
		layout.DefCompression = w.def.describe()
	}
	encoding, buffers := values.describe()
	layout.ValueCompression, layout.NumBuffers = encoding, uint64(buffers)

	w.form = chunkForm{rep: l.rep != nil, def: l.def != nil, buffers: buffers, word: wordBytes(layout.HasLargeChunk)}
	e.meta, e.data = e.meta[:0], e.data[:0]
	for i := range e.chunks {
		w.chunk(&e.chunks[i])
	}
	out := [][]byte{e.meta, e.data}
	if dict != nil {
		layout.Dictionary, layout.NumDictionaryItems = dict.encoding, uint64(dict.items)
		out = append(out, dict.buffer)
	}
	if l.rep != nil {
		out = append(out, e.repetitionIndex(l))
	}
	return result{page: EncodedPage{
		Layout:  &enc21pb.PageLayout{Layout: &enc21pb.PageLayout_MiniBlock{MiniBlock: layout}},
		Buffers: out,
	}}, nil
}
