package rebase

import (
	"fmt"

	"github.com/rehome-db/rehome/table"
)

// Shape is the columns of a schema as far as data files depend on them, each followed
// by its nested columns. Files hold columns by field id, so a name matters only where
// the caller gave values for it.
type Shape []ShapeField

// ShapeField is one column of a [Shape].
type ShapeField struct {
	ID int32 `json:"id"`
	// Parent is the id of the column that it is part of, -1 for none.
	Parent int32  `json:"parent"`
	Name   string `json:"name,omitempty"`
	// Type of a nested column is only its kind (a struct, a list): the names of its
	// parts, which an Arrow type contains, may change.
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

// misfit says in words why files that were written for the columns of was do not fit the
// columns of now; empty if they do. Columns may have been dropped, renamed, moved or
// made nullable, and columns without data may have been added.
//
// fresh says that the files hold values that somebody gave for columns by name. If
// another column has the name by now, as after a change of type, nobody would find these
// values. Rows that were only copied lose no more than all other rows do.
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
