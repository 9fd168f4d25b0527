// Package dml changes rows of a table: it appends, deletes and updates rows, and
// merges rows in by a key.
//
// A [Change] is a description ([Append], [Delete], [Update], [MergeInsert]). A
// [table.Engine] executes it in one step or in two.
//
//   - [Execute] computes the change from the newest version and commits it. If somebody
//     changed one of the same rows meanwhile, it computes the change again.
//   - [Compute] computes the change from a given version and writes the new rows. It
//     returns plain data, a [rebase.Uncommitted]: the addresses of the rows to delete,
//     and the new fragments. This can be kept, or be sent to another machine, and
//     [rebase.Commit] commits it.
//
// # How a change is made
//
// A change deletes rows and adds rows, nothing else. One bit in its fragment's deletion
// vector deletes a row in place; an update deletes the row and writes it anew, whole,
// into a new fragment. So the work grows with the rows that change, and two writers that
// change different rows of one fragment do not conflict: each adds its bits to those
// that are there.
//
// Conditions and keys select rows once, when the change is computed. From then on the
// change names rows by address. When it is committed over versions that others made
// meanwhile, package rebase follows rows that a compaction moved. A row that somebody
// updated or deleted is a conflict, except for a delete that meets a delete.
//
// # Worked example
//
// Fragment 0 holds the keys 1 to 4, and a merge brings 2 (which is there) and 9:
//
//	version 1   0: 1 2 3 4
//	merge       affected 0:1      new fragment: 2' 9
//	meanwhile   0: 1 2 3 †        (somebody deletes 4)
//	meanwhile   1: 1 2 3          (somebody compacts: 0:1 is now 1:1)
//	committed   1: 1 † 3          2: 2' 9
//
// Updated rows are written first, before new ones. In a table with stable row ids they
// keep their ids ([table.NewFragment.Kept]), and so stay the same rows.
//
// # Predicates and expressions
//
// A [Predicate] selects rows of record batches, an [Expr] computes values from them.
// Both name the columns that they need, and no others are read for them. Package
// dml/sqlexpr makes them from SQL text; [PredicateFunc], [RowFunc], [ExprFunc] and
// [Constant] from Go values. As in SQL, a null condition does not match.
//
// # Invariants
//
//   - A change that changes nothing commits nothing and writes nothing.
//   - A change that fails deletes what it wrote, even if the caller's context is done.
//     The exception is a commit with an unknown outcome ([table.ErrAmbiguousCommit]).
//   - Memory is bounded by a batch of rows for each thread and the set of rows that
//     change, which takes a bit for each row of a fragment at most and less where they
//     follow each other; a merge holds its source, too.
//   - A dry run ([DryRun]) writes no object, not even for a moment.
//   - A change reads one version only.
//
// What the changes mean in detail follows the stock Lance engine; testdata/spec says
// it by example, and docs/row-changes.md compares.
package dml
