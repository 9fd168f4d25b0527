package table

// Transaction is a committed (or proposed) change as other writers see it: what it
// did, and from which version it was computed. Engines store it so that concurrent
// writers can decide whether they conflict.
type Transaction struct {
	// ID is unique to the attempt's owner, kept over its retries; it is how a
	// writer recognises its own commit after an ambiguous failure.
	ID string
	// ReadVersion is the version that the work was computed from, over all
	// retries: a compaction's is the one its tasks read.
	ReadVersion uint64
	// Version is the version that the transaction produced; 0 if not committed.
	Version uint64
	// Operation says what was done.
	Operation Operation
	// Properties are free text for people and tools.
	Properties map[string]string
}

// Operation is one of the types below. An engine maps what its format stores to
// the nearest of them and everything else to [Unknown].
type Operation interface {
	// Kind is a stable lower-case name, for messages and JSON.
	Kind() string
	// sealed: what an operation touches has to be known where changes are compared, so
	// that a kind of an engine's own is an Unknown, which is in the way of everything.
	sealed()
}

// Append adds fragments.
type Append struct{ Fragments []Fragment }

// Delete marks rows of some fragments deleted, and drops others whole. Updated
// fragments are as the transaction left them.
type Delete struct {
	Updated []Fragment
	Removed []FragmentID
}

// Update replaces rows: deletes in Updated and Removed, new rows in New. With
// InPlace the columns ModifiedFields of Updated were rewritten where they lie.
type Update struct {
	Removed        []FragmentID
	Updated        []Fragment
	New            []Fragment
	InPlace        bool
	ModifiedFields []int32
	// UniqueKeys are the fields of the key that the inserted rows are asserted to be
	// the first to have; none if the update asserts nothing.
	UniqueKeys []int32
}

// Rewrite is a compaction: rows moved, nothing else.
type Rewrite struct{ Groups []RewriteGroup }

// RewriteGroup is one task's part of a Rewrite. Old fragments are as the task
// read them, deletion vectors included; New are as published.
type RewriteGroup struct {
	Old []Fragment
	New []Fragment
}

// CreateIndex adds and removes index segments.
type CreateIndex struct {
	New     []IndexMeta
	Removed []IndexMeta
}

// ReserveFragments raises the fragment id counter.
type ReserveFragments struct{ Count uint32 }

// Merge adds columns: it replaces the schema, and every fragment by one with
// additional files.
type Merge struct{ Fragments []Fragment }

// Project replaces the schema: columns were dropped, renamed or given another
// type. No data file changes.
type Project struct{}

// Restore makes an older version the current one.
type Restore struct{ Target uint64 }

// Overwrite replaces schema and rows, and sets the entries Config of the table's
// configuration. It is also how a table begins.
type Overwrite struct {
	Fragments []Fragment
	Config    []string
}

// UpdateConfig changes settings and metadata.
type UpdateConfig struct {
	Config         SettingsUpdate
	TableMetadata  SettingsUpdate
	SchemaMetadata SettingsUpdate
	FieldMetadata  map[int32]SettingsUpdate
}

// SettingsUpdate changes one map of names to values.
type SettingsUpdate struct {
	// Set and Unset are the names that get a value and that lose theirs.
	Set, Unset []string
	// Replace drops every other entry.
	Replace bool
}

// Empty says whether the update changes nothing.
func (u SettingsUpdate) Empty() bool { return len(u.Set)+len(u.Unset) == 0 && !u.Replace }

// DataReplacement replaces whole columns of some fragments where they lie.
type DataReplacement struct{ Replaced []FragmentFields }

// FragmentFields names columns of one fragment.
type FragmentFields struct {
	Fragment FragmentID
	Fields   []int32
}

// DataOverlay lays newer values over some cells of columns. Which ones is not
// known: they may be any.
type DataOverlay struct{}

// UpdateMemWALState records how far a write-ahead log was taken into the table.
type UpdateMemWALState struct{}

// UpdateBases adds roots that data files may lie under.
type UpdateBases struct{ Bases []Base }

