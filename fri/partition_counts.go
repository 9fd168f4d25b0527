package fri

import (
	"encoding/binary"
	"math"

	"github.com/rehome-db/rehome/table"
)

// The matrix as stored: "LSPC", u32 version, u32 representation, u32 destinations,
// u32 rows a block, u64 rows, then for each block and each destination a u32.
const (
	countsMagic   = "LSPC"
	countsVersion = 1
	// countsDense is the only representation there is: all counts, in order.
	countsDense  = 0
	countsHeader = 28

	// BlockRows is how many rows are in a block of labels that is written.
	BlockRows = 1 << 16
	// maxBlockRows bounds what has to be read to find one row.
	maxBlockRows = 1 << 20
)

// Counts is the matrix that comes with the labels of a stable partition: how many
// rows of each block and those before it went to each destination. With it, the
// labels of one block are enough to place any row of that block: it is the next of
// its destination after as many as came before the block, and before it in the block.
//
// A Counts is immutable.
type Counts struct {
	rows         uint64 // physical rows of all sources
	blockRows    uint64
	destinations int
	// through[b*destinations+d] is the number of rows of blocks 0 to b that went
	// to destination d.
	through []uint32
}

// Rows returns the number of physical rows of the sources: that of the labels.
func (c *Counts) Rows() uint64 { return c.rows }

// BlockRows returns the number of rows in each block but the last.
func (c *Counts) BlockRows() uint64 { return c.blockRows }

// Blocks returns the number of blocks.
func (c *Counts) Blocks() int { return len(c.through) / c.destinations }

// Block returns the rows [from, to) of block i.
func (c *Counts) Block(i int) (from, to uint64) {
	from = uint64(i) * c.blockRows
	return from, min(from+c.blockRows, c.rows)
}

// Destinations returns the number of destinations.
func (c *Counts) Destinations() int { return c.destinations }

// Total returns the number of rows that went to destination d.
func (c *Counts) Total(d int) uint64 {
	if len(c.through) == 0 {
		return 0
	}
	return uint64(c.through[len(c.through)-c.destinations+d])
}

// before returns the counts before block i; nil if they are all 0.
func (c *Counts) before(i int) []uint32 {
	if i == 0 {
		return nil
	}
	return c.through[(i-1)*c.destinations : i*c.destinations]
}

// DecodeCounts reads a stored matrix and checks it: counts do not go down from block
// to block, and no block has more live rows than rows. What is wrong is ErrCorrupt,
// a version or representation that is not known ErrUnsupported; both are a
// [*TransitionError] with RuleCounts. It takes memory in proportion to data.
func DecodeCounts(data []byte) (*Counts, error) {
	if len(data) < countsHeader {
		return nil, broken(RuleCounts, "counts: %d bytes are too few for the header", len(data))
	}
	if string(data[:4]) != countsMagic {
		return nil, broken(RuleCounts, "counts: they begin with % x, not with %q", data[:4], countsMagic)
	}
	u32 := func(at int) uint32 { return binary.LittleEndian.Uint32(data[at:]) }
	if v := u32(4); v != countsVersion {
		return nil, violation(table.ErrUnsupported, RuleCounts, "counts: version %d", v)
	}
	if r := u32(8); r != countsDense {
		return nil, violation(table.ErrUnsupported, RuleCounts, "counts: representation %d", r)
	}
	destinations, blockRows, rows := u32(12), u32(16), binary.LittleEndian.Uint64(data[20:])
	switch {
	case destinations == 0 || destinations > MaxPartitionDestinations:
		return nil, broken(RuleCounts, "counts: %d destinations", destinations)
	case blockRows == 0:
		return nil, broken(RuleCounts, "counts: blocks of no rows")
	case blockRows > maxBlockRows:
		return nil, violation(table.ErrUnsupported, RuleCounts, "counts: blocks of %d rows, at most %d are read", blockRows, maxBlockRows)
	}
	body := data[countsHeader:]
	blocks := rows / uint64(blockRows)
	if rows%uint64(blockRows) != 0 {
		blocks++
	}
	// In this order nothing overflows.
	if stored := uint64(len(body)) / 4 / uint64(destinations); blocks != stored || uint64(len(body)) != 4*blocks*uint64(destinations) {
		return nil, broken(RuleCounts, "counts: %d bytes for %d blocks and %d destinations", len(body), blocks, destinations)
	}
	c := &Counts{rows: rows, blockRows: uint64(blockRows), destinations: int(destinations), through: make([]uint32, len(body)/4)}
	for i := range c.through {
		c.through[i] = binary.LittleEndian.Uint32(body[4*i:])
	}
	if err := c.check(); err != nil {
		return nil, err
	}
	return c, nil
}

