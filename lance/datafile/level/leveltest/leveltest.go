// Package leveltest is a naive model of blocks for property tests: rows of
// entries, drawn at random, written down as a block one by one and read back the
// same way. It shares no code with what it tests.
package leveltest

import (
	"encoding/binary"
	"fmt"
	"strings"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/rehome-db/rehome/lance/datafile/level"
)

// Entry is one level entry in a form that does not depend on the layers chosen.
type Entry struct {
	Rep uint16
	// Absent is the layer that is absent, -1 for none; Empty says that it is an
	// empty list and not a null.
	Absent int
	Empty  bool
	// Slot says that the entry owns a value slot. Value and Items, the validity
	// of a FixedList's items if some are null, are "" unless nothing is absent.
	Slot         bool
	Value, Items string
}

// Row is the entries of a row.
type Row []Entry

// Model is rows together with the layers that they were drawn for.
type Model struct {
	Type   level.Type
	Layers []level.Layer
	Rows   []Row
}

// DrawType draws a type of narrow values.
func DrawType(t *rapid.T) level.Type {
	switch rapid.IntRange(0, 9).Draw(t, "kind") {
	case 0, 1:
		return level.Type{Kind: level.Fixed, Bits: rapid.SampledFrom([]int{8, 16, 32, 64, 128, 24}).Draw(t, "bits")}
	case 2:
		return level.Type{Kind: level.Fixed, Bits: 1}
	case 3:
		return level.Type{Kind: level.Variable, Bits: rapid.SampledFrom([]int{32, 64}).Draw(t, "bits")}
	case 4:
		return level.Type{Kind: level.FixedList, Bits: 32, Dim: rapid.IntRange(1, 5).Draw(t, "dim")}
	case 5:
		return level.Type{Kind: level.FixedList, Bits: 1, Dim: rapid.IntRange(1, 19).Draw(t, "dim")}
	case 6:
		return level.Type{Kind: level.FixedList, Bits: rapid.SampledFrom([]int{1, 16}).Draw(t, "bits"), Dim: 6, Inner: 2}
	case 7:
		return level.Type{Kind: level.Fixed, Bits: 56, Parts: level.NewParts([]level.Part{{Bits: 32}, {Bits: 24}})}
	case 8:
		return level.Type{Kind: level.Variable, Bits: 32, Parts: level.NewParts([]level.Part{{Bits: 32, Variable: true}, {Bits: 16}, {Bits: 64, Variable: true}})}
	default:
		return level.Type{Kind: level.Nothing}
	}
}

// DrawShape draws a path, leaf first, of items and lists (true).
func DrawShape(t *rapid.T) []bool {
	lists := rapid.SliceOfN(rapid.Bool(), 0, 4).Draw(t, "lists")
	return append([]bool{false}, lists...)
}

// DrawLayers draws how absence is declared, for a given shape.
func DrawLayers(t *rapid.T, shape []bool) []level.Layer {
	out := make([]level.Layer, len(shape))
	for i, list := range shape {
		if list {
			out[i] = rapid.SampledFrom([]level.Layer{level.AllValidList, level.NullableList, level.EmptyableList, level.NullAndEmptyList}).Draw(t, "list")
		} else {
			out[i] = rapid.SampledFrom([]level.Layer{level.AllValidItem, level.NullableItem}).Draw(t, "item")
		}
	}
	return out
}

// Draw draws up to maxRows rows of values that draw gives, or any if it is nil.
func Draw(t *rapid.T, typ level.Type, shape []bool, maxRows int, draw func(*rapid.T) string) Model {
	m := Model{Type: typ, Layers: DrawLayers(t, shape)}
	d := drawer{m: &m, draw: draw, itemNulls: rapid.Bool().Draw(t, "item nulls")}
	// How likely absence is, in tenths: pages of nothing but nulls exist too.
	d.absence = rapid.SampledFrom([]int{0, 1, 1, 5, 10}).Draw(t, "absence")
	for range rapid.IntRange(0, maxRows).Draw(t, "rows") {
		var row Row
		d.node(t, len(shape)-1, level.MaxRep(m.Layers), &row)
		m.Rows = append(m.Rows, row)
	}
	return m
}

type drawer struct {
	m         *Model
	draw      func(*rapid.T) string
	itemNulls bool
	absence   int
}

