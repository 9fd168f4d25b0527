package rowids

import (
	"encoding/binary"
	"encoding/hex"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	tablepb "github.com/rehome-db/rehome/lance/internal/pb/table"
	"github.com/rehome-db/rehome/table"
)

// What stock engines stored, byte for byte, and what it means.
func TestStockBytes(t *testing.T) {
	thirds := func(from, n table.RowID) (out []table.RowID) {
		for id := from; id < from+n; id++ {
			if id%3 != 0 {
				out = append(out, id)
			}
		}
		return out
	}
	for name, c := range map[string]struct {
		hex string
		ids []table.RowID
	}{
		"a range from the start": {"0a050a03" + "10e807", idsOf(0, 1000)},
		"a range":                {"0a080a06" + "08e80710d00f", idsOf(1000, 2000)},
		// Every third row deleted: ids 1 2 4 5 7 8 ... 22 23, lowest bit first.
		"a bitmap": {"0a0b1a09" + "08011018" + "1a03" + "dbb66d", thirds(1, 23)},
	} {
		data, err := hex.DecodeString(c.hex)
		require.NoError(t, err)
		s, err := Decode(data, uint64(len(c.ids)))
		require.NoError(t, err, name)
		require.Equal(t, c.ids, all(s), name)
		require.Equal(t, c.hex, hex.EncodeToString(Of(c.ids...).Encode()), name)
	}
}

func idsOf(from, end table.RowID) (out []table.RowID) {
	for id := from; id < end; id++ {
		out = append(out, id)
	}
	return out
}

func TestFormIsTheSmallestByTheStockEstimate(t *testing.T) {
	without := func(end table.RowID, holes ...table.RowID) (out []table.RowID) {
		gone := map[table.RowID]bool{}
		for _, h := range holes {
			gone[h] = true
		}
		for id := range end {
			if !gone[id] {
				out = append(out, id)
			}
		}
		return out
	}
	var sparse, alternating []table.RowID
	for id := range table.RowID(100) {
		sparse = append(sparse, 1000*id)
		alternating = append(alternating, 2*id)
	}
	for name, c := range map[string]struct {
		ids  []table.RowID
		want form
	}{
		"consecutive":                  {idsOf(5, 9), formRange},
		"one":                          {[]table.RowID{7}, formRange},
		"one hole":                     {without(100, 50), formHoles},
		"half":                         {alternating, formBitmap},
		"far apart":                    {sparse, formSorted},
		"not ascending":                {[]table.RowID{3, 2}, formArray},
		"the largest id":               {[]table.RowID{math.MaxUint64 - 1, math.MaxUint64}, formSorted},
		"the smallest and the largest": {[]table.RowID{0, math.MaxUint64}, formSorted},
		// 4 a hole against one bit a number: 32 numbers a hole.
		"holes and bits cost the same":    {without(64, 10, 20), formHoles},
		"holes cost more than bits":       {without(63, 10, 20, 30), formBitmap},
		"bits and numbers cost the same":  {[]table.RowID{0, 1, 47}, formBitmap},
		"numbers cost less than the bits": {[]table.RowID{0, 1, 48}, formSorted},
	} {
		s := Of(c.ids...)
		require.Len(t, s.segments, 1, name)
		require.Equal(t, c.want, s.segments[0].form, name)
		require.Equal(t, c.ids, all(s), name)
	}
}

func TestArraysAreAsNarrowAsTheyCan(t *testing.T) {
	for _, c := range []struct {
		ids  []table.RowID
		want int
	}{
		{[]table.RowID{1 << 50, 1<<50 + 65535, 1<<50 + 7}, 2},
		{[]table.RowID{65536, 0}, 4},
		{[]table.RowID{math.MaxUint32, 0}, 4},
		{[]table.RowID{math.MaxUint32 + 1, 0}, 8},
		{[]table.RowID{math.MaxUint64, math.MaxUint64 - 1, 0}, 8},
	} {
		s := Of(c.ids...)
		require.Equal(t, c.want, s.segments[0].array.width, "%v", c.ids)
		require.Equal(t, c.ids, all(s))
		again, err := Decode(s.Encode(), uint64(len(c.ids)))
		require.NoError(t, err)
		require.Equal(t, c.ids, all(again))
	}
}

