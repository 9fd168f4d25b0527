package rebase

import "github.com/rehome-db/rehome/table"

// Mode is what a change does with a coordinate. A stronger mode includes a weaker.
type Mode uint8

const (
	// Requires: the change is right only as long as nobody writes it.
	Requires Mode = iota
	// WritesPart: the change adds to it, or sets it whatever it was, so that two
	// such changes are right in either order.
	WritesPart
	// Writes: the change replaces what it read.
	Writes
)

// String names the mode.
func (m Mode) String() string {
	switch m {
	case Requires:
		return "requires"
	case WritesPart:
		return "writes part"
	default:
		return "writes"
	}
}

// Claim is one entry of a footprint.
type Claim struct {
	Coordinate Coordinate
	Mode       Mode
	// ByRow says that the claim is about rows that the change knows one by one: it
	// names them, or tells for each where it moved. Where two changes meet in such
	// claims, the rows can be looked at before either is thrown away.
	ByRow bool
}

// Footprint is everything that a change writes and depends on. It is computed from
// the change when it is needed, never stored; it is immutable and safe for
// concurrent use.
type Footprint struct {
	operation string
	claims    map[Coordinate]Claim
	// unknown: nobody can say what the change did.
	unknown bool
}

// Operation is the kind of operation that the footprint is of.
func (f *Footprint) Operation() string { return f.operation }

// Claim returns what the footprint holds for a coordinate, false if nothing.
func (f *Footprint) Claim(c Coordinate) (Claim, bool) {
	got, ok := f.claims[c]
	return got, ok
}

// Len is the number of claims: it grows with the fragments and columns that the
// change names, never with rows.
func (f *Footprint) Len() int { return len(f.claims) }

// claim adds a claim; of two on one coordinate the stronger mode stands, and rows
// are of help only if both know them.
func (f *Footprint) claim(m Mode, byRow bool, c Coordinate) {
	claim := Claim{Coordinate: c, Mode: m, ByRow: byRow}
	if was, ok := f.claims[c]; ok {
		claim.Mode = max(was.Mode, m)
		claim.ByRow = was.ByRow && byRow
	}
	f.claims[c] = claim
}

func (f *Footprint) requires(c Coordinate)   { f.claim(Requires, false, c) }
func (f *Footprint) writesPart(c Coordinate) { f.claim(WritesPart, false, c) }
func (f *Footprint) writes(c Coordinate)     { f.claim(Writes, false, c) }

// The shapes of coordinate.

func of(k Kind) Coordinate { return Coordinate{Kind: k} }

func ofFragment(k Kind, id table.FragmentID) Coordinate {
	return Coordinate{Kind: k, Fragment: id}
}

func ofField(k Kind, id table.FragmentID, field int32) Coordinate {
	return Coordinate{Kind: k, Fragment: id, Field: field}
}

func everyField(k Kind, id table.FragmentID) Coordinate {
	return Coordinate{Kind: k, Every: EveryField, Fragment: id}
}

// everywhere is the region of all coordinates of a kind.
func everywhere(k Kind) Coordinate {
	c := Coordinate{Kind: k}
	if kinds[k].byFragment {
		c.Every |= EveryFragment
	}
	if kinds[k].byField {
		c.Every |= EveryField
	}
	if kinds[k].byKey {
		c.Every |= EveryKey
	}
	return c
}

func keyed(k Kind, key string) Coordinate { return Coordinate{Kind: k, Key: key} }
