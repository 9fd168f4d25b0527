// Package dml changes rows of a table: it appends, deletes and updates them, and
// merges others in by a key.
//
// A [Change] is described ([Append], [Delete], [Update], [MergeInsert]) and then
// executed on a [table.Engine], in one step or in two.
//
//   - [Execute] computes it from the newest version and commits it. If somebody else
//     changed one of the same rows in the meantime it computes it again, so that the
//     change is always one of the version before it.
//   - [Compute] computes it from a version that is given and writes the new
//     rows, and stops there. What it returns is plain data, a [rebase.Uncommitted]: the
//     rows to be deleted by address, and the new fragments. It can be kept, or be sent
//     to another machine, and [rebase.Commit] commits it.
//
// # How a change is made
//
// A change is nothing but rows that go and rows that come. A row is deleted where it
// lies, by one bit in its fragment's deletion vector; an update deletes it and writes
// it anew, whole, into a new fragment. So the work is in proportion to the rows that
// change, and two writers that change different rows of the same fragment do not get
// in each other's way: each adds its bits to those that are there.
//
// Rows are told by conditions and keys, and these are looked at once, when the change
// is computed. From then on it is about addresses. When it is committed over versions
// that others made meanwhile, package rebase finds out where the rows are by now:
// rows that a compaction moved are followed, and a row that somebody else updated or
// deleted is a conflict, except for a delete that meets a delete.
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
// The rows that were updated come first in what is written, before new ones. In a
// table with stable row ids they are told by the identities that they had
// ([table.NewFragment.Kept]), and so stay the same rows.
//
// # Predicates and expressions
//
// A [Predicate] is asked about record batches, an [Expr] makes values of them. Both
// say which columns they look at, and no others are read for them. Package
// dml/sqlexpr makes them of SQL text; [PredicateFunc], [RowFunc], [ExprFunc] and
// [Constant] of Go values. As in SQL, a condition that is null is not met.
//
// # Invariants
//
//   - A change that changes nothing commits nothing and writes nothing.
//   - A change that fails leaves nothing behind: what it wrote is deleted, also when
//     the caller's context is over. The exception is a commit of which nobody can tell
//     whether it happened ([table.ErrAmbiguousCommit]).
//   - Memory is bounded by a batch of rows for each thread and the set of rows that
//     change, which takes a bit for each row of a fragment at most and less where they
//     follow each other; a merge holds its source, too.
//   - A dry run ([DryRun]) writes no object, not even for a moment.
//   - Nothing is computed from two versions: all that a change reads is of one.
//
// What the changes mean in detail follows the stock Lance engine; testdata/spec says
// it by example, and docs/row-changes.md compares.
package dml
