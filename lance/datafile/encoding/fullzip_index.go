package encoding

import (
	"context"
	"encoding/binary"

	"github.com/rehome-db/rehome/table"
)

// rowOffsets writes where each row begins and where the last ends, in the least
// whole bytes that hold the end.
func (e *Encoder) rowOffsets(rows []uint64, end int) []byte {
	out := e.repIndex[:0]
	for _, r := range append(rows, uint64(end)) {
		switch {
		case end < 1<<8:
			out = append(out, byte(r))
		case end < 1<<16:
			out = binary.LittleEndian.AppendUint16(out, uint16(r))
		case end < 1<<32:
			out = binary.LittleEndian.AppendUint32(out, uint32(r))
		default:
			out = binary.LittleEndian.AppendUint64(out, r)
		}
	}
	e.repIndex = out
	return out
}

// indexWidth returns the size of the repetition index's entries, which are one
// more than there are rows.
func (z *fullZip) indexWidth(p Page) (int, error) {
	size := p.Buffers[1].Size
	switch width := size / (p.Rows + 1); {
	case size%(p.Rows+1) != 0:
	case width == 1, width == 2, width == 4, width == 8:
		return int(width), nil
	}
	return 0, table.Corruptf("encoding: a repetition index of %d bytes for %d rows", size, p.Rows)
}

// runIndexed decodes entries of any size, finding rows by the repetition index.
func (z *fullZip) runIndexed(ctx context.Context, d *Decoder, p Page, e *emitter) error {
	width, err := z.indexWidth(p)
	if err != nil {
		return err
	}
	d.aux, err = read(ctx, p, d.aux, Buffer{p.Buffers[1].Offset + e.from*uint64(width), (e.to - e.from + 1) * uint64(width)})
	if err != nil {
		return err
	}
	start := func(row uint64) uint64 { return loadWord(d.aux[int(row-e.from)*width:], width) }
	if end := start(e.to); e.from == 0 && start(0) != 0 || e.to == p.Rows && end != p.Buffers[0].Size {
		return table.Corruptf("encoding: the repetition index does not span the %d bytes of the page", p.Buffers[0].Size)
	}
	s := &d.out
	for !e.done() {
		from := start(e.row)
		to, until := e.row, from
		for to < e.to && int(to-e.row) < d.limits.BlockEntries {
			next := start(to + 1)
			if next < until || next > p.Buffers[0].Size {
				return table.Corruptf("encoding: row %d ends at byte %d of %d, after %d", to, next, p.Buffers[0].Size, until)
			}
			if to > e.row && (next-from)*z.growth() > uint64(d.limits.BlockBytes) {
				break
			}
			to, until = to+1, next
		}
		d.in, err = read(ctx, p, d.in, Buffer{p.Buffers[0].Offset + from, until - from})
		if err != nil {
			return err
		}
		in := d.in
		for row := e.row; row < to; row++ {
			// A row is one entry, or with lists as many as fill it; the entry
			// that begins it is the only one that does.
			begun := s.rows
			left := int(start(row+1) - start(row))
			for used := 0; used < left || s.rows == begun; {
				rest, err := z.entry(s, in[:left-used])
				if err != nil {
					return err
				}
				n := left - used - len(rest)
				used, in = used+n, in[n:]
				if s.rows != begun+1 || n == 0 {
					return table.Corruptf("encoding: row %d does not begin where the repetition index says", row)
				}
			}
		}
		if err := s.finish(e, s.rows); err != nil {
			return err
		}
	}
	return nil
}
