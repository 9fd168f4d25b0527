// Package roaringbytes handles the portable serialization of a 32-bit Roaring
// bitmap as what it is on disk: bytes. It measures, checks, walks and writes them
// without building a bitmap.
//
// The format is https://github.com/RoaringBitmap/RoaringFormatSpec. The value
// space is cut into 65,536 blocks of 65,536 values; each block that holds any is
// one container, of the kind that is smallest for it:
//
//	array   sorted u16 values                   2 bytes a value, at most 4,096
//	bitmap  one bit a value of the block        8,192 bytes
//	run     u16 count, then (u16 start, u16 length-1) pairs
//
// All numbers are little-endian. With no run container in it, the whole is
//
//	u32 12346 | u32 containers | containers x (u16 key, u16 cardinality-1)
//	          | containers x u32 offset | container bodies
//
// and with at least one
//
//	u16 12347 | u16 containers-1 | one bit a container: is it a run
//	          | containers x (u16 key, u16 cardinality-1)
//	          | containers x u32 offset, only with 4 containers or more | bodies
//
// # Why not the library alone
//
// github.com/RoaringBitmap/roaring decodes hostile bytes without complaint and
// panics or lies later; its Validate, to be called after decoding, compares every
// pair of runs, so that 128 KiB of valid input take a second. [Check] does the
// same work in one pass and before anything is allocated, and checks two things
// more: the cardinality in a run container's header, which the library ignores,
// and the offset header, which some readers follow and others skip, so that a
// wrong one means different sets to different readers.
//
// Writing is here too because the library's RunOptimize is not idempotent:
// [Append] gives equal bytes for equal sets.
//
// # Example
//
// The set {1, 2, 3, 65536} has two containers. As ranges it is [1,4) and
// [65536,65537); Append with runs allowed writes 3 values as an array of 6 bytes,
// because one run takes 2+4 bytes and a tie goes to the array.
package roaringbytes
