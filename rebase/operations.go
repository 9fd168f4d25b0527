package rebase

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/rehome-db/rehome/table"
)

// FootprintOf computes the footprint of an operation. An operation that it does
// not know has one that conflicts with everything.
//
// Operations whose format hands over whole fragments, as they are to be, rather
// than what changed in them, claim to write those fragments' deletion vectors:
// committed as they stand they would bring back an older one.
func FootprintOf(op table.Operation) *Footprint {
	f := &Footprint{claims: map[Coordinate]Claim{}}
	if op == nil {
		f.operation, f.unknown = "no operation", true
		return f
	}
	f.operation = op.Kind()
	switch op := op.(type) {
	case table.Append:
		f.descends()
		f.besideMemWAL()
		f.adds(op.Fragments, nil)
	case table.Delete:
		f.descends()
		f.besideMemWAL()
		f.deletes(op.Updated, op.Removed)
	case table.Update:
		f.update(op)
	case table.Rewrite:
		f.descends()
		for _, g := range op.Groups {
			for _, s := range g.Old {
				f.moves(s.ID)
			}
		}
	case table.CreateIndex:
		f.createIndex(op)
	case table.ReserveFragments:
		f.descends()
		f.writesPart(of(FragmentCounter))
	case table.Merge:
		f.merge()
	case table.Project:
		f.descends()
		f.besideMemWAL()
		f.writes(everywhere(FieldDefinition))
		f.writesPart(of(ColumnSet))
	case table.Restore:
		// It depends on nothing that happened since it was asked for.
		f.besideMemWAL()
		f.writesPart(of(Lineage))
	case table.Overwrite:
		f.besideMemWAL()
		f.writesPart(of(Lineage))
		f.writes(of(Contents))
		f.settings("configuration", table.SettingsUpdate{Set: op.Config})
	case table.UpdateConfig:
		f.updateConfig(op)
	case table.DataReplacement:
		f.descends()
		f.besideMemWAL()
		for _, r := range op.Replaced {
			f.replaces(r.Fragment, r.Fields)
		}
	case table.DataOverlay:
		f.descends()
		f.besideMemWAL()
		f.requires(everywhere(FragmentExistence))
		f.requires(everywhere(RowAddresses))
		f.writesPart(everywhere(FieldData))
	case table.UpdateMemWALState:
		f.descends()
		f.writes(of(MemWAL))
		f.writes(of(MemWALProgress))
	case table.UpdateBases:
		for _, b := range op.Bases {
			if b.ID != 0 {
				f.writes(keyed(BaseID, strconv.FormatUint(uint64(b.ID), 10)))
			}
			if b.Name != "" {
				f.writes(keyed(BaseName, b.Name))
			}
			f.writes(keyed(BasePath, b.Path))
		}
	case table.Clone:
		// It makes another table and changes nothing in this one.
	default:
		f.unknown = true
	}
	return f
}

// descends: what the change was computed from must still be what the table
// descends from; an overwrite or a restore in between takes the ground away.
func (f *Footprint) descends() { f.requires(of(Lineage)) }

// besideMemWAL: the change is not one that a write-ahead log accounts for.
func (f *Footprint) besideMemWAL() { f.writesPart(of(MemWAL)) }

// adds: new fragments get new ids and stand in nobody's way, except that of a
// change that speaks for all fragments. If the rows are asserted to be the first to
// have their keys, nobody may have inserted any since: two sets of keys could be
// compared, but what formats keep of them is not read here. The other way round
// nothing is lost: the rows of an insert that comes later are simply added.
func (f *Footprint) adds(fragments []table.Fragment, unique []int32) {
	if len(fragments) > 0 {
		f.writesPart(of(FragmentSet))
	}
	switch {
	case len(unique) > 0:
		f.requires(of(InsertedRows))
		f.writes(of(UniqueKeys))
	case len(fragments) > 0:
		f.writesPart(of(InsertedRows))
	}
}

// deletes: some rows of the updated fragments, every row of the removed ones.
// Which rows was told by their values and is said by their addresses.
func (f *Footprint) deletes(updated []table.Fragment, removed []table.FragmentID) {
	touch := func(id table.FragmentID) {
		f.claim(Requires, true, ofFragment(FragmentExistence, id))
		f.claim(Requires, true, ofFragment(RowAddresses, id))
		f.claim(WritesPart, true, ofFragment(FragmentDeletions, id))
		f.requires(everyField(FieldData, id))
	}
	for _, u := range updated {
		touch(u.ID)
	}
	for _, id := range removed {
		touch(id)
		f.claim(WritesPart, true, ofFragment(FragmentExistence, id))
	}
}

