package rebase

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/rehome-db/rehome/table"
)

// Kind is what sort of thing a coordinate names.
type Kind uint8

// The kinds of coordinate, by what they are told apart by.
const (
	// Lineage: the table's contents as a whole descend from those that were read.
	Lineage Kind = iota
	// Contents: the whole of the rows and columns, for changes that set it.
	Contents
	// FragmentSet: which fragments there are, beyond those that a change names.
	FragmentSet
	// ColumnSet: which columns there are.
	ColumnSet
	// InsertedRows: which rows were added without a word about their keys.
	InsertedRows
	// UniqueKeys: which rows were added as the first to have their key.
	UniqueKeys
	// FragmentCounter: the ids that were given out.
	FragmentCounter
	// MemWAL: the table beside its write-ahead log.
	MemWAL
	// MemWALProgress: how far the log was taken into the table.
	MemWALProgress

	// FragmentExistence (by fragment): it is there.
	FragmentExistence
	// RowAddresses (by fragment): its rows lie where their addresses say.
	RowAddresses
	// FragmentDeletions (by fragment): which of its rows are deleted.
	FragmentDeletions
	// RowVersions (by fragment): the versions that created and changed its rows.
	RowVersions
	// FieldData (by fragment and field): the values of one column.
	FieldData
	// IndexCoverage (by fragment and field): which indexes on a column claim it.
	IndexCoverage

	// FieldDefinition (by field): a column's name and type.
	FieldDefinition

	// IndexName (by key): the segments that make up an index.
	IndexName
	// IndexSegment (by key): one of them.
	IndexSegment
	// Setting (by map and key): an entry of the configuration or of metadata.
	Setting
	// BaseID, BaseName and BasePath (by key): a root that files lie under.
	BaseID
	BaseName
	BasePath
)

// traits are what the rule and the messages have to know of a kind.
type traits struct {
	name string
	// What a coordinate of the kind is told apart by.
	byFragment, byField, byKey bool
	// terminal: when a change loses over it, doing the work again will not help,
	// because what it wanted was said about something that is no more, or because
	// both sides named a value and nothing was computed.
	terminal bool
	// shared: two parts that are written may be the same part (the same row dies
	// twice), so that it takes a look at the rows to add them up.
	shared bool
	// ended: how messages say that part was written, if not by "added to".
	ended string
}

var kinds = [...]traits{
	Lineage:           {name: "the table's lineage", terminal: true, ended: "ended"},
	Contents:          {name: "the table's contents"},
	FragmentSet:       {name: "the set of fragments"},
	ColumnSet:         {name: "the set of columns", terminal: true},
	InsertedRows:      {name: "the rows inserted"},
	FragmentCounter:   {name: "the fragment id counter"},
	UniqueKeys:        {name: "the unique keys inserted"},
	MemWAL:            {name: "the table beside its write-ahead log", terminal: true},
	MemWALProgress:    {name: "the progress of the write-ahead log", terminal: true},
	FragmentExistence: {name: "the existence", byFragment: true, shared: true, ended: "ended"},
	RowAddresses:      {name: "the row addresses", byFragment: true},
	FragmentDeletions: {name: "the deletion vector", byFragment: true, shared: true},
	RowVersions:       {name: "the row versions", byFragment: true},
	FieldData:         {name: "the data", byFragment: true, byField: true},
	IndexCoverage:     {name: "the index coverage", byFragment: true, byField: true},
	FieldDefinition:   {name: "the definition", byField: true},
	IndexName:         {name: "the index", byKey: true},
	IndexSegment:      {name: "the index segment", byKey: true},
	Setting:           {name: "the setting", byKey: true, terminal: true},
	BaseID:            {name: "the base", byKey: true, terminal: true},
	BaseName:          {name: "the base named", byKey: true, terminal: true},
	BasePath:          {name: "the base at", byKey: true, terminal: true},
}

// Scope widens a coordinate to a region.
type Scope uint8

// What a region leaves open. EveryFragment goes with EveryField where the kind has
// both.
const (
	EveryFragment Scope = 1 << iota
	EveryField
	EveryKey
)

// Coordinate names something that a change can write or depend on, or a region of
// them. Only the parts that its kind is told apart by are set, and those that
// Every leaves open are not.
type Coordinate struct {
	Kind     Kind
	Every    Scope
	Fragment table.FragmentID
	Field    int32
	// Map is the map that a Setting is in.
	Map string
	Key string
}

// wider yields the regions that the coordinate lies in, itself not included.
func (c Coordinate) wider(yield func(Coordinate) bool) {
	k := kinds[c.Kind]
	if k.byKey && c.Every&EveryKey == 0 {
		c.Every |= EveryKey
		c.Key = ""
		yield(c)
		return
	}
	if k.byField && c.Every&EveryField == 0 {
		c.Every |= EveryField
		c.Field = 0
		if !yield(c) {
			return
		}
	}
	if k.byFragment && c.Every&EveryFragment == 0 {
		c.Every |= EveryFragment
		c.Fragment = 0
		yield(c)
	}
}

// String is the coordinate as messages name it.
func (c Coordinate) String() string {
	k := kinds[c.Kind]
	s := k.name
	switch {
	case k.byKey && c.Every&EveryKey != 0:
		s = "every" + strings.TrimPrefix(s, "the")
	case k.byKey:
		s += fmt.Sprintf(" %q", c.Key)
	case k.byField && c.Every&EveryField != 0:
		s += " of every field"
	case k.byField:
		s += fmt.Sprintf(" of field %d", c.Field)
	}
	if c.Map != "" {
		s += " of the " + c.Map
	}
	if k.byFragment {
		of := " of"
		if k.byField {
			of = " in"
		}
		if c.Every&EveryFragment != 0 {
			return s + of + " every fragment"
		}
		s += fmt.Sprintf("%s fragment %d", of, c.Fragment)
	}
	return s
}

// compare orders coordinates, so that of several conflicts the same one is told.
func (c Coordinate) compare(d Coordinate) int {
	return cmp.Or(cmp.Compare(c.Kind, d.Kind), cmp.Compare(c.Every, d.Every), cmp.Compare(c.Fragment, d.Fragment),
		cmp.Compare(c.Field, d.Field), cmp.Compare(c.Map, d.Map), cmp.Compare(c.Key, d.Key))
}
