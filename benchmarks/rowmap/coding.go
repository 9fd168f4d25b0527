package rowmap

import (
	"encoding/binary"
	"fmt"
	"iter"
	"math/bits"

	"github.com/klauspost/compress/zstd"

	"github.com/rehome-db/rehome/fri"
	"github.com/rehome-db/rehome/table"
)

// Coding is how a map is stored.
type Coding uint8

const (
	// Plain: old and new address of each row, 16 bytes little-endian.
	Plain Coding = iota
	// Delta: for each row the distance of the old address to the one before, and
	// the same of the new address, as two columns of varints.
	Delta
	// Runs: for each run of rows that moved together, the distance of its old
	// address to the end of the run before, its length, and the same distance of
	// its new address, as three columns of varints.
	Runs
	// FixedWidth: the old addresses as a bit a row, and for each row its place in
	// the destinations laid end to end, in as few bits as the largest takes. For
	// rewrites that do not keep the order.
	FixedWidth
	// Gaps: for each deleted row, how many rows survive between it and the one
	// before, as a column of varints. The rest follows from the order of rows.
	Gaps
	// Bits: one bit a row of the sources, set if it survives. The rest follows from
	// the order of rows.
	Bits
)

// String names the coding.
func (c Coding) String() string {
	switch c {
	case Plain:
		return "plain"
	case Delta:
		return "delta"
	case Runs:
		return "runs"
	case FixedWidth:
		return "fixed width"
	case Gaps:
		return "gaps"
	case Bits:
		return "bits"
	}
	return fmt.Sprintf("coding %d", uint8(c))
}

// Packed lists the codings that are compressed.
func Packed() []Coding { return []Coding{Delta, Runs, FixedWidth, Gaps, Bits} }

// encode returns the map's bytes. Every column is a zstd frame of its own behind
// its length: values of one kind compress better together.
func (c Coding) encode(gs []Group) ([]byte, error) {
	if c == Plain {
		return encodePlain(gs), nil
	}
	for _, g := range gs {
		if g.Order != nil && (c == Gaps || c == Bits) {
			return nil, table.Unsupportedf("rowmap: %v cannot express a rewrite that does not keep the order", c)
		}
	}
	var columns [][]byte
	switch c {
	case Delta:
		columns = encodeDelta(gs)
	case Runs:
		columns = encodeRuns(gs)
	case FixedWidth:
		columns = [][]byte{encodeBits(gs), encodeFixed(gs)}
	case Gaps:
		columns = [][]byte{encodeGaps(gs)}
	case Bits:
		columns = [][]byte{encodeBits(gs)}
	default:
		return nil, table.Unsupportedf("rowmap: %v", c)
	}
	enc, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedBetterCompression), zstd.WithEncoderConcurrency(1), zstd.WithEncoderCRC(false))
	if err != nil {
		return nil, fmt.Errorf("rowmap: %w", err)
	}
	defer enc.Close()
	var out []byte
	for _, col := range columns {
		frame := enc.EncodeAll(col, nil)
		out = binary.AppendUvarint(out, uint64(len(frame)))
		out = append(out, frame...)
	}
	return out, nil
}

func encodePlain(gs []Group) []byte {
	out := make([]byte, 16*moved(gs))
	at := out
	for _, g := range gs {
		for m := range g.Moves() {
			for i := range m.Rows {
				binary.LittleEndian.PutUint64(at, uint64(m.From)+i)
				binary.LittleEndian.PutUint64(at[8:], uint64(m.To)+i)
				at = at[16:]
			}
		}
	}
	return out
}

func encodeDelta(gs []Group) [][]byte {
	n := moved(gs)
	olds, news := make([]byte, 0, n+n/8), make([]byte, 0, n+n/8)
	var from, to uint64
	for _, g := range gs {
		for m := range g.Moves() {
			for i := range m.Rows {
				olds = binary.AppendUvarint(olds, uint64(m.From)+i-from)
				news = binary.AppendVarint(news, int64(uint64(m.To)+i-to))
				from, to = uint64(m.From)+i, uint64(m.To)+i
			}
		}
	}
	return [][]byte{olds, news}
}

func encodeRuns(gs []Group) [][]byte {
	var olds, lengths, news []byte
	var from, to uint64 // the ends of the run before
	for _, g := range gs {
		for m := range g.Moves() {
			olds = binary.AppendUvarint(olds, uint64(m.From)-from)
			lengths = binary.AppendUvarint(lengths, m.Rows-1)
			news = binary.AppendVarint(news, int64(uint64(m.To)-to))
			from, to = uint64(m.From)+m.Rows, uint64(m.To)+m.Rows
		}
	}
	return [][]byte{olds, lengths, news}
}

func encodeGaps(gs []Group) []byte {
	var out []byte
	gap := uint64(0)
	for _, g := range gs {
		for i, s := range g.Sources {
			next := uint64(0) // of this source, all before are accounted for
			for start, end := range g.Deleted[i].Live(s.PhysicalRows) {
				out = appendDead(out, &gap, start-next)
				gap += end - start
				next = end
			}
			out = appendDead(out, &gap, s.PhysicalRows-next)
		}
	}
	return out
}

