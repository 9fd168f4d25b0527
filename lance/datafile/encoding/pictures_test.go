package encoding

import (
	"encoding/hex"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rehome-db/rehome/lance/datafile/level"
	enc21pb "github.com/rehome-db/rehome/lance/internal/pb/enc21"
)

// hexes prints buffers, with a bar between them.
func hexes(buffers ...[]byte) string {
	var out []string
	for _, b := range buffers {
		out = append(out, hex.EncodeToString(b))
	}
	return strings.Join(out, " | ")
}

// picture drops the blanks that pictures have within a buffer.
func picture(s string) string {
	return strings.ReplaceAll(strings.ReplaceAll(s, " ", ""), "|", " | ")
}

// chunkOf encodes n value slots as one chunk and returns its buffers, without filler
// between them.
func chunkOf(v valueEncoder, n int) (out [][]byte) {
	in, sizes := v.append(nil, nil, 0, n)
	for _, size := range sizes {
		out = append(out, in[:size])
		in = in[pad8(size):]
	}
	return out
}

// The pictures in the comments of codecs are what is written, and they are read back.
func TestPicturesOfValues(t *testing.T) {
	int32s := unhex(t, "07000000 07000000 07000000 09000000")
	for _, c := range []struct {
		name   string
		values valueEncoder
		typ    level.Type
		n      int
		want   string
	}{
		{"flat", &flatEncoder{data: []byte{7, 0, 8, 0}, bits: 16}, level.Type{Kind: level.Fixed, Bits: 16}, 2, "07 00 08 00"},
		{"booleans", &flatEncoder{data: []byte{5}, bits: 1}, level.Type{Kind: level.Fixed, Bits: 1}, 3, "05"},
		{"runs", &rleEncoder{data: int32s, bits: 32}, level.Type{Kind: level.Fixed, Bits: 32}, 4, "07 00 00 00  09 00 00 00 | 03 01"},
		{"byte stream split", &byteStreamSplitEncoder{flatEncoder{data: []byte{1, 2, 3, 4, 5, 6, 7, 8}, bits: 32}},
			level.Type{Kind: level.Fixed, Bits: 32}, 2, "01 05  02 06  03 07  04 08"},
		{"strings", &stringEncoder{data: []byte("abc"), offsets: []uint32{0, 2, 2, 3}, width: 4, encoding: describeVariable(32)},
			level.Type{Kind: level.Variable, Bits: 32}, 3,
			"10 00 00 00  12 00 00 00  12 00 00 00  13 00 00 00  61 62 63  48"},
		{"fixed-size lists", &fixedListEncoder{levels: []listLevel{{elements: 2, validity: true}}, typ: level.Type{Kind: level.FixedList, Bits: 8, Dim: 2},
			data: []byte{1, 0, 3, 4}, valid: []byte{0x0d}}, level.Type{Kind: level.FixedList, Bits: 8, Dim: 2}, 2, "0d | 01 00 03 04"},
	} {
		t.Run(c.name, func(t *testing.T) {
			buffers := chunkOf(c.values, c.n)
			require.Equal(t, picture(c.want), hexes(buffers...))
			description, n := c.values.describe()
			require.Equal(t, n, len(buffers))
			d, err := compileValues(description, c.typ, inChunk, 1<<20)
			require.NoError(t, err)
			var s sink
			s.begin(c.typ, path{})
			require.NoError(t, d.appendTo(&s, c.n, buffers))
			require.Equal(t, c.n, s.v.N)
			if c.typ.Kind == level.Variable {
				require.Equal(t, []uint32{0, 2, 2, 3}, s.v.Offsets)
			}
		})
	}
}

