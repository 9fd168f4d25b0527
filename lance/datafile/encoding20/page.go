package encoding20

import (
	"fmt"
	"slices"

	"github.com/rehome-db/rehome/lance/datafile/encoding"
	"github.com/rehome-db/rehome/lance/datafile/level"
	enc20pb "github.com/rehome-db/rehome/lance/internal/pb/enc20"
	"github.com/rehome-db/rehome/lance/readat"
	"github.com/rehome-db/rehome/table"
)

const (
	// maxDepth bounds how deep encodings are nested; writers use six.
	maxDepth = 16
	// maxValues bounds the values of a page.
	maxValues = 1 << 32
	// maxItems bounds the items of all lists of a column, so that sums of them
	// cannot overflow.
	maxItems = 1 << 48
)

// Page is a stored page: what its column's metadata says of it.
type Page struct {
	// First is the number of the page's first value in the column, and Values how
	// many it has, at most 2^32: rows, or the items of lists.
	First, Values uint64
	Encoding      *enc20pb.ArrayEncoding
	// Buffers lie in the file; whoever made the page has checked that they do.
	Buffers []encoding.Buffer
}

// Leaf is what is read through a path.
type Leaf struct {
	Type level.Type
	// Layers, leaf first; only the shape matters.
	Layers []level.Layer
	// Dictionary says that the leaf's Arrow type is a dictionary.
	Dictionary bool
}

// Source is the columns of a leaf's path.
type Source struct {
	File readat.ReaderAt
	Size uint64 // of the file
	Rows uint64
	// Lists are the pages of the columns of lists, outermost first.
	Lists [][]Page
	Pages []Page
	// Blob says that the values lie elsewhere in the file.
	Blob bool
}

// pageOf returns the number of the page that a value is in, len(pages) for none.
func pageOf(pages []Page, value uint64) int {
	i, _ := slices.BinarySearchFunc(pages, value, func(p Page, value uint64) int {
		if p.First+p.Values <= value {
			return -1
		}
		return 1
	})
	return i
}

// Name returns the name of an encoding, with those inside it, for messages: for
// example "nullable(flat(32))".
func Name(e *enc20pb.ArrayEncoding) string { return name(e, 0) }

func name(e *enc20pb.ArrayEncoding, depth int) string {
	if depth > maxDepth {
		return "..."
	}
	in := func(x *enc20pb.ArrayEncoding) string { return name(x, depth+1) }
	switch c := e.GetArrayEncoding().(type) {
	case *enc20pb.ArrayEncoding_Flat:
		s := fmt.Sprintf("flat(%d)", c.Flat.GetBitsPerValue())
		if scheme := c.Flat.GetCompression().GetScheme(); scheme != "" {
			s = scheme + "(" + s + ")"
		}
		return s
	case *enc20pb.ArrayEncoding_Nullable:
		switch n := c.Nullable.GetNullability().(type) {
		case *enc20pb.Nullable_NoNulls:
			return in(n.NoNulls.GetValues())
		case *enc20pb.Nullable_SomeNulls:
			return "nullable(" + in(n.SomeNulls.GetValues()) + ")"
		default:
			return "nulls"
		}
	case *enc20pb.ArrayEncoding_FixedSizeList:
		return fmt.Sprintf("fixed_size_list(%s, %d)", in(c.FixedSizeList.GetItems()), c.FixedSizeList.GetDimension())
	case *enc20pb.ArrayEncoding_List:
		return "list"
	case *enc20pb.ArrayEncoding_Struct:
		return "struct"
	case *enc20pb.ArrayEncoding_Binary:
		return "binary(" + in(c.Binary.GetBytes()) + ")"
	case *enc20pb.ArrayEncoding_Dictionary:
		return fmt.Sprintf("dictionary(%s, %s)", in(c.Dictionary.GetIndices()), in(c.Dictionary.GetItems()))
	case *enc20pb.ArrayEncoding_Fsst:
		return "fsst(" + in(c.Fsst.GetBinary()) + ")"
	case *enc20pb.ArrayEncoding_PackedStruct:
		return "packed_struct"
	case *enc20pb.ArrayEncoding_Bitpacked:
		return fmt.Sprintf("bitpacked(%d, %d)", c.Bitpacked.GetUncompressedBitsPerValue(), c.Bitpacked.GetCompressedBitsPerValue())
	case *enc20pb.ArrayEncoding_FixedSizeBinary:
		return fmt.Sprintf("fixed_size_binary(%s, %d)", in(c.FixedSizeBinary.GetBytes()), c.FixedSizeBinary.GetByteWidth())
	case *enc20pb.ArrayEncoding_BitpackedForNonNeg:
		return fmt.Sprintf("bitpacked_for_non_neg(%d, %d)", c.BitpackedForNonNeg.GetUncompressedBitsPerValue(), c.BitpackedForNonNeg.GetCompressedBitsPerValue())
	case *enc20pb.ArrayEncoding_Constant:
		return "constant"
	default:
		return "none"
	}
}

func unsupported(e *enc20pb.ArrayEncoding) error {
	return table.Unsupportedf("encoding: the encoding %s is not supported here", Name(e))
}
