package version

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"google.golang.org/protobuf/proto"

	tablepb "github.com/rehome-db/rehome/lance/internal/pb/table"
	"github.com/rehome-db/rehome/lance/manifest"
	"github.com/rehome-db/rehome/lance/rowids"
	"github.com/rehome-db/rehome/table"
)

// Applied is a change worked into the contents of the version that it replaces.
type Applied struct {
	Contents *manifest.Contents
	// refers are the objects that the change brings in, to be looked for before
	// the version is published.
	Refers []table.Object
	// added are the fragments that the change brings in.
	added map[uint64]*tablepb.DataFragment
}

// Apply makes the next version's contents: those of base, and the change. It works
// on the format's own messages, so what package table does not know of a fragment
// or an index stays. rows is what the rows of new fragments are known by, nil in a
// table without stable row ids. It does no I/O and changes nothing that base holds.
func Apply(base *Version, c table.Change, rows *rowids.Assigned) (*Applied, error) {
	a := &Applied{
		Contents: &manifest.Contents{
			Manifest: proto.CloneOf(base.Contents.Manifest),
			Indexes:  proto.CloneOf(base.Contents.Indexes),
		},
		added: map[uint64]*tablepb.DataFragment{},
	}
	if err := a.fragments(base, c, rows); err != nil {
		return nil, err
	}
	if err := a.indexes(c); err != nil {
		return nil, err
	}
	return a, nil
}

func (a *Applied) fragments(base *Version, c table.Change, rows *rowids.Assigned) error {
	m := a.Contents.Manifest
	byID := make(map[table.FragmentID]*tablepb.DataFragment, len(m.GetFragments()))
	for _, f := range m.GetFragments() {
		byID[table.FragmentID(f.GetId())] = f
	}
	next := nextFragmentID(m)

	for _, id := range c.Remove {
		if _, ok := byID[id]; !ok {
			return fmt.Errorf("fragment %d is to be removed and not there: %w", id, table.ErrNotFound)
		}
		delete(byID, id)
	}
	for id, ref := range c.SetDeletion {
		f, ok := byID[id]
		if !ok {
			return fmt.Errorf("fragment %d is to get deletions and not there: %w", id, table.ErrNotFound)
		}
		d, err := a.deletion(base, id, f.GetPhysicalRows(), ref)
		if err != nil {
			return err
		}
		// A vector is complete: it cannot have fewer rows than the one before it.
		if was := f.GetDeletionFile().GetNumDeletedRows(); d.GetNumDeletedRows() < was {
			return fmt.Errorf("fragment %d has %d deleted rows and would have %d: deleted rows do not come back", id, was, d.GetNumDeletedRows())
		}
		f.DeletionFile = d
	}
	for _, f := range c.Add {
		if f.ID < next || f.ID > table.MaxFragmentID {
			return fmt.Errorf("fragment id %d is not free: the next free one is %d and the last %d", f.ID, next, table.MaxFragmentID)
		}
		message, err := a.newFragment(base, f)
		if err != nil {
			return err
		}
		if rows != nil {
			rows.Write(f.ID, message)
		}
		byID[f.ID], a.added[message.GetId()] = message, message
		next = f.ID + 1
	}
	if rows != nil {
		m.NextRowId = rows.NextFree()
	}
	if left := uint32(table.MaxFragmentID + 1 - next); c.Reserve > left {
		return fmt.Errorf("%d fragment ids are to be reserved, and %d are left", c.Reserve, left)
	}
	next += table.FragmentID(c.Reserve)

	m.Fragments = make([]*tablepb.DataFragment, 0, len(byID))
	for _, f := range byID {
		m.Fragments = append(m.Fragments, f)
	}
	slices.SortFunc(m.Fragments, func(f, g *tablepb.DataFragment) int { return cmp.Compare(f.GetId(), g.GetId()) })
	// The mark is raised to what is known to be used, also where the writer of
	// base let it fall behind.
	if next > 0 {
		m.MaxFragmentId = proto.Uint32(uint32(next - 1))
	}
	return nil
}

