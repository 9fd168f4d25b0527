// Package rebase decides what a change has to do about changes that others
// committed before it, carries rows along where they moved, and commits changes: of
// rows, and rewrites of fragments ([Commit]). It is the one road into a table.
//
// # Footprints
//
// A change touches things, and these have coordinates: whether a fragment is there,
// which of its rows are deleted, the data of one column in one fragment, the
// definition of a column, an entry of the configuration. The footprint of a
// change says for each what it does there: requires (it was computed from it),
// writesPart (it adds to it, or sets it whatever it was) or writes (it replaces
// what it read). A region is many coordinates at once.
//
//	delete of row 3 in fragment 7           rewrite of fragments 7 and 8
//	  requires    lineage                     requires  lineage
//	  requires    row addresses of 7          writes    row addresses of 7, of 8
//	  writesPart  deletion vector of 7        requires  deletion vector of 7, of 8
//	  requires    data of every field in 7    requires  data of every field in 7, in 8
//
// There is one rule, for two claims on the same coordinate, mine being committed
// and theirs committed already:
//
//	mine \ theirs   requires   writesPart   writes
//	requires        ok         conflict     conflict
//	writesPart      ok         ok           conflict
//	writes          ok         conflict     conflict
//
// Whether a conflict is retry or incompatible follows from what was met over:
// work that was computed can be computed again; a value that was asked for, or a
// table that was replaced as a whole, cannot. There is no list of which operations
// get on with which. A new kind of operation needs a footprint, and that is all.
//
// # Rows
//
// Coordinates are coarse: the example above conflicts twice. But both sides know
// exactly which rows they mean, and say so (claim.ByRow). Then the verdict is
// relocate, and the rows decide: deletions add up, and are carried to where the
// rows went. A delete does not make a compaction start again, nor the other way
// round.
//
// # Worked example
//
// A compaction reads fragment 10 of 8 rows, of which 2 and 5 are dead, and fragment
// 11 of 4 rows, and writes 7 rows into one new fragment and 3 into another. Before
// it commits, somebody deletes row 3 of fragment 10, and all of fragment 11.
//
//	read      10: 0 1 † 3 4 † 6 7    11: 0 1 2 3
//	now       10: 0 1 † † 4 † 6 7    11: † † † †
//	copied        0 1   2 3   4 5        6 7 8 9     k-th survivor at the read
//	died since          2                6 7 8 9
//	written    A: 0 1 † 3 4 5 †     B: † † †
//
// Only what died since is carried, by its rank among the survivors at the read: k=2
// and k=6 to 9. The first destination is published with rows 2 and 6 deleted, the
// second with all of them. The rows that died are the difference of two deletion
// vectors of each source, and follow the change of address that the compaction itself
// makes ([ChangeOfAddress.Relocate]); what was dead at the read was not copied and
// never appears.
//
// # The other order
//
// The same compaction is committed first, and a delete that was computed before it
// comes after it. It is about rows 4 and 7 of fragment 10, and rows 1 and 2 of
// fragment 11, by the addresses that these had.
//
//	read      10: 0 1 † 3 4 † 6 7    11: 0 1 2 3
//	deletes               ×     ×          × ×
//	copied        0 1   2 3   4 5        6 7 8 9     k-th survivor at the read
//	                      ×     ×          × ×       k = 3, 5, 7, 8
//	written    A: 0 1 2 3 4 5 6     B: 0 1 2
//	deletes             ×   ×          × ×           A: 3, 5   B: 0, 1
//
// The delete follows its rows ([ChangeOfAddress.Relocate]), adds them to whatever is
// dead in A and B by now, and is committed. If it was an update, its new rows are in
// fragments of their own, which nobody moved.
//
// Where the rows went is taken from a change of address that is at hand (a session
// remembers those that it committed), from the fragment reuse index, from stable row
// ids, or it is worked out from the committed rewrite, as above, and then proven: the
// rows are read at both addresses and have to be equal. A rewrite that did not keep
// the order is found out that way, and is a conflict; see follow.go.
//
// # A change and its window
//
// A change is computed from one version and committed over another. What others did
// in between, the window, is gone through oldest first, for each step may move rows
// that a later one is about. A rebasing keeps the rows where they are by
// then. For each transaction, footprints are compared; a conflict is the end. Rows are
// followed through rewrites. What others deleted is only remembered, with the vectors
// that they left: whether it hit a row of this change shows in the vector that is to
// be replaced, and only if it did are the others read, to tell who it was.
//
//	mine \ theirs   deleted the row   updated the row
//	delete          merged            conflict, retry
//	update          conflict, retry   conflict, retry
//
// The proposal is made of the version that is being replaced: each fragment as it is
// there, with the union of what is dead there and what is to be deleted; a fragment
// without a live row left is removed; new fragments are numbered. If every row is dead
// already and none is new, there is nothing to commit.
//
// # Groups
//
// A rewrite is any number of [Group]s: fragments that were read together, which rows
// were dead then, and what was written. Each is compared with the window by itself, so
// that one which others are in the way of is lost and the rest is committed. Its
// author decides at each attempt what only it knows: which groups an index forbids, what
// indexes cover afterwards, whether the change of address is recorded ([Rewriting]).
// Columns may have changed since files were written; one comparison says for new rows
// and for groups whether the files can be read as columns of now (shape.go).
//
// # Files before words
//
// Columns can be rewritten where they lie, by transactions that say so and by ones that
// do not. Whatever they say, a change is a conflict if a fragment that it has rows of
// is not in the files any more that were read, or if a rewrite that moved the rows did
// not copy those; see columns.go.
//
// # Invariants
//
//   - Footprints are computed when they are compared, and never stored: what a
//     change means is in the change.
//   - What is not understood conflicts with everything, in both orders.
//   - The order of two changes matters. What the earlier required it had.
//   - A relocation never trusts itself: rows that came back, counts that do not
//     add up, are errors. Nothing is derived without proof.
//   - A deletion vector that is committed is the one in the version being replaced,
//     and more. None that was read earlier is installed again.
//   - What was written for a change is in the table or deleted, unless nobody can
//     know whether it is in the table.
//
// The verdicts for every ordered pair of operations are listed in
// testdata/matrix.txt, and compared with those of the stock engine.
package rebase
