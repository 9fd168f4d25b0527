package level

import "github.com/rehome-db/rehome/table"

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

// narrowest returns the least layers of the shape of the widest layers wide that
// express the definition levels marked in used, which is indexed by the numbers
// of wide.
//
// A list inside a nullable struct is declared nullable even if it never is:
// readers up to Lance 12 lose count of the levels of an AllValidList there.
func narrowest(wide []Layer, used []bool) []Layer {
	out := make([]Layer, len(wide))
	number := 1
	for i, w := range wide {
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
		} else if used[number] {
			out[i] = NullableItem
		} else {
			out[i] = AllValidItem
		}
		number += w.Numbers()
	}
	nullableOutside := false
	for i := len(out) - 1; i >= 0; i-- {
		switch {
		case out[i] == NullableItem:
			nullableOutside = true
		case out[i] == AllValidList && nullableOutside:
			out[i] = NullableList
		}
	}
	return out
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
