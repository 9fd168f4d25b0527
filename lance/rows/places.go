package rows

import (
	"github.com/rehome-db/rehome/lance/datafile"
	"github.com/rehome-db/rehome/lance/objects"
	"github.com/rehome-db/rehome/lance/schema"
	"github.com/rehome-db/rehome/lance/version"
	"github.com/rehome-db/rehome/table"
)

// leafPlace is a column of a fragment's file; file is -1 if the fragment is older
// than the column, which is then null.
type leafPlace struct {
	file, Column int
	// lists are the columns of the lists around the leaf, outermost first, where
	// they have any.
	lists []int
}

// Open returns the column, of the file that it is in.
func (p leafPlace) Open(f *objects.DataFile) (*datafile.Column, error) {
	return f.LeafColumn(p.Column, p.lists)
}

// Columns is the columns of fields, by id, in one file.
type Columns map[int32]int

// ColumnsOf returns the columns of a file.
func ColumnsOf(d table.DataFile) (Columns, error) {
	out := make(Columns, len(d.Fields))
	for k, id := range d.Fields {
		// A negative id is of a column that a newer file replaced, a negative
		// column of a field that has none of its own.
		if id < 0 || k < len(d.Columns) && d.Columns[k] < 0 {
			continue
		}
		column := 0
		if k < len(d.Columns) {
			// Files of the first format record none; opening one refuses it.
			column = int(d.Columns[k])
		}
		if _, twice := out[id]; twice {
			return nil, table.Corruptf("it holds field %d twice", id)
		}
		out[id] = column
	}
	return out, nil
}

// Place returns where a leaf lies in a file with these columns, or false.
func (c Columns) Place(file int, leaf schema.Leaf, format string) (leafPlace, bool, error) {
	column, ok := c[leaf.FieldID]
	if !ok {
		return leafPlace{file: -1}, false, nil
	}
	p := leafPlace{file: file, Column: column}
	if format != version.Format20 {
		return p, true, nil
	}
	for _, id := range leaf.Lists {
		list, ok := c[id]
		if !ok {
			return p, false, table.Corruptf("the file holds column %q (field %d) but not the list around it (field %d)", leaf.Path, leaf.FieldID, id)
		}
		p.lists = append(p.lists, list)
	}
	return p, true, nil
}

// placeLeaves finds the column of each leaf in the fragment's files, by field id.
func placeLeaves(f table.Fragment, leaves []schema.Leaf) ([]leafPlace, error) {
	files := make([]Columns, len(f.Files))
	for i, d := range f.Files {
		var err error
		if files[i], err = ColumnsOf(d); err != nil {
			return nil, table.Corruptf("fragment %d: %s: %w", f.ID, d.Path, err)
		}
	}
	out := make([]leafPlace, len(leaves))
	for i, leaf := range leaves {
		out[i].file = -1
		for k, columns := range files {
			p, there, err := columns.Place(k, leaf, f.Files[k].Format)
			if err != nil {
				return nil, table.Corruptf("fragment %d: %s: %w", f.ID, f.Files[k].Path, err)
			}
			if !there {
				continue
			}
			if out[i].file >= 0 {
				return nil, table.Corruptf("fragment %d: files %s and %s both hold field %d", f.ID, f.Files[out[i].file].Path, f.Files[k].Path, leaf.FieldID)
			}
			out[i] = p
		}
	}
	return out, nil
}
