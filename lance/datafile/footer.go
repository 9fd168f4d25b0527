package datafile

import (
	"encoding/binary"
	"fmt"

	"github.com/rehome-db/rehome/lance/datafile/encoding"
	"github.com/rehome-db/rehome/table"
)

// Version is a minor version of file format 2.
type Version = encoding.Version

// The versions that are read and written.
const (
	V2_0 = encoding.V2_0
	V2_1 = encoding.V2_1
	V2_2 = encoding.V2_2
	V2_3 = encoding.V2_3
	// V2_3Planar is the other format 2.3. Files are found to be of it by their pages.
	V2_3Planar = encoding.V2_3Planar
	// V2_2Narrow and V2_2Plain are format 2.2 before it was finished, see
	// [encoding.Kind]. Files are found to be of the first by their pages; the second is
	// for writers alone, as its pages do not tell.
	V2_2Narrow = encoding.V2_2Narrow
	V2_2Plain  = encoding.V2_2Plain
)

const (
	footerSize = 40
	magic      = "LANC"
	// alignment of page buffers and of the schema's buffer.
	alignment = 64
)

// footer is the last 40 bytes of a file.
type footer struct {
	columnMetadata uint64 // position of the first column's metadata
	columnTable    uint64 // position of the table of {position, size} of columns
	bufferTable    uint64 // the same for global buffers
	buffers        uint32
	columns        uint32
	major, minor   uint16
}

// parseFooter reads the footer, which b ends with, of a file of the given size.
func parseFooter(b []byte, size int64) (footer, error) {
	if len(b) < footerSize {
		return footer{}, table.Corruptf("the file of %d bytes is too short for a footer", size)
	}
	b = b[len(b)-footerSize:]
	if string(b[36:]) != magic {
		return footer{}, table.Corruptf("the file ends with % x, not with %q: it is no Lance data file, or was cut off", b[36:], magic)
	}
	f := footer{
		columnMetadata: binary.LittleEndian.Uint64(b),
		columnTable:    binary.LittleEndian.Uint64(b[8:]),
		bufferTable:    binary.LittleEndian.Uint64(b[16:]),
		buffers:        binary.LittleEndian.Uint32(b[24:]),
		columns:        binary.LittleEndian.Uint32(b[28:]),
		major:          binary.LittleEndian.Uint16(b[32:]),
		minor:          binary.LittleEndian.Uint16(b[34:]),
	}
	return f, nil
}

// version returns the file's version, or ErrUnsupported naming it.
func (f footer) version() (Version, error) {
	switch {
	case f.major == 0 && f.minor == 3, f.major == 2 && f.minor == 0:
		// Files of 2.0 call themselves 0.3, manifests and some writers do not.
		return V2_0, nil
	case f.major == 2 && (f.minor == uint16(V2_1) || f.minor == uint16(V2_2) || f.minor == uint16(V2_3)):
		return Version(f.minor), nil
	case f.major == 0 && f.minor < 3:
		return 0, table.Unsupportedf("file format 0.1 (\"legacy\") is not supported: write the table anew with a current Lance engine, which makes it 2.x")
	case f.major == 2:
		return 0, table.Unsupportedf("file format 2.%d is not supported", f.minor)
	default:
		return 0, table.Unsupportedf("file format %d.%d is not known", f.major, f.minor)
	}
}

// check checks that the tables lie in the file, in order, before the footer.
func (f footer) check(size int64) error {
	end := uint64(size) - footerSize
	columns, buffers := 16*uint64(f.columns), 16*uint64(f.buffers)
	switch {
	case f.buffers == 0:
		return table.Corruptf("the file has no schema")
	case f.columnMetadata > f.columnTable, f.columnTable > end, columns > end-f.columnTable,
		f.bufferTable > end, buffers > end-f.bufferTable:
		return table.Corruptf("the footer points outside the file: columns at %d, tables at %d and %d, %d columns and %d buffers in %d bytes",
			f.columnMetadata, f.columnTable, f.bufferTable, f.columns, f.buffers, size)
	}
	return nil
}

// span is a range of bytes of the file.
type span struct{ offset, size uint64 }

// parseTable reads a table of {position, size}, each of which must lie in the
// file's first end bytes.
func parseTable(b []byte, end uint64, what string) ([]span, error) {
	out := make([]span, len(b)/16)
	for i := range out {
		s := span{binary.LittleEndian.Uint64(b[16*i:]), binary.LittleEndian.Uint64(b[16*i+8:])}
		if err := s.check(end); err != nil {
			return nil, fmt.Errorf("%s %d: %w", what, i, err)
		}
		out[i] = s
	}
	return out, nil
}

func (s span) check(end uint64) error {
	if s.offset > end || s.size > end-s.offset {
		return table.Corruptf("%d bytes at %d lie outside the file of %d", s.size, s.offset, end)
	}
	return nil
}
