package level

import (
	"slices"

	"github.com/rehome-db/rehome/table"
)

// maxLayers bounds the depth of a path, far above what schemas have, so that
// definition numbers always fit in 16 bits.
const maxLayers = 1024

// Widest returns layers of the same shape in which everything can be absent:
// every item nullable, every list null or empty. Any page of the leaf can be
// expressed in them, so they are what pages of different layers are gathered in.
func Widest(layers []Layer) []Layer {
	out := make([]Layer, len(layers))
	for i, l := range layers {
		if l.IsList() {
			out[i] = NullAndEmptyList
		} else {
			out[i] = NullableItem
		}
	}
	return out
}

// Mapping returns the table that translates the definition levels of a block
// with layers from into those of layers to: entry d is what d becomes. Entry 0
// is 0. It fails if the shapes differ, or if to cannot express an absence that
// from can.
func Mapping(from, to []Layer) ([]uint16, error) {
	if err := checkLayers(from); err != nil {
		return nil, err
	}
	if err := checkLayers(to); err != nil {
		return nil, err
	}
	if len(from) != len(to) {
		return nil, table.Corruptf("level: a path of %d layers does not match one of %d", len(from), len(to))
	}
	out := append(make([]uint16, 0, int(MaxDef(from))+1), 0)
	next := uint16(1)
	for i, f := range from {
		if f.IsList() != to[i].IsList() {
			return nil, table.Corruptf("level: layer %d is a list on one side only", i)
		}
		null, empty := next, next
		if to[i] == NullAndEmptyList {
			empty++
		}
		hasNull := to[i] == NullableItem || to[i] == NullableList || to[i] == NullAndEmptyList
		hasEmpty := to[i] == EmptyableList || to[i] == NullAndEmptyList
		next += uint16(to[i].Numbers())

		if f == NullableItem || f == NullableList || f == NullAndEmptyList {
			if !hasNull {
				return nil, table.Corruptf("level: layer %d cannot be null", i)
			}
			out = append(out, null)
		}
		if f == EmptyableList || f == NullAndEmptyList {
			if !hasEmpty {
				return nil, table.Corruptf("level: layer %d cannot be empty", i)
			}
			out = append(out, empty)
		}
	}
	return out, nil
}

// narrowest returns the least layers of the shape of asked that express the
// definition levels marked in used, which is indexed by the numbers of the widest
// layers of that shape.
//
// A struct around a list is declared nullable if asked says so, even if it never is,
// unless the page is alone: pages in which it is and pages in which it is not must not
// meet in a file, see [SameItems].
//
// A struct inside a nullable one is declared nullable even if it never is by itself:
// readers take a list in a null struct for null, whatever is between them, and all
// values of a page without any; where such a list or value cannot be null, they want its
// struct to be. A list inside a nullable struct is declared nullable, too: readers up to
// Lance 12 lose count of the levels of an AllValidList there.
//
// A path of several lists has definition levels even if nothing is ever absent, unless
// the page is alone: Lance 8 loses count of the outer lists of a page without any, if it
// is not the first of a batch.
func narrowest(asked []Layer, used []bool, alone bool) []Layer {
	out := make([]Layer, len(asked))
	number := 1
	list := false
	for i, w := range Widest(asked) {
		list = list || w.IsList()
		if w.IsList() {
			null, empty := used[number], used[number+1]
			switch {
			case null && empty:
				out[i] = NullAndEmptyList
			case null:
				out[i] = NullableList
			case empty:
				out[i] = EmptyableList
			default:
				out[i] = AllValidList
			}
		} else if used[number] || !alone && list && asked[i] == NullableItem {
			out[i] = NullableItem
		} else {
			out[i] = AllValidItem
		}
		number += w.Numbers()
	}
	pushNulls(out)
	if !alone && MaxRep(out) > 1 && MaxDef(out) == 0 {
		out[slices.IndexFunc(out, Layer.IsList)] = EmptyableList
	}
	return out
}

// pushNulls declares nullable what lies in a struct that is: structs up to the next
// list, and lists.
func pushNulls(layers []Layer) {
	inStruct, inAny := false, false
	for i := len(layers) - 1; i > 0; i-- {
		switch {
		case layers[i] == NullableItem:
			inStruct, inAny = true, true
		case layers[i] == AllValidItem && inStruct:
			layers[i] = NullableItem
		case layers[i].IsList():
			inStruct = false
			if layers[i] == AllValidList && inAny {
				layers[i] = NullableList
			}
		}
	}
}

// Declared returns layers with everything nullable that asked says is, lists aside, and
// what lies in it.
func Declared(layers, asked []Layer) []Layer {
	out := slices.Clone(layers)
	for i, l := range out {
		if l == AllValidItem && i < len(asked) && asked[i] == NullableItem {
			out[i] = NullableItem
		}
	}
	pushNulls(out)
	return out
}

// SameItems says whether a page with the given layers can be in one column with pages
// that a [Builder] for the layers asked made, and whether it needs definition levels for
// that. Readers (up to Lance 14 at least) that meet a page that declares a struct or
// value nullable and one that does not in the same batch count what is there of the
// latter: as many as it has values, which is wrong of structs around lists. So every page
// has to declare such structs nullable, or none. Of pages in which values stand one by
// one readers up to Lance 12 take the number of rows, so that what is in lists has to be
// the same, too. Of several lists, see narrowest.
func SameItems(asked, page []Layer, oneByOne bool) (same, levels bool) {
	if !slices.ContainsFunc(page, Layer.IsList) {
		return true, false
	}
	asked = Declared(asked, nil)
	list := oneByOne
	for i, l := range page {
		list = list || l.IsList()
		if !list || l.IsList() {
			continue
		}
		if i >= len(asked) || l != asked[i] {
			return false, false
		}
		levels = levels || l == NullableItem
	}
	return true, levels || MaxRep(page) > 1
}

func checkLayers(layers []Layer) error {
	if len(layers) == 0 || len(layers) > maxLayers {
		return table.Corruptf("level: a path of %d layers", len(layers))
	}
	for i, l := range layers {
		if l < AllValidItem || l > NullAndEmptyList {
			return table.Corruptf("level: layer %d is of unknown kind %d", i, l)
		}
	}
	if layers[0].IsList() {
		return table.Corruptf("level: the innermost layer is a list")
	}
	return nil
}
