package arrowipc

import (
	"encoding/binary"
	"errors"
)

// The metadata of messages are FlatBuffers: tables that refer forward to their parts by
// offsets. Few fields are looked at, and each access is checked, so that is done by hand.

var errMetadata = errors.New("the metadata refer to what is outside them")

// flat is a FlatBuffer. The first access out of bounds sets bad; all reads give 0 then.
type flat struct {
	bytes []byte
	bad   bool
}

func (f *flat) at(pos, n int) []byte {
	if f.bad || pos < 0 || n < 0 || pos > len(f.bytes) || n > len(f.bytes)-pos {
		f.bad = true
		return make([]byte, min(max(n, 0), 8))
	}
	return f.bytes[pos : pos+n]
}

func (f *flat) u8(pos int) uint8   { return f.at(pos, 1)[0] }
func (f *flat) u16(pos int) uint16 { return binary.LittleEndian.Uint16(f.at(pos, 2)) }
func (f *flat) i32(pos int) int32  { return int32(binary.LittleEndian.Uint32(f.at(pos, 4))) }
func (f *flat) i64(pos int) int64  { return int64(binary.LittleEndian.Uint64(f.at(pos, 8))) }

// follow is the position that the offset at pos refers to.
func (f *flat) follow(pos int) int {
	return pos + int(binary.LittleEndian.Uint32(f.at(pos, 4)))
}

// root is the position of the outermost table.
func (f *flat) root() int { return f.follow(0) }

// field is the position of a table's n-th field, 0 if the table does not have it.
func (f *flat) field(table, n int) int {
	vtable := table - int(f.i32(table))
	// As the library asks, so that it does not find a field that was not looked at here:
	// of a vtable with half an entry at its end, that one is there.
	if 4+2*n >= int(f.u16(vtable)) {
		return 0
	}
	if at := int(f.u16(vtable + 4 + 2*n)); at != 0 && !f.bad {
		return table + at
	}
	return 0
}

// table is the position of the table that a table's n-th field refers to, 0 if it does
// not have it.
func (f *flat) table(table, n int) int {
	at := f.field(table, n)
	if at == 0 {
		return 0
	}
	return f.follow(at)
}

// vector is the first element and the number of elements of a vector that a table's
// n-th field refers to.
func (f *flat) vector(table, n, width int) (first, count int) {
	at := f.table(table, n)
	if at == 0 {
		return 0, 0
	}
	count = int(uint32(f.i32(at)))
	f.at(at+4, count*width)
	if f.bad {
		return 0, 0
	}
	return at + 4, count
}

func (f *flat) err() error {
	if f.bad {
		return errMetadata
	}
	return nil
}
