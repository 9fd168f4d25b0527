package encoding

import (
	"fmt"

	enc21pb "github.com/rehome-db/rehome/lance/internal/pb/enc21"
)

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
