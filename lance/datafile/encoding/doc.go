// Package encoding turns the pages of one leaf column into blocks in level space
// (package level) and back, for formats 2.1 to 2.3.
//
// # Layouts
//
// A page of formats 2.1 and 2.2 has one of four layouts:
//
//   - mini-block, for values below 256 bytes: the page is cut into chunks of a few
//     kilobytes, each with its own levels and compressed value buffers. A page of
//     few distinct values keeps those in a dictionary, and indices in the chunks.
//   - full-zip, for wider values: each value stands behind its levels. Vectors
//     without nulls are then simply one after the other.
//   - constant: all values are null, or the same where they are not null.
//   - blob: the values lie elsewhere in the file, and inside is a mini-block page
//     of where.
//
// Format 2.3 has pages without levels besides. A sparse page says of each layer which of
// its slots are null and how many slots of the next layer each list has, as sequences of
// positions and counts; behind it are values in mini-blocks, one for each slot, or from
// Lance 14 on in other forms: full-zip, values that are stored once and indices, one
// value, none. For example, the rows [1, null], null, [], [2] of package level:
//
//	list   4 slots, null: 1; not empty: 0 and 3, with 2 and 1 slots
//	item   3 slots, null: 1
//	values 1, junk, 2
//
// A page of Lance 14 ("planar") says structure and values apart from each other. With
// levels it is one of the layouts above in other words ([Dense], [Planar]).
//
// # Encodings
//
// Inside a layout, values go through a chain of encodings, outermost first:
// "general:lz4(variable)" is strings as offsets and bytes, then LZ4. Some are laid
// out differently in a chunk (several buffers) and in a block (one buffer: levels
// and dictionaries).
//
//	flat                    the values, little-endian; one bit each for booleans
//	variable                offsets, then bytes
//	inline_bitpacking       the width, then 1024 values in FastLanes order
//	out_of_line_bitpacking  the same with the width in the description (blocks)
//	rle                     values, and how often each is repeated
//	byte_stream_split       byte 0 of all values, byte 1 of all values, ...
//	fsst                    strings by a symbol table (package fsst)
//	fixed_size_list         item validity, then items
//	packed_struct           rows of fixed-width fields, side by side
//	variable_packed_struct  rows of fields some of which stand behind their length
//	general                 LZ4 or zstd around what is inside
//	constant                one value for all (blocks)
//	range, delta            start, start+step, ...; a number and differences. Of format
//	                        2.3, as sequences of their own and for offsets of strings
//
// # Decoding
//
// A [Decoder] first checks a page's description as a whole ([Decoder.Check] does
// only that and reads no data): is each layout and encoding known, do the widths
// fit the leaf, are there as many buffers as it takes. Only then does it read, a
// block's worth at a time. Whatever the bytes say, a decoder returns sound blocks
// or an error (ErrCorrupt, ErrUnsupported), and allocates in proportion to what is
// stored or to [Limits].
//
// [Decoder.Take] decodes some rows of a page. Of mini-blocks it decodes those chunks
// that the rows are in, which a page of lists tells by its repetition index, and of
// strings in them those that are wanted; of full-zip pages the entries; of blobs the
// values. What has no such parts is decoded from the first row to the last.
//
// # Encoding
//
// An [Encoder] asks strategies in order (choose.go): the constant layout if there is
// nothing to store, a dictionary if values repeat, mini-blocks or full-zip by
// width, and of the encodings that fit the one that comes out smallest. It writes
// what readers of the stock engines from Lance 8 on read right, which rules out
// some of what the format allows: full-zip with a nullable struct around a list,
// a list that is declared to be never null inside such a struct, chunks whose
// entries are more than readers count. A block that no single page can hold is cut
// on row boundaries. In V2_3Planar a page without values, or of one value and nulls, is
// sparse: there is no other way. So is one of wide values that are mostly null, and one of
// lists whose levels would take much more. All other pages have levels.
//
// A column of Arrow dictionaries has a dictionary in every page, which is what
// tells readers to make one again. Blocks hold the values: dictionaries are made
// page by page of what is there.
//
// # Files
//
// A codec is in one file with its description, its two directions and a picture of its
// bytes, and so is each part of a layout.
//
//	codec.go        what a codec is, which there are, and which one values get
//	levels.go       level streams, and which codec they get
//	flat, bitpacking, runs, byte_stream_split, variable, symbols, fixed_lists, packed,
//	packed_rows, dictionary*, general.go: the codecs; compress.go: LZ4 and zstd
//	sequence.go     whole numbers of format 2.3
//
//	miniblock.go    a page of chunks; _chunk: a chunk; _cut: how a page is cut into chunks;
//	                _index: rows of lists; _take: some rows
//	fullzip.go      a full-zip page; _entry: an entry; _index: rows; _strings: their compression
//	constant.go     a page of one value or none; _value: the value
//	blob.go         a page of where values lie
//	sparse.go       a page without levels; _layer: a layer; _walk: from slots to levels; _values:
//	                the values; _choice: which pages are sparse; _early: as Lance 9 to 13 have them
//	planar.go       the other words of Lance 14 for all of these
//
//	decoder.go, sink.go, emitter.go, take.go    from a page to blocks or some rows
//	encoder.go, choose.go, nulls.go             from a block to a page: choose.go has the
//	                                            ordered list of strategies
//	version.go, drafts.go, page.go, names.go, bytes.go
//
// # Worked example
//
// The chunk of ten nullable int64 of which two are null, in format 2.1, levels and
// values flat. Its metadata is the word 0x00d0: 13+1 words of eight bytes, and no
// count because it is the last.
//
//	0a 00                   10 levels
//	14 00                   20 bytes of definition levels
//	50 00                   80 bytes of values
//	fe fe                   filler to eight bytes
//	00 00 01 00 ...         the definition levels: 1 is null
//	fe fe fe fe             filler
//	00 00 00 00 00 00 00 00 the values, those of nulls too
//	...
package encoding
