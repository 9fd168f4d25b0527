package table

import (
	"cmp"
	"slices"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
)

// Snapshot is one version of a table, as an engine loaded it. It is immutable
// and safe for concurrent use; whoever changes the table makes a new version.
type Snapshot struct {
	// Table is where the table lives, for messages: a path or a URI.
	Table string
	// Version is this version's number, from 1.
	Version uint64
	// Timestamp is when the version was committed, by the committer's clock.
	Timestamp time.Time
	// Schema is the table's schema at this version.
	Schema Schema
	// Fragments in table order, which is ascending by id in engines that
	// compact with rehome. Use [Snapshot.Fragment] to find one by id.
	Fragments []Fragment
	// NextFragmentID is the id that the next new fragment gets if this version
	// is the one being replaced. It only grows over a table's life.
	NextFragmentID FragmentID
	// Indexes on the table, one entry a segment, system indexes included.
	Indexes []IndexMeta
	// Reuse is the table's fragment reuse index entry, nil if it has none.
	Reuse *ReuseIndexMeta
	// StableRowIDs says that rows carry stable ids and that indexes store those
	// instead of addresses. Such a table never carries a fragment reuse index.
	StableRowIDs bool
	// DataFormat names the version of the data files, for people ("2.1").
	DataFormat string
	// Handle is the engine's own, and nobody else's.
	Handle any
}

// Fragment returns the fragment with the given id, or false.
func (s *Snapshot) Fragment(id FragmentID) (Fragment, bool) {
	// Ascending in practice, which the first probe uses, but not by contract.
	if i, ok := slices.BinarySearchFunc(s.Fragments, id, func(f Fragment, id FragmentID) int { return cmp.Compare(f.ID, id) }); ok {
		return s.Fragments[i], true
	}
	for i := range s.Fragments {
		if s.Fragments[i].ID == id {
			return s.Fragments[i], true
		}
	}
	return Fragment{}, false
}

// LiveRows returns the number of rows that are not deleted.
func (s *Snapshot) LiveRows() uint64 {
	var n uint64
	for _, f := range s.Fragments {
		n += f.LiveRows()
	}
	return n
}

// Schema is the columns of a table with the ids that the format gives them.
type Schema struct {
	Fields   []Field
	Metadata map[string]string
}

// Arrow returns the schema in Arrow's terms; field ids are left out.
func (s Schema) Arrow() *arrow.Schema {
	fields := make([]arrow.Field, len(s.Fields))
	for i, f := range s.Fields {
		fields[i] = arrow.Field{Name: f.Name, Type: f.Type, Nullable: f.Nullable, Metadata: arrow.MetadataFrom(f.Metadata)}
	}
	md := arrow.MetadataFrom(s.Metadata)
	return arrow.NewSchema(fields, &md)
}

// Field returns the top-level field with the given name, or false.
func (s Schema) Field(name string) (Field, bool) {
	for _, f := range s.Fields {
		if f.Name == name {
			return f, true
		}
	}
	return Field{}, false
}

// Field is one column. Type is the whole Arrow type, children included;
// Children repeats them for their ids.
type Field struct {
	ID       int32
	Name     string
	Type     arrow.DataType
	Nullable bool
	Metadata map[string]string
	Children []Field
}

// Fragment is a horizontal slice of the table.
type Fragment struct {
	ID FragmentID
	// PhysicalRows counts deleted rows too. At most 2^32.
	PhysicalRows uint64
	// Files hold the fragment's columns; all have PhysicalRows rows.
	Files []DataFile
	// Deletion refers to the fragment's deletion vector; nil if no row of it
	// was ever deleted.
	Deletion *DeletionRef
	// Kept is [NewFragment.Kept], of a fragment that is to be added. Loaded
	// fragments do not have it.
	Kept []RowIdentity
}

// DeletedRows returns the number of deleted rows.
func (f Fragment) DeletedRows() uint64 {
	if f.Deletion == nil {
		return 0
	}
	return f.Deletion.Rows
}

// LiveRows returns the number of rows that are not deleted.
func (f Fragment) LiveRows() uint64 { return f.PhysicalRows - f.DeletedRows() }

// Bytes returns the recorded size of the fragment's data files.
func (f Fragment) Bytes() uint64 {
	var n uint64
	for _, d := range f.Files {
		n += d.Bytes
	}
	return n
}

// Same says whether f and g are the same rows, alive and dead: same id, same
// files, same deletion vector. Files and vectors are immutable, so this is
// enough to know that nothing happened to a fragment between two versions.
func (f Fragment) Same(g Fragment) bool {
	return f.SameData(g) && f.Deletion.Same(g.Deletion)
}

// SameData is Same without the deletion vector: the rows are where they were,
// though some may have been deleted since.
func (f Fragment) SameData(g Fragment) bool {
	return f.ID == g.ID && f.PhysicalRows == g.PhysicalRows &&
		slices.EqualFunc(f.Files, g.Files, DataFile.Same)
}

// DataFile is one file of columns. It is plain data: a task that ran elsewhere
// returns it, and the publisher commits it.
type DataFile struct {
	// Path is the engine's name of the object; see [Object].
	Path string `json:"path"`
	// Fields are the ids of the fields stored in the file. A negative id marks a
	// column that a newer file replaced.
	Fields []int32 `json:"fields"`
	// Columns are the column numbers of Fields in the file, parallel to it;
	// -1 for a field that has no column of its own.
	Columns []int32 `json:"columns,omitempty"`
	// Format is the file's format version, for example "2.1".
	Format string `json:"format"`
	// Bytes is the recorded size, 0 if the format did not record it.
	Bytes uint64 `json:"bytes"`
	// Base is the other table's root that the file belongs to, in a table that
	// was cloned without its files; empty for the table's own.
	Base string `json:"base,omitempty"`
}

// Same says whether two references are to the same columns of the same file.
func (d DataFile) Same(e DataFile) bool {
	return d.Path == e.Path && d.Base == e.Base && slices.Equal(d.Fields, e.Fields)
}

// DeletionRef refers to a stored deletion vector. The vector is complete: it
// holds every deleted row of the fragment, not those of the last delete.
type DeletionRef struct {
	// Path is the engine's name of the object.
	Path string
	// Rows is the number of deleted rows; exact.
	Rows uint64
	// Base is the other table's root that the object belongs to, as in DataFile.
	Base string
}

// Same says whether two references are to the same vector; nil equals nil.
func (d *DeletionRef) Same(e *DeletionRef) bool {
	if d == nil || e == nil {
		return d == nil && e == nil
	}
	return d.Path == e.Path && d.Base == e.Base
}

// ObjectKind says what an object holds.
type ObjectKind string

// The kinds of object that a commit can refer to.
const (
	ObjectData        ObjectKind = "data"
	ObjectDeletion    ObjectKind = "deletion"
	ObjectReuseIndex  ObjectKind = "reuse-index"
	ObjectTransaction ObjectKind = "transaction"
	ObjectIndex       ObjectKind = "index"
	// ObjectPartition holds the labels of a stable partition, which a transition
	// of the fragment reuse index refers to.
	ObjectPartition ObjectKind = "partition"
)

// Object names one stored object of a table, by the path that the engine gave it
// (relative to the table). It is plain data, so that the list of what an attempt
// wrote can travel with the attempt's result and be cleaned up by anyone.
type Object struct {
	Kind  ObjectKind `json:"kind"`
	Path  string     `json:"path"`
	Bytes uint64     `json:"bytes"`
}
