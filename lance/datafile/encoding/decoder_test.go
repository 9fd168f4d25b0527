package encoding

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/hex"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
	"github.com/stretchr/testify/require"

	"github.com/rehome-db/rehome/lance/datafile/level"
	enc21pb "github.com/rehome-db/rehome/lance/internal/pb/enc21"
	"github.com/rehome-db/rehome/lance/readat"
	"github.com/rehome-db/rehome/table"
)

func unhex(t testing.TB, s string) []byte {
	b, err := hex.DecodeString(strings.Join(strings.Fields(s), ""))
	require.NoError(t, err)
	return b
}

func pbFlat(bits uint64) *enc21pb.CompressiveEncoding {
	return &enc21pb.CompressiveEncoding{Compression: &enc21pb.CompressiveEncoding_Flat{Flat: &enc21pb.Flat{BitsPerValue: bits}}}
}

func pbRLE(bits, lengthBits uint64) *enc21pb.CompressiveEncoding {
	return &enc21pb.CompressiveEncoding{Compression: &enc21pb.CompressiveEncoding_Rle{Rle: &enc21pb.Rle{Values: pbFlat(bits), RunLengths: pbFlat(lengthBits)}}}
}

func pbVariable(bits uint64) *enc21pb.CompressiveEncoding {
	return &enc21pb.CompressiveEncoding{Compression: &enc21pb.CompressiveEncoding_Variable{Variable: &enc21pb.Variable{Offsets: pbFlat(bits)}}}
}

func pbGeneral(s enc21pb.BufferCompression_Scheme, inner *enc21pb.CompressiveEncoding) *enc21pb.CompressiveEncoding {
	return &enc21pb.CompressiveEncoding{Compression: &enc21pb.CompressiveEncoding_General{General: &enc21pb.General{
		Compression: &enc21pb.BufferCompression{Scheme: s}, Values: inner}}}
}

func pbOutOfLine(bits, width uint64) *enc21pb.CompressiveEncoding {
	return &enc21pb.CompressiveEncoding{Compression: &enc21pb.CompressiveEncoding_OutOfLineBitpacking{
		OutOfLineBitpacking: &enc21pb.OutOfLineBitpacking{UncompressedBitsPerValue: bits, Values: pbFlat(width)}}}
}

// memoryPage is a page whose buffers lie one after the other.
func memoryPage(l *enc21pb.PageLayout, rows uint64, buffers ...[]byte) Page {
	p := Page{Layout: l, Rows: rows}
	var all []byte
	for _, b := range buffers {
		p.Buffers = append(p.Buffers, Buffer{uint64(len(all)), uint64(len(b))})
		all = append(all, b...)
	}
	p.File = readat.Bytes(all)
	return p
}

// decodeAll decodes a page into one block.
func decodeAll(t testing.TB, typ level.Type, layers []level.Layer, p Page) (*level.Block, error) {
	d := NewDecoder(typ, layers, Limits{})
	all, err := level.NewBuilder(typ, layers)
	require.NoError(t, err)
	err = d.Decode(context.Background(), p, 0, p.Rows, func(b *level.Block) bool {
		c, err := level.NewCursor(b)
		require.NoError(t, err)
		require.NoError(t, all.Take(c, b.Rows))
		return true
	})
	return all.Block(), err
}

var nullable = []level.Layer{level.NullableItem}

// The bytes that the stock engine writes for ten nullable int64, two of them null.
func TestMiniBlockBytes(t *testing.T) {
	layout := &enc21pb.PageLayout{Layout: &enc21pb.PageLayout_MiniBlock{MiniBlock: &enc21pb.MiniBlockLayout{
		DefCompression: pbFlat(16), ValueCompression: pbFlat(64),
		Layers: []enc21pb.RepDefLayer{3}, NumBuffers: 1, NumItems: 10,
	}}}
	chunk := unhex(t, `0a00 1400 5000 fefe  0000 0100 0000 0000 0000 0000 0100 0000 0000 0000  fefefefe`)
	for i := range 10 {
		chunk = binary.LittleEndian.AppendUint64(chunk, uint64(i*i))
	}
	require.Len(t, chunk, (0xd+1)*8)
	b, err := decodeAll(t, level.Type{Kind: level.Fixed, Bits: 64}, nullable, memoryPage(layout, 10, unhex(t, "d000"), chunk))
	require.NoError(t, err)
	require.Equal(t, []uint16{0, 1, 0, 0, 0, 0, 1, 0, 0, 0}, b.Def)
	require.Equal(t, chunk[32:], b.Values.Data)
}