func (c *Counts) check() error {
	for i := range c.Blocks() {
		before, through := c.before(i), c.before(i+1)
		live := uint64(0)
		for d, n := range through {
			was := uint32(0)
			if before != nil {
				was = before[d]
			}
			if n < was {
				return broken(RuleCounts, "counts: destination %d has %d rows after block %d and had %d before it", d, n, i, was)
			}
			live += uint64(n - was)
		}
		if from, to := c.Block(i); live > to-from {
			return broken(RuleCounts, "counts: %d live rows in block %d, which has %d", live, i, to-from)
		}
	}
	return nil
}

// AppendBinary appends the stored form.
func (c *Counts) AppendBinary(dst []byte) ([]byte, error) {
	dst = append(dst, countsMagic...)
	for _, v := range []uint32{countsVersion, countsDense, uint32(c.destinations), uint32(c.blockRows)} {
		dst = binary.LittleEndian.AppendUint32(dst, v)
	}
	dst = binary.LittleEndian.AppendUint64(dst, c.rows)
	for _, n := range c.through {
		dst = binary.LittleEndian.AppendUint32(dst, n)
	}
	return dst, nil
}

// agree checks the matrix against the digests of its transition.
func (c *Counts) agree(sources, destinations []Digest) error {
	var physical uint64
	for _, s := range sources {
		physical += s.PhysicalRows
	}
	if c.rows != physical {
		return broken(RuleCounts, "counts: they are of %d rows, the sources have %d", c.rows, physical)
	}
	if c.destinations != len(destinations) {
		return broken(RuleCounts, "counts: they are of %d destinations, the transition has %d", c.destinations, len(destinations))
	}
	for i, d := range destinations {
		if n := c.Total(i); n != d.PhysicalRows {
			return broken(RuleCounts, "counts: fragment %d gets %d rows, its digest says %d", d.ID, n, d.PhysicalRows)
		}
	}
	return nil
}

// countsBuilder makes a matrix row by row.
type countsBuilder struct {
	Counts
	current []uint32
}

func newCountsBuilder(destinations int, blockRows uint64) countsBuilder {
	return countsBuilder{
		Counts:  Counts{blockRows: blockRows, destinations: destinations},
		current: make([]uint32, destinations),
	}
}

// row counts one row; label is ignored unless live.
func (b *countsBuilder) row(label uint16, live bool) error {
	if live {
		if int(label) >= b.destinations {
			return broken(RuleLabels, "label %d, and %d destinations", label, b.destinations)
		}
		if b.current[label] == math.MaxUint32 {
			return broken(RulePhysicalRows, "more than %d rows for destination %d", uint32(math.MaxUint32), label)
		}
		b.current[label]++
	}
	if b.rows++; b.rows%b.blockRows == 0 {
		b.through = append(b.through, b.current...)
	}
	return nil
}

// finish returns the matrix. The builder can be used no more.
func (b *countsBuilder) finish() *Counts {
	if b.rows%b.blockRows != 0 {
		b.through = append(b.through, b.current...)
	}
	return &b.Counts
}
