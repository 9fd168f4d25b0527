// Package table is the model that a table engine and rehome share.
//
// A table is a sequence of immutable versions. A [Snapshot] is one version: an
// ordered list of fragments, the schema, and what is known of the secondary
// indexes. A [Fragment] is a horizontal slice of the table: one or more column
// files that hold the same rows in the same order, and at most one deletion
// vector. A row is found by its [RowAddr]: the fragment's id and the row's
// physical offset in it, counted before deletions.
//
// # Who implements what
//
// A storage engine implements [Engine], which is a bundle of small interfaces;
// rehome's compaction, rebase and remap drive it and nothing else. The comments
// on the interfaces are the contract, and package table/enginetest is the same
// contract as a test suite: run it against an engine before trusting it.
// table/memengine is a complete engine in a few hundred lines, to start from.
// Package lance is the engine for Lance tables on disk.
//
// # Invariants
//
//   - A fragment id is never used twice in the life of a table, so an address
//     names its own epoch: whoever holds an old address can still be answered.
//   - Files and deletion vectors are immutable. A change is a new object and a
//     new version that refers to it.
//   - Address 0 is a real row (fragment 0, offset 0); no address is a sentinel.
//   - [RowAddr] and [RowID] are different types on purpose. A stable row id that
//     is taken for an address answers with another row.
//   - A [Change] is a delta over the version that it replaces, never a copy of a
//     fragment that was read earlier.
//
// # Errors
//
// Every error that an engine returns wraps one of the sentinels in errors.go
// where one fits: [ErrConflict] (try again), [ErrCorrupt], [ErrUnsupported],
// [ErrNotFound], [ErrNotTable], [ErrVersionTaken]. Anything else is an I/O error
// and is passed on as it is. [Classify] folds an error into an [Outcome].
package table
