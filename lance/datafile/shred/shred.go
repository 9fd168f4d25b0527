package shred

import (
	"fmt"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/rehome-db/rehome/lance/datafile/level"
	"github.com/rehome-db/rehome/lance/schema"
	"github.com/rehome-db/rehome/table"
)

// Column returns the blocks of the leaves below the top-level field f, in leaf
// order, for the rows of a, which is of f's type. The blocks share a's memory. Of a
// leaf whose column holds descriptions of blobs they hold the blobs, as
// [schema.BlobValues]. A
// type that cannot be written, or a null where the format has no room for one, is
// ErrUnsupported.
func Column(f *schema.Field, a arrow.Array) ([]*level.Block, error) {
	leaves := f.Leaves()
	for _, leaf := range leaves {
		if leaf.Unsupported != nil {
			return nil, leaf.Unsupported
		}
	}
	s := shredder{leaves: leaves, rows: a.Len()}
	if err := s.field(f, a, nil); err != nil {
		return nil, fmt.Errorf("shred: column %q: %w", f.Name, err)
	}
	return s.out, nil
}

// entries are the level streams so far. A nil slice means what it says of the
// rows of a column that nothing was peeled off yet: no levels, content row by row.
type entries struct {
	n        int
	rep, def []uint16
	// at is the index of the content in the next layer's array, -1 if the entry
	// is absent.
	at []int32
}

type shredder struct {
	leaves []schema.Leaf // those not reached yet
	rows   int
	out    []*level.Block
}

// field handles f and what is below it. path are the arrays of f's ancestors,
// outermost first, with what they are.
func (s *shredder) field(f *schema.Field, a arrow.Array, path []node) error {
	if ext, ok := a.(array.ExtensionArray); ok {
		a = ext.Storage()
	}
	if a.Len() > 1<<31-1 {
		return table.Unsupportedf("an array of %d elements", a.Len())
	}
	switch x := a.(type) {
	case *array.Struct:
		if x.NumField() != len(f.Children) {
			return table.Unsupportedf("an array of type %s where %s belongs", a.DataType(), f.Type)
		}
		if f.IsLeaf() {
			break // packed
		}
		for i, c := range f.Children {
			if err := s.field(c, x.Field(i), append(path[:len(path):len(path)], node{a: a})); err != nil {
				return err
			}
		}
		return nil
	case array.ListLike:
		if _, fixed := a.(*array.FixedSizeList); fixed {
			break // part of the value
		}
		if len(f.Children) != 1 {
			return table.Unsupportedf("an array of type %s where %s belongs", a.DataType(), f.Type)
		}
		return s.field(f.Children[0], x.ListValues(), append(path[:len(path):len(path)], node{a: a, list: x}))
	}
	return s.leaf(f, a, path)
}

// node is an array on the way to a leaf: a struct, or a list.
type node struct {
	a    arrow.Array
	list array.ListLike
}

func (s *shredder) leaf(f *schema.Field, a arrow.Array, path []node) error {
	if len(s.leaves) == 0 || s.leaves[0].Field != f {
		return table.Unsupportedf("an array of type %s where %s belongs", a.DataType(), f.Type)
	}
	leaf := s.leaves[0]
	s.leaves = s.leaves[1:]
	if !sameType(leaf.Arrow, a.DataType()) {
		return table.Unsupportedf("an array of type %s where %s belongs", a.DataType(), leaf.Arrow)
	}
	wide := level.Widest(leaf.Layers)
	e := entries{n: s.rows}
	for i, n := range path {
		// The layers inside this one; their numbers come first.
		inner := wide[:len(path)-i]
		null := level.MaxDef(inner) + 1
		if n.list == nil {
			e.nulls(n.a, null, wide)
		} else if err := e.elements(n, level.MaxRep(inner), null, wide); err != nil {
			return err
		}
	}
	if st, ok := a.(*array.Struct); ok && leaf.Type.Kind == level.Nothing && st.NullN() > 0 {
		return table.Unsupportedf("a null struct without fields")
	}
	if leaf.Described {
		leaf.Type = schema.BlobValues
	}
	b := &level.Block{Type: leaf.Type, Rows: s.rows, Layers: wide}
	if leaf.Type.Kind != level.Nothing {
		e.nulls(a, 1, wide)
		if d, ok := a.(*array.Dictionary); ok {
			if err := e.nullItems(d, wide); err != nil {
				return err
			}
		}
	}
	if e.def == nil && e.rep == nil {
		b.Layers = slices.Repeat([]level.Layer{level.AllValidItem}, len(wide))
	}
	b.Rep, b.Def = e.rep, e.def
	var err error
	b.Values, err = gather(leaf.Type, a, e.slots(wide, leaf.Type.Parts == ""))
	s.out = append(s.out, b)
	return err
}

