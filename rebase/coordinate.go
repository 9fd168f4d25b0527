package rebase

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/rehome-db/rehome/table"
)

// kind is the sort of thing that a coordinate names.
type kind uint8

// The kinds of coordinate, grouped by the parts that identify one.
const (
	// lineage: the table's contents as a whole descend from those that were read.
	lineage kind = iota
	// contents: the whole of the rows and columns, for changes that set it.
	contents
	// fragmentSet: which fragments there are, beyond those that a change names.
	fragmentSet
	// columnSet: which columns there are.
	columnSet
	// insertedRows: which rows were added without a claim about their keys.
	insertedRows
	// uniqueKeys: which rows were added as the first to have their key.
	uniqueKeys
	// fragmentCounter: the ids that were given out.
	fragmentCounter
	// memWAL: the table beside its write-ahead log.
	memWAL
	// memWALProgress: how far the log was taken into the table.
	memWALProgress

	// fragmentExistence (by fragment): it is there.
	fragmentExistence
	// rowAddresses (by fragment): its rows lie where their addresses say.
	rowAddresses
	// fragmentDeletions (by fragment): which of its rows are deleted.
	fragmentDeletions
	// rowVersions (by fragment): the versions that created and changed its rows.
	rowVersions
	// fieldData (by fragment and field): the values of one column.
	fieldData
	// indexCoverage (by fragment and field): which indexes on a column claim it.
	indexCoverage

	// fieldDefinition (by field): a column's name and type.
	fieldDefinition

	// indexName (by key): the segments that make up an index.
	indexName
	// indexSegment (by key): one of them.
	indexSegment
	// setting (by map and key): an entry of the configuration or of metadata.
	setting
	// baseID, baseName and basePath (by key): a root that files lie under.
	baseID
	baseName
	basePath
)

// traits are what the rule and the messages need to know about a kind.
type traits struct {
	name string
	// What a coordinate of the kind is told apart by.
	byFragment, byField, byKey bool
	// terminal: a change that conflicts here cannot succeed when it is done again. What
	// it named no longer exists, or both sides set a value and neither computed it.
	terminal bool
	// shared: two writers may write the same part (both delete one row), so the rows
	// have to be compared before they are added up.
	shared bool
	// ended: how messages say that part was written, if not by "added to".
	ended string
}

var kinds = [...]traits{
	lineage:           {name: "the table's lineage", terminal: true, ended: "ended"},
	contents:          {name: "the table's contents"},
	fragmentSet:       {name: "the set of fragments"},
	columnSet:         {name: "the set of columns", terminal: true},
	insertedRows:      {name: "the rows inserted"},
	fragmentCounter:   {name: "the fragment id counter"},
	uniqueKeys:        {name: "the unique keys inserted"},
	memWAL:            {name: "the table beside its write-ahead log", terminal: true},
	memWALProgress:    {name: "the progress of the write-ahead log", terminal: true},
	fragmentExistence: {name: "the existence", byFragment: true, shared: true, ended: "ended"},
	rowAddresses:      {name: "the row addresses", byFragment: true},
	fragmentDeletions: {name: "the deletion vector", byFragment: true, shared: true},
	rowVersions:       {name: "the row versions", byFragment: true},
	fieldData:         {name: "the data", byFragment: true, byField: true},
	indexCoverage:     {name: "the index coverage", byFragment: true, byField: true},
	fieldDefinition:   {name: "the definition", byField: true},
	indexName:         {name: "the index", byKey: true},
	indexSegment:      {name: "the index segment", byKey: true},
	setting:           {name: "the setting", byKey: true, terminal: true},
	baseID:            {name: "the base", byKey: true, terminal: true},
	baseName:          {name: "the base named", byKey: true, terminal: true},
	basePath:          {name: "the base at", byKey: true, terminal: true},
}

// scope widens a coordinate to a region.
type scope uint8

// What a region leaves open. everyFragment goes with everyField where the kind has
// both.
const (
	everyFragment scope = 1 << iota
	everyField
	everyKey
)

// coordinate names something that a change can write or depend on, or a region of
// them. Only the parts that its kind is told apart by are set, and those that
// Every leaves open are not.
type coordinate struct {
	Kind     kind
	Every    scope
	Fragment table.FragmentID
	Field    int32
	// Map is the map that a setting is in.
	Map string
	Key string
}

// wider yields the regions that the coordinate lies in, itself not included.
func (c coordinate) wider(yield func(coordinate) bool) {
	k := kinds[c.Kind]
	if k.byKey && c.Every&everyKey == 0 {
		c.Every |= everyKey
		c.Key = ""
		yield(c)
		return
	}
	if k.byField && c.Every&everyField == 0 {
		c.Every |= everyField
		c.Field = 0
		if !yield(c) {
			return
		}
	}
	if k.byFragment && c.Every&everyFragment == 0 {
		c.Every |= everyFragment
		c.Fragment = 0
		yield(c)
	}
}

// String is the coordinate as messages name it.
func (c coordinate) String() string {
	k := kinds[c.Kind]
	s := k.name
	switch {
	case k.byKey && c.Every&everyKey != 0:
		s = "every" + strings.TrimPrefix(s, "the")
	case k.byKey:
		s += fmt.Sprintf(" %q", c.Key)
	case k.byField && c.Every&everyField != 0:
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
		if c.Every&everyFragment != 0 {
			return s + of + " every fragment"
		}
		s += fmt.Sprintf("%s fragment %d", of, c.Fragment)
	}
	return s
}

// compare orders coordinates, so that of several conflicts the same one is reported.
func (c coordinate) compare(d coordinate) int {
	return cmp.Or(cmp.Compare(c.Kind, d.Kind), cmp.Compare(c.Every, d.Every), cmp.Compare(c.Fragment, d.Fragment),
		cmp.Compare(c.Field, d.Field), cmp.Compare(c.Map, d.Map), cmp.Compare(c.Key, d.Key))
}