// The buffer of a constant string, as format 2.2 stores it.
func TestConstantBytes(t *testing.T) {
	layout := &enc21pb.PageLayout{Layout: &enc21pb.PageLayout_Constant{Constant: &enc21pb.ConstantLayout{Layers: []enc21pb.RepDefLayer{1}}}}
	buffer := append(unhex(t, "02000000 08000000 05000000  00000000 05000000"), "hello"...)
	b, err := decodeAll(t, level.Type{Kind: level.Variable, Bits: 32}, []level.Layer{level.AllValidItem}, memoryPage(layout, 3, buffer))
	require.NoError(t, err)
	require.Equal(t, "hellohellohello", string(b.Values.Data))
	require.Equal(t, []uint32{0, 5, 10, 15}, b.Values.Offsets)

	// Every truncation is noticed.
	for n := range buffer {
		_, err := decodeAll(t, level.Type{Kind: level.Variable, Bits: 32}, []level.Layer{level.AllValidItem}, memoryPage(layout, 3, buffer[:n]))
		require.ErrorIs(t, err, table.ErrCorrupt, "%d bytes", n)
	}
}

func TestAllNull(t *testing.T) {
	layout := &enc21pb.PageLayout{Layout: &enc21pb.PageLayout_Constant{Constant: &enc21pb.ConstantLayout{Layers: []enc21pb.RepDefLayer{3}}}}
	b, err := decodeAll(t, level.Type{Kind: level.FixedList, Bits: 32, Dim: 3}, nullable, memoryPage(layout, 3))
	require.NoError(t, err)
	require.Equal(t, []uint16{1, 1, 1}, b.Def)
	require.Len(t, b.Values.Data, 36)

	layout.GetConstant().Layers[0] = 1
	_, err = decodeAll(t, level.Type{Kind: level.Fixed, Bits: 32}, []level.Layer{level.AllValidItem}, memoryPage(layout, 3))
	require.ErrorIs(t, err, table.ErrCorrupt)
}

func TestFixedDecoders(t *testing.T) {
	compile := func(e *enc21pb.CompressiveEncoding, bits int, f form) fixedDecoder {
		d, err := compileFixed(e, bits, f, 1<<20, 0)
		require.NoError(t, err)
		return d
	}
	for _, c := range []struct {
		name string
		d    fixedDecoder
		n    int
		bufs [][]byte
		want []byte // nil: corrupt
	}{
		{"bits", compile(pbFlat(1), 1, inChunk), 9, [][]byte{{0x55, 0x01}}, []byte{0x55, 0x01}},
		{"bits short", compile(pbFlat(1), 1, inChunk), 9, [][]byte{{0x55}}, nil},
		{"runs", compile(pbRLE(16, 8), 16, inChunk), 4, [][]byte{{1, 0, 2, 0}, {3, 1}}, []byte{1, 0, 1, 0, 1, 0, 2, 0}},
		{"runs beyond the chunk", compile(pbRLE(8, 8), 8, inChunk), 4, [][]byte{{1, 2}, {3, 9}}, []byte{1, 1, 1, 2}},
		{"runs beyond the block", compile(pbRLE(8, 8), 8, inBlock), 4, [][]byte{{2, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 9}}, nil},
		{"runs in a block", compile(pbRLE(8, 8), 8, inBlock), 4, [][]byte{{2, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 1}}, []byte{1, 1, 1, 2}},
		{"runs too short", compile(pbRLE(8, 8), 8, inChunk), 4, [][]byte{{1, 2}, {3}}, nil},
		{"empty run", compile(pbRLE(8, 8), 8, inChunk), 4, [][]byte{{1, 2, 3}, {3, 0, 1}}, nil},
		{"wide lengths", compile(pbRLE(8, 32), 8, inChunk), 3, [][]byte{{7}, {3, 0, 0, 0}}, []byte{7, 7, 7}},
		{"plain tail", compile(pbOutOfLine(16, 3), 16, inBlock), 2, [][]byte{{1, 2, 3, 4}}, []byte{1, 2, 3, 4}},
		{"tail of no length", compile(pbOutOfLine(16, 3), 16, inBlock), 2, [][]byte{{1, 2, 3}}, nil},
		{"no bits", compile(pbOutOfLine(8, 0), 8, inBlock), 1026, [][]byte{{}}, make([]byte, 1026)},
		{"no bits, plain tail", compile(pbOutOfLine(8, 0), 8, inBlock), 1026, [][]byte{{7, 8}}, append(make([]byte, 1024), 7, 8)},
		{"too many of no bits", compile(pbOutOfLine(8, 0), 8, inBlock), 1 << 21, [][]byte{{}}, nil},
		{"too many blocks", compile(pbOutOfLine(16, 3), 16, inBlock), 4096, [][]byte{{1, 2, 3}}, nil},
		{"inline width", compile(&enc21pb.CompressiveEncoding{Compression: &enc21pb.CompressiveEncoding_InlineBitpacking{
			InlineBitpacking: &enc21pb.InlineBitpacking{UncompressedBitsPerValue: 8}}}, 8, inChunk), 2, [][]byte{{9}}, nil},
		{"inline zeros", compile(&enc21pb.CompressiveEncoding{Compression: &enc21pb.CompressiveEncoding_InlineBitpacking{
			InlineBitpacking: &enc21pb.InlineBitpacking{UncompressedBitsPerValue: 8}}}, 8, inChunk), 2, [][]byte{{0}}, []byte{0, 0}},
		{"planes", compile(&enc21pb.CompressiveEncoding{Compression: &enc21pb.CompressiveEncoding_ByteStreamSplit{
			ByteStreamSplit: &enc21pb.ByteStreamSplit{Values: pbFlat(32)}}}, 32, inChunk), 2,
			[][]byte{{1, 5, 2, 6, 3, 7, 4, 8}}, []byte{1, 2, 3, 4, 5, 6, 7, 8}},
	} {
		got, err := c.d.decode(nil, c.n, c.bufs)
		if c.want == nil {
			require.ErrorIs(t, err, table.ErrCorrupt, c.name)
			continue
		}
		require.NoError(t, err, c.name)
		require.Equal(t, c.want, got, c.name)
		require.Equal(t, len(c.bufs), c.d.buffers(), c.name)
	}
}

