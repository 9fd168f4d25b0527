package level

import (
	"fmt"
	"strings"
)

// Part is one field of a packed struct.
type Part struct {
	// Bits is the width of the field, or of the length in front of it, a multiple
	// of 8.
	Bits int
	// Items is how many items the field is a fixed-size list of, 0 for no list.
	Items int
	// Variable says that the field is bytes of any number behind their length.
	Variable bool
}

// Parts is a list of parts in a form that can be compared, as a [Type] is.
type Parts string

// NewParts makes a Parts of a list.
func NewParts(parts []Part) Parts {
	var s []string
	for _, p := range parts {
		kind := "f"
		if p.Variable {
			kind = "v"
		}
		s = append(s, fmt.Sprintf("%s %d %d", kind, p.Bits, p.Items))
	}
	return Parts(strings.Join(s, ","))
}

// List returns the parts, none for no struct.
func (p Parts) List() []Part {
	if p == "" {
		return nil
	}
	var out []Part
	for _, s := range strings.Split(string(p), ",") {
		var kind string
		var part Part
		_, _ = fmt.Sscanf(s, "%s %d %d", &kind, &part.Bits, &part.Items) // NewParts wrote it
		part.Variable = kind == "v"
		out = append(out, part)
	}
	return out
}