// newFragment checks a fragment to be added and returns its message.
func (a *Applied) newFragment(base *Version, f table.Fragment) (*tablepb.DataFragment, error) {
	m := a.Contents.Manifest
	switch {
	case f.PhysicalRows == 0:
		return nil, fmt.Errorf("fragment %d has no rows", f.ID)
	case f.PhysicalRows > math.MaxUint32+1:
		return nil, fmt.Errorf("fragment %d has %d rows, and an offset has 32 bits", f.ID, f.PhysicalRows)
	case len(f.Files) == 0:
		return nil, fmt.Errorf("fragment %d has no files", f.ID)
	}
	format := dataFormat(m)
	owner := map[int32]string{}
	for _, d := range f.Files {
		if d.Format != format {
			return nil, fmt.Errorf("fragment %d: file %s has format %s, the table %s: a table has files of one format", f.ID, d.Path, d.Format, format)
		}
		if d.Base != "" {
			return nil, fmt.Errorf("fragment %d: file %s lies in another table, %s", f.ID, d.Path, d.Base)
		}
		if len(d.Fields) != len(d.Columns) {
			return nil, fmt.Errorf("fragment %d: file %s lists %d fields and %d columns", f.ID, d.Path, len(d.Fields), len(d.Columns))
		}
		for _, id := range d.Fields {
			// A field that the table has no longer is well: readers skip it.
			if id < 0 {
				return nil, fmt.Errorf("fragment %d: file %s holds field %d", f.ID, d.Path, id)
			}
			if other, taken := owner[id]; taken {
				return nil, fmt.Errorf("fragment %d: files %s and %s both hold field %d", f.ID, other, d.Path, id)
			}
			owner[id] = d.Path
		}
		a.Refers = append(a.Refers, table.Object{Kind: table.ObjectData, Path: d.Path, Bytes: d.Bytes})
	}
	message, err := base.Bases.message(table.Fragment{ID: f.ID, PhysicalRows: f.PhysicalRows, Files: f.Files})
	if err != nil {
		return nil, err
	}
	if f.Deletion != nil {
		if message.DeletionFile, err = a.deletion(base, f.ID, f.PhysicalRows, f.Deletion); err != nil {
			return nil, err
		}
	}
	return message, nil
}

// deletion checks a new reference to a deletion vector and returns its message.
func (a *Applied) deletion(base *Version, id table.FragmentID, physicalRows uint64, ref *table.DeletionRef) (*tablepb.DeletionFile, error) {
	if ref == nil {
		return nil, fmt.Errorf("fragment %d is to lose its deletions: deleted rows do not come back", id)
	}
	if ref.Rows == 0 || ref.Rows > physicalRows {
		return nil, fmt.Errorf("fragment %d has %d rows, and %d are to be deleted", id, physicalRows, ref.Rows)
	}
	if ref.Base != "" {
		return nil, fmt.Errorf("fragment %d: deletion file %s lies in another table, %s", id, ref.Path, ref.Base)
	}
	d, err := base.Bases.deletionMessage(id, *ref)
	if err != nil {
		return nil, fmt.Errorf("fragment %d: deletion file %s: %w", id, ref.Path, err)
	}
	a.Refers = append(a.Refers, table.Object{Kind: table.ObjectDeletion, Path: ref.Path})
	return d, nil
}

func (a *Applied) indexes(c table.Change) error {
	section := a.Contents.Indexes
	byID := make(map[table.UUID]*tablepb.IndexMetadata, len(section.GetIndices()))
	for _, ix := range section.GetIndices() {
		byID[uuidOf(ix.GetUuid())] = ix
	}
	for id, coverage := range c.SetCoverage {
		ix, ok := byID[id]
		if !ok {
			return fmt.Errorf("index segment %s is to get a coverage and not there: %w", id, table.ErrNotFound)
		}
		ix.FragmentBitmap = manifest.CoverageBytes(coverage)
	}
	if c.DropReuse {
		if ReuseEntry(section) == nil || c.Reuse != nil {
			return fmt.Errorf("the fragment reuse index is to be dropped and not there, or to be replaced, too: %w", table.ErrNotFound)
		}
		a.SetReuse(nil)
	}
	drop := map[table.UUID]bool{}
	for _, id := range c.DropIndexes {
		if _, ok := byID[id]; !ok {
			return fmt.Errorf("index segment %s is to be dropped and not there: %w", id, table.ErrNotFound)
		}
		drop[id] = true
	}
	section.Indices = slices.DeleteFunc(section.Indices, func(ix *tablepb.IndexMetadata) bool {
		return drop[uuidOf(ix.GetUuid())]
	})
	return nil
}

// Describe puts the fragments that the change brings in into the transaction as they
// are published, with what package table does not know of them.
func (a *Applied) Describe(t *tablepb.Transaction) {
	replace := func(list []*tablepb.DataFragment) {
		for i, f := range list {
			if m, ok := a.added[f.GetId()]; ok {
				list[i] = m
			}
		}
	}
	switch op := t.GetOperation().(type) {
	case *tablepb.Transaction_Append_:
		replace(op.Append.GetFragments())
	case *tablepb.Transaction_Update_:
		replace(op.Update.GetNewFragments())
	case *tablepb.Transaction_Rewrite_:
		for _, g := range op.Rewrite.GetGroups() {
			replace(g.GetNewFragments())
		}
	}
}

// SetReuse replaces the fragment reuse index, or removes it if entry is nil. A tagged
// one is announced.
func (a *Applied) SetReuse(entry *tablepb.IndexMetadata) {
	section := a.Contents.Indexes
	section.Indices = slices.DeleteFunc(section.Indices, func(ix *tablepb.IndexMetadata) bool {
		return ix.GetName() == reuseIndexName
	})
	if entry == nil {
		return
	}
	section.Indices = append(section.Indices, entry)
	if m := a.Contents.Manifest; entry.GetIndexVersion() >= TaggedReuse {
		m.ReaderFeatureFlags |= manifest.FlagTaggedReuse
		m.WriterFeatureFlags |= manifest.FlagTaggedReuse
	}
}
