// Package assemble turns leaf columns in level space (package level) back into
// Arrow record batches.
//
// A [Reader] has one [Source] of blocks for each leaf of a schema, and zips them:
// [Reader.Next] takes the same number of rows from every source, whatever the
// boundaries of blocks and pages, and builds the nested arrays above them. A leaf
// without a source is null: that is how a column reads that was added to a table
// after a file was written.
//
// # How nesting is rebuilt
//
// Each entry of a leaf names, by its definition level, the outermost thing that
// is absent, and by its repetition level which list it continues. For every layer
// of the leaf's path the entries are walked once, and each either opens a slot in
// that layer (a struct or value that is there or null; a list that is null, empty
// or begins), or adds an item to the list that is open, or belongs to something
// further out. Let X(d) be the layer that definition level d says is absent, -1
// for d = 0; inner(l) the number of lists below layer l. An entry is cut off from
// layer l if a list lies above l and not above X(d): then the slot does not exist.
//
//	item l   opens a slot if rep >= inner(l) and not cut off; valid if X(d) < l
//	list l   opens a slot if rep > inner(l) and not cut off; null if X(d) > l or d
//	         is l's null number, empty if d is its empty number, else one item;
//	         at rep = inner(l) the entry adds an item if X(d) < l
//
// A leaf's own array is made of its values: dictionaries are indexed again, one for
// each batch, packed structs are taken apart into their fields, and fixed-size lists
// get the validity of each level.
//
// Leaves of one struct carry the same information about it; the first is used,
// and the others must agree.
//
// # Worked example
//
// A nullable list of nullable int32 with the layers NullableItem and
// NullAndEmptyList: definition 1 is a null item, 2 a null list, 3 an empty list.
//
//	rep        1   0   1   1   1
//	def        0   1   2   3   0
//	item slot  yes yes cut cut yes   validity 1 0 1
//	list slot  yes +1  yes yes yes   lengths 2 null 0 1
package assemble
