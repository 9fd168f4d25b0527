package encoding

import (
	enc21pb "github.com/rehome-db/rehome/lance/internal/pb/enc21"
)

// Lance wrote files of format 2.2 before that was finished, and they call themselves
// 2.2 as all others do:
//
//   - Lance up to 1 ([V2_2Narrow]): chunks of mini-block pages are described by words of
//     16 bits. Lance 2 reads such pages too, later ones refuse them.
//   - Lance 2 ([V2_2Plain]): words of 32 bits, as ever since. What later ones write
//     besides it does not read: pages of one value, and levels that are stored as runs or
//     compressed where there are no values.
//   - Lance 3 and later ([V2_2]).
//
// Only the pages tell, and some pages are the same in all three.

// Kind returns the first kind of format 2.2 that has such a page, or false if all
// three do. A kind of later releases has the pages of an earlier one, except those of
// [V2_2Narrow].
func Kind(p Page) (Version, bool) {
	switch l := p.Layout.GetLayout().(type) {
	case *enc21pb.PageLayout_MiniBlock:
		m := l.MiniBlock
		switch {
		case hasRuns(m.GetRepCompression()) || hasRuns(m.GetDefCompression()) || hasWideRuns(m.GetValueCompression()):
			return V2_2, true
		case m.GetHasLargeChunk():
			return V2_2Plain, true
		default:
			return V2_2Narrow, true
		}
	case *enc21pb.PageLayout_Constant:
		c := l.Constant
		// The value is a buffer in front of those of levels, which are two or none.
		value := c.InlineValue != nil || len(p.Buffers)%2 == 1
		return V2_2, value || c.GetRepCompression() != nil || c.GetDefCompression() != nil
	case *enc21pb.PageLayout_Blob:
		p.Layout = l.Blob.GetInnerLayout()
		return Kind(p)
	case *enc21pb.PageLayout_Sparse:
		return V2_2, true
	default:
		return V2_2, false
	}
}

// Has says whether a file of v can hold a page of the given [Kind].
func (v Version) Has(kind Version) bool {
	return v == kind || kind == V2_2Plain && v == V2_2
}

// hasRuns says whether an encoding of levels is one of runs.
func hasRuns(e *enc21pb.CompressiveEncoding) bool {
	for depth := 0; depth < maxEncodingDepth; depth++ {
		general := e.GetGeneral()
		if general == nil {
			break
		}
		e = general.GetValues()
	}
	return e.GetRle() != nil
}

// hasWideRuns says whether values are runs whose lengths are not single bytes.
func hasWideRuns(e *enc21pb.CompressiveEncoding) bool {
	rle := e.GetRle()
	return rle != nil && rle.GetRunLengths().GetFlat().GetBitsPerValue() != 8
}
