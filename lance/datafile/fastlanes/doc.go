// Package fastlanes packs and unpacks blocks of 1024 integers to as many bits a
// value as the largest needs, in the FastLanes order (Afroozeh and Boncz, "The
// FastLanes Compression Layout", VLDB 2023).
//
// # Layout
//
// A block of values of T bits (8, 16, 32 or 64) is dealt out to 1024/T lanes. In
// lane l, row r (of T rows) holds the value with the index
//
//	[0 4 2 6 1 5 3 7][r/8]*16 + r%8*128 + l
//
// and occupies the bits [r*width, (r+1)*width) of the lane's bit stream. Word k
// of the stream, T bits long, is word number lanes*k+l of the packed block. All
// lanes do the same at the same time, so a row is 1024 bits wide whatever T is:
// the code here handles it as sixteen 64-bit words, several lanes in each.
//
// # Worked example
//
// The values 0 to 1023 modulo 8 as 16-bit integers need 3 bits: 64 lanes, 16
// rows, and 3 stream words a lane; 384 bytes instead of 2048. The value 300 has
// the index 300 = 0*16 + 2*128 + 44: lane 44, row 2, bits 6 to 8 of the lane's
// first word, which is word 44 of the block.
package fastlanes