func TestCompileRefuses(t *testing.T) {
	deep := pbFlat(8)
	for range maxEncodingDepth + 2 {
		deep = pbGeneral(enc21pb.BufferCompression_LZ4, deep)
	}
	for name, c := range map[string]struct {
		e    *enc21pb.CompressiveEncoding
		bits int
		f    form
		want error
	}{
		"nothing":              {nil, 8, inChunk, table.ErrUnsupported},
		"other width":          {pbFlat(16), 8, inChunk, table.ErrCorrupt},
		"out of line in chunk": {pbOutOfLine(16, 3), 16, inChunk, table.ErrUnsupported},
		"packed wider":         {pbOutOfLine(16, 17), 16, inBlock, table.ErrCorrupt},
		"packed 128":           {pbOutOfLine(128, 17), 128, inBlock, table.ErrUnsupported},
		"runs of 128":          {pbRLE(128, 8), 128, inChunk, table.ErrUnsupported},
		"lengths of 64":        {pbRLE(8, 64), 8, inChunk, table.ErrUnsupported},
		"unknown compression":  {pbGeneral(7, pbFlat(8)), 8, inChunk, table.ErrUnsupported},
		"too deep":             {deep, 8, inChunk, table.ErrCorrupt},
		"strings":              {pbVariable(32), 32, inChunk, table.ErrUnsupported},
	} {
		_, err := compileFixed(c.e, c.bits, c.f, 1<<20, 0)
		require.ErrorIs(t, err, c.want, name)
	}
}

func TestStringDecoders(t *testing.T) {
	chunk, err := compileStrings(pbVariable(32), inChunk, 1<<20, 0)
	require.NoError(t, err)
	// Three offsets from the buffer's start, the bytes, and filler.
	good := append(unhex(t, "0c000000 0d000000 0f000000"), "abcH"...)
	v, err := chunk.decode(2, [][]byte{good})
	require.NoError(t, err)
	require.Equal(t, []uint32{0, 1, 3}, v.offsets)
	require.Equal(t, "abc", string(v.data[:3]))
	for name, b := range map[string][]byte{
		"decreasing": unhex(t, "0c000000 0d000000 0c000000 61616161"),
		"outside":    unhex(t, "0c000000 0d000000 11000000 61616161"),
		"start":      unhex(t, "1c000000 1d000000 1f000000 61616161"),
		"too few":    good[:8],
	} {
		_, err := chunk.decode(2, [][]byte{b})
		require.ErrorIs(t, err, table.ErrCorrupt, name)
	}

	block, err := compileStrings(pbVariable(32), inBlock, 1<<20, 0)
	require.NoError(t, err)
	good = append(unhex(t, "20000000 14000000  00000000 01000000 03000000"), "abc"...)
	v, err = block.decode(2, [][]byte{good})
	require.NoError(t, err)
	require.Equal(t, []uint32{0, 1, 3}, v.offsets)
	require.Equal(t, "abc", string(v.data))
	for n := range good {
		_, err := block.decode(2, [][]byte{good[:n]})
		require.ErrorIs(t, err, table.ErrCorrupt, "%d bytes", n)
	}
}

