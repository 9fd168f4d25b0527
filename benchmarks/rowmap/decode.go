package rowmap

import (
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"math/bits"

	"github.com/rehome-db/rehome/fri"
	"github.com/rehome-db/rehome/table"
)

// decodePlain yields pairs, joined to runs.
func decodePlain(data []byte) iter.Seq2[Move, error] {
	return func(yield func(Move, error) bool) {
		if len(data)%16 != 0 {
			yield(Move{}, fmt.Errorf("%d bytes are no pairs", len(data)))
			return
		}
		var m Move
		for ; len(data) > 0; data = data[16:] {
			from := table.RowAddr(binary.LittleEndian.Uint64(data))
			to := table.RowAddr(binary.LittleEndian.Uint64(data[8:]))
			if m.Rows > 0 && from == m.From+table.RowAddr(m.Rows) && to == m.To+table.RowAddr(m.Rows) {
				m.Rows++
				continue
			}
			if m.Rows > 0 && !yield(m, nil) {
				return
			}
			m = Move{From: from, To: to, Rows: 1}
		}
		if m.Rows > 0 {
			yield(m, nil)
		}
	}
}

var errCutShort = errors.New("a number is cut short")

// number takes a varint off a column; most are one byte.
func number(col *[]byte) (uint64, error) {
	b := *col
	if len(b) > 0 && b[0] < 0x80 {
		*col = b[1:]
		return uint64(b[0]), nil
	}
	v, n := binary.Uvarint(b)
	if n <= 0 {
		return 0, errCutShort
	}
	*col = b[n:]
	return v, nil
}

func unzigzag(v uint64) uint64 { return v>>1 ^ -(v & 1) }

func decodeDelta(olds, news []byte) iter.Seq2[Move, error] {
	return func(yield func(Move, error) bool) {
		var from, to uint64
		var m Move
		for len(olds) > 0 {
			a, err := number(&olds)
			b, err2 := number(&news)
			if err := errors.Join(err, err2); err != nil {
				yield(Move{}, err)
				return
			}
			from, to = from+a, to+unzigzag(b)
			if a == 1 && b == 2 && m.Rows > 0 { // one further each
				m.Rows++
				continue
			}
			if m.Rows > 0 && !yield(m, nil) {
				return
			}
			m = Move{From: table.RowAddr(from), To: table.RowAddr(to), Rows: 1}
		}
		if len(news) > 0 {
			yield(Move{}, errors.New("more new addresses than old ones"))
			return
		}
		if m.Rows > 0 {
			yield(m, nil)
		}
	}
}

func decodeRuns(olds, lengths, news []byte) iter.Seq2[Move, error] {
	return func(yield func(Move, error) bool) {
		var from, to uint64
		for len(olds) > 0 {
			a, err := number(&olds)
			n, err2 := number(&lengths)
			b, err3 := number(&news)
			if err := errors.Join(err, err2, err3); err != nil {
				yield(Move{}, err)
				return
			}
			if n++; n == 0 || n > 1<<32 {
				yield(Move{}, fmt.Errorf("a run of %d rows", n))
				return
			}
			from, to = from+a, to+unzigzag(b)
			if !yield(Move{From: table.RowAddr(from), To: table.RowAddr(to), Rows: n}, nil) {
				return
			}
			from, to = from+n, to+n
		}
		if len(lengths)+len(news) > 0 {
			yield(Move{}, errors.New("columns of different lengths"))
		}
	}
}

// liveGaps yields the runs of survivors among the rows of all sources laid end to
// end.
func liveGaps(gaps []byte, rows uint64) iter.Seq2[liveRun, error] {
	return func(yield func(liveRun, error) bool) {
		at := uint64(0)
		for len(gaps) > 0 {
			gap, err := number(&gaps)
			if err == nil && gap >= rows-at {
				err = fmt.Errorf("deleted row %d+%d of %d", at, gap, rows)
			}
			if err != nil {
				yield(liveRun{}, err)
				return
			}
			if gap > 0 && !yield(liveRun{at, at + gap}, nil) {
				return
			}
			at += gap + 1
		}
		if at < rows {
			yield(liveRun{at, rows}, nil)
		}
	}
}

