package roaringbytes

import (
	"encoding/binary"
	"iter"
)

// Runs says whether a bitmap may be written with run containers.
type Runs bool

// Run containers save a lot on clustered sets, and readers older than the 2016
// revision of the format do not know them.
const (
	WithRuns    Runs = true
	WithoutRuns Runs = false
)

// Append writes the set of the given ranges to dst and returns it longer. The
// ranges are half-open, ascending and disjoint, and lie in [0, 2^32); they may
// touch. Equal sets give equal bytes: every container has the kind that takes the
// fewest bytes, a run container only if it is strictly smaller than both others.
func Append(dst []byte, ranges iter.Seq2[uint32, uint64], runs Runs) []byte {
	w := writer{allowRuns: bool(runs)}
	for start, end := range ranges {
		for at := uint64(start); at < end; {
			stop := min(end, at&^(blockValues-1)+blockValues)
			w.add(uint16(at>>16), uint16(at), uint16(stop-1))
			at = stop
		}
	}
	w.finish()
	return w.append(dst)
}

// writer collects the runs of one block at a time and the finished containers.
type writer struct {
	allowRuns bool
	key       uint16
	pending   []run // of the block key
	done      []head
	bodies    []byte
}

type run struct{ start, last uint16 }

type head struct {
	key  uint16
	card int
	run  bool
	size int
}

func (w *writer) add(key, start, last uint16) {
	if key != w.key {
		w.finish()
		w.key = key
	}
	if n := len(w.pending); n > 0 && uint32(w.pending[n-1].last)+1 == uint32(start) {
		w.pending[n-1].last = last
		return
	}
	w.pending = append(w.pending, run{start, last})
}

// finish turns the pending runs into a container.
func (w *writer) finish() {
	if len(w.pending) == 0 {
		return
	}
	card := 0
	for _, r := range w.pending {
		card += int(r.last) - int(r.start) + 1
	}
	other := bitmapBytes
	if card <= arrayMax {
		other = 2 * card
	}
	from := len(w.bodies)
	h := head{key: w.key, card: card}
	switch asRuns := 2 + 4*len(w.pending); {
	case w.allowRuns && asRuns < other:
		h.run = true
		w.bodies = binary.LittleEndian.AppendUint16(w.bodies, uint16(len(w.pending)))
		for _, r := range w.pending {
			w.bodies = binary.LittleEndian.AppendUint16(w.bodies, r.start)
			w.bodies = binary.LittleEndian.AppendUint16(w.bodies, r.last-r.start)
		}
	case card <= arrayMax:
		for _, r := range w.pending {
			for v := uint32(r.start); v <= uint32(r.last); v++ {
				w.bodies = binary.LittleEndian.AppendUint16(w.bodies, uint16(v))
			}
		}
	default:
		w.bodies = append(w.bodies, make([]byte, bitmapBytes)...)
		body := w.bodies[from:]
		for _, r := range w.pending {
			setBits(body, uint32(r.start), uint32(r.last)+1)
		}
	}
	h.size = len(w.bodies) - from
	w.done = append(w.done, h)
	w.pending = w.pending[:0]
}

// setBits sets the bits [start, end) of a little-endian bit string.
func setBits(body []byte, start, end uint32) {
	for start < end {
		if start&7 == 0 && end-start >= 8 {
			body[start/8] = 0xff
			start += 8
			continue
		}
		body[start/8] |= 1 << (start & 7)
		start++
	}
}

func (w *writer) append(dst []byte) []byte {
	n := len(w.done)
	anyRun := false
	for _, h := range w.done {
		anyRun = anyRun || h.run
	}
	begin := len(dst)
	if anyRun {
		dst = binary.LittleEndian.AppendUint32(dst, uint32(n-1)<<16|cookieRuns)
		flags := len(dst)
		dst = append(dst, make([]byte, (n+7)/8)...)
		for i, h := range w.done {
			if h.run {
				dst[flags+i/8] |= 1 << (i % 8)
			}
		}
	} else {
		dst = binary.LittleEndian.AppendUint32(dst, cookieNoRuns)
		dst = binary.LittleEndian.AppendUint32(dst, uint32(n))
	}
	for _, h := range w.done {
		dst = binary.LittleEndian.AppendUint16(dst, h.key)
		dst = binary.LittleEndian.AppendUint16(dst, uint16(h.card-1))
	}
	if !anyRun || n >= offsetsFrom {
		at := len(dst) - begin + 4*n
		for _, h := range w.done {
			dst = binary.LittleEndian.AppendUint32(dst, uint32(at))
			at += h.size
		}
	}
	return append(dst, w.bodies...)
}
