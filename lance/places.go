package lance

import (
	"github.com/rehome-db/rehome/lance/schema"
	"github.com/rehome-db/rehome/table"
)

// leafPlace is a column of a fragment's file; file is -1 if the fragment is older
// than the column, which is then null.
type leafPlace struct{ file, column int }

// placeLeaves finds the column of each leaf in the fragment's files, by field id.
func placeLeaves(f table.Fragment, leaves []schema.Leaf) ([]leafPlace, error) {
	where := make(map[int32]leafPlace, len(leaves))
	for i, d := range f.Files {
		for k, id := range d.Fields {
			// A negative id is of a column that a newer file replaced, a negative
			// column of a field that has none of its own.
			if id < 0 || k < len(d.Columns) && d.Columns[k] < 0 {
				continue
			}
			if at, twice := where[id]; twice {
				return nil, table.Corruptf("fragment %d: files %s and %s both hold field %d", f.ID, f.Files[at.file].Path, d.Path, id)
			}
			p := leafPlace{file: i}
			if k < len(d.Columns) {
				// Files of the first format record none; opening one refuses it.
				p.column = int(d.Columns[k])
			}
			where[id] = p
		}
	}
	out := make([]leafPlace, len(leaves))
	for i, leaf := range leaves {
		p, there := where[leaf.FieldID]
		if !there {
			p = leafPlace{file: -1}
		}
		out[i] = p
	}
	return out, nil
}
