// Package fsst reads and writes strings compressed with the Fast Static Symbol
// Table (Boncz, Neumann and Leis, "FSST: Fast Random Access String Compression",
// VLDB 2020).
//
// A table of at most 255 symbols of 1 to 8 bytes each is shared by all strings of
// a page. A compressed string is a sequence of codes: a code below 255 stands for
// a symbol, 255 says that the next byte is literal. Every string can be expanded
// without its neighbours.
//
// # Serialised table
//
// Lance stores the table as 2312 bytes in the page's description: a 64-bit
// little-endian header (bits 32 to 63 the magic number 0x46535354, bit 24 set if
// the strings really are compressed, bits 8 to 23 hints for the compressor, bits
// 0 to 7 the number n of symbols), n symbols of 8 bytes each, n lengths of one
// byte each, and filler.
//
// # Worked example
//
// With the symbols 0 = "http://" and 1 = ".com", the codes 00 ff 61 01 expand to
// "http://a.com".
package fsst
