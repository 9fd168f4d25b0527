package rebase

import "github.com/rehome-db/rehome/table"

// mode is what a change does with a coordinate. A stronger mode includes a weaker.
type mode uint8

const (
	// requires: the change is right only as long as nobody writes it.
	requires mode = iota
	// writesPart: the change adds to it, or sets it whatever it was, so that two
	// such changes are right in either order.
	writesPart
	// writes: the change replaces what it read.
	writes
)

// String names the mode.
func (m mode) String() string {
	switch m {
	case requires:
		return "requires"
	case writesPart:
		return "writes part"
	default:
		return "writes"
	}
}

// claim is one entry of a footprint.
type claim struct {
	Coordinate coordinate
	Mode       mode
	// ByRow says that the claim is about rows that the change knows one by one: it
	// names them, or tells for each where it moved. Where two changes meet in such
	// claims, the rows can be looked at before either is thrown away.
	ByRow bool
}

// footprint is everything that a change writes and depends on. It is computed from
// the change when it is needed, never stored; it is immutable and safe for
// concurrent use.
type footprint struct {
	operation string
	claims    map[coordinate]claim
	// unknown: nobody can say what the change did.
	unknown bool
}

// Operation is the kind of operation that the footprint is of.
func (f *footprint) Operation() string { return f.operation }

// Claim returns what the footprint holds for a coordinate, false if nothing.
func (f *footprint) Claim(c coordinate) (claim, bool) {
	got, ok := f.claims[c]
	return got, ok
}

// Len is the number of claims: it grows with the fragments and columns that the
// change names, never with rows.
func (f *footprint) Len() int { return len(f.claims) }

// claim adds a claim; of two on one coordinate the stronger mode stands, and rows
// are of help only if both know them.
func (f *footprint) claim(m mode, byRow bool, c coordinate) {
	claim := claim{Coordinate: c, Mode: m, ByRow: byRow}
	if was, ok := f.claims[c]; ok {
		claim.Mode = max(was.Mode, m)
		claim.ByRow = was.ByRow && byRow
	}
	f.claims[c] = claim
}

func (f *footprint) requires(c coordinate)   { f.claim(requires, false, c) }
func (f *footprint) writesPart(c coordinate) { f.claim(writesPart, false, c) }
func (f *footprint) writes(c coordinate)     { f.claim(writes, false, c) }

// The shapes of coordinate.

func of(k kind) coordinate { return coordinate{Kind: k} }

func ofFragment(k kind, id table.FragmentID) coordinate {
	return coordinate{Kind: k, Fragment: id}
}

func ofField(k kind, id table.FragmentID, field int32) coordinate {
	return coordinate{Kind: k, Fragment: id, Field: field}
}

func everyFieldOf(k kind, id table.FragmentID) coordinate {
	return coordinate{Kind: k, Every: everyField, Fragment: id}
}

// everywhere is the region of all coordinates of a kind.
func everywhere(k kind) coordinate {
	c := coordinate{Kind: k}
	if kinds[k].byFragment {
		c.Every |= everyFragment
	}
	if kinds[k].byField {
		c.Every |= everyField
	}
	if kinds[k].byKey {
		c.Every |= everyKey
	}
	return c
}

func keyed(k kind, key string) coordinate { return coordinate{Kind: k, Key: key} }