// Base is another table's root; ID 0 is one that was not numbered yet.
type Base struct {
	ID   uint32
	Name string
	Path string
}

// Clone begins a table that refers to the files of another.
type Clone struct{}

// Unknown is any operation without a type above, by the name that the format gives
// it. Every other change conflicts with it.
type Unknown struct{ Name string }

// Kind implements Operation.
func (Append) Kind() string { return "append" }

// Kind implements Operation.
func (Delete) Kind() string { return "delete" }

// Kind implements Operation.
func (Update) Kind() string { return "update" }

// Kind implements Operation.
func (Rewrite) Kind() string { return "rewrite" }

// Kind implements Operation.
func (CreateIndex) Kind() string { return "create_index" }

// Kind implements Operation.
func (ReserveFragments) Kind() string { return "reserve_fragments" }

// Kind implements Operation.
func (Merge) Kind() string { return "merge" }

// Kind implements Operation.
func (Project) Kind() string { return "project" }

// Kind implements Operation.
func (Restore) Kind() string { return "restore" }

// Kind implements Operation.
func (Overwrite) Kind() string { return "overwrite" }

// Kind implements Operation.
func (UpdateConfig) Kind() string { return "update_config" }

// Kind implements Operation.
func (DataReplacement) Kind() string { return "data_replacement" }

// Kind implements Operation.
func (DataOverlay) Kind() string { return "data_overlay" }

// Kind implements Operation.
func (UpdateMemWALState) Kind() string { return "update_mem_wal_state" }

// Kind implements Operation.
func (UpdateBases) Kind() string { return "update_bases" }

// Kind implements Operation.
func (Clone) Kind() string { return "clone" }

// Kind implements Operation.
func (u Unknown) Kind() string { return u.Name }

func (Append) sealed()            {}
func (Delete) sealed()            {}
func (Update) sealed()            {}
func (Rewrite) sealed()           {}
func (CreateIndex) sealed()       {}
func (ReserveFragments) sealed()  {}
func (Merge) sealed()             {}
func (Project) sealed()           {}
func (Restore) sealed()           {}
func (Overwrite) sealed()         {}
func (UpdateConfig) sealed()      {}
func (DataReplacement) sealed()   {}
func (DataOverlay) sealed()       {}
func (UpdateMemWALState) sealed() {}
func (UpdateBases) sealed()       {}
func (Clone) sealed()             {}
func (Unknown) sealed()           {}

// Change is what a commit does to the version that it replaces, as a delta. The
// engine applies it to that version, so nothing that others did is undone.
type Change struct {
	// Remove are the ids of fragments to drop; each must exist.
	Remove []FragmentID
	// Add are new fragments with final ids, from Base.NextFragmentID upwards.
	Add []Fragment
	// SetDeletion replaces the deletion vectors of existing fragments.
	SetDeletion map[FragmentID]*DeletionRef
	// SetCoverage replaces the coverage of existing index segments by id. An
	// empty list means "covers nothing", never "unknown".
	SetCoverage map[UUID][]FragmentID
	// DropIndexes removes index segments.
	DropIndexes []UUID
	// Reuse replaces the fragment reuse index if not nil.
	Reuse *ReuseIndexUpdate
	// DropReuse removes the fragment reuse index, which must be there. An object
	// that its content lies in stays for the versions that refer to it.
	DropReuse bool
	// Reserve raises the fragment id counter by so many ids.
	Reserve uint32
}

// ReuseIndexUpdate is a new fragment reuse index for the table: the whole
// content, already merged with that of the version being replaced.
type ReuseIndexUpdate struct {
	// Content is the encoded history (package fri). The engine decides by its
	// format's rule whether it goes inline or into an object.
	Content      []byte
	IndexVersion int32
	// Coverage are the fragments that the newest transitions produced.
	Coverage []FragmentID
}

// Proposal is one attempt to commit.
type Proposal struct {
	// Base is the version being replaced: the commit becomes Base.Version+1 or
	// fails with ErrVersionTaken.
	Base *Snapshot
	// Transaction is stored for other writers. Its fragments have final ids.
	Transaction Transaction
	// Change is applied to Base.
	Change Change
}
