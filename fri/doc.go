// Package fri is the fragment reuse index: it finds a row after its fragment was
// rewritten.
//
// A compaction gives every surviving row a new address. A secondary index whose files
// hold the old addresses, or a concurrent delete that is about to commit, needs the new
// ones. The fragment reuse index stores no map: for each rewrite it stores a bitmap of
// the rows of the old fragments that survived, and the sizes of old and new fragments.
// A compaction keeps the order of rows, so this is enough: the k-th survivor is the
// k-th new row.
//
// # Terms
//
//   - A [Digest] is a fragment in three numbers: id, physical rows, deleted rows.
//   - A [Transition] is one rewrite: ordered source digests, ordered destination
//     digests, and how rows were mapped: the bitmap of surviving source rows, if
//     they kept their order.
//   - A [History] is the transitions of a table, in the order of their commits. It
//     is what the index stores.
//   - A [Translation] is the answer for one address: unaffected, moved, or deleted;
//     or that there is none.
//
// # Worked example
//
// Fragment 10 has 8 rows, of which 2 and 5 are deleted. Fragment 11 has 4. A
// compaction writes both into fragment 200.
//
//	source       10: 0 1 . 3 4 . 6 7       11: 0 1 2 3
//	survivors        0 1   2 3   4 5           6 7 8 9     k
//	destination 200: 0 1   2 3   4 5           6 7 8 9
//
// Where is 11:2 now? Before fragment 11 lie 8-2 survivors, a number that fragment
// 10's digest gives without a look at its bitmap. Within fragment 11, two survivors
// lie before offset 2: k = 6+2 = 8. The destinations laid end to end have row 8 in
// fragment 200 at offset 8:
//
//	Translate(11:2)   moved to 200:8
//	Translate(10:5)   deleted
//	Translate(99:0)   unaffected, nothing rewrote fragment 99
//	Translate(10:8)   unaffected, fragment 10 never had such a row
//
// If fragment 200 was rewritten too, the transition that rewrote it translates 200:8
// further, and so on. The walk ends at "deleted", or at a fragment that nothing rewrote.
//
// # Invariants
//
//   - Fragment ids are never reused, so an address names its own epoch. Which
//     transition applies to it follows from its fragment alone, never from a
//     version or from the order of the list.
//   - Every fragment has at most one transition that wrote it and one that rewrote
//     it, and is not its own ancestor. [Decode] and [History.Append] check this.
//   - A transition records what its rewrite read. Rows deleted since are in the
//     deletion vectors of the destinations, and in the source digest of the next
//     transition.
//   - Address 0 (fragment 0, row 0) is a row. No address and no fragment id below
//     2^32-1 stands for anything else.
//   - [History.Trim] drops a transition only if nobody needs it: no index that is older
//     than the rewrite and held rows of it, no reader that the caller names, and no older
//     transition that stays and leads on through it. Damaged ones can be dropped anyway.
//   - Histories and transitions are immutable. Every commit attempt makes a new history
//     from the history of the version that it replaces, so no commit drops another's
//     transitions.
//
// # Making one
//
// A rewrite feeds its sources to a [Builder], in the order in which it read them
// and with the deletions that it read. [Transition.WithDestinations] gives it the
// destination ids that a commit attempt was assigned; the bitmap is not made again.
// [History.Append] merges it, [History.Encode] and [EncodeDetails] store it.
//
// # Asking
//
// [History.Translate] answers for one address. A [Translator] keeps what it decoded for
// as long as it lives, returns an error that says why an address has no answer, and
// translates slices in place: [Translator.TranslateBatch] in any order,
// [Translator.TranslateSorted] along runs. [History.Runs] yields what became of all rows
// of a fragment. All of them compose the rewrites that a row went through. A [Cache] is
// a bounded cache for the decoded parts of many histories; its keys are the content.
//
// # What it costs
//
// Stored, an ordered compaction takes about 4 bytes for each run of deleted rows
// and at most one bit a row. [Decode] reads the messages and the headers of the
// bitmaps, and no bitmap: its time is in proportion to the fragments and to the
// blocks of 65,536 rows. The bitmap of a source fragment is checked and given a
// directory of counts (see segment.go: at most 1/32 byte a row where it is bits,
// next to nothing where deletions are clustered) when the first address of it is
// asked for. The bitmap is searched where it lies and never copied. An answer is
// then a few array reads for each rewrite that the row went through.
//
// So damage in a bitmap is found when it is used: the answer is [Untranslatable],
// and the error names the transition and the fragment. [History.Validate] finds all
// of it at once.
//
// # Two index versions, two mappings
//
// The stored form is that of Lance tables: docs/format/fri.md. Index version 0 knows
// ordered compactions alone, as above. Version 1 tags each transition with its
// mapping, and can stand behind what version 0 recorded; a history stays in version
// 0 until something is appended that has no form there (or [History.Upgrade] is
// called), because older readers refuse a table with version 1.
//
// The second mapping is the [StablePartition]: a rewrite that distributes rows over
// its destinations, and keeps their order in each. A bitmap cannot say which row
// went where, so each row has a label, in a file that the engine reads for the
// history, a block at a time ([PartitionMap], [History.WithPartitions], [Load]).
//
//	source       10: 0 1 2 3 4 5     11: 0 1 2
//	label            0 1 . 0 1 1         1 0 2      (. deleted)
//	destination 7 (label 0): 10:0 10:3 11:1
//	destination 5 (label 1): 10:1 10:4 10:5 11:0
//	destination 6 (label 2): 11:2
//
//	Translate(10:4)   moved to 5:1, the second row with label 1
//
// What a newer release may store besides is carried and not followed: a transition
// with an [UnknownMapping] makes rows [Untranslatable], and the history is not
// [History.Complete].
package fri