// node draws layer i and what is inside it; rep is its first entry's level.
func (d *drawer) node(t *rapid.T, i int, rep uint16, row *Row) {
	l := d.m.Layers[i]
	canNull := l == level.NullableItem || l == level.NullableList || l == level.NullAndEmptyList
	canEmpty := l == level.EmptyableList || l == level.NullAndEmptyList
	if (canNull || canEmpty) && rapid.IntRange(0, 9).Draw(t, "absent") < d.absence {
		e := Entry{Rep: rep, Absent: i, Empty: canEmpty && (!canNull || rapid.Bool().Draw(t, "empty")), Slot: true}
		for _, inner := range d.m.Layers[:i+1] {
			e.Slot = e.Slot && !inner.IsList()
		}
		*row = append(*row, e)
		return
	}
	switch {
	case i == 0:
		e := Entry{Rep: rep, Absent: -1, Slot: true}
		e.Value, e.Items = d.value(t)
		if d.m.Type.Kind == level.Nothing {
			e.Absent = 0 // the null type has no values
		}
		*row = append(*row, e)
	case l.IsList():
		rank := level.MaxRep(d.m.Layers[:i+1])
		for k := range rapid.IntRange(1, 3).Draw(t, "items") {
			r := rank - 1
			if k == 0 {
				r = rep
			}
			d.node(t, i-1, r, row)
		}
	default:
		d.node(t, i-1, rep, row)
	}
}

func (d *drawer) value(t *rapid.T) (value, items string) {
	typ := d.m.Type
	switch {
	case typ.Kind == level.Nothing:
		return "", ""
	case d.draw != nil:
		value = d.draw(t)
	case typ.Kind == level.Variable && typ.Parts != "":
		return drawParts(t, typ.Parts), ""
	case typ.Kind == level.Variable:
		return rapid.StringN(0, 8, -1).Draw(t, "string"), ""
	default:
		bits := typ.ValueBits()
		b := rapid.SliceOfN(rapid.Byte(), (bits+7)/8, (bits+7)/8).Draw(t, "value")
		if bits%8 != 0 {
			b[len(b)-1] &= 1<<(bits%8) - 1
		}
		value = string(b)
	}
	if typ.Kind == level.FixedList && d.itemNulls {
		v := make([]byte, typ.ValidBits())
		for i := range v {
			v[i] = "01"[rapid.IntRange(0, 1).Draw(t, "valid")]
		}
		if items = string(v); !strings.Contains(items, "0") {
			items = ""
		}
	}
	return value, items
}

// drawParts draws a row of a packed struct.
func drawParts(t *rapid.T, parts level.Parts) string {
	var b []byte
	for _, p := range parts.List() {
		n := p.Bits / 8
		if p.Variable {
			n = rapid.IntRange(0, 5).Draw(t, "length")
			b = append(b, binary.LittleEndian.AppendUint64(nil, uint64(n))[:p.Bits/8]...)
		}
		b = append(b, rapid.SliceOfN(rapid.Byte(), n, n).Draw(t, "field")...)
	}
	return string(b)
}

// Slots returns the values of the entries that are not absent.
func (m *Model) Slots() []string {
	var out []string
	for _, row := range m.Rows {
		for _, e := range row {
			if e.Absent < 0 {
				out = append(out, e.Value)
			}
		}
	}
	return out
}

// Block writes the model down, with junk in null slots.
func (m *Model) Block() *level.Block {
	b := &level.Block{Type: m.Type, Rows: len(m.Rows), Layers: m.Layers}
	hasDef, hasRep := level.MaxDef(m.Layers) > 0, level.MaxRep(m.Layers) > 0
	if hasDef {
		b.Def = []uint16{}
	}
	if hasRep {
		b.Rep = []uint16{}
	}
	var slots []Entry
	for _, row := range m.Rows {
		for _, e := range row {
			if hasRep {
				b.Rep = append(b.Rep, e.Rep)
			}
			if hasDef {
				b.Def = append(b.Def, m.definition(e))
			}
			if e.Slot {
				slots = append(slots, e)
			}
		}
	}
	b.Values.N = len(slots)
	switch m.Type.Kind {
	case level.Variable:
		b.Values.Data, b.Values.Offsets = []byte("junk"), []uint32{4}
		for _, e := range slots {
			if e.Absent >= 0 {
				e.Value = "null"
			}
			b.Values.Data = append(b.Values.Data, e.Value...)
			b.Values.Offsets = append(b.Values.Offsets, uint32(len(b.Values.Data)))
		}
	case level.Fixed, level.FixedList:
		m.fixed(&b.Values, slots)
	}
	return b
}

