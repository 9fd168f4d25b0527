package level

import (
	"math"

	"github.com/rehome-db/rehome/table"
)

// Builder gathers rows of blocks into one block. The blocks may declare different
// layers, as pages of one column do; the result declares the narrowest layers
// that express what it holds, but for structs around lists, see narrowest.
//
// A builder is not safe for concurrent use. It keeps its memory over Reset.
type Builder struct {
	typ  Type
	wide []Layer
	// asked are the layers that the builder was made for.
	asked []Layer
	alone bool
	rows  int
	// entries counts level entries; rep holds as many, def either as many, or
	// fewer, the missing ones being 0.
	entries int
	rep     []uint16
	def     []uint16
	// used marks the definition numbers of wide that occur in def.
	used   []bool
	values Values

	// from are the layers that mapping was last made for: pages of a column
	// seldom change them.
	from    []Layer
	mapping []uint16
}

// NewBuilder returns a builder for values of type t below a path with the given
// shape. Beyond the shape layers say which structs around lists are declared
// nullable; whatever they say, everything can be absent.
func NewBuilder(t Type, layers []Layer) (*Builder, error) {
	if err := checkLayers(layers); err != nil {
		return nil, err
	}
	wide := Widest(layers)
	b := &Builder{typ: t, wide: wide, asked: layers, used: make([]bool, int(MaxDef(wide))+1)}
	b.Reset()
	return b, nil
}

// Reuse makes b what [NewBuilder] returns, with the memory that it has.
func (b *Builder) Reuse(t Type, layers []Layer) error {
	fresh, err := NewBuilder(t, layers)
	if err != nil {
		return err
	}
	fresh.rep, fresh.def = b.rep, b.def
	fresh.values = Values{Data: b.values.Data, Offsets: b.values.Offsets}
	*b = *fresh
	b.Reset()
	return nil
}

// Rows returns the number of rows gathered.
func (b *Builder) Rows() int { return b.rows }

// Bytes returns the size of what was gathered, not encoded.
func (b *Builder) Bytes() int {
	return len(b.values.Data) + 4*len(b.values.Offsets) + len(b.values.ItemValid) + 2*(len(b.rep)+len(b.def))
}

// RowBytes returns the mean size of a row of what was gathered, not encoded.
func (b *Builder) RowBytes() float64 {
	if b.rows == 0 {
		return 0
	}
	return float64(b.Bytes()) / float64(b.rows)
}

// Grow makes room for n more bytes of values, so that they are appended without
// moving what is there.
func (b *Builder) Grow(n int) {
	if cap(b.values.Data)-len(b.values.Data) < n {
		grown := make([]byte, len(b.values.Data), len(b.values.Data)+n)
		copy(grown, b.values.Data)
		b.values.Data = grown
	}
}

// Reset empties the builder. Blocks that it returned are overwritten by what is
// appended next.
func (b *Builder) Reset() {
	b.alone = false
	b.rows, b.entries = 0, 0
	b.rep, b.def = b.rep[:0], b.def[:0]
	clear(b.used)
	b.values = Values{Data: b.values.Data[:0], Offsets: b.values.Offsets[:0]}
	if b.typ.Kind == Variable {
		b.values.Offsets = append(b.values.Offsets, 0)
	}
}

// Take appends the next n rows at the cursor, or what is left if that is less,
// and moves the cursor past them. After an error the builder's contents are
// undefined.
func (b *Builder) Take(c *Cursor, n int) error {
	if err := b.match(c.block); err != nil {
		return err
	}
	s, err := c.advance(n)
	if err != nil {
		return err
	}
	if c.block.Def != nil {
		if err := b.appendDef(c.block.Def[s.entry:s.entryEnd]); err != nil {
			return err
		}
	}
	if c.maxRep > 0 {
		b.rep = append(b.rep, c.block.Rep[s.entry:s.entryEnd]...)
	}
	b.entries += s.entryEnd - s.entry
	b.rows += s.rows
	if b.typ.Kind == Nothing {
		b.nullify(b.entries - (s.entryEnd - s.entry))
	}
	return b.appendValues(&c.block.Values, s.value, s.valueEnd)
}

// TakeNulls appends n null rows: the outermost ancestor is null.
func (b *Builder) TakeNulls(n int) error {
	outer := len(b.wide) - 1
	null := MaxDef(b.wide[:outer]) + 1
	b.fillDef()
	for range n {
		b.def = append(b.def, null)
	}
	if m := MaxRep(b.wide); m > 0 {
		for range n {
			b.rep = append(b.rep, m)
		}
	}
	b.used[null] = b.used[null] || n > 0
	b.entries += n
	b.rows += n
	if null > MaxVisibleDef(b.wide) {
		return nil
	}
	return b.appendNullSlots(n)
}

// Alone says that the block will be the only page of its column: what pages have to
// declare for each other's sake it need not. It holds until the next Reset.
func (b *Builder) Alone() { b.alone = true }

