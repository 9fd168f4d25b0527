// Package remap applies a change of address to whatever holds addresses: a posting
// list, an Arrow column, a record batch, a bitmap, an index's coverage.
//
// Compaction gives the surviving rows of a table new addresses and records how in
// the table's fragment reuse index (package fri). The owner of addresses that are stored
// outside the table, or in an index file that the compaction left alone, passes them to
// a [Remapper] and stores the result.
//
// # Terms
//
//   - An address is unaffected (nothing rewrote its row: it stands), moved, or of a
//     deleted row. Package fri keeps these apart, and so does every
//     function here: "not in the history" never means "deleted".
//   - An address is untranslatable if its row went through a rewrite that the
//     history does not explain: of a kind that this release does not know, or
//     damaged, or one whose label file cannot be read. So it is if the answer is no
//     row of the version ([Options.Current]): what a history does not mention may have
//     been rewritten without a record. Without a version to check with, "unaffected"
//     is refused.
//
// # What there is
//
//	what holds addresses     function                  deleted rows
//	one address              Remapper.Addr             reported
//	slice                    Slice, Sorted             left out
//	slice beside another     SliceMask                 marked in a mask, stay
//	Arrow array              Remapper.Array            null, or left out (DropDeleted)
//	Arrow record batch       Remapper.Record           left out of all columns
//	64-bit Roaring bitmap    Remapper.Bitmap           left out
//	value of a bitmap index  Remapper.RowAddrTreeMap   left out
//	coverage                 Remapper.Coverage         no matter
//	rows not held yet        Remapper.Missing          left out
//
// # Worked example
//
// Fragments 10 (8 rows, of which 2 and 5 are deleted) and 11 (4 rows) were compacted
// into fragment 200. An index outside the table has this posting list:
//
//	11:2  10:5  10:0  11:2  99:7
//
// Slice makes of it
//
//	200:8  200:0  200:8  99:7        moved 3, deleted 1, unaffected 1
//
// The order stays, 10:5 is gone with its row, the duplicate is still one, and
// fragment 99, which nothing rewrote, keeps its address. A coverage of {10, 11, 99}
// becomes {99, 200}. One of {10, 99} becomes {99}, and the compaction is reported:
// it mixed rows that the index knows with rows that it does not, so nothing is
// claimed for fragment 200, though the addresses of the index's rows in it are right.
//
// # All or nothing
//
// An operation that fails has changed nothing: an input in place is as it was, and
// there is no result. The error is an [*UntranslatableError] that names the
// fragments, or, with [Options.Strict], an [*OutsideError]. To get an answer even so,
// scan the rows of those fragments.
//
// # What it costs
//
// Nothing is proportional to the rows of the table. Decoding a fragment's survivors
// is, to the bits of those of its fragments that the input touches, once for a
// Remapper. After that:
//
//   - One address takes a few array reads for each rewrite that it went through,
//     some 10 to 20 ns each.
//   - An ascending batch is one merge walk along the runs of rows that stayed
//     together, composed over all rewrites: 1 to 10 ns an address.
//   - A batch in no order is looked up one by one; if it is large and the history
//     deep, it is sorted on the side and walked, which costs less than following
//     each address through every rewrite.
//   - A bitmap is cut along the runs: the price is one step a run, however many
//     rows it has.
//
// Memory: in-place operations take a copy of inputs of up to 65,536 addresses, to
// go back to on an error. For larger ones they first make sure that there can be
// none, by reading the runs of each fragment that the input touches, once. Where
// that proves nothing (with Strict, stable partitions, unknown rewrites, and on
// damage) they take the copy.
//
// # Concurrency
//
// A Remapper may be used by any number of goroutines; what it is handed must not
// change meanwhile. It works on the history of one version of the table. Addresses
// that were translated are addresses of that version: what a later compaction moves
// is translated again, by its history. Translating twice by the same one is
// harmless, for a fragment id is never used again and so a new address is
// unaffected.
package remap
