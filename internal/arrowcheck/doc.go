// Package arrowcheck checks Arrow arrays that come from outside, before anything is
// made of them.
//
// Arrow's own libraries take an array's buffers on trust: an offset that points beyond
// its buffer is a panic, or the bytes of something else, when the value is read. And
// what can be read need not be a value of its type. [Record] and [Column] look at both:
//
//   - Structure, of every slot whether it is seen or not: buffers are as long as the
//     array says, offsets do not descend and end within what they point into, children
//     have a slot for each of their parent's, the null count is that of the bitmap.
//   - Values, of every slot that can be seen, which is not below a null: text is UTF-8,
//     an index into a dictionary is one of its values (of which all are looked at),
//     decimals fit their precision, times lie within a day, dates and timestamps are of
//     the years -262143 to 262142, and a field that must not be null is not.
//
// The second list is what stock engines cannot read, found by trying (interop has the
// test). Text that is not UTF-8, and an index beyond its dictionary, make every row of
// the column unreadable for Lance 12 and later; the others fail the query that looks at
// them, or give it something else. What they can read is accepted though Arrow's own
// definition has doubts: a date in milliseconds that is not a whole day, and years that
// Python cannot print.
//
// # Worked example
//
// The text array with the offsets 0 2 4 and the bytes "ab\xff\xfe" is whole, and row 1
// is not UTF-8: an [Error] with Row 1. With the offsets 0 2 5 its structure is wrong,
// and Row is -1, because no row can be trusted.
//
// # Invariants
//
//   - An array that passes can be read by its accessors in every slot without a panic.
//   - Nothing is allocated in proportion to what an array claims to hold; time is in
//     proportion to its slots and bytes.
//   - The array is not changed. Functions are safe for concurrent use.
package arrowcheck
