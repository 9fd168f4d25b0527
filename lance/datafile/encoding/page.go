package encoding

import (
	"context"

	"github.com/rehome-db/rehome/lance/datafile/level"
	enc21pb "github.com/rehome-db/rehome/lance/internal/pb/enc21"
	enc23pb "github.com/rehome-db/rehome/lance/internal/pb/enc23"
	"github.com/rehome-db/rehome/lance/readat"
	"github.com/rehome-db/rehome/table"
)

// Buffer is a range of bytes of a file.
type Buffer struct{ Offset, Size uint64 }

// Page is a stored page: what its column's metadata says of it.
type Page struct {
	Layout *enc21pb.PageLayout
	// Planar says so instead in format 2.3 where the structure is sparse.
	Planar *enc23pb.PlanarLayout
	// Rows is the number of top-level rows, at most 2^32.
	Rows uint64
	// Buffers lie in File; whoever made the page has checked that they do.
	Buffers []Buffer
	File    readat.ReaderAt
	// Size is the file's. Only pages whose values lie elsewhere in it need it.
	Size uint64
}

// PageLayers returns the layers that a page declares, nil of a layout that is not known,
// and whether it has definition levels at all: without them nothing is absent, whatever
// it declares.
func PageLayers(p Page) (layers []level.Layer, def bool) {
	switch l := p.Layout.GetLayout().(type) {
	case *enc21pb.PageLayout_MiniBlock:
		return layersOf(l.MiniBlock.GetLayers()), l.MiniBlock.GetDefCompression() != nil
	case *enc21pb.PageLayout_FullZip:
		return layersOf(l.FullZip.GetLayers()), l.FullZip.GetBitsDef() > 0
	case *enc21pb.PageLayout_Constant:
		n := len(p.Buffers)
		return layersOf(l.Constant.GetLayers()), n >= 2 && p.Buffers[n-1].Size > 0
	default:
		return nil, false
	}
}

// layersOf converts the layers of a page.
func layersOf(in []enc21pb.RepDefLayer) []level.Layer {
	out := make([]level.Layer, len(in))
	for i, l := range in {
		out[i] = level.Layer(l)
		if l < 0 || l > 255 {
			out[i] = 0
		}
	}
	return out
}

func layersProto(in []level.Layer) []enc21pb.RepDefLayer {
	out := make([]enc21pb.RepDefLayer, len(in))
	for i, l := range in {
		out[i] = enc21pb.RepDefLayer(l)
	}
	return out
}

// read reads a buffer of the page, or a part of it, into dst's memory.
func read(ctx context.Context, p Page, dst []byte, b Buffer) ([]byte, error) {
	if b.Size > 1<<40 {
		return nil, table.Corruptf("encoding: a buffer of %d bytes", b.Size)
	}
	dst = resize(dst, int(b.Size))
	if err := readat.Full(ctx, p.File, dst, b.Offset); err != nil {
		return nil, err
	}
	return dst, nil
}
