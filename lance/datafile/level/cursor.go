package level

import "github.com/rehome-db/rehome/table"

// Cursor walks over the rows of a block, front to back, keeping count of the
// entries and value slots that they own. [Builder.Take] appends rows at a cursor,
// Skip passes over them: dropping the deleted rows of a page is taking the runs
// between them.
//
// A cursor is not safe for concurrent use. The block must not change under it.
type Cursor struct {
	block             *Block
	row, entry, value int
	maxRep            uint16
	maxVisible        uint16
	// hidden says that some definition levels own no value slot.
	hidden bool
}

// NewCursor returns a cursor at the first row of b. It checks that b's streams
// have the lengths that its row count and layers ask for; whether every row
// begins where it should is found out on the way.
func NewCursor(b *Block) (*Cursor, error) {
	if err := checkLayers(b.Layers); err != nil {
		return nil, err
	}
	maxRep, maxDef := MaxRep(b.Layers), MaxDef(b.Layers)
	n := b.Entries()
	switch {
	case b.Rows < 0:
		return nil, table.Corruptf("level: block of %d rows", b.Rows)
	case maxRep > 0 && b.Rep == nil && b.Rows > 0:
		return nil, table.Corruptf("level: block of a list without repetition levels")
	case maxRep == 0 && b.Rep != nil:
		return nil, table.Corruptf("level: block with repetition levels but no list")
	case b.Rep != nil && b.Def != nil && len(b.Rep) != len(b.Def):
		return nil, table.Corruptf("level: %d repetition levels but %d definition levels", len(b.Rep), len(b.Def))
	case maxRep == 0 && n != b.Rows:
		return nil, table.Corruptf("level: %d definition levels for %d rows", n, b.Rows)
	case b.Rows > n:
		return nil, table.Corruptf("level: %d rows in %d entries", b.Rows, n)
	}
	c := &Cursor{
		block: b, maxRep: maxRep, maxVisible: MaxVisibleDef(b.Layers),
		hidden: b.Def != nil && MaxVisibleDef(b.Layers) < maxDef,
	}
	if !c.hidden && b.Values.N != n {
		return nil, table.Corruptf("level: %d value slots for %d visible entries", b.Values.N, n)
	}
	return c, checkValues(b)
}

// RowBytes returns the mean size of a row of the block, not encoded.
func (c *Cursor) RowBytes() float64 {
	b := c.block
	if b.Rows == 0 {
		return 0
	}
	n := len(b.Values.Data) + 4*len(b.Values.Offsets) + len(b.Values.ItemValid) + 2*(len(b.Rep)+len(b.Def))
	return float64(n) / float64(b.Rows)
}

// Remaining returns the number of rows that are left.
func (c *Cursor) Remaining() int { return c.block.Rows - c.row }

// Skip passes over n rows, or over what is left if that is less.
func (c *Cursor) Skip(n int) error {
	_, err := c.advance(n)
	return err
}

// span is a range of rows with the entries and value slots that they own.
type span struct {
	rows            int
	entry, entryEnd int
	value, valueEnd int
}

// advance moves past n rows and returns what they own.
func (c *Cursor) advance(n int) (span, error) {
	left := c.Remaining()
	n = min(n, left)
	s := span{rows: n, entry: c.entry, value: c.value}
	if n <= 0 {
		s.rows, s.entryEnd, s.valueEnd = 0, s.entry, s.value
		return s, nil
	}
	s.entryEnd = c.entry + n
	if c.maxRep > 0 {
		var err error
		if s.entryEnd, err = c.rowsEnd(n); err != nil {
			return s, err
		}
	}
	s.valueEnd = s.value + s.entryEnd - s.entry
	if c.hidden {
		s.valueEnd = s.value + countVisible(c.block.Def[s.entry:s.entryEnd], c.maxVisible)
	}
	if s.valueEnd > c.block.Values.N || n == left && (s.valueEnd != c.block.Values.N || s.entryEnd != c.block.Entries()) {
		return s, table.Corruptf("level: %d rows of %d entries and %d value slots do not match the levels",
			c.block.Rows, c.block.Entries(), c.block.Values.N)
	}
	c.row, c.entry, c.value = c.row+n, s.entryEnd, s.valueEnd
	return s, nil
}

// rowsEnd returns the entry after the n > 0 rows that begin at the cursor.
func (c *Cursor) rowsEnd(n int) (int, error) {
	rep := c.block.Rep
	if c.entry >= len(rep) || rep[c.entry] != c.maxRep {
		return 0, table.Corruptf("level: row %d does not begin at entry %d", c.row, c.entry)
	}
	begun := 1
	for i := c.entry + 1; i < len(rep); i++ {
		if rep[i] < c.maxRep {
			continue
		}
		if rep[i] > c.maxRep {
			return 0, table.Corruptf("level: repetition level %d at entry %d, the largest is %d", rep[i], i, c.maxRep)
		}
		if begun == n {
			return i, nil
		}
		begun++
	}
	if begun < n {
		return 0, table.Corruptf("level: the entries hold %d rows fewer than the block", n-begun)
	}
	return len(rep), nil
}

func countVisible(def []uint16, maxVisible uint16) int {
	n := 0
	for _, d := range def {
		if d <= maxVisible {
			n++
		}
	}
	return n
}

// checkValues checks the lengths of b's value buffers against the slot count.
func checkValues(b *Block) error {
	v := &b.Values
	if v.N < 0 {
		return table.Corruptf("level: %d value slots", v.N)
	}
	switch b.Type.Kind {
	case Fixed, FixedList:
		bits := b.Type.ValueBits()
		if bits <= 0 {
			return table.Corruptf("level: values of %d bits", bits)
		}
		if want := (uint64(v.N)*uint64(bits) + 7) / 8; uint64(len(v.Data)) < want {
			return table.Corruptf("level: %d bytes for %d values of %d bits", len(v.Data), v.N, bits)
		}
		if v.ItemValid != nil && len(v.ItemValid) < (v.N*b.Type.ValidBits()+7)/8 {
			return table.Corruptf("level: item validity of %d bytes for %d items", len(v.ItemValid), v.N*b.Type.ValidBits())
		}
	case Variable:
		if len(v.Offsets) != v.N+1 && !(v.N == 0 && len(v.Offsets) == 0) {
			return table.Corruptf("level: %d offsets for %d values", len(v.Offsets), v.N)
		}
		if v.N > 0 && (v.Offsets[0] > v.Offsets[v.N] || uint64(v.Offsets[v.N]) > uint64(len(v.Data))) {
			return table.Corruptf("level: offsets %d to %d in %d bytes", v.Offsets[0], v.Offsets[v.N], len(v.Data))
		}
	case Nothing:
	default:
		return table.Corruptf("level: values of unknown kind %d", b.Type.Kind)
	}
	return nil
}
