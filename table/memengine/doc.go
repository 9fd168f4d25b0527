// Package memengine is a complete table engine that keeps everything in memory.
//
// It is here for two readers. Tests use it as a table that costs nothing to
// make. Authors of engines read it first: it implements every method of
// [table.Engine] in the plainest way that keeps the contract, and the plug-in
// guide in docs walks through it.
//
// # How a table is kept
//
// Two things make up an [Engine]: the list of versions, of which only the end
// ever changes, and the objects, which never change once they are made. An
// object is either the rows of one data file, as one Arrow record batch, or one
// deletion vector.
//
//	versions   1 ── 2 ── 3
//	                │    └ fragment 0: data/1, deletions/0-2-3    fragment 1: data/2
//	                └───── fragment 0: data/1
//
// A [table.Snapshot] is handed out by pointer, because nobody may change it.
//
// # Which file holds what
//
//   - engine.go: the versions, the objects, and reading both.
//   - rows.go: live rows out of fragments, and fragments out of rows.
//   - deletions.go: deletion vectors in and out.
//   - commit.go: the checks that a change has to pass, and the one place where
//     a version is published.
//   - changes.go: what an application does to a table (append, delete, index),
//     which is no part of [table.Engine].
//   - rewriter.go: the optional [table.Rewriter], for those who want it.
//
// # What it leaves out
//
// It has no stable row ids, no column files (a fragment is one file), no schema
// changes and no durability. Old versions and their objects stay until the
// Engine itself is collected. Records are left to the garbage collector.
package memengine
