// Package gather copies some of the rows of an Arrow array into a new one.
//
// The rows are given as ranges, because what is left of a batch after some rows
// were deleted is few long ranges: a range is copied by one copy a buffer, whatever
// its length, and nested types turn ranges of lists into ranges of their items. So
// the cost is one step a range and the bytes themselves, where copying by a list of
// row numbers would take one step a row.
//
// Ranges are half-open. As a rule they ascend and are disjoint; [Take] is for rows in
// any order, some of them more than once. Nulls stay what they are, slots below a
// null included: a copy never reads what a null hides as a value.
//
// Shared with the original, not copied: dictionaries, the character data that views
// point into, and the items of list views and dense unions.
//
// # Example
//
// Rows 1 to 2 and 4 of a list array with offsets 0 2 2 5 5 9 are the lists at
// [2,2), [2,5) and [5,9): the new offsets are 0 0 3 7, and the items are rows 2 to
// 8 of the old items, one range.
//
// Run-end encoded arrays are refused as not supported.
package gather
