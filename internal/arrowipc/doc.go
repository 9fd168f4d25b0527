// Package arrowipc reads record batches from untrusted Arrow IPC files and streams.
//
// The reader of the Arrow library believes what a message says of itself: it allocates
// what the message claims, and indexes where it points. So a few hundred bytes can ask
// for a terabyte, and a flipped bit is a panic. This package frames the messages itself
// and looks at each before the library does:
//
//   - A message's metadata and body are read as they come, so that nothing is allocated
//     for bytes that are not there.
//   - Buffers lie within the body, and the counts that the library makes slices of
//     within the metadata. A schema has each field once, and is not nested deeper than
//     the library goes.
//   - Compressed buffers are decompressed here, into memory that grows as the bytes come
//     and with a bound on the decoder's window. A buffer that does not hold what it says
//     is refused. The library gets the message without compression.
//   - What the library allocates all the same is bounded by the bytes read so far.
//   - The blocks of a file do not overlap, so that a file is not read more than once.
//   - What panics in the library all the same is an error.
//
// So memory is at most a few times the input's size, and where it is compressed, of the
// size that its bytes decompress to.
//
// # Invariants
//
//   - Batches are whole as messages; that their arrays are is for package arrowcheck to
//     say, before anything looks at them.
//   - No goroutine is started.
//
// # Worked example
//
// A file is "ARROW1", padding, the messages, and a footer that has the schema and says
// where in the file the messages of dictionaries and batches lie. [File] makes a message
// of the schema, reads the dictionaries', then the batches', and hands them to the
// library one by one, as if they were a [Stream].
package arrowipc