// appendDead writes n deleted rows in a row, the first of them after a gap.
func appendDead(out []byte, gap *uint64, n uint64) []byte {
	for range n {
		out = binary.AppendUvarint(out, *gap)
		*gap = 0
	}
	return out
}

func encodeBits(gs []Group) []byte {
	rows := uint64(0)
	for _, g := range gs {
		for _, s := range g.Sources {
			rows += s.PhysicalRows
		}
	}
	out := make([]byte, (rows+7)/8)
	base := uint64(0)
	for _, g := range gs {
		for i, s := range g.Sources {
			for start, end := range g.Deleted[i].Live(s.PhysicalRows) {
				for r := base + start; r < base+end; {
					if r%8 == 0 && base+end-r >= 8 {
						out[r/8] = 0xff
						r += 8
						continue
					}
					out[r/8] |= 1 << (r % 8)
					r++
				}
			}
			base += s.PhysicalRows
		}
	}
	return out
}

func encodeFixed(gs []Group) []byte {
	width := fixedWidth(gs)
	out := make([]byte, 0, moved(gs)*width/8+8)
	var word uint64
	var held uint64 // bits in word
	base := uint64(0)
	for _, g := range gs {
		n := moved([]Group{g})
		for k := range n {
			v := base + k
			if g.Order != nil {
				v = base + uint64(g.Order[k])
			}
			word |= v << held
			for held += width; held >= 8; held -= 8 {
				out = append(out, byte(word))
				word >>= 8
			}
		}
		base += n
	}
	return append(out, byte(word))
}

// fixedWidth is the bits that the place of the last row takes. At most 56, so that
// a value and what is left of the one before fit into a word.
func fixedWidth(gs []Group) uint64 { return uint64(bits.Len64(moved(gs))) }

// decode yields the map's runs. It checks what it needs for itself; whether the
// runs belong to the transaction is for the caller to check.
func (c Coding) decode(data []byte, gs []Group) iter.Seq2[Move, error] {
	fail := func(err error) iter.Seq2[Move, error] {
		return func(yield func(Move, error) bool) { yield(Move{}, err) }
	}
	if c == Plain {
		return decodePlain(data)
	}
	rows, dead := uint64(0), uint64(0)
	for _, g := range gs {
		for _, s := range g.Sources {
			rows += s.PhysicalRows
			dead += s.DeletedRows
		}
	}
	live := rows - dead
	// The most bytes that a column can have, by the fragments.
	var limits []uint64
	switch c {
	case Delta:
		limits = []uint64{10 * live, 10 * live}
	case Runs:
		limits = []uint64{10 * live, 10 * live, 10 * live}
	case FixedWidth:
		limits = []uint64{(rows + 7) / 8, live*fixedWidth(gs)/8 + 1}
	case Gaps:
		limits = []uint64{10 * dead}
	case Bits:
		limits = []uint64{(rows + 7) / 8}
	default:
		return fail(table.Unsupportedf("%v", c))
	}
	columns, err := inflate(data, limits)
	if err != nil {
		return fail(err)
	}
	switch c {
	case Delta:
		return decodeDelta(columns[0], columns[1])
	case Runs:
		return decodeRuns(columns[0], columns[1], columns[2])
	case FixedWidth:
		return inPlace(survivors(gs, liveBits(columns[0], rows)), destinations(gs), fixed(columns[1], fixedWidth(gs), live))
	case Gaps:
		return inOrder(survivors(gs, liveGaps(columns[0], rows)), destinations(gs))
	default:
		return inOrder(survivors(gs, liveBits(columns[0], rows)), destinations(gs))
	}
}

func destinations(gs []Group) (out []fri.Digest) {
	for _, g := range gs {
		out = append(out, g.Destinations...)
	}
	return out
}

// smallestWindow is the memory that a decoder is always given.
const smallestWindow = 1 << 20

// inflate reads the columns, none larger than its limit.
func inflate(data []byte, limits []uint64) ([][]byte, error) {
	var out [][]byte
	for i, limit := range limits {
		n, used := binary.Uvarint(data)
		if used <= 0 || n > uint64(len(data)-used) {
			return nil, fmt.Errorf("column %d is cut short", i)
		}
		dec, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(max(limit, smallestWindow)))
		if err != nil {
			return nil, err
		}
		col, err := dec.DecodeAll(data[used:used+int(n)], nil)
		dec.Close()
		if err == nil && uint64(len(col)) > limit {
			err = fmt.Errorf("%d bytes, at most %d are possible", len(col), limit)
		}
		if err != nil {
			return nil, fmt.Errorf("column %d: %w", i, err)
		}
		out = append(out, col)
		data = data[used+int(n):]
	}
	if len(data) > 0 {
		return nil, fmt.Errorf("%d bytes follow the last column", len(data))
	}
	return out, nil
}