// Block returns what was gathered, in the narrowest layers. It shares the
// builder's memory: use it before the next Reset, and append nothing in between.
func (b *Builder) Block() *Block {
	out := &Block{Type: b.typ, Rows: b.rows, Layers: narrowest(b.asked, b.used, b.alone), Values: b.values}
	if MaxRep(b.wide) > 0 {
		out.Rep = b.rep
	}
	if MaxDef(out.Layers) == 0 {
		return out
	}
	b.fillDef()
	out.Def = b.def
	// Numbers that no layer has any more are skipped; they do not occur.
	renumber := make([]uint16, len(b.used))
	wide, _ := Mapping(out.Layers, b.wide) // same shape, and b.wide expresses all
	for to, from := range wide {
		renumber[from] = uint16(to)
	}
	for i, d := range b.def {
		b.def[i] = renumber[d]
	}
	return out
}

func (b *Builder) match(src *Block) error {
	if src.Type.Kind != b.typ.Kind || src.Type.ValueBits() != b.typ.ValueBits() ||
		src.Type.ValidBits() != b.typ.ValidBits() || src.Type.Parts != b.typ.Parts {
		return table.Corruptf("level: a block of %+v in a column of %+v", src.Type, b.typ)
	}
	if !sameLayers(b.from, src.Layers) {
		m, err := Mapping(src.Layers, b.wide)
		if err != nil {
			return err
		}
		b.from, b.mapping = append(b.from[:0], src.Layers...), m
	}
	return nil
}

func sameLayers(a, b []Layer) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

// fillDef writes out the definition levels that are implied to be 0.
func (b *Builder) fillDef() {
	for len(b.def) < b.entries {
		b.def = append(b.def, 0)
	}
}

func (b *Builder) appendDef(src []uint16) error {
	first := 0
	for first < len(src) && src[first] == 0 {
		first++
	}
	if first == len(src) && len(b.def) == 0 {
		return nil // stays implied
	}
	b.fillDef()
	have := len(b.def)
	b.def = append(b.def, src...)
	dst := b.def[have:]
	for i, d := range src {
		if int(d) >= len(b.mapping) {
			return table.Corruptf("level: definition level %d, the largest is %d", d, len(b.mapping)-1)
		}
		m := b.mapping[d]
		dst[i] = m
		b.used[m] = true
	}
	return nil
}

// nullify makes the entries from the given one on null that say that a value is
// there: the null type has none.
func (b *Builder) nullify(from int) {
	b.fillDef()
	for i, d := range b.def[from:] {
		if d == 0 {
			b.def[from+i] = 1
			b.used[1] = true
		}
	}
}

func (b *Builder) appendValues(src *Values, from, to int) error {
	n := to - from
	if n == 0 {
		return nil
	}
	switch b.typ.Kind {
	case Fixed, FixedList:
		bits := b.typ.ValueBits()
		if bits%8 == 0 {
			w := bits / 8
			b.values.Data = append(b.values.Data, src.Data[from*w:to*w]...)
		} else {
			b.values.Data = appendBits(b.values.Data, b.values.N*bits, src.Data, from*bits, n*bits)
		}
		b.appendItemValid(src, from, n)
	case Variable:
		if err := b.appendStrings(src, from, to); err != nil {
			return err
		}
	}
	b.values.N += n
	return nil
}

func (b *Builder) appendItemValid(src *Values, from, n int) {
	if b.typ.Kind != FixedList || src.ItemValid == nil && b.values.ItemValid == nil {
		return
	}
	dim := b.typ.ValidBits()
	if b.values.ItemValid == nil {
		b.values.ItemValid = appendOnes(nil, 0, b.values.N*dim)
	}
	if src.ItemValid == nil {
		b.values.ItemValid = appendOnes(b.values.ItemValid, b.values.N*dim, n*dim)
	} else {
		b.values.ItemValid = appendBits(b.values.ItemValid, b.values.N*dim, src.ItemValid, from*dim, n*dim)
	}
}

func (b *Builder) appendStrings(src *Values, from, to int) error {
	lo, hi := src.Offsets[from], src.Offsets[to]
	if hi < lo || uint64(hi) > uint64(len(src.Data)) {
		return table.Corruptf("level: offsets %d to %d in %d bytes", lo, hi, len(src.Data))
	}
	if uint64(len(b.values.Data))+uint64(hi-lo) > math.MaxUint32 {
		return table.Unsupportedf("level: a page of more than 4 GiB of values")
	}
	base := uint32(len(b.values.Data)) - lo
	have := len(b.values.Offsets)
	b.values.Offsets = append(b.values.Offsets, src.Offsets[from+1:to+1]...)
	prev, bad := lo, uint32(0)
	added := b.values.Offsets[have:]
	for i, o := range added {
		if o < prev {
			bad = 1
		}
		prev = o
		added[i] = o + base
	}
	if bad != 0 {
		return table.Corruptf("level: offsets that decrease")
	}
	b.values.Data = append(b.values.Data, src.Data[lo:hi]...)
	return nil
}

func (b *Builder) appendNullSlots(n int) error {
	switch b.typ.Kind {
	case Fixed, FixedList:
		bits := b.typ.ValueBits()
		if b.values.ItemValid != nil {
			b.values.ItemValid = appendOnes(b.values.ItemValid, b.values.N*b.typ.ValidBits(), n*b.typ.ValidBits())
		}
		b.values.Data = growZero(b.values.Data, ((b.values.N+n)*bits+7)/8)
	case Variable:
		end := uint32(len(b.values.Data))
		for range n {
			b.values.Offsets = append(b.values.Offsets, end)
		}
	}
	b.values.N += n
	return nil
}
