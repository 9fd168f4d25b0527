// Package rowmap is the other way of publishing a change of address: a map from
// old to new row addresses, carried in the transaction that moved the rows. It
// exists to be measured against the fragment reuse index (package fri), so it is
// built as well as we can, and asked through the same interface.
//
// # Stored
//
// A transaction of the stock engine is written twice: as a file of its own and
// inline in the manifest. A map that is part of it is, too. The map has one of two
// strengths:
//
//   - Plain: for each surviving row the old and the new address, 16 bytes.
//   - Packed: the smallest of several codings (coding.go), each made of columns of
//     varints or bits that zstd compresses.
//
// # Decoded
//
//   - [Hash]: a Go map.
//   - [Sorted]: one array of rows, ordered by old address, and binary search.
//   - [Intervals]: one array of runs of rows that moved together. Where rows move
//     in long runs it is as small and fast as anything.
//
// Maps of several commits are composed when they are opened, newest first, so that
// a lookup takes one step however often the row moved.
//
// # What a miss means
//
// Deleted rows are not in a map. An address that is missing is "deleted" if the
// transaction rewrote its fragment and the fragment has such a row, and
// "unaffected" if not, which is why a map needs the fragments of its transaction
// beside it.
//
// # Worked example
//
// Fragment 10 has rows 0 to 3, of which 2 is deleted; it is rewritten as fragment
// 20.
//
//	plain      10:0 -> 20:0, 10:1 -> 20:1, 10:3 -> 20:2       48 bytes
//	runs       (10:0, 2 rows, 20:0), (10:3, 1 row, 20:2)
//	gaps       2                                              rows before each deleted one
//	Translate  10:3 -> moved to 20:2; 10:2 -> deleted; 10:4, 11:0 -> unaffected
//
// # Measuring
//
// [Write] makes a workload and stores its change of address in every form, [Read]
// opens one form and asks it. They share a directory and nothing else, so that each
// can have a process of its own, whose memory then tells something; [Run] does both
// in this one.
package rowmap
