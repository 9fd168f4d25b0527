package encoding20

import enc20pb "github.com/rehome-db/rehome/lance/internal/pb/enc20"

// Current says whether a page is described in the way in which versions of Lance since
// 1.0 write them, so that it may stay as it is: then nothing in it refers to what is
// outside the page. Pages of older versions are better written anew. indexBits is the
// width of the indices of an Arrow dictionary, 0 if the column has none.
func Current(e *enc20pb.ArrayEncoding, indexBits int) bool {
	d, ok := dense(e).GetArrayEncoding().(*enc20pb.ArrayEncoding_Dictionary)
	if indexBits > 0 && (!ok || dense(d.Dictionary.GetIndices()).GetFlat().GetBitsPerValue() != uint64(indexBits)) {
		return false // readers put arrays of all pages together
	}
	return current(e, 0)
}

func current(e *enc20pb.ArrayEncoding, depth int) bool {
	if depth > maxDepth || len(e.ProtoReflect().GetUnknown()) > 0 {
		return false
	}
	in := func(x *enc20pb.ArrayEncoding) bool { return current(x, depth+1) }
	switch c := e.GetArrayEncoding().(type) {
	case *enc20pb.ArrayEncoding_Flat:
		if c.Flat.GetBitsPerValue() == 1 && c.Flat.GetCompression() != nil {
			return false // of Lance 0.14, which did not compress them
		}
		return c.Flat.GetBuffer().GetBufferType() == enc20pb.Buffer_PAGE
	case *enc20pb.ArrayEncoding_Nullable:
		switch n := c.Nullable.GetNullability().(type) {
		case *enc20pb.Nullable_NoNulls:
			return in(n.NoNulls.GetValues())
		case *enc20pb.Nullable_SomeNulls:
			return in(n.SomeNulls.GetValidity()) && in(n.SomeNulls.GetValues())
		case *enc20pb.Nullable_AllNulls:
			return true
		}
	case *enc20pb.ArrayEncoding_FixedSizeList:
		return !c.FixedSizeList.GetHasValidity() && in(c.FixedSizeList.GetItems())
	case *enc20pb.ArrayEncoding_Binary:
		return in(c.Binary.GetIndices()) && in(c.Binary.GetBytes())
	case *enc20pb.ArrayEncoding_Fsst:
		return in(c.Fsst.GetBinary())
	case *enc20pb.ArrayEncoding_Dictionary:
		// Null indices are of versions before 0.20.
		return dense(c.Dictionary.GetIndices()).GetFlat() != nil && in(c.Dictionary.GetIndices()) && in(c.Dictionary.GetItems())
	case *enc20pb.ArrayEncoding_PackedStruct:
		return c.PackedStruct.GetBuffer().GetBufferType() == enc20pb.Buffer_PAGE
	case *enc20pb.ArrayEncoding_List:
		return in(c.List.GetOffsets())
	}
	return false
}
