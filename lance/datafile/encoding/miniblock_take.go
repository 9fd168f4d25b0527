package encoding

import (
	"context"

	"github.com/rehome-db/rehome/table"
)

// takeChunk is a chunk that holds rows that are wanted.
type takeChunk struct {
	chunkSpan
	// row is the row that the chunk's first whole row is, and begun the number of
	// rows that begin in it.
	row, begun uint64
	// tail is the number of entries at its end whose row goes on in the next chunk.
	tail uint64
	// resumes says that it begins within a row. follows says that it is decoded
	// together with the chunk before it, because a row goes on in it.
	resumes, follows bool
}

// take implements sparsePlan: it decodes the chunks that the rows are in.
func (m *miniBlock) take(ctx context.Context, d *Decoder, p Page, t *taker) error {
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
	var wanted []takeChunk
	if m.path.maxRep == 0 {
		wanted, err = m.wanted(p, t.ranges, chunks)
	} else if at, ok := m.index(p, len(chunks)); !ok {
		return t.run(ctx, m, d, p, t.ranges[0].From, t.ranges[len(t.ranges)-1].To)
	} else if d.aux, err = read(ctx, p, d.aux, at); err == nil {
		wanted, err = m.wantedLists(p, t.ranges, chunks, d.aux)
	}
	if err != nil {
		return err
	}
	if m.dict != nil {
		if err := m.dict.load(ctx, d, p, p.Buffers[2]); err != nil {
			return err
		}
	}
	d.out.begin(d.typ, m.path)
	t.all()
	kept := m.keepSome(d.typ)
	for len(wanted) > 0 {
		n, end := 1, wanted[0].offset+wanted[0].size
		for n < len(wanted) && wanted[n].offset-end <= takeGap && wanted[n].offset+wanted[n].size-wanted[0].offset <= takeRead {
			end = wanted[n].offset + wanted[n].size
			n++
		}
		start := wanted[0].offset
		if d.in, err = read(ctx, p, d.in, Buffer{data.Offset + start, end - start}); err != nil {
			return err
		}
		for i := range wanted[:n] {
			c := &wanted[i]
			if kept != nil {
				kept.want(t.ranges, t.from, c.row, c.values)
			}
			more := i+1 < len(wanted) && wanted[i+1].follows
			if err := m.takeChunk(d, t, c, d.in[c.offset-start:][:c.size], more); err != nil {
				return err
			}
		}
		wanted = wanted[n:]
	}
	return nil
}

// takeChunk decodes a chunk and hands out what is complete: everything, unless the
// next one follows.
func (m *miniBlock) takeChunk(d *Decoder, t *taker, c *takeChunk, in []byte, more bool) error {
	s := &d.out
	lists := m.path.maxRep > 0
	if !c.follows {
		s.reset()
		t.e.row = c.row
		if c.resumes {
			// An entry that stands for the row's beginning, in the chunk before: the
			// row is not wanted.
			t.e.row--
			m.standIn(s)
		}
	}
	rows, entries := s.rows, s.entries
	if err := m.chunk(d, in, c.values); err != nil {
		return err
	}
	if lists {
		tail := uint64(s.entries - max(s.lastStart, entries))
		if uint64(s.rows-rows) != c.begun || c.tail > 0 && c.tail != tail {
			return table.Corruptf("encoding: a chunk of %d rows with %d entries after the last begins, the repetition index says %d and %d",
				s.rows-rows, tail, c.begun, c.tail)
		}
	}
	if more {
		if s.full(d.limits) {
			return s.close(&t.e, false)
		}
		return nil
	}
	return s.close(&t.e, true)
}

// standIn adds an entry that begins a row, with a value nobody looks at.
func (m *miniBlock) standIn(s *sink) {
	s.rep = append(s.rep, m.path.maxRep)
	if m.path.maxDef > 0 {
		s.def = append(s.def, 0)
	}
	s.addEmpty(1)
	s.entries, s.rows, s.lastStart = 1, 1, 0
}

// wanted returns the chunks that the ranges' rows are in, of a page without lists:
// a value is a row.
func (m *miniBlock) wanted(p Page, ranges []Range, chunks []chunkSpan) ([]takeChunk, error) {
	if m.items != p.Rows {
		return nil, table.Corruptf("encoding: %d values for %d rows", m.items, p.Rows)
	}
	out := make([]takeChunk, 0, min(len(chunks), 2*len(ranges)))
	row := uint64(0)
	for _, c := range chunks {
		end := row + uint64(c.values)
		for len(ranges) > 0 && ranges[0].To <= row {
			ranges = ranges[1:]
		}
		if len(ranges) == 0 {
			break
		}
		if ranges[0].From < end {
			out = append(out, takeChunk{chunkSpan: c, row: row})
		}
		row = end
	}
	return out, nil
}
