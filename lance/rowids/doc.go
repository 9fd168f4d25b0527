// Package rowids keeps the identities of the rows of a table with stable row ids, and
// assigns ids to new rows.
//
// [Sequence] and [Versions] are the codec of what the Lance format keeps about every row
// of a fragment: its id, and the versions that created and last updated it. Both list one value for each physical
// row, in order, deleted rows included, so that a row's offset is its position.
//
// # Sequences of ids
//
// Ids are given out in order, so most fragments hold one range of them; updates and
// compactions punch holes and put pieces together. A sequence is therefore a list of
// segments, each in the cheapest of five forms:
//
//	Range            10 11 12 13          start, end
//	RangeWithHoles   10 11 __ 13          the range, and what is missing in it
//	RangeWithBitmap  10 __ 12 __ 14       the range, and a bit for each number of it
//	SortedArray      10 900 7000          ascending
//	Array            12 10 900            any order: rows that an update moved
//
// The numbers of the arrays, and the holes, are offsets from the smallest of them, of
// 16, 32 or 64 bits, as large as they have to be.
//
// # A table's rows
//
// A [Keeper] answers for one table: the identities of rows at given addresses, and where
// the live rows with given ids are. At every attempt to commit it makes the lists of the
// fragments that the commit adds ([Keeper.Assign]): a rewrite carries them from the old
// fragments, an update keeps those of the rows that it replaces, and all other rows are
// new. What it has to know of a version is a [TableVersion].
//
// # Invariants
//
//   - A stable row id is that of one live row at most: a row's identity is kept only if
//     the row that had it dies in the same commit.
//   - Sequence and Versions never change; operations return new ones that may share
//     bytes with the old. They are safe for concurrent use.
//   - Decoding checks everything that the other methods rely on: ranges that go
//     forward, holes that ascend within their range, bitmaps as long as their range
//     is, sorted arrays that are sorted, a total of as many rows as the fragment has.
//     It allocates no more than a small multiple of the bytes it is given: a segment
//     keeps its stored form, and numbers are read where they lie.
//   - Work grows with the runs of consecutive ids, not with the ids, except in arrays.
//   - A Sequence may hold an id twice, and nothing here checks this: an updated row leaves
//     its id at the old, deleted offset, and only the deletion vector tells the two apart.
//
// # Worked example
//
// Two fragments hold the ids 0 to 5 and 6 to 9. Rows 1 and 2 of the first are dead.
// They are compacted into fragments of four and four rows:
//
//	a := Range(0, 6).Select(live)         0 3 4 5      the dead ones dropped
//	b := Range(6, 10)                     6 7 8 9
//	Rechunk([]*Sequence{a, b}, 4, 4)      [0 3 4 5] [6 7 8 9]
//
// docs/format/rowids.md describes the bytes.
package rowids
