package datafile

import (
	"slices"

	"github.com/rehome-db/rehome/lance/datafile/encoding"
	"github.com/rehome-db/rehome/lance/datafile/level"
	"github.com/rehome-db/rehome/lance/schema"
)

// Readers fail when pages that declare something nullable meet pages that do not, see
// [level.SameItems]. So all pages of a column of lists declare the same, where it
// matters: what the schema says, unless whoever writes knows better.

// Layers returns the layers of leaf, except that in a path with lists a struct or value
// is all valid if no page of the column declares it nullable. Not for format 2.0.
func (c *Column) Layers(leaf schema.Leaf) []level.Layer {
	out := slices.Clone(leaf.Layers)
	if level.MaxRep(out) == 0 {
		return out
	}
	for i := range out {
		if out[i] != level.NullableItem {
			continue
		}
		out[i] = level.AllValidItem
		for k := range c.pages {
			layers, def := encoding.PageLayers(c.page(k))
			unknown := layers == nil && c.file.version != V2_0 // which has no null structs
			if unknown || def && i < len(layers) && layers[i] == level.NullableItem {
				out[i] = level.NullableItem
				break
			}
		}
	}
	return out
}

// Declare says which structs and values all pages of the column declare nullable, where
// there are lists. layers have the shape of the leaf's. Call it before anything is
// appended; the default is what the schema says.
func (c *ColumnWriter) Declare(layers []level.Layer) { c.leaf.Layers = layers }
