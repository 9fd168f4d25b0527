package datafile

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/bits"
	"path"
	"strings"

	"github.com/rehome-db/rehome/lance/datafile/encoding"
	"github.com/rehome-db/rehome/lance/readat"
	"github.com/rehome-db/rehome/table"
)

// BlobKind says where a blob of the second form lies.
type BlobKind uint8

// The kinds.
const (
	// BlobInline lies in the data file, between the pages.
	BlobInline BlobKind = iota
	// BlobPacked is a part of a file beside the data file that several blobs share.
	BlobPacked
	// BlobDedicated is a file beside the data file.
	BlobDedicated
	// BlobExternal lies wherever its URI says and belongs to somebody else.
	BlobExternal
)

// BlobDescription is what a column of blobs of the second form (the extension
// lance.blob.v2) holds for each: not the bytes, but where they are. It is stored as
// a packed struct: the kind in one byte, position and size in eight each, the id in
// four, and the URI behind its length in four.
type BlobDescription struct {
	Kind BlobKind
	// Position and Size delimit the bytes in whatever holds them. For BlobExternal
	// both may be 0, for all of it.
	Position, Size uint64
	// ID numbers the files beside the data file. For BlobExternal it is the number of
	// a base path that URI is relative to, 0 for none.
	ID uint32
	// URI is for BlobExternal.
	URI string
}

const descriptionBytes = 1 + 8 + 8 + 4 + 4

// ParseBlobDescription reads a value of a column of descriptions.
func ParseBlobDescription(b []byte) (BlobDescription, error) {
	if len(b) < descriptionBytes || uint64(len(b)) != descriptionBytes+uint64(binary.LittleEndian.Uint32(b[21:])) {
		return BlobDescription{}, table.Corruptf("datafile: a description of a blob in %d bytes", len(b))
	}
	d := BlobDescription{
		Kind: BlobKind(b[0]), Position: binary.LittleEndian.Uint64(b[1:]), Size: binary.LittleEndian.Uint64(b[9:]),
		ID: binary.LittleEndian.Uint32(b[17:]), URI: string(b[descriptionBytes:]),
	}
	if d.Kind > BlobExternal {
		return d, table.Unsupportedf("datafile: a blob of kind %d is not supported", d.Kind)
	}
	return d, nil
}

// Append appends the description as a value of a column.
func (d BlobDescription) Append(dst []byte) []byte {
	dst = append(dst, byte(d.Kind))
	dst = binary.LittleEndian.AppendUint64(dst, d.Position)
	dst = binary.LittleEndian.AppendUint64(dst, d.Size)
	dst = binary.LittleEndian.AppendUint32(dst, d.ID)
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(d.URI)))
	return append(dst, d.URI...)
}

// SidecarPath returns the path of the file of blobs with the given id beside a data
// file: for data/x.lance and 1 it is data/x/1000...0.blob, the id's bits in reverse,
// which spreads names over the partitions of an object store.
func SidecarPath(dataFile string, id uint32) string {
	return path.Join(strings.TrimSuffix(dataFile, path.Ext(dataFile)), fmt.Sprintf("%032b.blob", bits.Reverse32(id)))
}

// ReadAt reads bytes of the file, for blobs that lie in it. It implements
// [readat.ReaderAt].
func (f *File) ReadAt(ctx context.Context, p []byte, off int64) (int, error) {
	return f.r.ReadAt(ctx, p, off)
}

// AppendBlob copies size bytes at offset of r into the file, for a blob that a
// description is about to refer to, and returns where they are.
func (c *ColumnWriter) AppendBlob(ctx context.Context, r readat.ReaderAt, offset, size uint64) (position uint64, err error) {
	if c.err != nil {
		return 0, c.err
	}
	at, err := c.w.copyPage(ctx, r, []encoding.Buffer{{Offset: offset, Size: size}})
	if err != nil {
		return 0, err
	}
	return at[0], nil
}