// liveBits is liveGaps for a bit a row.
func liveBits(b []byte, rows uint64) iter.Seq2[liveRun, error] {
	return func(yield func(liveRun, error) bool) {
		if uint64(len(b)) != (rows+7)/8 {
			yield(liveRun{}, fmt.Errorf("%d bytes of bits for %d rows", len(b), rows))
			return
		}
		word := func(i uint64) uint64 { // bits from 64*i on
			if int(8*i+8) <= len(b) {
				return binary.LittleEndian.Uint64(b[8*i:])
			}
			var last [8]byte
			copy(last[:], b[8*i:])
			return binary.LittleEndian.Uint64(last[:])
		}
		// next is the first row from r on whose bit is that of flip inverted.
		next := func(r, flip uint64) uint64 {
			for r < rows {
				if w := (word(r/64) ^ flip) >> (r % 64); w != 0 {
					return min(rows, r+uint64(bits.TrailingZeros64(w)))
				}
				r = (r/64 + 1) * 64
			}
			return rows
		}
		for r := uint64(0); r < rows; {
			start := next(r, 0)
			r = next(start, ^uint64(0))
			if start < r && !yield(liveRun{start, r}, nil) {
				return
			}
		}
	}
}

type liveRun struct{ start, end uint64 }

// survivor is a run of survivors of one source.
type survivor struct {
	from table.RowAddr
	rows uint64
}

// survivors cuts runs at the ends of the sources.
func survivors(gs []Group, runs iter.Seq2[liveRun, error]) iter.Seq2[survivor, error] {
	return func(yield func(survivor, error) bool) {
		var all []fri.Digest
		for _, g := range gs {
			all = append(all, g.Sources...)
		}
		base := uint64(0) // row of the first source left
		for r, err := range runs {
			if err != nil {
				yield(survivor{}, err)
				return
			}
			for r.start < r.end {
				for len(all) > 0 && r.start >= base+all[0].PhysicalRows {
					base += all[0].PhysicalRows
					all = all[1:]
				}
				if len(all) == 0 {
					yield(survivor{}, errNotASource)
					return
				}
				end := min(r.end, base+all[0].PhysicalRows)
				if !yield(survivor{table.NewRowAddr(all[0].ID, uint32(r.start-base)), end - r.start}, nil) {
					return
				}
				r.start = end
			}
		}
	}
}

// inOrder gives the survivors their new addresses, one after the other.
func inOrder(rows iter.Seq2[survivor, error], ds []fri.Digest) iter.Seq2[Move, error] {
	return func(yield func(Move, error) bool) {
		at := uint64(0) // in the first destination left
		for s, err := range rows {
			if err != nil {
				yield(Move{}, err)
				return
			}
			for s.rows > 0 {
				for len(ds) > 0 && at == ds[0].PhysicalRows {
					ds, at = ds[1:], 0
				}
				if len(ds) == 0 {
					yield(Move{}, errors.New("more rows survive than arrive"))
					return
				}
				n := min(s.rows, ds[0].PhysicalRows-at)
				if !yield(Move{From: s.from, To: table.NewRowAddr(ds[0].ID, uint32(at)), Rows: n}, nil) {
					return
				}
				s.from, s.rows, at = s.from+table.RowAddr(n), s.rows-n, at+n
			}
		}
	}
}

// inPlace gives each survivor the new address at its place.
func inPlace(rows iter.Seq2[survivor, error], ds []fri.Digest, next func() (uint64, bool)) iter.Seq2[Move, error] {
	return func(yield func(Move, error) bool) {
		starts := make([]uint64, len(ds)+1)
		for i, d := range ds {
			starts[i+1] = starts[i] + d.PhysicalRows
		}
		total := starts[len(ds)]
		for s, err := range rows {
			if err != nil {
				yield(Move{}, err)
				return
			}
			for i := range s.rows {
				k, ok := next()
				if !ok || k >= total {
					yield(Move{}, errors.New("a place is missing or beyond the destinations"))
					return
				}
				low := 0
				for n := len(ds); n > 1; {
					half := n / 2
					if starts[low+half] <= k {
						low += half
					}
					n -= half
				}
				if !yield(Move{From: s.from + table.RowAddr(i), To: table.NewRowAddr(ds[low].ID, uint32(k-starts[low])), Rows: 1}, nil) {
					return
				}
			}
		}
	}
}

// fixed reads n values of the given width.
func fixed(b []byte, width, n uint64) func() (uint64, bool) {
	var word, held, read uint64
	return func() (uint64, bool) {
		for held < width && len(b) > 0 {
			word |= uint64(b[0]) << held
			b, held = b[1:], held+8
		}
		if held < width || read == n {
			return 0, false
		}
		read++
		v := word & (1<<width - 1)
		word, held = word>>width, held-width
		return v, true
	}
}
