package encoding

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rehome-db/rehome/lance/datafile/level"
	enc21pb "github.com/rehome-db/rehome/lance/internal/pb/enc21"
	"github.com/rehome-db/rehome/table"
)

func pbLists(items uint64, values *enc21pb.CompressiveEncoding) *enc21pb.CompressiveEncoding {
	return &enc21pb.CompressiveEncoding{Compression: &enc21pb.CompressiveEncoding_FixedSizeList{
		FixedSizeList: &enc21pb.FixedSizeList{ItemsPerValue: items, HasValidity: true, Values: values}}}
}

func pbNothing() *enc21pb.CompressiveEncoding {
	return &enc21pb.CompressiveEncoding{Compression: &enc21pb.CompressiveEncoding_Constant{Constant: &enc21pb.Constant{}}}
}

func zipPage(bitsRep, bitsDef uint32, bits, items uint64, values *enc21pb.CompressiveEncoding, layers ...enc21pb.RepDefLayer) *enc21pb.PageLayout {
	return &enc21pb.PageLayout{Layout: &enc21pb.PageLayout_FullZip{FullZip: &enc21pb.FullZipLayout{
		BitsRep: bitsRep, BitsDef: bitsDef, Details: &enc21pb.FullZipLayout_BitsPerValue{BitsPerValue: uint32(bits)},
		NumItems: uint32(items), NumVisibleItems: uint32(items), ValueCompression: values, Layers: layers}}}
}

var inLists = []level.Layer{level.NullableItem, level.NullAndEmptyList}

// The pages that pylance 14.0.2 writes for booleans that are to be zipped, each in a
// byte of its own.
func TestZippedBits(t *testing.T) {
	bit := level.Type{Kind: level.Fixed, Bits: 1}
	// true, false, null, true
	b, err := decodeAll(t, bit, nullable, memoryPage(zipPage(0, 1, 8, 4, pbFlat(8), 3), 4, unhex(t, "00 01 00 00 01 00 00 01")))
	require.NoError(t, err)
	require.Equal(t, []uint16{0, 0, 1, 0}, b.Def)
	require.Equal(t, byte(0b1001), b.Values.Data[0]&0b1011)

	// true, false, false, true, without levels
	b, err = decodeAll(t, bit, nullable, memoryPage(zipPage(0, 0, 8, 4, pbFlat(8), 1), 4, unhex(t, "01 00 00 01")))
	require.NoError(t, err)
	require.Equal(t, 4, b.Values.N)
	require.Equal(t, byte(0b1001), b.Values.Data[0]&0b1111)

	// [true, false], null, [], [null, true]
	page := memoryPage(zipPage(1, 2, 8, 6, pbFlat(8), 3, 6), 4, unhex(t, "04 01 00 00 06 07 05 00 00 01"), unhex(t, "00 04 05 06 0a"))
	b, err = decodeAll(t, bit, inLists, page)
	require.NoError(t, err)
	require.Equal(t, []uint16{1, 0, 1, 1, 1, 0}, b.Rep)
	require.Equal(t, []uint16{0, 0, 2, 3, 1, 0}, b.Def)
	require.Equal(t, 4, b.Values.N)
	require.Equal(t, byte(0b1001), b.Values.Data[0]&0b1011)

	// Bits cannot be packed where each has levels.
	_, err = decodeAll(t, bit, nullable, memoryPage(zipPage(0, 1, 8, 4, pbFlat(1), 3), 4, unhex(t, "00 01 00 00 01 00 00 01")))
	require.ErrorIs(t, err, table.ErrCorrupt)
}

// The pages that pylance 14.0.2 writes for fixed-size lists all of whose items are null:
// their validity and nothing else.
func TestZippedListsWithoutItems(t *testing.T) {
	shorts := level.Type{Kind: level.FixedList, Bits: 16, Dim: 3}
	three := pbLists(3, pbNothing())
	check := func(b *level.Block, n int, valid ...byte) {
		require.Equal(t, n, b.Values.N)
		require.Equal(t, make([]byte, (n*b.Type.ValueBits()+7)/8), b.Values.Data)
		require.Equal(t, valid, b.Values.ItemValid)
	}
	// [null, null, null] twice, null
	b, err := decodeAll(t, shorts, nullable, memoryPage(zipPage(0, 1, 8, 3, three, 3), 3, unhex(t, "00 00 00 00 01 00")))
	require.NoError(t, err)
	require.Equal(t, []uint16{0, 0, 1}, b.Def)
	check(b, 3, 0, 0)

	// lists of them: [that, null], [], null, [that]
	page := memoryPage(zipPage(1, 2, 8, 5, three, 3, 6), 4, unhex(t, "04 00 01 00 07 06 04 00"), unhex(t, "00 04 05 06 08"))
	b, err = decodeAll(t, shorts, inLists, page)
	require.NoError(t, err)
	require.Equal(t, []uint16{1, 0, 1, 1, 1}, b.Rep)
	require.Equal(t, []uint16{0, 1, 3, 2, 0}, b.Def)
	check(b, 3, 0, 0)

	// nine booleans
	bools := level.Type{Kind: level.FixedList, Bits: 1, Dim: 9}
	b, err = decodeAll(t, bools, nullable, memoryPage(zipPage(0, 1, 16, 2, pbLists(9, pbNothing()), 3), 2, unhex(t, "00 0000 01 0000")))
	require.NoError(t, err)
	require.Equal(t, []uint16{0, 1}, b.Def)
	check(b, 2, 0, 0, 0)

	// two lists of three each: [[null x3], null], [null, null]
	nested := level.Type{Kind: level.FixedList, Bits: 16, Dim: 6, Inner: 2}
	b, err = decodeAll(t, nested, nullable, memoryPage(zipPage(0, 0, 16, 2, pbLists(2, three), 1), 2, unhex(t, "01 00 00 00")))
	require.NoError(t, err)
	check(b, 2, 1, 0)

	// the same, but lists only: [null, null], whatever would be in them
	b, err = decodeAll(t, nested, nullable, memoryPage(zipPage(0, 0, 8, 2, pbLists(2, pbNothing()), 1), 2, unhex(t, "00 00")))
	require.NoError(t, err)
	check(b, 2, 0b11111100, 0b11111100)

	// Without validity nobody knows what the items are, and elsewhere writers do not do it.
	bare := pbLists(3, pbNothing())
	bare.GetFixedSizeList().HasValidity = false
	_, err = decodeAll(t, shorts, nullable, memoryPage(zipPage(0, 1, 0, 3, bare, 3), 3, unhex(t, "00 00 01")))
	require.ErrorIs(t, err, table.ErrUnsupported)
	mini := &enc21pb.PageLayout{Layout: &enc21pb.PageLayout_MiniBlock{MiniBlock: &enc21pb.MiniBlockLayout{
		ValueCompression: three, Layers: []enc21pb.RepDefLayer{1}, NumBuffers: 2, NumItems: 1}}}
	_, err = decodeAll(t, shorts, nullable, memoryPage(mini, 1, unhex(t, "0000"), make([]byte, 8)))
	require.ErrorIs(t, err, table.ErrUnsupported)
}