// moves: a rewrite copied what it read and gives every row another address. It
// knows which rows it left behind and where each of the others went.
func (f *Footprint) moves(id table.FragmentID) {
	f.claim(Requires, true, ofFragment(FragmentExistence, id))
	f.claim(Requires, true, ofFragment(FragmentDeletions, id))
	f.claim(Writes, true, ofFragment(RowAddresses, id))
	f.requires(ofFragment(RowVersions, id))
	f.requires(everyField(FieldData, id))
	// An index on the old fragment stays right: what becomes of it is decided
	// index by index when the rewrite is committed.
	f.claim(Requires, true, everyField(IndexCoverage, id))
}

// replaces: columns of a fragment are written again, row for row.
func (f *Footprint) replaces(id table.FragmentID, fields []int32) {
	f.requires(ofFragment(FragmentExistence, id))
	f.requires(ofFragment(RowAddresses, id))
	if len(fields) == 0 { // it does not say which
		f.writes(everyField(FieldData, id))
		f.requires(everyField(IndexCoverage, id))
	}
	for _, x := range fields {
		f.writes(ofField(FieldData, id, x))
		f.requires(ofField(IndexCoverage, id, x))
	}
}

func (f *Footprint) update(op table.Update) {
	f.descends()
	f.adds(op.New, op.UniqueKeys)
	if !op.InPlace {
		f.deletes(op.Updated, op.Removed)
	} else {
		f.deletes(nil, op.Removed)
		for _, u := range op.Updated {
			f.requires(ofFragment(FragmentExistence, u.ID))
			f.requires(ofFragment(RowAddresses, u.ID))
			f.writes(ofFragment(FragmentDeletions, u.ID))
			f.writes(ofFragment(RowVersions, u.ID))
			if len(op.ModifiedFields) == 0 {
				f.writes(everyField(FieldData, u.ID))
			}
			for _, x := range op.ModifiedFields {
				f.writes(ofField(FieldData, u.ID, x))
			}
		}
	}
}

func (f *Footprint) createIndex(op table.CreateIndex) {
	f.descends()
	f.requires(of(MemWALProgress))
	for _, m := range op.New {
		f.writes(keyed(IndexName, m.Name))
		f.writes(keyed(IndexSegment, m.UUID.String()))
		if m.System {
			continue
		}
		if !m.CoverageKnown {
			f.requires(everywhere(RowAddresses))
			f.requires(everywhere(FieldData))
			f.claim(WritesPart, true, everywhere(IndexCoverage))
			continue
		}
		for _, id := range m.Coverage {
			f.requires(ofFragment(RowAddresses, id))
			for _, x := range m.Fields {
				f.requires(ofField(FieldData, id, x))
				f.claim(WritesPart, true, ofField(IndexCoverage, id, x))
			}
		}
	}
	for _, m := range op.Removed {
		f.writes(keyed(IndexSegment, m.UUID.String()))
	}
}

// merge: the fragment list is handed over whole, with the schema.
func (f *Footprint) merge() {
	f.descends()
	f.besideMemWAL()
	f.requires(of(FragmentSet))
	f.requires(of(ColumnSet))
	f.writes(everywhere(FieldDefinition))
	f.requires(everywhere(FragmentExistence))
	f.requires(everywhere(RowAddresses))
	f.writes(everywhere(FragmentDeletions))
	f.requires(everywhere(FieldData))
}

func (f *Footprint) updateConfig(op table.UpdateConfig) {
	f.settings("configuration", op.Config)
	f.settings("table metadata", op.TableMetadata)
	// Metadata of schema and fields belongs to the columns that were there, and two
	// updates of it do not mix, whatever the keys.
	whole := func(u table.SettingsUpdate, of string) {
		if !u.Empty() {
			f.descends()
			f.writes(Coordinate{Kind: Setting, Every: EveryKey, Map: of})
		}
	}
	whole(op.SchemaMetadata, "schema metadata")
	for id, u := range op.FieldMetadata {
		whole(u, fmt.Sprintf("metadata of field %d", id))
	}
}

// settings: to delete an entry twice is to delete it.
func (f *Footprint) settings(in string, u table.SettingsUpdate) {
	if u.Replace {
		f.writes(Coordinate{Kind: Setting, Every: EveryKey, Map: in})
	}
	for _, key := range u.Set {
		f.writes(Coordinate{Kind: Setting, Map: in, Key: key})
	}
	for _, key := range slices.Compact(slices.Sorted(slices.Values(u.Unset))) {
		f.writesPart(Coordinate{Kind: Setting, Map: in, Key: key})
	}
}
