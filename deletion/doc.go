// Package deletion is the deletion vector of a table fragment: which of its rows
// are dead. It holds the set, its algebra, and the two file formats in which
// Lance tables store it.
//
// A [Vector] is a set of physical row offsets of one fragment, counted from 0 and
// before any deletion, so an offset keeps its meaning however many rows are
// deleted later. A stored vector is always complete: it has every deleted row of
// the fragment, not those of the last delete. A change is therefore a new vector
// (usually the union of two) in a new file.
//
// # Invariants
//
//   - A Vector never changes. Its operations return new vectors, so it may be
//     shared between goroutines and kept in caches. The nil *Vector is the empty
//     set, which is what a fragment without a deletion file has.
//   - Decoding accepts only what means one set: sorted or not as the format
//     allows, but no duplicate and no offset that the fragment does not have.
//   - Neither decoder allocates more than the fragment's rows can justify.
//
// # Worked example
//
// A fragment has 8 physical rows; rows 2 and 5 are deleted.
//
//	offset   0 1 2 3 4 5 6 7
//	dead         x     x
//	Live(8)  [0,2)  [3,5)  [6,8)     what a compaction copies
//	Rank(6)  2                       dead rows before offset 6
//	6-Rank(6) = 4                    row 6 is the fifth survivor, at offset 4 of
//	                                 the compacted fragment
//
// # Files
//
// [EncodeArrow] and [DecodeArrow] are the Arrow form (".arrow": one uint32 column
// named row_id), [EncodeBitmap] and [DecodeBitmap] the Roaring form (".bin").
// [Encode] picks the smaller, [Decode] is told which one it has: the name of a
// file says so, the number of rows in it does not. Both are described byte by byte
// in docs/format/deletion.md.
package deletion
