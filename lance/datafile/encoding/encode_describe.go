package encoding

import (
	enc21pb "github.com/rehome-db/rehome/lance/internal/pb/enc21"
)

// Descriptions of encodings, spelled the way writers nest them.

func describeFlat(bits int) *enc21pb.CompressiveEncoding {
	return &enc21pb.CompressiveEncoding{Compression: &enc21pb.CompressiveEncoding_Flat{
		Flat: &enc21pb.Flat{BitsPerValue: uint64(bits)}}}
}

func describeVariable(offsetBits int) *enc21pb.CompressiveEncoding {
	return &enc21pb.CompressiveEncoding{Compression: &enc21pb.CompressiveEncoding_Variable{
		Variable: &enc21pb.Variable{Offsets: describeFlat(offsetBits)}}}
}

func describeFSST(table []byte, values *enc21pb.CompressiveEncoding) *enc21pb.CompressiveEncoding {
	return &enc21pb.CompressiveEncoding{Compression: &enc21pb.CompressiveEncoding_Fsst{
		Fsst: &enc21pb.Fsst{SymbolTable: table, Values: values}}}
}

func describeInlineBitpacking(bits int) *enc21pb.CompressiveEncoding {
	return &enc21pb.CompressiveEncoding{Compression: &enc21pb.CompressiveEncoding_InlineBitpacking{
		InlineBitpacking: &enc21pb.InlineBitpacking{UncompressedBitsPerValue: uint64(bits)}}}
}

func describeOutOfLineBitpacking(bits, width int) *enc21pb.CompressiveEncoding {
	return &enc21pb.CompressiveEncoding{Compression: &enc21pb.CompressiveEncoding_OutOfLineBitpacking{
		OutOfLineBitpacking: &enc21pb.OutOfLineBitpacking{UncompressedBitsPerValue: uint64(bits), Values: describeFlat(width)}}}
}

func describeRLE(bits int) *enc21pb.CompressiveEncoding {
	return &enc21pb.CompressiveEncoding{Compression: &enc21pb.CompressiveEncoding_Rle{
		Rle: &enc21pb.Rle{Values: describeFlat(bits), RunLengths: describeFlat(8)}}}
}

func describeGeneral(c *enc21pb.BufferCompression, values *enc21pb.CompressiveEncoding) *enc21pb.CompressiveEncoding {
	return &enc21pb.CompressiveEncoding{Compression: &enc21pb.CompressiveEncoding_General{
		General: &enc21pb.General{Compression: c, Values: values}}}
}

// describeFixedList nests one list a dimension, outermost first. Only the items
// of the innermost can be null.
func describeFixedList(dims []int, bits int, itemValidity bool) *enc21pb.CompressiveEncoding {
	out := describeFlat(bits)
	for i := len(dims) - 1; i >= 0; i-- {
		out = &enc21pb.CompressiveEncoding{Compression: &enc21pb.CompressiveEncoding_FixedSizeList{
			FixedSizeList: &enc21pb.FixedSizeList{ItemsPerValue: uint64(dims[i]), Values: out,
				HasValidity: itemValidity && i == len(dims)-1}}}
	}
	return out
}
