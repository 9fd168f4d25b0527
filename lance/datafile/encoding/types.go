package encoding

import (
	"fmt"
	"io"

	"github.com/rehome-db/rehome/lance/datafile/level"
	enc21pb "github.com/rehome-db/rehome/lance/internal/pb/enc21"
	enc23pb "github.com/rehome-db/rehome/lance/internal/pb/enc23"
)

// Version is a minor version of file format 2.
type Version uint16

// The versions that are read and written.
const (
	V2_0 Version = 0 // its pages are those of package encoding20
	V2_1 Version = 1
	V2_2 Version = 2
	V2_3 Version = 3 // its pages are those of V2_2, and some more
	// V2_3Planar is format 2.3 too, but its pages describe themselves in other words:
	// see [Dense]. Lance up to 13 reads and writes V2_3, Lance from 14 on V2_3Planar,
	// and neither reads the other. Files do not say which they are but by their pages.
	V2_3Planar Version = planar | 3
	// V2_2Narrow and V2_2Plain are format 2.2 before it was finished, see [Kind].
	V2_2Narrow Version = narrow | 2
	V2_2Plain  Version = plain | 2
)

// These set versions apart that call themselves the same.
const (
	planar = 1 << (8 + iota)
	narrow
	plain
)

// Minor returns the minor version that files and tables state.
func (v Version) Minor() uint16 { return uint16(v & 0xff) }

// wideWords says whether mini-block pages describe chunks by words of 32 bits, and what
// came with those: dictionaries of fixed-width values, and compressed ones.
func (v Version) wideWords() bool { return v >= V2_2 && v != V2_2Narrow }

// finished says whether pages of one value and runs of levels are known.
func (v Version) finished() bool { return v.wideWords() && v != V2_2Plain }

// Planar says whether pages have planar layouts.
func (v Version) Planar() bool { return v&planar != 0 }

// String prints the version as tables record it, for example "2.1".
func (v Version) String() string { return fmt.Sprintf("2.%d", v.Minor()) }

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
	File    io.ReaderAt
	// Size is the file's. Only pages whose values lie elsewhere in it need it.
	Size uint64
}

// Name returns the name of an encoding, with those inside it, for messages: for
// example "fsst(variable)".
func Name(e *enc21pb.CompressiveEncoding) string { return name(e, 0) }

func name(e *enc21pb.CompressiveEncoding, depth int) string {
	if depth > maxEncodingDepth {
		return "..."
	}
	in := func(kind string, of ...*enc21pb.CompressiveEncoding) string {
		s := kind + "("
		for i, x := range of {
			if i > 0 {
				s += ", "
			}
			s += name(x, depth+1)
		}
		return s + ")"
	}
	switch c := e.GetCompression().(type) {
	case *enc21pb.CompressiveEncoding_Flat:
		return fmt.Sprintf("flat(%d)", c.Flat.GetBitsPerValue())
	case *enc21pb.CompressiveEncoding_Variable:
		return "variable"
	case *enc21pb.CompressiveEncoding_Constant:
		return "constant"
	case *enc21pb.CompressiveEncoding_OutOfLineBitpacking:
		return in("out_of_line_bitpacking", c.OutOfLineBitpacking.GetValues())
	case *enc21pb.CompressiveEncoding_InlineBitpacking:
		return fmt.Sprintf("inline_bitpacking(%d)", c.InlineBitpacking.GetUncompressedBitsPerValue())
	case *enc21pb.CompressiveEncoding_Fsst:
		return in("fsst", c.Fsst.GetValues())
	case *enc21pb.CompressiveEncoding_Dictionary:
		return in("dictionary", c.Dictionary.GetIndices(), c.Dictionary.GetItems())
	case *enc21pb.CompressiveEncoding_Rle:
		return in("rle", c.Rle.GetValues(), c.Rle.GetRunLengths())
	case *enc21pb.CompressiveEncoding_ByteStreamSplit:
		return in("byte_stream_split", c.ByteStreamSplit.GetValues())
	case *enc21pb.CompressiveEncoding_General:
		return in("general:"+schemeName(c.General.GetCompression().GetScheme()), c.General.GetValues())
	case *enc21pb.CompressiveEncoding_FixedSizeList:
		return in("fixed_size_list", c.FixedSizeList.GetValues())
	case *enc21pb.CompressiveEncoding_PackedStruct:
		return "packed_struct"
	case *enc21pb.CompressiveEncoding_VariablePackedStruct:
		return "variable_packed_struct"
	case *enc21pb.CompressiveEncoding_Range:
		return "range"
	case *enc21pb.CompressiveEncoding_Delta:
		return "delta"
	default:
		return "none"
	}
}

func schemeName(s enc21pb.BufferCompression_Scheme) string {
	switch s {
	case enc21pb.BufferCompression_LZ4:
		return "lz4"
	case enc21pb.BufferCompression_ZSTD:
		return "zstd"
	default:
		return fmt.Sprintf("scheme %d", int32(s))
	}
}

// LayoutName returns the name of a page layout and its value encoding, for
// messages: for example "mini_block fsst(variable)".
func LayoutName(l *enc21pb.PageLayout) string {
	switch c := l.GetLayout().(type) {
	case *enc21pb.PageLayout_MiniBlock:
		s := "mini_block " + Name(c.MiniBlock.GetValueCompression())
		if d := c.MiniBlock.GetDictionary(); d != nil {
			s += " with a dictionary of " + Name(d)
		}
		return s
	case *enc21pb.PageLayout_Constant:
		return "constant"
	case *enc21pb.PageLayout_FullZip:
		return "full_zip " + Name(c.FullZip.GetValueCompression())
	case *enc21pb.PageLayout_Blob:
		return "blob"
	case *enc21pb.PageLayout_Sparse:
		return "sparse chunks of " + Name(c.Sparse.GetValueCompression())
	default:
		return "none"
	}
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
