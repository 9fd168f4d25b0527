package level

import "github.com/rehome-db/rehome/table"

// TakeAbsent appends the next n rows at the cursor as they are for a leaf that is
// nowhere there: a field that a struct was given later. The cursor is over blocks of
// another leaf of that struct; shared is the number of layers that the two leaves
// have in common, from the outermost down to the struct itself. Where the struct is
// there, what the builder's leaf has below it is null; where it is not, the struct
// is absent in the same way. Both leaves must have a layer of their own.
//
// For example, rows [{a: [1, 2]}, null] of a struct to which b is added, a being
// what the cursor is over:
//
//	a  layers item, list, struct   rep 1 0 1   def 0 0 (struct null)
//	b  layers item, struct                     def (item null) (struct null)
func (b *Builder) TakeAbsent(c *Cursor, n, shared int) error {
	src := c.block
	theirs, ours := len(src.Layers)-shared, len(b.wide)-shared
	if shared < 1 || theirs < 1 || ours < 1 {
		return table.Corruptf("level: paths of %d and %d layers cannot share %d", len(src.Layers), len(b.wide), shared)
	}
	for i := range shared {
		if src.Layers[theirs+i].IsList() != b.wide[ours+i].IsList() {
			return table.Corruptf("level: shared layer %d is a list on one side only", i)
		}
	}
	wide := Widest(src.Layers)
	mapping, err := Mapping(src.Layers, wide)
	if err != nil {
		return err
	}
	s, err := c.advance(n)
	if err != nil {
		return err
	}
	// Levels of the shared layers follow those of the layers below.
	theirRep, theirDef := MaxRep(src.Layers[:theirs]), MaxDef(wide[:theirs])
	ourRep, ourDef := MaxRep(b.wide[:ours]), MaxDef(b.wide[:ours])
	null := MaxDef(b.wide[:ours-1]) + 1
	maxVisible, hasRep := MaxVisibleDef(b.wide), MaxRep(b.wide) > 0
	b.fillDef()
	slots := 0
	for i := s.entry; i < s.entryEnd; i++ {
		rep, def := theirRep, uint16(0)
		if src.Rep != nil {
			rep = src.Rep[i]
		}
		if src.Def != nil {
			if int(src.Def[i]) >= len(mapping) {
				return table.Corruptf("level: definition level %d, the largest is %d", src.Def[i], len(mapping)-1)
			}
			def = mapping[src.Def[i]]
		}
		if rep < theirRep {
			continue // one more element of a list below the struct
		}
		d := null
		if def > theirDef {
			d = def - theirDef + ourDef
		}
		if hasRep {
			b.rep = append(b.rep, rep-theirRep+ourRep)
		}
		b.def = append(b.def, d)
		b.used[d] = true
		b.entries++
		if d <= maxVisible {
			slots++
		}
	}
	b.rows += s.rows
	return b.appendNullSlots(slots)
}