// nulls marks the entries whose content in a is null.
func (e *entries) nulls(a arrow.Array, null uint16, wide []level.Layer) {
	if a.NullN() == 0 {
		return
	}
	e.begin(wide)
	for i := range e.n {
		if at := e.at[i]; at >= 0 && a.IsNull(int(at)) {
			e.def[i], e.at[i] = null, -1
		}
	}
}

// nullItems marks the entries whose index in a is of a null.
func (e *entries) nullItems(a *array.Dictionary, wide []level.Layer) error {
	items := a.Dictionary()
	if items.NullN() == 0 {
		return nil
	}
	e.begin(wide)
	for i := range e.n {
		at := e.at[i]
		if at < 0 {
			continue
		}
		k := a.GetValueIndex(int(at))
		if k < 0 || k >= items.Len() {
			return table.Corruptf("index %d into a dictionary of %d values", k, items.Len())
		}
		if items.IsNull(k) {
			e.def[i], e.at[i] = 1, -1
		}
	}
	return nil
}

// begin makes the streams that are nil explicit.
func (e *entries) begin(wide []level.Layer) {
	if e.at == nil {
		e.at = make([]int32, e.n)
		for i := range e.at {
			e.at[i] = int32(i)
		}
	}
	if e.def == nil {
		e.def = make([]uint16, e.n)
	}
	if maxRep := level.MaxRep(wide); e.rep == nil && maxRep > 0 {
		e.rep = make([]uint16, e.n)
		for i := range e.rep {
			e.rep[i] = maxRep
		}
	}
}

// elements replaces the entries of lists by those of their elements. next is the
// repetition level that adds one more.
func (e *entries) elements(n node, next, null uint16, wide []level.Layer) error {
	e.begin(wide)
	total := 0
	for i := range e.n {
		total++
		if at := e.at[i]; at >= 0 && n.a.IsValid(int(at)) {
			if from, to := n.list.ValueOffsets(int(at)); to > from {
				total += int(to-from) - 1
			}
		}
	}
	if total > 1<<31-1 {
		return table.Unsupportedf("lists of %d elements in one batch", total)
	}
	out := entries{rep: make([]uint16, 0, total), def: make([]uint16, 0, total), at: make([]int32, 0, total)}
	for i := range e.n {
		rep, def, at := e.rep[i], e.def[i], e.at[i]
		var from, to int64
		switch {
		case at < 0:
		case n.a.IsNull(int(at)):
			def = null
		default:
			if from, to = n.list.ValueOffsets(int(at)); from == to {
				def = null + 1 // empty
			}
		}
		if def != 0 {
			out.rep, out.def, out.at = append(out.rep, rep), append(out.def, def), append(out.at, -1)
			continue
		}
		for k := from; k < to; k++ {
			out.rep, out.def, out.at = append(out.rep, rep), append(out.def, 0), append(out.at, int32(k))
			rep = next
		}
	}
	out.n = len(out.rep)
	*e = out
	return nil
}

// run is consecutive values that go into consecutive slots; a negative from
// stands for slots without content.
type run struct{ from, n int }

// slots returns the values of the visible entries, in order. junk says that what
// lies under a null may be looked at.
func (e *entries) slots(wide []level.Layer, junk bool) []run {
	if e.at == nil {
		return []run{{0, e.n}}
	}
	maxVisible := level.MaxVisibleDef(wide)
	flat := junk && level.MaxRep(wide) == 0
	var out []run
	for i, at := range e.at {
		if e.def[i] > maxVisible {
			continue
		}
		from := int(at)
		if flat {
			from = i // also where it is null: one range, nothing to copy
		}
		if k := len(out) - 1; k >= 0 && (out[k].from >= 0 && from == out[k].from+out[k].n || from < 0 && out[k].from < 0) {
			out[k].n++
			continue
		}
		out = append(out, run{from, 1})
	}
	return out
}

// sameType says whether arrays of the two types have the same values, whatever
// their items are called.
func sameType(a, b arrow.DataType) bool {
	if fa, ok := a.(*arrow.FixedSizeListType); ok {
		fb, ok := b.(*arrow.FixedSizeListType)
		return ok && fa.Len() == fb.Len() && sameType(fa.Elem(), fb.Elem())
	}
	if ext, ok := b.(arrow.ExtensionType); ok {
		b = ext.StorageType()
	}
	if da, ok := a.(*arrow.DictionaryType); ok {
		// Lance does not record that a dictionary is ordered.
		db, ok := b.(*arrow.DictionaryType)
		return ok && arrow.TypeEqual(da.IndexType, db.IndexType) && arrow.TypeEqual(da.ValueType, db.ValueType)
	}
	return arrow.TypeEqual(a, b)
}
