// Package level is the form in which data pages are decoded, filtered and
// encoded again: one leaf column in level space.
//
// A leaf column carries its whole path. Instead of nested arrays there are three
// parallel streams: repetition levels (where does a row or list begin),
// definition levels (is the value there, and if not, which ancestor is null or
// empty) and the values themselves. The scheme is Dremel's (Melnik et al., VLDB
// 2010) with the level numbers of the Lance 2.1 file format, which run from the
// leaf outwards.
//
// # Layers
//
// [Layer] lists, from the leaf to the outermost ancestor, whether each step is an
// item (leaf or struct) or a list, and which kinds of absence it can have.
// Definition levels are numbered along that walk, starting at 1: NullableItem,
// NullableList and EmptyableList take one number each, NullAndEmptyList takes two
// (null first, then empty). Definition 0 is a value that is there.
//
// Repetition levels exist if there is a list layer. With m list layers,
// repetition m begins a new row; a smaller repetition r adds an element to the
// list of rank r+1, the innermost list having rank 1.
//
// # Blocks
//
// A [Block] is some consecutive rows of one leaf. An entry is one position of the
// level streams; it is visible if no list at or below the absent layer hides it,
// and only visible entries own a value slot. A null leaf value is visible and
// owns a slot with arbitrary content.
//
// # Values
//
// A value is a number of bits, bytes of any number, or a list of a fixed number of
// items; what it means is left to others. A packed struct is a value of either of
// the first two kinds whose [Type.Parts] say where its fields lie.
//
// # Worked example
//
// A nullable list of nullable int32: rows [1, null], null, [], [2].
//
//	layers  NullableItem, NullAndEmptyList      numbers: 1 | 2 null list, 3 empty list
//	rep     1  0     1    1    1
//	def     0  1     2    3    0
//	values  1  junk            2                three visible entries
//
// # Dropping and gathering rows
//
// A [Cursor] walks over the rows of a block, a [Builder] gathers rows at a cursor
// into a new block, however the pages that they come from declare their layers.
// Dropping the deleted rows of a column, cutting it into pages and merging pages
// are all this: take some rows, skip others. Rows are copied by runs, and fixed
// values by memory moves.
//
// Nothing in this package reads or writes bytes; package encoding does.
package level
