// Package encoding20 turns the columns of data files of format 2.0 into blocks in
// level space (package level) and back.
//
// # Columns
//
// In format 2.0 every field of a schema owns a column, not only the leaves:
//
//	list    where each list ends among its items
//	struct  nothing but a page that says how many there are
//	leaf    the values
//
// So a leaf is read through its path: the columns of the lists around it, outermost
// first, then its own. That of a struct says nothing: that a struct is null cannot
// be stored. A page counts what its own column holds, items for a column inside a
// list, and not rows.
//
// # Pages
//
// A page has a tree of encodings whose ends name the page's buffers:
//
//	nullable               which values are there, then the values; or that none is
//	flat                   values of one width, one bit each for booleans
//	bitpacked              integers in fewer bits, one after the other, in place of flat
//	bitpacked_for_non_neg  the same in blocks of 1024 (package fastlanes)
//	fixed_size_list        the items of all values, one after the other
//	binary                 where each string ends, and bytes
//	fsst                   a binary whose bytes are made longer by a symbol table
//	fixed_size_binary      strings of one length
//	dictionary             indices into a few values
//	packed_struct          rows of fields, side by side
//	list                   where each list ends; how many items the page has
//	struct                 nothing
//
// Only versions before 1.0 wrote bitpacked and fixed_size_binary, and then not by
// themselves: they are read, not written.
//
// An end in binary and list that is not below an adjustment, which is larger than
// any end, is of a null and too large by the adjustment. Ends count from the page's
// own first byte or item; the items of a page of lists begin where those of the page
// before end, and no page of items has some of two pages of lists.
//
// Strings of few distinct values have a dictionary whose index 0 is null. In a column
// of Arrow dictionaries indices are what Arrow has, and null is a null value.
// Blobs lie elsewhere in the file, and a packed struct says where.
//
// # Reading
//
// A [Reader] checks the description of a page before it reads of it: is each encoding
// known, does it fit the leaf, are the buffers as long as it takes. It then reads
// just the values, or the bytes of strings, that it was asked for, as far as they are
// not compressed. Whatever the bytes say, it returns sound blocks or an error
// (ErrCorrupt, ErrUnsupported), and allocates in proportion to what is stored or to
// the limits.
//
// # Writing
//
// [Lists] takes a leaf's blocks apart into ends of lists and values, [EncodeValues]
// and [Lists.Page] make pages of either. Pages that lose nothing can be copied instead,
// if they are as they would be written today ([Current]).
//
// # Worked example
//
// The rows [1, null], null, [], [2] of a list of int32 are two columns of one page:
//
//	list   ends 2, 2+4, 2, 3       adjustment 4, items 3
//	item   validity 1 0 1, values 1, junk, 2
package encoding20