func (m *Model) fixed(v *level.Values, slots []Entry) {
	bits, dim := m.Type.ValueBits(), m.Type.ValidBits()
	v.Data = make([]byte, (len(slots)*bits+7)/8)
	someNull := false
	for i, e := range slots {
		someNull = someNull || e.Items != ""
		for k := range bits {
			if e.Absent >= 0 && k%3 == 0 || e.Absent < 0 && e.Value[k/8]>>(k%8)&1 == 1 {
				v.Data[(i*bits+k)/8] |= 1 << ((i*bits + k) % 8)
			}
		}
	}
	if !someNull {
		return
	}
	v.ItemValid = make([]byte, (len(slots)*dim+7)/8)
	for i, e := range slots {
		for k := range dim {
			if e.Absent < 0 && (e.Items == "" || e.Items[k] == '1') {
				v.ItemValid[(i*dim+k)/8] |= 1 << ((i*dim + k) % 8)
			}
		}
	}
}

// definition returns the level of an entry. The null type's values may be said to
// be there if the layers have no room for more.
func (m *Model) definition(e Entry) uint16 {
	if e.Absent < 0 || e.Absent == 0 && m.Layers[0] == level.AllValidItem {
		return 0
	}
	d := level.MaxDef(m.Layers[:e.Absent]) + 1
	if e.Empty && m.Layers[e.Absent] == level.NullAndEmptyList {
		d++
	}
	return d
}

// Rows reads a block back.
func Rows(t require.TestingT, b *level.Block) []Row {
	type meaning struct {
		absent int
		empty  bool
	}
	meanings := []meaning{{absent: -1}}
	for i, l := range b.Layers {
		if l == level.NullableItem || l == level.NullableList || l == level.NullAndEmptyList {
			meanings = append(meanings, meaning{absent: i})
		}
		if l == level.EmptyableList || l == level.NullAndEmptyList {
			meanings = append(meanings, meaning{absent: i, empty: true})
		}
	}
	maxRep, maxVisible := level.MaxRep(b.Layers), level.MaxVisibleDef(b.Layers)
	var rows []Row
	slot := 0
	for i := range b.Entries() {
		e := Entry{Absent: -1}
		if b.Rep != nil {
			e.Rep = b.Rep[i]
		}
		var d uint16
		if b.Def != nil {
			d = b.Def[i]
			e.Absent, e.Empty = meanings[d].absent, meanings[d].empty
		}
		if b.Type.Kind == level.Nothing && e.Absent < 0 {
			e.Absent = 0
		}
		if d <= maxVisible {
			e.Slot = true
			if e.Absent < 0 {
				e.Value, e.Items = slotValue(b, slot)
			}
			slot++
		}
		if maxRep == 0 || e.Rep == maxRep {
			rows = append(rows, nil)
		}
		rows[len(rows)-1] = append(rows[len(rows)-1], e)
	}
	require.Equal(t, b.Values.N, slot)
	require.Len(t, rows, b.Rows)
	return rows
}

func slotValue(b *level.Block, slot int) (value, items string) {
	if b.Type.Kind == level.Variable {
		return string(b.Values.Data[b.Values.Offsets[slot]:b.Values.Offsets[slot+1]]), ""
	}
	if b.Type.Kind == level.Nothing {
		return "", ""
	}
	bits := b.Type.ValueBits()
	v := make([]byte, (bits+7)/8)
	for k := range bits {
		at := slot*bits + k
		v[k/8] |= b.Values.Data[at/8] >> (at % 8) & 1 << (k % 8)
	}
	if b.Values.ItemValid == nil {
		return string(v), ""
	}
	for k := range b.Type.ValidBits() {
		at := slot*b.Type.ValidBits() + k
		items += fmt.Sprint(b.Values.ItemValid[at/8] >> (at % 8) & 1)
	}
	if !strings.Contains(items, "0") {
		items = ""
	}
	return string(v), items
}

// NullRow is a row whose outermost ancestor is null.
func NullRow(layers []level.Layer) Row {
	return Row{{Rep: level.MaxRep(layers), Absent: len(layers) - 1, Slot: level.MaxRep(layers) == 0}}
}
