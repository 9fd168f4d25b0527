package rebase

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/rehome-db/rehome/table"
)

// footprintOf computes the footprint of an operation. An operation that it does
// not know has one that conflicts with everything.
//
// Operations whose format hands over whole fragments, as they are to be, rather
// than what changed in them, claim to write those fragments' deletion vectors:
// committed as they stand they would bring back an older one.
func footprintOf(op table.Operation) *footprint {
	f := &footprint{claims: map[coordinate]claim{}}
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
		f.writesPart(of(fragmentCounter))
	case table.Merge:
		f.merge()
	case table.Project:
		f.descends()
		f.besideMemWAL()
		f.writes(everywhere(fieldDefinition))
		f.writesPart(of(columnSet))
	case table.Restore:
		// It depends on nothing that happened since it was asked for.
		f.besideMemWAL()
		f.writesPart(of(lineage))
	case table.Overwrite:
		f.besideMemWAL()
		f.writesPart(of(lineage))
		f.writes(of(contents))
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
		f.requires(everywhere(fragmentExistence))
		f.requires(everywhere(rowAddresses))
		f.writesPart(everywhere(fieldData))
	case table.UpdateMemWALState:
		f.descends()
		f.writes(of(memWAL))
		f.writes(of(memWALProgress))
	case table.UpdateBases:
		f.addsBases(op.Bases)
	case table.Clone:
		// It makes another table and changes nothing in this one.
	default:
		f.unknown = true
	}
	return f
}

// descends: what the change was computed from must still be what the table
// descends from; an overwrite or a restore in between takes the ground away.
func (f *footprint) descends() { f.requires(of(lineage)) }

// besideMemWAL: the change is not one that a write-ahead log accounts for.
func (f *footprint) besideMemWAL() { f.writesPart(of(memWAL)) }

// adds: new fragments get new ids and stand in nobody's way, except that of a
// change that speaks for all fragments. If the rows are asserted to be the first to
// have their keys, nobody may have inserted any since: two sets of keys could be
// compared, but what formats keep of them is not read here. The other way round
// nothing is lost: the rows of an insert that comes later are simply added.
func (f *footprint) adds(fragments []table.Fragment, unique []int32) {
	if len(fragments) > 0 {
		f.writesPart(of(fragmentSet))
	}
	switch {
	case len(unique) > 0:
		f.requires(of(insertedRows))
		f.writes(of(uniqueKeys))
	case len(fragments) > 0:
		f.writesPart(of(insertedRows))
	}
}

// addsBases: a base is known by its number, its name and its path.
func (f *footprint) addsBases(bases []table.Base) {
	for _, b := range bases {
		if b.ID != 0 {
			f.writes(keyed(baseID, strconv.FormatUint(uint64(b.ID), 10)))
		}
		if b.Name != "" {
			f.writes(keyed(baseName, b.Name))
		}
		f.writes(keyed(basePath, b.Path))
	}
}

// deletes: some rows of the updated fragments, every row of the removed ones.
// Which rows was told by their values and is said by their addresses.
func (f *footprint) deletes(updated []table.Fragment, removed []table.FragmentID) {
	touch := func(id table.FragmentID) {
		f.claim(requires, true, ofFragment(fragmentExistence, id))
		f.claim(requires, true, ofFragment(rowAddresses, id))
		f.claim(writesPart, true, ofFragment(fragmentDeletions, id))
		f.requires(everyFieldOf(fieldData, id))
	}
	for _, u := range updated {
		touch(u.ID)
	}
	for _, id := range removed {
		touch(id)
		f.claim(writesPart, true, ofFragment(fragmentExistence, id))
	}
}

// moves: a rewrite copied what it read and gives every row another address. It
// knows which rows it left behind and where each of the others went.
func (f *footprint) moves(id table.FragmentID) {
	f.claim(requires, true, ofFragment(fragmentExistence, id))
	f.claim(requires, true, ofFragment(fragmentDeletions, id))
	f.claim(writes, true, ofFragment(rowAddresses, id))
	f.requires(ofFragment(rowVersions, id))
	f.requires(everyFieldOf(fieldData, id))
	// An index on the old fragment stays right: what becomes of it is decided
	// index by index when the rewrite is committed.
	f.claim(requires, true, everyFieldOf(indexCoverage, id))
}

