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

func describeByteStreamSplit(bits int) *enc21pb.CompressiveEncoding {
	return &enc21pb.CompressiveEncoding{Compression: &enc21pb.CompressiveEncoding_ByteStreamSplit{
		ByteStreamSplit: &enc21pb.ByteStreamSplit{Values: describeFlat(bits)}}}
}

func describeGeneral(c *enc21pb.BufferCompression, values *enc21pb.CompressiveEncoding) *enc21pb.CompressiveEncoding {
	return &enc21pb.CompressiveEncoding{Compression: &enc21pb.CompressiveEncoding_General{
		General: &enc21pb.General{Compression: c, Values: values}}}
}

// describeFixedList nests one list a level, outermost first.
func describeFixedList(levels []listLevel, bits int) *enc21pb.CompressiveEncoding {
	out := describeFlat(bits)
	for i := len(levels) - 1; i >= 0; i-- {
		items := levels[i].elements
		if i > 0 {
			items /= levels[i-1].elements
		}
		out = &enc21pb.CompressiveEncoding{Compression: &enc21pb.CompressiveEncoding_FixedSizeList{
			FixedSizeList: &enc21pb.FixedSizeList{ItemsPerValue: uint64(items), Values: out, HasValidity: levels[i].validity}}}
	}
	return out
}
