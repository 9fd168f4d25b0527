package level

// Layer is one step of a leaf column's path. The numbers are those of the file
// format (RepDefLayer).
type Layer uint8

// The layers. Item stands for the leaf or a struct.
const (
	AllValidItem     Layer = 1
	AllValidList     Layer = 2
	NullableItem     Layer = 3
	NullableList     Layer = 4
	EmptyableList    Layer = 5
	NullAndEmptyList Layer = 6
)

// IsList says whether the layer is a list.
func (l Layer) IsList() bool { return l != AllValidItem && l != NullableItem }

// Numbers returns how many definition numbers the layer takes.
func (l Layer) Numbers() int {
	switch l {
	case NullableItem, NullableList, EmptyableList:
		return 1
	case NullAndEmptyList:
		return 2
	default:
		return 0
	}
}

// Kind is the physical shape of a leaf's values.
type Kind uint8

// The kinds.
const (
	// Fixed: every value has Bits bits; 1 for booleans, else a multiple of 8.
	Fixed Kind = iota + 1
	// Variable: byte strings.
	Variable
	// FixedList: Dim items of Bits bits each, items possibly null.
	FixedList
	// Nothing: the null type; no values at all.
	Nothing
)

// Type describes a leaf's values, whatever the logical type on top.
type Type struct {
	Kind Kind
	// Bits is the width of a value (Fixed) or of an item (FixedList), and the
	// width of offsets (32 or 64) for Variable.
	Bits int
	// Dim is the number of items of a FixedList, the product of all dimensions
	// when lists are nested.
	Dim int
	// Inner is the number of lists inside a FixedList, over all levels between
	// the value itself and its items, that can be null themselves: 0 unless lists
	// are nested. A list of 2 lists of 3 lists of 4 items has an Inner of 2 + 6
	// and a Dim of 24.
	Inner int
	// Parts are the fields of a packed struct, whose value is one row of them: a
	// Fixed value if all have a fixed width, else a Variable one, in which each
	// field of any width stands behind its length. Empty for everything else.
	Parts Parts
}

// ValidBits returns the bits of [Values.ItemValid] that belong to one value: for
// the inner lists, outermost level first, then for the items.
func (t Type) ValidBits() int { return t.Inner + t.Dim }

// ValueBits returns the bits that one value takes; 0 for Variable and Nothing.
func (t Type) ValueBits() int {
	switch t.Kind {
	case Fixed:
		return t.Bits
	case FixedList:
		return t.Bits * t.Dim
	default:
		return 0
	}
}

// Values are the value slots of the visible entries of a block, nulls included.
type Values struct {
	// N is the number of slots.
	N int
	// Data holds fixed-width slots back to back, little-endian, or as one
	// continuous bit stream, least significant bit first, if the width is no
	// multiple of 8. For Variable it holds the bytes that Offsets delimits.
	Data []byte
	// Offsets has N+1 entries for Variable; slot i is Data[Offsets[i]:Offsets[i+1]].
	// Offsets[0] need not be 0. A block never holds more than 4 GiB of bytes.
	Offsets []uint32
	// ItemValid is a bitmap of Type.ValidBits bits a slot of FixedList, least
	// significant bit first, 1 for valid; nil if every item and every inner list
	// is valid.
	ItemValid []byte
}

// Block is some consecutive top-level rows of one leaf column.
type Block struct {
	Type Type
	// Rows is the number of top-level rows.
	Rows int
	// Layers, leaf first. Never empty.
	Layers []Layer
	// Rep and Def are parallel where both exist; nil if the layers need none.
	// Without them there is one entry a row.
	Rep, Def []uint16
	// Values of the visible entries.
	Values Values
}

// Entries returns the number of level entries.
func (b *Block) Entries() int {
	switch {
	case b.Rep != nil:
		return len(b.Rep)
	case b.Def != nil:
		return len(b.Def)
	default:
		return b.Rows
	}
}

// MaxRep returns the number of list layers, which is also the repetition level
// that begins a row.
func MaxRep(layers []Layer) uint16 {
	var n uint16
	for _, l := range layers {
		if l.IsList() {
			n++
		}
	}
	return n
}

// MaxDef returns the largest definition level.
func MaxDef(layers []Layer) uint16 {
	var n uint16
	for _, l := range layers {
		n += uint16(l.Numbers())
	}
	return n
}

// MaxVisibleDef returns the largest definition level of an entry that owns a
// value slot: the numbers of the items below the innermost list.
func MaxVisibleDef(layers []Layer) uint16 {
	var n uint16
	for _, l := range layers {
		if l.IsList() {
			break
		}
		n += uint16(l.Numbers())
	}
	return n
}
