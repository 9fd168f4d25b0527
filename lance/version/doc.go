// Package version reads the versions of a Lance table, and makes the next one.
//
// A version is the manifest by its number, and names every object that it consists of.
// [History] finds versions by their names and puts them, and the transactions that made
// them, into the terms of package table. The manifest itself stays behind the snapshot:
// [Of] gives it back as a [Version]. [Apply] works a change into a copy of it, and
// [TransactionMessage] describes that in the format's own messages; whoever commits
// publishes both. What a version refers to, and which stored files none refers to, is
// found out here too ([History.Orphans]).
//
// # Invariants
//
//   - What is not understood is kept: the next version is made from the messages of the
//     one before, unknown fields included. Unknown reader flags refuse reading.
//   - Opening and reading a version never depend on its transaction.
//   - Which version is the latest is asked of the store each time. A version that is
//     remembered is found by the identity of its manifest's object.
//   - Fragment ids only grow, whatever the writer of an earlier version recorded.
//   - Apply does no I/O and changes nothing that the version before it holds.
//   - The references of a version are a set to keep: what is in doubt is in it, and a
//     manifest with a field that is not known is refused.
//
// # Worked example
//
// The next version of a table, without fragment 3:
//
//	history := version.NewHistory(root)
//	s, err := history.Load(ctx, 0) // the latest
//	...
//	v, err := version.Of(s)
//	...
//	next, err := version.Apply(v, table.Change{Remove: []table.FragmentID{3}}, nil)
//	...
//	next.Contents.Manifest.Version = s.Version + 1
//	bytes, err := next.Contents.Encode()
package version