func TestDecompress(t *testing.T) {
	want := bytes.Repeat([]byte("rehome "), 1000)
	packed := make([]byte, lz4.CompressBlockBound(len(want)))
	n, err := lz4.CompressBlock(want, packed, nil)
	require.NoError(t, err)
	framedLZ4 := append(binary.LittleEndian.AppendUint32(nil, uint32(len(want))), packed[:n]...)
	w, err := zstd.NewWriter(nil)
	require.NoError(t, err)
	frame := w.EncodeAll(want, nil)
	require.NoError(t, w.Close())
	framedZstd := append(binary.LittleEndian.AppendUint64(nil, uint64(len(want))), frame...)

	for scheme, good := range map[enc21pb.BufferCompression_Scheme][]byte{
		enc21pb.BufferCompression_LZ4: framedLZ4, enc21pb.BufferCompression_ZSTD: framedZstd,
	} {
		got, err := decompress(scheme, []byte("x"), good, len(want))
		require.NoError(t, err)
		require.Equal(t, "x"+string(want), string(got))
		// Longer than allowed, and lengths that are not the content's.
		_, err = decompress(scheme, nil, good, len(want)-1)
		require.ErrorIs(t, err, table.ErrCorrupt)
		for _, delta := range []byte{1, 0xff} {
			bad := bytes.Clone(good)
			bad[0] += delta
			_, err = decompress(scheme, nil, bad, 1<<20)
			require.ErrorIs(t, err, table.ErrCorrupt)
		}
		// A few bytes that claim a lot must not have it allocated.
		bad := bytes.Clone(good[:12])
		bad[3] = 0x3f
		require.Less(t, testing.AllocsPerRun(1, func() { _, err = decompress(scheme, nil, bad, 1<<30) }), 20.0)
		require.ErrorIs(t, err, table.ErrCorrupt)
	}
	got, err := decompress(enc21pb.BufferCompression_LZ4, nil, make([]byte, 5), 1<<20)
	require.NoError(t, err)
	require.Empty(t, got)
	// A frame without length before it, as early writers left it.
	got, err = decompress(enc21pb.BufferCompression_ZSTD, nil, frame, 1<<20)
	require.NoError(t, err)
	require.Equal(t, want, got)
}

func TestNames(t *testing.T) {
	require.Equal(t, "general:lz4(variable)", Name(pbGeneral(enc21pb.BufferCompression_LZ4, pbVariable(32))))
	require.Equal(t, "rle(flat(64), flat(8))", Name(pbRLE(64, 8)))
	require.Equal(t, "out_of_line_bitpacking(flat(3))", Name(pbOutOfLine(16, 3)))
	require.Equal(t, "none", Name(nil))
	require.Equal(t, "sparse chunks of none", LayoutName(&enc21pb.PageLayout{Layout: &enc21pb.PageLayout_Sparse{}}))
}

func FuzzDecompress(f *testing.F) {
	for _, zstdScheme := range []bool{false, true} {
		f.Add(zstdScheme, []byte{3, 0, 0, 0, 0x30, 'a', 'b', 'c'})
		f.Add(zstdScheme, []byte{3, 0, 0, 0, 0, 0, 0, 0, 0x28, 0xb5, 0x2f, 0xfd, 0x20, 3, 0x19, 0, 0, 'a', 'b', 'c'})
	}
	f.Fuzz(func(t *testing.T, zstdScheme bool, in []byte) {
		scheme := enc21pb.BufferCompression_LZ4
		if zstdScheme {
			scheme = enc21pb.BufferCompression_ZSTD
		}
		out, err := decompress(scheme, nil, in, 1<<20)
		if err != nil {
			require.Equal(t, table.OutcomeDamaged, table.Classify(err))
			return
		}
		require.LessOrEqual(t, len(out), 1<<20)
	})
}
