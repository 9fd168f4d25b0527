package encoding

import (
	"encoding/binary"

	"github.com/rehome-db/rehome/lance/datafile/level"
	enc21pb "github.com/rehome-db/rehome/lance/internal/pb/enc21"
	"github.com/rehome-db/rehome/table"
)

// BlobDescriptions is the type of blocks that [Encoder.EncodeBlobs] takes: a value
// is a position in the file and a size, 64 bits each.
func BlobDescriptions() level.Type { return descriptions }

// EncodeBlobs is Encode for a column whose values were written elsewhere in the
// file: b, of type [BlobDescriptions], says where. What it says of values without
// bytes does not matter. Paths with lists are ErrUnsupported.
func (e *Encoder) EncodeBlobs(b *level.Block, emit func(EncodedPage) error) error {
	if b.Rows == 0 {
		return nil
	}
	if b.Type != descriptions || b.Rep != nil {
		return table.Unsupportedf("encoding: blobs in lists are not supported")
	}
	data := append([]byte(nil), b.Values.Data[:16*b.Rows]...)
	for i := range b.Rows {
		row := data[16*i : 16*i+16]
		def := uint64(0)
		if b.Def != nil {
			def = uint64(b.Def[i])
		}
		if def > 0 || binary.LittleEndian.Uint64(row[8:]) == 0 {
			binary.LittleEndian.PutUint64(row, def<<16)
			clear(row[8:])
		}
	}
	inner := &level.Block{Type: descriptions, Rows: b.Rows, Layers: []level.Layer{level.AllValidItem},
		Values: level.Values{N: b.Rows, Data: data}}
	page, at, err := e.packedPage(inner, e.levels(inner))
	if err != nil {
		return err
	}
	if at != nil {
		return table.Unsupportedf("encoding: a blob page of %d rows fits no page", b.Rows)
	}
	page.Rows = b.Rows
	page.Layout = &enc21pb.PageLayout{Layout: &enc21pb.PageLayout_Blob{
		Blob: &enc21pb.BlobLayout{InnerLayout: page.Layout, Layers: layersProto(b.Layers)}}}
	return emit(page)
}