func TestPicturesOfLevels(t *testing.T) {
	many := make([]uint16, 1026)
	many[0], many[1024], many[1025] = 5, 5, 4
	var scratch []byte
	for _, c := range []struct {
		name       string
		by         levelEncoder
		levels     []uint16
		size       int
		begin, end string
	}{
		{"flat", flatLevels{}, []uint16{0, 1}, 4, "00 00 01 00", ""},
		{"runs", rleLevels{}, []uint16{0, 0, 0, 1}, 14, "04 00 00 00 00 00 00 00  00 00  01 00  03 01", ""},
		{"packed", outOfLineLevels{width: 3, scratch: &scratch}, many, 384 + 4, "", "05 00 04 00"},
	} {
		t.Run(c.name, func(t *testing.T) {
			out := c.by.append(nil, c.levels)
			require.Len(t, out, c.size)
			require.Equal(t, c.size, c.by.size(c.levels))
			require.True(t, strings.HasPrefix(hexes(out), picture(c.begin)), "%x", out)
			require.True(t, strings.HasSuffix(hexes(out), picture(c.end)), "%x", out)
			d, err := compileLevels(c.by.describe(), 1<<20)
			require.NoError(t, err)
			got, err := d.decode(nil, len(c.levels), [][]byte{out})
			require.NoError(t, err)
			require.Equal(t, appendUint16s(nil, c.levels), got)
		})
	}
}

func TestPicturesOfBlocks(t *testing.T) {
	require.Equal(t, picture("20000000 18000000 00000000 02000000 02000000 03000000 616263"), hexes(appendStringBlock(nil, 4, []string{"ab", "", "c"})))
	require.Equal(t, picture("04000000 40 61626364"), hexes(new(compressor).lz4Block(nil, []byte("abcd"))))

	packed := &inlineEncoder{data: appendUint16s(nil, append(make([]uint16, 1023), 5)), bits: 16, scratch: new([]byte)}
	block := chunkOf(packed, 1024)[0]
	require.Len(t, block, 2+384)
	require.Equal(t, "0300", hexes(block[:2]))

	numbers, err := compileSequence(pbRuns(pbFlat(64), pbFlat(32)), 64, 1<<20, false)
	require.NoError(t, err)
	got, err := numbers.load(4, unhex(t, "1000000000000000 0700000000000000 0900000000000000 03000000 01000000"))
	require.NoError(t, err)
	require.Equal(t, []uint64{7, 7, 7, 9}, got.values)
}

// pageOf encodes b as one page.
func pageOf(t *testing.T, opts EncodeOptions, b *level.Block) (out EncodedPage) {
	require.NoError(t, NewEncoder(opts).Encode(b, func(p EncodedPage) error {
		out = EncodedPage{Layout: p.Layout, Rows: p.Rows}
		for _, b := range p.Buffers {
			out.Buffers = append(out.Buffers, append([]byte(nil), b...))
		}
		return nil
	}))
	return out
}

func TestPicturesOfPages(t *testing.T) {
	text := level.Type{Kind: level.Variable, Bits: 32}
	nullable := []level.Layer{level.NullableItem}
	zipped := pageOf(t, EncodeOptions{Version: V2_1, Zip: true}, &level.Block{Type: text, Rows: 2, Layers: nullable, Def: []uint16{0, 1},
		Values: level.Values{N: 2, Data: []byte("ab"), Offsets: []uint32{0, 2, 2}}})
	require.Equal(t, picture("00 02000000 6162 01 | 00 07 08"), hexes(zipped.Buffers...))

	chunk := pageOf(t, EncodeOptions{Version: V2_1, Compression: "none"}, &level.Block{Type: level.Type{Kind: level.Fixed, Bits: 32}, Rows: 4,
		Layers: nullable, Def: []uint16{0, 0, 1, 0}, Values: level.Values{N: 4, Data: unhex(t, "07000000 08000000 00000000 09000000")}})
	require.Equal(t, picture("3000 | 0400 0800 1000 fefe 0000 0000 0100 0000 07000000 08000000 08000000 09000000"), hexes(chunk.Buffers...))
	require.NotNil(t, chunk.Layout.GetLayout().(*enc21pb.PageLayout_MiniBlock))

	items := pageOf(t, EncodeOptions{Version: V2_1, Compression: "none", IndexBits: 32}, &level.Block{Type: text, Rows: 3,
		Layers: []level.Layer{level.AllValidItem}, Values: level.Values{N: 3, Data: []byte("aba"), Offsets: []uint32{0, 1, 2, 3}}})
	require.Equal(t, picture("20000000 14000000 00000000 01000000 02000000 6162"), hexes(items.Buffers[2]))
	require.Equal(t, picture("00000000 01000000 00000000"), hexes(items.Buffers[1][8:20]))
}
