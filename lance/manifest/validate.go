package manifest

import (
	"math"
	"slices"

	"github.com/rehome-db/rehome/internal/roaringbytes"
	tablepb "github.com/rehome-db/rehome/lance/internal/pb/table"
	"github.com/rehome-db/rehome/lance/store"
	"github.com/rehome-db/rehome/table"
)

// tombstone is the field id of a column that a newer file replaced.
const tombstone = -2

// maxPhysicalRows is what a fragment can hold: offsets have 32 bits.
const maxPhysicalRows = 1 << 32

// validate checks what every later step relies on.
func (c *Contents) validate() error {
	m := c.Manifest
	bases := make(map[uint32]bool, len(m.GetBasePaths()))
	for _, b := range m.GetBasePaths() {
		if bases[b.GetId()] {
			return table.Corruptf("manifest: two base paths have the id %d", b.GetId())
		}
		bases[b.GetId()] = true
	}
	seen := make(map[uint64]bool, len(m.GetFragments()))
	for _, f := range m.GetFragments() {
		id := f.GetId()
		if id > uint64(table.MaxFragmentID) {
			return table.Corruptf("manifest: fragment id %d has more than 32 bits", id)
		}
		if seen[id] {
			return table.Corruptf("manifest: two fragments have the id %d", id)
		}
		seen[id] = true
		if err := validateFragment(f, bases); err != nil {
			return err
		}
	}
	uuids := map[string]bool{}
	for _, ix := range c.Indexes.GetIndices() {
		id := string(ix.GetUuid().GetUuid())
		if len(id) != 16 {
			return table.Corruptf("manifest: index %q has an id of %d bytes", ix.GetName(), len(id))
		}
		if uuids[id] {
			return table.Corruptf("manifest: two index segments have the id %x, one of %q", id, ix.GetName())
		}
		uuids[id] = true
		if len(ix.GetFragmentBitmap()) == 0 {
			continue
		}
		if _, err := checkCoverage(ix.GetFragmentBitmap()); err != nil {
			return table.Corruptf("manifest: index %q: %w", ix.GetName(), err)
		}
	}
	return nil
}

func validateFragment(f *tablepb.DataFragment, bases map[uint32]bool) error {
	id := f.GetId()
	if f.GetPhysicalRows() > maxPhysicalRows {
		return table.Corruptf("manifest: fragment %d has %d rows, more than offsets can name", id, f.GetPhysicalRows())
	}
	for _, d := range f.GetFiles() {
		if err := store.CheckName(d.GetPath()); err != nil {
			return table.Corruptf("manifest: fragment %d: data file: %w", id, err)
		}
		if n, k := len(d.GetFields()), len(d.GetColumnIndices()); k != n && (k != 0 || d.GetFileMajorVersion() >= 2) {
			return table.Corruptf("manifest: fragment %d: file %s lists %d fields and %d columns", id, d.GetPath(), n, k)
		}
		for _, field := range d.GetFields() {
			if field < 0 && field != tombstone {
				return table.Corruptf("manifest: fragment %d: file %s lists field %d", id, d.GetPath(), field)
			}
		}
		if d.GetFileMajorVersion() > math.MaxUint16 || d.GetFileMinorVersion() > math.MaxUint16 {
			return table.Corruptf("manifest: fragment %d: file %s has version %d.%d", id, d.GetPath(), d.GetFileMajorVersion(), d.GetFileMinorVersion())
		}
		if d.BaseId != nil && !bases[d.GetBaseId()] {
			return table.Corruptf("manifest: fragment %d: file %s lies under base %d, which is not listed", id, d.GetPath(), d.GetBaseId())
		}
	}
	if del := f.GetDeletionFile(); del != nil {
		switch del.GetFileType() {
		case tablepb.DeletionFile_ARROW_ARRAY, tablepb.DeletionFile_BITMAP:
		default:
			return table.Unsupportedf("manifest: fragment %d: deletion file of type %d", id, del.GetFileType())
		}
		if del.GetNumDeletedRows() > f.GetPhysicalRows() {
			return table.Corruptf("manifest: fragment %d has %d rows, and %d deleted ones", id, f.GetPhysicalRows(), del.GetNumDeletedRows())
		}
		if del.BaseId != nil && !bases[del.GetBaseId()] {
			return table.Corruptf("manifest: fragment %d: the deletion file lies under base %d, which is not listed", id, del.GetBaseId())
		}
	}
	return nil
}

// maxCoverage is more fragments than a table can usefully have, and few enough
// that a hostile bitmap, which says "all of them" in a few bytes, cannot exhaust
// memory.
const maxCoverage = 1 << 24

// Coverage decodes the fragments that an index claims, ascending. No bytes mean
// unknown: nil. An empty bitmap is an empty list, which is not nil.
func Coverage(b []byte) ([]table.FragmentID, error) {
	if len(b) == 0 {
		return nil, nil
	}
	shape, err := checkCoverage(b)
	if err != nil {
		return nil, err
	}
	out := make([]table.FragmentID, 0, shape.Cardinality)
	for start, end := range roaringbytes.Ranges(b) {
		for id := uint64(start); id < end; id++ {
			out = append(out, table.FragmentID(id))
		}
	}
	return out, nil
}

// checkCoverage checks a portable 32-bit Roaring bitmap of fragment ids.
func checkCoverage(b []byte) (roaringbytes.Shape, error) {
	shape, err := roaringbytes.Check(b)
	switch {
	case err != nil:
		return shape, table.Corruptf("fragment bitmap: %w", err)
	case shape.Size != len(b):
		return shape, table.Corruptf("fragment bitmap: %d bytes follow it", len(b)-shape.Size)
	case shape.Cardinality > maxCoverage:
		return shape, table.Corruptf("fragment bitmap: it lists %d fragments", shape.Cardinality)
	case table.FragmentID(shape.Max) > table.MaxFragmentID:
		return shape, table.Corruptf("fragment bitmap: %d is no fragment id", shape.Max)
	}
	return shape, nil
}

// CoverageBytes encodes coverage. The result is never empty: no bytes would say
// "unknown", and make the next engine that commits open the index to find out.
func CoverageBytes(ids []table.FragmentID) []byte {
	ids = slices.Compact(slices.Sorted(slices.Values(ids)))
	return roaringbytes.Append(nil, func(yield func(uint32, uint64) bool) {
		for _, id := range ids {
			if !yield(uint32(id), uint64(id)+1) {
				return
			}
		}
	}, roaringbytes.WithoutRuns)
}
