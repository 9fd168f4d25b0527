package encoding

import (
	"encoding/binary"

	"github.com/rehome-db/rehome/table"
)

// The repetition index finds rows of lists in chunks. It has two numbers of 64 bits for
// each chunk: how many rows end in it, and how many entries at its end belong to a row
// that goes on in the next. Rows of 3, 4 and 1 entries in chunks of 4 entries:
//
//	01 00 00 00 00 00 00 00  01 00 00 00 00 00 00 00  row 0 ends, 1 entry of row 1
//	02 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00  rows 1 and 2 end
//
// indexEntry is the bytes of a chunk's numbers.
const indexEntry = 16

// repetitionIndex writes the index of e.chunks.
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

// index returns where the page's repetition index is, or false: there may be none,
// or one of a depth that is not known.
func (m *miniBlock) index(p Page, chunks int) (Buffer, bool) {
	at := 2
	if m.dict != nil {
		at++
	}
	if len(p.Buffers) <= at || p.Buffers[at].Size != indexEntry*uint64(chunks) {
		return Buffer{}, false
	}
	return p.Buffers[at], true
}

// wantedLists finds the chunks by the repetition index: for each chunk how many
// rows end in it, and how many entries at its end belong to a row that goes on.
func (m *miniBlock) wantedLists(p Page, ranges []Range, chunks []chunkSpan, index []byte) ([]takeChunk, error) {
	out := make([]takeChunk, 0, min(len(chunks), 2*len(ranges)))
	ended, tail := uint64(0), uint64(0) // by the chunks before
	for i, span := range chunks {
		c := takeChunk{chunkSpan: span, row: ended, resumes: tail > 0}
		first := c.row // of which it has entries
		if c.resumes {
			c.row++
		}
		ends := binary.LittleEndian.Uint64(index[indexEntry*i:])
		tail = binary.LittleEndian.Uint64(index[indexEntry*i+8:])
		if ends > p.Rows-ended {
			return nil, table.Corruptf("encoding: the repetition index has more rows than the page's %d", p.Rows)
		}
		ended += ends
		end := ended // of the rows that began
		if tail > 0 {
			end++
		}
		if end < c.row || end > p.Rows {
			return nil, table.Corruptf("encoding: the repetition index has chunk %d begin before row %d of %d and end before row %d", i, c.row, p.Rows, end)
		}
		c.begun, c.tail = end-c.row, tail
		for len(ranges) > 0 && ranges[0].To <= first {
			ranges = ranges[1:]
		}
		if len(ranges) == 0 {
			break
		}
		if ranges[0].From < end {
			c.follows = c.resumes && ranges[0].From <= first
			out = append(out, c)
		}
	}
	return out, nil
}
