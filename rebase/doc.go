// Package rebase commits changes, both row changes and rewrites of fragments
// ([Commit]). It decides whether a change conflicts with changes that others committed
// before it, and follows rows that moved. It is the one road into a table.
//
// # Footprints
//
// Everything that a change can touch has a coordinate: the existence of a fragment,
// its deleted rows, the data of one column in one fragment, the definition of a
// column, an entry of the configuration. The footprint of a change lists what it does
// at each coordinate: requires (the change was computed from it), writesPart (it adds
// to it, or sets it without reading it) or writes (it replaces what it read). A region
// is many coordinates at once.
//
//	delete of row 3 in fragment 7           rewrite of fragments 7 and 8
//	  requires    lineage                     requires  lineage
//	  requires    row addresses of 7          writes    row addresses of 7, of 8
//	  writesPart  deletion vector of 7        requires  deletion vector of 7, of 8
//	  requires    data of every field in 7    requires  data of every field in 7, in 8
//
// One rule judges two claims on the same coordinate; mine is being committed, theirs
// is committed already:
//
//	mine \ theirs   requires   writesPart   writes
//	requires        ok         conflict     conflict
//	writesPart      ok         ok           conflict
//	writes          ok         conflict     conflict
//
// The coordinate decides whether a conflict is retry or incompatible: computed work
// can be computed again; a value that the caller asked for, or work on a table that
// was replaced as a whole, cannot. No list says which operations are compatible. A new
// kind of operation needs a footprint and nothing else.
//
// # Rows
//
// Coordinates are coarse: the example above conflicts twice. But both sides name
// their rows exactly, and say so (claim.ByRow). Then the verdict is relocate, and the
// rows decide: deletions add up, and follow the rows to their new addresses. A delete
// never makes a compaction start again, nor a compaction a delete.
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
// The compaction carries only the rows that died since, by their rank among the
// survivors at the read: k=2 and k=6 to 9. It publishes the first destination with
// rows 2 and 6 deleted, the second with all of them. The rows that died are, for each
// source, the difference of two deletion vectors; they follow the compaction's own
// change of address ([ChangeOfAddress.Relocate]). Rows that were dead at the read were
// not copied and never appear.
//
// # The other order
//
// The same compaction is committed first, and then a delete that was computed before
// it. The delete names rows 4 and 7 of fragment 10, and rows 1 and 2 of fragment 11,
// by their old addresses.
//
//	read      10: 0 1 † 3 4 † 6 7    11: 0 1 2 3
//	deletes               ×     ×          × ×
//	copied        0 1   2 3   4 5        6 7 8 9     k-th survivor at the read
//	                      ×     ×          × ×       k = 3, 5, 7, 8
//	written    A: 0 1 2 3 4 5 6     B: 0 1 2
//	deletes             ×   ×          × ×           A: 3, 5   B: 0, 1
//
// The delete follows its rows ([ChangeOfAddress.Relocate]), adds them to the rows that
// are dead in A and B by now, and is committed. The new rows of an update are in
// fragments of their own, which nobody moved.
//
// The change of address comes from a session that remembers it, from the fragment
// reuse index, from stable row ids, or from the committed rewrite, as above. The last
// has to be proven: the rows are read at both addresses, and must be equal. This proof
// finds a rewrite that did not keep the order, which is a conflict; see follow.go.
//
// # A change and its window
//
// A change is computed from one version and committed over another. The window is what
// others committed in between. A rebasing goes through it oldest first, because each
// step may move rows that a later one names, and keeps the current addresses of the
// rows. For each transaction it compares footprints; a conflict ends it. It follows
// rows through rewrites. It only notes the vectors that others' deletes left: the
// vector to be replaced shows whether a row of this change died, and only then does
// the rebasing read the noted ones, to find who deleted it.
//
//	mine \ theirs   deleted the row   updated the row
//	delete          merged            conflict, retry
//	update          conflict, retry   conflict, retry
//
// The proposal starts from the version being replaced. Each fragment's new vector is
// the union of its dead rows there and the rows to delete; a fragment without a live
// row is removed; new fragments get their ids. If every row is dead already and none
// is new, there is nothing to commit.
//
// # Groups
//
// A rewrite is any number of [Group]s: the fragments that were read together, the rows
// that were dead then, and the new fragments. Each group is compared with the window
// by itself: one that conflicts is lost, and the rest is committed. At each attempt the
// author of the rewrite decides what only it knows: which groups an index forbids, what
// indexes cover afterwards, whether to record the change of address ([Rewriting]).
// Columns may have changed since files were written; one comparison, for new rows and
// for groups, says whether the files still fit the current columns (shape.go).
//
// # Files before words
//
// A transaction can rewrite columns in place without declaring it. Whatever it
// declares, a change is a conflict if a fragment of its rows no longer has the files
// that were read, or if a rewrite that moved the rows did not copy those files; see
// columns.go.
//
// # Invariants
//
//   - Footprints are computed when they are compared, and never stored: the change
//     itself holds its meaning.
//   - An unknown operation conflicts with everything, in both orders.
//   - The order of two changes matters: the earlier one had all that it required.
//   - A relocation is checked: rows that came back to life and counts that do not add
//     up are errors. Nothing is derived without proof.
//   - A committed deletion vector contains the one in the version being replaced. A
//     vector that was read earlier is never installed again.
//   - The objects of a change end in the table or deleted, unless nobody can know
//     whether the change was committed.
//
// The verdicts for every ordered pair of operations are listed in
// testdata/matrix.txt, and compared with those of the stock engine.
package rebase
