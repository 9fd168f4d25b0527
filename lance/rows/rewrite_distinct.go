package rows

import (
	"context"
	"fmt"
	"math"

	"github.com/rehome-db/rehome/lance/datafile"
	"github.com/rehome-db/rehome/lance/datafile/level"
	"github.com/rehome-db/rehome/lance/schema"
	"github.com/rehome-db/rehome/table"
)

// Fragments of a dictionary column with narrow indices, each with values that these
// tell apart, can have more between them. No file may hold those: see package
// encoding. Whether there are more is mostly seen from the sizes of the dictionaries
// in the pages' descriptions. Where it is not, the column is read before anything is
// written.

// dictionaryItems returns how many values the dictionaries of a column have in all.
func dictionaryItems(c *datafile.Column) uint64 {
	total := uint64(0)
	for _, p := range c.Pages() {
		switch m := p.Layout.GetMiniBlock(); {
		case m.GetDictionary() != nil:
			total += m.GetNumDictionaryItems()
		case p.Layout.GetConstant() == nil:
			return math.MaxUint32 // not known
		}
	}
	return total
}

// checkIndexes checks that the live rows of every dictionary column have no more
// values than its indices tell apart.
func (g *rewriteGroup) checkIndexes(ctx context.Context) error {
	for i, leaf := range g.leaves {
		most := leaf.Indexes()
		if most == 0 || g.items[i] <= uint64(most) {
			continue
		}
		seen := map[string]struct{}{}
		for k := range g.sources {
			s := &g.sources[k]
			if s.places[i].file < 0 {
				continue
			}
			if err := g.countDistinct(ctx, s, i, seen, most); err != nil {
				return fmt.Errorf("fragment %d: %w", s.fragment.ID, err)
			}
		}
	}
	return nil
}

// countDistinct adds the values that a source's live rows have for a leaf to seen, of
// which there may be most.
func (g *rewriteGroup) countDistinct(ctx context.Context, s *rewriteSource, i int, seen map[string]struct{}, most int) error {
	leaf, place := g.leaves[i], s.places[i]
	of, err := g.open(ctx, s, place.file)
	if err != nil {
		return err
	}
	defer of.Release()
	column, err := place.Open(of)
	if err != nil {
		return err
	}
	blocks := column.Blocks(ctx, leaf)
	if !s.dead.IsEmpty() {
		blocks = liveOnly(blocks, leaf, s.dead, s.fragment.PhysicalRows)
	}
	for b, err := range blocks {
		if err != nil {
			return err
		}
		addDistinct(seen, b, leaf)
		if len(seen) > most {
			return table.Unsupportedf("column %q: a file with more than %d distinct values in a dictionary column, which indices of type %s cannot tell apart",
				leaf.Path, most, leaf.Dictionary.IndexType)
		}
	}
	return nil
}

// addDistinct adds the values of a block to seen.
func addDistinct(seen map[string]struct{}, b *level.Block, leaf schema.Leaf) {
	maxVisible := level.MaxVisibleDef(b.Layers)
	v, width, slot := &b.Values, leaf.Type.Bits/8, 0
	for i := range b.Entries() {
		def := uint16(0)
		if b.Def != nil {
			def = b.Def[i]
		}
		if def > maxVisible {
			continue
		}
		if def == 0 {
			value := v.Data
			if leaf.Type.Kind == level.Variable {
				value = value[v.Offsets[slot]:v.Offsets[slot+1]]
			} else {
				value = value[slot*width : (slot+1)*width]
			}
			if _, ok := seen[string(value)]; !ok {
				seen[string(value)] = struct{}{}
			}
		}
		slot++
	}
}