// replaces: columns of a fragment are written again, row for row.
func (f *footprint) replaces(id table.FragmentID, fields []int32) {
	f.requires(ofFragment(fragmentExistence, id))
	f.requires(ofFragment(rowAddresses, id))
	if len(fields) == 0 { // it does not say which
		f.writes(everyFieldOf(fieldData, id))
		f.requires(everyFieldOf(indexCoverage, id))
	}
	for _, x := range fields {
		f.writes(ofField(fieldData, id, x))
		f.requires(ofField(indexCoverage, id, x))
	}
}

func (f *footprint) update(op table.Update) {
	f.descends()
	f.adds(op.New, op.UniqueKeys)
	if !op.InPlace {
		f.deletes(op.Updated, op.Removed)
	} else {
		f.deletes(nil, op.Removed)
		for _, u := range op.Updated {
			f.requires(ofFragment(fragmentExistence, u.ID))
			f.requires(ofFragment(rowAddresses, u.ID))
			f.writes(ofFragment(fragmentDeletions, u.ID))
			f.writes(ofFragment(rowVersions, u.ID))
			if len(op.ModifiedFields) == 0 {
				f.writes(everyFieldOf(fieldData, u.ID))
			}
			for _, x := range op.ModifiedFields {
				f.writes(ofField(fieldData, u.ID, x))
			}
		}
	}
}

func (f *footprint) createIndex(op table.CreateIndex) {
	f.descends()
	f.requires(of(memWALProgress))
	for _, m := range op.New {
		f.writes(keyed(indexName, m.Name))
		f.writes(keyed(indexSegment, m.UUID.String()))
		if m.System {
			continue
		}
		if !m.CoverageKnown {
			f.requires(everywhere(rowAddresses))
			f.requires(everywhere(fieldData))
			f.claim(writesPart, true, everywhere(indexCoverage))
			continue
		}
		for _, id := range m.Coverage {
			f.requires(ofFragment(rowAddresses, id))
			for _, x := range m.Fields {
				f.requires(ofField(fieldData, id, x))
				f.claim(writesPart, true, ofField(indexCoverage, id, x))
			}
		}
	}
	for _, m := range op.Removed {
		f.writes(keyed(indexSegment, m.UUID.String()))
	}
}

// merge: the fragment list is handed over whole, with the schema.
func (f *footprint) merge() {
	f.descends()
	f.besideMemWAL()
	f.requires(of(fragmentSet))
	f.requires(of(columnSet))
	f.writes(everywhere(fieldDefinition))
	f.requires(everywhere(fragmentExistence))
	f.requires(everywhere(rowAddresses))
	f.writes(everywhere(fragmentDeletions))
	f.requires(everywhere(fieldData))
}

func (f *footprint) updateConfig(op table.UpdateConfig) {
	f.settings("configuration", op.Config)
	f.settings("table metadata", op.TableMetadata)
	// Metadata of schema and fields belongs to the columns that were there, and two
	// updates of it do not mix, whatever the keys.
	whole := func(u table.SettingsUpdate, of string) {
		if !u.Empty() {
			f.descends()
			f.writes(coordinate{Kind: setting, Every: everyKey, Map: of})
		}
	}
	whole(op.SchemaMetadata, "schema metadata")
	for id, u := range op.FieldMetadata {
		whole(u, fmt.Sprintf("metadata of field %d", id))
	}
}

// settings: to delete an entry twice is to delete it.
func (f *footprint) settings(in string, u table.SettingsUpdate) {
	if u.Replace {
		f.writes(coordinate{Kind: setting, Every: everyKey, Map: in})
	}
	for _, key := range u.Set {
		f.writes(coordinate{Kind: setting, Map: in, Key: key})
	}
	for _, key := range slices.Compact(slices.Sorted(slices.Values(u.Unset))) {
		f.writesPart(coordinate{Kind: setting, Map: in, Key: key})
	}
}
