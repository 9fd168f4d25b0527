// Package commit gets one transaction into a table that others commit to at the
// same time.
//
// A commit replaces one version by the next, if that number is still free. So it is
// a loop: load the newest version and the transactions since the last look; make the
// proposal from both; try to commit it; and if another writer was faster, begin again.
// The caller makes what takes long (data files) before the loop. Each attempt makes
// anew what depends on the version being replaced (fragment ids, deletion vectors,
// coverage, the history of addresses).
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
//   - All attempts use one transaction id, and at most one of them succeeds: the loop
//     looks for the id in the committed transactions before it concludes anything
//     from an error.
//   - An error that is not a table.ErrAmbiguousCommit means that the transaction was
//     not committed and never will be. Only then may the caller delete the objects
//     that were written for it.
//   - A lost attempt leaves nothing to the next but what is immutable and still right.
//
// # Lost answers
//
// A commit whose answer does not arrive may have happened. If the version holds
// another transaction, it did not; if the version holds ours, it did. If the version
// does not exist, the next attempt settles the question; after the last attempt the
// loop looks at the table a few more times. A caller that gets table.ErrAmbiguousCommit
// can run the loop again under the same id to find out.
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
// [Vectors] are the deletion vectors that the attempts store; [Discard] deletes what
// a failed attempt wrote.
package commit
