// Package datafile reads and writes Lance data files of the formats 2.0 to 2.3, one leaf
// column at a time, as blocks in level space (package level). What turns
// blocks into Arrow is package assemble; the encodings of pages are package
// encoding, and package encoding20 for format 2.0.
//
// # Container
//
// A file has no header; it is found from its last 40 bytes. In order:
//
//	page buffers, each at a multiple of 64 bytes
//	schema and row count (a FileDescriptor), at a multiple of 64 bytes
//	the columns' metadata, one message each
//	a table of the position and size of each column's metadata
//	a table of the position and size of each global buffer; number 0 is the schema
//	footer: three positions, two counts, the version, "LANC"
//
// A column is the pages of one leaf of the schema. A page is some consecutive
// rows; pages of different columns do not share row boundaries. A page's
// description says how its buffers are encoded and which levels it has.
//
// # Which column is which
//
// Columns are in the order of [schema.Schema.Leaves] when a file is written, but
// a reader must not count on it: a table's manifest says which field each column
// of a file holds.
//
// In format 2.0 lists and structs own columns too, and a leaf is read through those of
// the lists around it ([File.LeafColumn]). A writer has a [ColumnWriter] for each leaf
// all the same: that of the first leaf inside a list writes the list's column, and all
// leaves inside it end their pages at the same rows, wherever the first of them that is
// full has to. That a struct is null is refused, because the format cannot store it.
// Files of 2.0 call themselves 0.3.
//
// # Format 2.3
//
// Lance up to 13 and Lance from 14 on mean different things by format 2.3: the pages of
// the latter say in other words what they are, and some are laid out in ways of their
// own. Neither engine reads the other's files, and footers are alike. A file is found
// to be V2_3Planar by the first page that describes itself so; a writer is told.
//
// # Blobs
//
// Columns of blobs keep the bytes of their values apart from their pages. Of the
// first kind (formats 2.0 and 2.1) they lie in the same file, a page says where, and blocks
// hold the bytes. Of the second kind (the extension lance.blob.v2, format 2.2) the
// values are descriptions ([BlobDescription]): a blob lies in the same file, in a
// file beside it ([SidecarPath]) alone or together with others, or anywhere at all.
// Blocks hold the descriptions, and whoever reads or copies the column takes care of
// the bytes.
//
// # Invariants
//
//   - Nothing that a file says is believed: every position, size, width and count
//     is checked before it is used or allocated for. Damage is ErrCorrupt, what
//     is well-formed but unknown is ErrUnsupported, and neither panics.
//   - Memory is bounded by a block of about 8 MiB a column that is being read,
//     whatever the size of pages, unless a single row is larger.
//
// # Worked example
//
//	f, err := datafile.Open(ctx, r, size, "data/x.lance")
//	leaf := f.Schema().Leaves()[0]
//	column, err := f.Column(0)
//	err = column.Check(leaf) // can every page be read? no data is read yet
//	for block, err := range column.Blocks(ctx, leaf) {
//		...
//	}
//	for block, err := range column.Take(ctx, leaf, []datafile.Range{{From: 7, To: 9}}) {
//		... // these rows, for little more than they take
//	}
//
// And to write one:
//
//	w, err := datafile.NewWriter(out, datafile.V2_2, tableSchema, datafile.WriterOptions{})
//	err = w.Column(0).Append(block) // any goroutine, one a column
//	info, err := w.Finish()         // what the manifest has to record
package datafile