func TestPiecesOfSeveralSourcesStayApartUnlessTheyAreRanges(t *testing.T) {
	s := Concat(Range(0, 5), Range(5, 9), Range(20, 22), Range(9, 9), nil, Of(1000, 2000))
	require.Equal(t, uint64(13), s.Len())
	require.Len(t, s.segments, 3, "0 to 9, 20 to 22, the rest")
	require.Equal(t, append(append(idsOf(0, 9), 20, 21), 1000, 2000), all(s))
}

func u64s(values ...uint64) (out []byte) {
	for _, v := range values {
		out = binary.LittleEndian.AppendUint64(out, v)
	}
	return out
}

func TestDecodeRefusesWhatBreaksTheFormat(t *testing.T) {
	values := func(v ...uint64) *tablepb.EncodedU64Array {
		return &tablepb.EncodedU64Array{Array: &tablepb.EncodedU64Array_U64Array_{U64Array: &tablepb.EncodedU64Array_U64Array{Values: u64s(v...)}}}
	}
	holes := func(start, end uint64, a *tablepb.EncodedU64Array) *tablepb.U64Segment {
		return &tablepb.U64Segment{Segment: &tablepb.U64Segment_RangeWithHoles_{RangeWithHoles: &tablepb.U64Segment_RangeWithHoles{Start: start, End: end, Holes: a}}}
	}
	bits := func(start, end uint64, b ...byte) *tablepb.U64Segment {
		return &tablepb.U64Segment{Segment: &tablepb.U64Segment_RangeWithBitmap_{RangeWithBitmap: &tablepb.U64Segment_RangeWithBitmap{Start: start, End: end, Bitmap: b}}}
	}
	sorted := func(a *tablepb.EncodedU64Array) *tablepb.U64Segment {
		return &tablepb.U64Segment{Segment: &tablepb.U64Segment_SortedArray{SortedArray: a}}
	}
	unknown := &tablepb.U64Segment{}
	unknown.ProtoReflect().SetUnknown([]byte{0x3a, 0x00})
	unknownArray := &tablepb.EncodedU64Array{}
	unknownArray.ProtoReflect().SetUnknown([]byte{0x3a, 0x00})
	for name, c := range map[string]struct {
		segments []*tablepb.U64Segment
		want     error
		message  string
	}{
		"a range backwards":       {[]*tablepb.U64Segment{rangeMessage(5, 4)}, table.ErrCorrupt, "goes backwards"},
		"more than 2^64 ids":      {[]*tablepb.U64Segment{rangeMessage(0, math.MaxUint64), rangeMessage(0, 2)}, table.ErrCorrupt, "more than 2^64"},
		"no form":                 {[]*tablepb.U64Segment{{}}, table.ErrCorrupt, "segment 0: a segment has no form"},
		"a form to come":          {[]*tablepb.U64Segment{rangeMessage(0, 1), unknown}, table.ErrUnsupported, "segment 1: a segment of a form that is not known"},
		"no holes":                {[]*tablepb.U64Segment{holes(0, 9, nil)}, table.ErrCorrupt, "no form"},
		"holes of a form to come": {[]*tablepb.U64Segment{holes(0, 9, unknownArray)}, table.ErrUnsupported, "not known"},
		"holes outside":           {[]*tablepb.U64Segment{holes(10, 19, values(9))}, table.ErrCorrupt, "not all in the range"},
		"holes at the end":        {[]*tablepb.U64Segment{holes(10, 19, values(19))}, table.ErrCorrupt, "not all in the range"},
		"holes twice":             {[]*tablepb.U64Segment{holes(10, 19, values(12, 12))}, table.ErrCorrupt, "do not ascend"},
		"a bitmap cut short":      {[]*tablepb.U64Segment{bits(0, 17, 1, 1)}, table.ErrCorrupt, "bitmap of 2 bytes"},
		"a bitmap too long":       {[]*tablepb.U64Segment{bits(0, 16, 1, 1, 0)}, table.ErrCorrupt, "bitmap of 3 bytes"},
		"bits past the end":       {[]*tablepb.U64Segment{bits(0, 12, 0, 0x10)}, table.ErrCorrupt, "bits past the end"},
		"a huge bitmap":           {[]*tablepb.U64Segment{bits(0, math.MaxUint64, 1)}, table.ErrCorrupt, "bitmap of 1 bytes"},
		"not sorted":              {[]*tablepb.U64Segment{sorted(values(2, 1))}, table.ErrCorrupt, "do not ascend"},
		"half a number":           {[]*tablepb.U64Segment{sorted(&tablepb.EncodedU64Array{Array: &tablepb.EncodedU64Array_U16Array_{U16Array: &tablepb.EncodedU64Array_U16Array{Offsets: []byte{1}}}})}, table.ErrCorrupt, "cannot hold numbers"},
		"a number over 64 bits": {[]*tablepb.U64Segment{sorted(&tablepb.EncodedU64Array{Array: &tablepb.EncodedU64Array_U32Array_{U32Array: &tablepb.EncodedU64Array_U32Array{
			Base: math.MaxUint64 - 1, Offsets: []byte{2, 0, 0, 0},
		}}})}, table.ErrCorrupt, "more than 64 bits"},
	} {
		data, err := proto.Marshal(&tablepb.RowIdSequence{Segments: c.segments})
		require.NoError(t, err)
		_, err = Decode(data, 1)
		require.ErrorIs(t, err, c.want, name)
		require.ErrorContains(t, err, c.message, name)
	}
	_, err := Decode([]byte{0xff}, 1)
	require.ErrorIs(t, err, table.ErrCorrupt)
	_, err = DecodeVersions([]byte{0xff}, 1)
	require.ErrorIs(t, err, table.ErrCorrupt)
	_, err = DecodeVersions([]byte{0x0a, 0x02, 0x10, 0x05}, 1)
	require.ErrorContains(t, err, "run 0 of versions has no rows")
}

