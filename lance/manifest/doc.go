// Package manifest is the bytes of a version: the manifest file, its sections,
// its name, and its feature flags. What the fields mean to the rest of rehome is
// package lance's business.
//
// # File layout
//
//	[u32 len][IndexSection]     only if the table has an index
//	[u32 len][Transaction]      what this version's commit did
//	[u32 len][Manifest]         at position P; it holds the sections' positions
//	[i64 P][u16 0][u16 2]["LANC"]
//
// All numbers are little-endian, nothing is aligned, and every position points at
// a length prefix. P + 4 + length + 16 is the size of the file, which is how a
// truncated one is told from a whole one.
//
// # Names
//
// Scheme [V1] names version 7 "7.manifest". [V2] names it by its distance from
// 2^64-1, in 20 digits, so that an object store, which lists in order, lists the
// newest first. A directory uses one scheme. Everything else that may lie there is
// not part of the history: temporary and staging files, the version hint, and
// detached versions, whose names begin with "d".
//
// # Invariants
//
//   - Decoding keeps every field that this package does not know, at every depth,
//     and encoding writes it again.
//   - The inline transaction is bytes here. A table can be read whatever an
//     unknown writer put there.
//   - A file that decodes has the version that its name says, its sections inside
//     its bounds, unique fragment ids, and no path that leaves the table.
//
// # Worked example
//
// Version 1 of a table without indexes, whose transaction takes 45 bytes: the
// transaction's length prefix is at 0, so transaction_section is 0; the manifest's
// is at 49; the file ends 16 bytes after the manifest.
package manifest
