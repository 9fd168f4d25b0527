package rebase

import (
	"fmt"

	"github.com/rehome-db/rehome/table"
)

// Shape is the columns of a schema, nested ones after the one that they are part of,
// as far as data files care. Files hold columns by field id, so a name matters only
// where values were given for it.
type Shape []ShapeField

// ShapeField is one column of a [Shape].
type ShapeField struct {
	ID int32 `json:"id"`
	// Parent is the id of the column that it is part of, -1 for none.
	Parent int32  `json:"parent"`
	Name   string `json:"name,omitempty"`
	// Type of a column with parts is what it is (a struct, a list): the names of the
	// parts, which an Arrow type has in it, may change.
	Type     string `json:"type"`
	Nullable bool   `json:"nullable"`
}

// ShapeOf returns the shape of a schema.
func ShapeOf(s table.Schema) Shape { return shapeOf(nil, -1, s.Fields) }

func shapeOf(out Shape, parent int32, fields []table.Field) Shape {
	for _, f := range fields {
		x := ShapeField{ID: f.ID, Parent: parent, Name: f.Name, Nullable: f.Nullable}
		if f.Type != nil {
			x.Type = f.Type.String()
			if len(f.Children) > 0 {
				x.Type = f.Type.Name()
			}
		}
		out = shapeOf(append(out, x), f.ID, f.Children)
	}
	return out
}

// misfit says in words why files that were written for the columns of was cannot be
// read as those of now; empty if they can. Columns may have been dropped, renamed and
// moved, be nullable now, and others without data may have come.
//
// fresh says that the files hold values that somebody gave for columns by name. If
// the name is that of another column by now, which is how formats change a type, these
// values would be found no more. Rows that were only copied lose what everybody's lose.
func (was Shape) misfit(now Shape, fresh bool) string {
	type named struct {
		parent int32
		name   string
	}
	then, names := map[int32]ShapeField{}, map[named]bool{}
	for _, f := range was {
		then[f.ID], names[named{f.Parent, f.Name}] = f, true
	}
	for _, f := range now {
		w, ok := then[f.ID]
		_, within := then[f.Parent]
		switch {
		case ok && (w.Type != f.Type || w.Nullable && !f.Nullable):
			return fmt.Sprintf("column %q, field %d, was %s and is %s", f.Name, f.ID, w, f)
		case ok:
		case fresh && names[named{f.Parent, f.Name}]:
			return fmt.Sprintf("column %q is another one than when the rows were written", f.Name)
		case !f.Nullable && (within || f.Parent < 0):
			return fmt.Sprintf("column %q is new and has no nulls, and the rows have no value for it", f.Name)
		}
	}
	return ""
}

// String is the type, and whether there are nulls.
func (f ShapeField) String() string {
	if f.Nullable {
		return f.Type
	}
	return f.Type + " not null"
}
