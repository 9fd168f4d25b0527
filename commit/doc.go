// Package commit gets one transaction into a table that others commit to at the
// same time.
//
// A commit is made over a version and becomes the next one, if that is still free.
// So it is a loop: look at the newest version, and at what was committed since the
// last look; make what is to be committed out of both; try; and if somebody was
// faster, begin again. What takes long (data files) is made before the loop. What
// depends on the version being replaced (fragment ids, deletion vectors, coverage,
// the history of addresses) is made in it, anew for each attempt.
//
//	┌─► load the newest version c, and the transactions since the last one seen
//	│     ours among them? ────────────────► it is committed: done
//	│   propose: what is to be committed over c
//	│     nothing ─────────────────────────► done
//	│     an error ────────────────────────► the end, see below
//	│   commit as version c+1, if that is free
//	│     done ────────────────────────────► committed
//	│     taken, or unknown
//	└── pause
//
// # Invariants
//
//   - The id of the transaction is the same over all attempts, so that at most one
//     of them comes true: before anything is concluded from an error, the id is
//     looked for in what was committed.
//   - An error that is not a table.ErrAmbiguousCommit means that the transaction was
//     not committed and never will be. Only then may what was written for it be
//     deleted.
//   - Nothing is kept from a lost attempt but what is immutable and still right.
//
// # Lost answers
//
// A commit whose answer does not arrive may have happened. If others have the
// version, it did not. If the transaction is found in it, it did. If neither, a new
// attempt settles it, and if there are none left the table is looked at a few more
// times. A caller that is told table.ErrAmbiguousCommit can run the loop again under
// the same id, which finds out.
//
// # Worked example
//
// A writer reads version 7 and commits over it:
//
//	attempt 1   base 7, seen 7       proposes over 7    version 8 is taken
//	attempt 2   base 9, seen 7 to 9  looks at transactions 8 and 9, proposes over 9
//	            the answer is lost
//	attempt 3   base 10              transaction 10 has our id: committed, as 10
//
// [Vectors] are the deletion vectors that attempts store, and [Discard] deletes what
// a failed one wrote.
package commit
