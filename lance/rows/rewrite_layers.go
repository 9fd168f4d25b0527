package rows

import (
	"slices"

	"github.com/rehome-db/rehome/lance/datafile"
	"github.com/rehome-db/rehome/lance/datafile/level"
)

// All pages of a column with lists have to agree on what can be null, see
// [level.SameItems]: what can be in any source. To declare more than that would be right,
// too, but pages that do not could not be copied then, and values of any size in lists
// have a page encoding only where no struct around is null.

// addLayers takes into account what a source declares for a leaf.
func (g *rewriteGroup) addLayers(leaf int, layers []level.Layer) {
	if g.layers[leaf] == nil {
		g.layers[leaf] = slices.Clone(layers)
		return
	}
	for i, l := range layers {
		if l == level.NullableItem {
			g.layers[leaf][i] = l
		}
	}
}

// declare tells the columns of an output.
func (g *rewriteGroup) declare(f *newDataFile) {
	for i, layers := range g.layers {
		if layers != nil && g.format != datafile.V2_0 {
			f.Column(i).Declare(layers)
		}
	}
}