// Empty segments of every form are legal, and of no consequence.
func TestSegmentsWithoutIDs(t *testing.T) {
	empty := (array{width: 8}).message()
	data, err := proto.Marshal(&tablepb.RowIdSequence{Segments: []*tablepb.U64Segment{
		rangeMessage(7, 7),
		{Segment: &tablepb.U64Segment_SortedArray{SortedArray: empty}},
		{Segment: &tablepb.U64Segment_RangeWithBitmap_{RangeWithBitmap: &tablepb.U64Segment_RangeWithBitmap{Start: 3, End: 5, Bitmap: []byte{0}}}},
		{Segment: &tablepb.U64Segment_RangeWithHoles_{RangeWithHoles: &tablepb.U64Segment_RangeWithHoles{Start: 3, End: 5, Holes: empty}}},
		{Segment: &tablepb.U64Segment_Array{Array: empty}},
	}})
	require.NoError(t, err)
	s, err := Decode(data, 2)
	require.NoError(t, err)
	require.Equal(t, []table.RowID{3, 4}, all(s))
}

// Spans are of any form, and only their length counts.
func TestVersionSpansCountRows(t *testing.T) {
	b, _ := build(runsOf([]table.RowID{100, 102, 104}))
	data, err := proto.Marshal(&tablepb.RowDatasetVersionSequence{Runs: []*tablepb.RowDatasetVersionRun{
		{Span: rangeMessage(50, 52), Version: 4},
		{Span: b.message(), Version: 4},
		{Span: rangeMessage(9, 9), Version: 9},
		{Span: rangeMessage(0, 1), Version: 2},
	}})
	require.NoError(t, err)
	v, err := DecodeVersions(data, 6)
	require.NoError(t, err)
	require.Equal(t, VersionsOf(4, 4, 4, 4, 4, 2), v)
}

// A sequence that claims billions of ids costs nothing until it is looked through.
func TestHugeRangesAreCheap(t *testing.T) {
	s := Range(0, 1<<40)
	again, err := Decode(s.Encode(), 1<<40)
	require.NoError(t, err)
	id, ok := again.At(1<<40 - 1)
	require.True(t, ok)
	require.Equal(t, table.RowID(1<<40-1), id)
	half := again.Slice(1<<39, 1<<40)
	require.Equal(t, uint64(1<<39), half.Len())
	require.Len(t, half.Encode(), 18)
}
