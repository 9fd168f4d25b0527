// Package filetest writes and reads whole data files for tests: arrays go in and
// arrays come out, and everything between the two, from package shred over the
// encodings and the file to package assemble, is that of the format.
//
// A file that was read back proves nothing about the bytes in it. Tests that use this
// package are about what must not change on the way, or compare two files; the bytes
// are held against files of stock engines elsewhere.
//
// # Worked example
//
//	var file bytes.Buffer
//	filetest.Write(t, &file, datafile.V2_1, s, []arrow.Array{ids, names}, datafile.WriterOptions{})
//	got := filetest.ReadArrays(t, file.Bytes())
//	array.Equal(names, got[1]) // true
package filetest
