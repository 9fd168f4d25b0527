// Package shred takes Arrow arrays apart: it turns an array of a top-level column
// into one block in level space (package level) for each leaf below it.
//
// Lists and structs are peeled off one layer at a time, outermost first. What is
// kept in between is a list of entries: for each the repetition and definition
// level so far, and where its content lies in the array of the next layer, or
// that it is absent. A struct changes no entries but those of null rows; a list
// replaces each entry by one for each of its elements, or keeps it with the level
// that says null or empty. At the leaf the entries that own a value slot say
// which values to gather; where those are one range, as in every flat column,
// nothing is copied and the block shares the array's memory. Dictionaries are
// looked up, and the fields of packed structs are put side by side.
//
// # Worked example
//
// The list column [[1, null], null, [], [2]] begins as four entries, one a row,
// all of repetition 1, which begins a row. The list layer makes them
//
//	rep      1  0  1     1      1
//	def      0  0  null  empty  0
//	element  0  1  -     -      2
//
// and the leaf, finding element 1 null, lowers its definition to the item's null.
//
// # Invariants
//
//   - Blocks declare the widest layers, or AllValidItem only, for a column
//     without lists and nulls; whoever gathers blocks narrows them ([level.Builder]).
//   - Sibling leaves get equal levels for the layers that they share.
//   - The array is not changed, and must not change while the blocks are used.
package shred
