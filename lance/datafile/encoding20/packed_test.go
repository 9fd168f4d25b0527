package encoding20_test

import (
	"context"
	"encoding/binary"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/rehome-db/rehome/lance/datafile/encoding"
	"github.com/rehome-db/rehome/lance/datafile/encoding20"
	"github.com/rehome-db/rehome/lance/datafile/fastlanes"
	"github.com/rehome-db/rehome/lance/datafile/level"
	enc20pb "github.com/rehome-db/rehome/lance/internal/pb/enc20"
	"github.com/rehome-db/rehome/table"
)

func stream(bits, width uint64, signed bool, buffer uint32) *enc20pb.ArrayEncoding {
	return &enc20pb.ArrayEncoding{ArrayEncoding: &enc20pb.ArrayEncoding_Bitpacked{Bitpacked: &enc20pb.Bitpacked{
		UncompressedBitsPerValue: bits, CompressedBitsPerValue: width, Signed: signed, Buffer: &enc20pb.Buffer{BufferIndex: buffer}}}}
}

func inBlocks(bits, width uint64, buffer uint32) *enc20pb.ArrayEncoding {
	return &enc20pb.ArrayEncoding{ArrayEncoding: &enc20pb.ArrayEncoding_BitpackedForNonNeg{BitpackedForNonNeg: &enc20pb.BitpackedForNonNeg{
		UncompressedBitsPerValue: bits, CompressedBitsPerValue: width, Buffer: &enc20pb.Buffer{BufferIndex: buffer}}}}
}

func equal(bytes *enc20pb.ArrayEncoding, width uint32) *enc20pb.ArrayEncoding {
	return &enc20pb.ArrayEncoding{ArrayEncoding: &enc20pb.ArrayEncoding_FixedSizeBinary{
		FixedSizeBinary: &enc20pb.FixedSizeBinary{Bytes: bytes, ByteWidth: width}}}
}

// toBits writes the lowest width bits of each value, lowest first.
func toBits(values []uint64, width uint64) []byte {
	out := make([]byte, (uint64(len(values))*width+7)/8)
	for i, v := range values {
		for k := range width {
			at := uint64(i)*width + k
			out[at/8] |= byte(v>>k&1) << (at % 8)
		}
	}
	return out
}

func toBytes(values []uint64, bits uint64) (out []byte) {
	for _, v := range values {
		out = append(out, binary.LittleEndian.AppendUint64(nil, v)[:bits/8]...)
	}
	return out
}

// Integers of every width, signed or not, as a stream and in blocks, from any row on.
func TestPackedIntegers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		bits := rapid.SampledFrom([]uint64{8, 16, 32, 64}).Draw(t, "bits")
		width := rapid.Uint64Range(1, bits).Draw(t, "width")
		kind := rapid.SampledFrom([]string{"unsigned", "signed", "blocks"}).Draw(t, "kind")
		values := make([]uint64, rapid.IntRange(1, 2500).Draw(t, "values"))
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		for i := range values {
			values[i] = rng.Uint64() >> (64 - width)
		}
		var f testFile
		var p encoding20.Page
		n := uint64(len(values))
		want := values
		switch kind {
		case "blocks":
			var stored []byte
			for at := 0; at < len(values); at += 1024 {
				block := make([]uint64, 1024)
				copy(block, values[at:])
				packed := make([]byte, 128*width)
				fastlanes.Pack(packed, toBytes(block, bits), int(bits), int(width))
				stored = append(stored, packed...)
			}
			p = f.page(0, n, inBlocks(bits, width, 0), stored)
		case "signed":
			p = f.page(0, n, stream(bits, width, true, 0), toBits(values, width))
			want = nil
			for _, v := range values {
				want = append(want, uint64(int64(v<<(64-width))>>(64-width)))
			}
		default:
			p = f.page(0, n, stream(bits, width, false, 0), toBits(values, width))
		}
		from := rapid.Uint64Range(0, n).Draw(t, "from")
		to := rapid.Uint64Range(from, n).Draw(t, "to")
		r, err := encoding20.NewReader(encoding20.Leaf{Type: level.Type{Kind: level.Fixed, Bits: int(bits)}, Layers: flatOf},
			f.source(n, []encoding20.Page{p}), encoding.Limits{BlockEntries: rapid.IntRange(1, 3000).Draw(t, "rows a block")})
		require.NoError(t, err)
		require.NoError(t, r.Check())
		var got []byte
		require.NoError(t, r.Read(context.Background(), from, to, func(b *level.Block) bool {
			got = append(got, b.Values.Data...)
			return true
		}))
		require.Equal(t, toBytes(want[from:to], bits), got)
	})
}

// Ends, bytes and indices are integers that can be packed, too.
func TestPackedStrings(t *testing.T) {
	var f testFile
	read := func(n uint64, p encoding20.Page) level.Block {
		blocks, err := readAll(t, encoding20.Leaf{Type: strings, Layers: flatOf}, f.source(n, []encoding20.Page{p}), encoding.Limits{})
		require.NoError(t, err)
		require.Len(t, blocks, 1)
		return blocks[0]
	}
	letters := []uint64{'a', 'b', 'c', 'd', 'e', 'f'}
	b := read(3, f.page(0, 3, text(stream(64, 4, false, 0), stream(8, 7, false, 1), 7),
		toBits([]uint64{2, 2 + 7, 6}, 4), toBits(letters, 7)))
	require.Equal(t, "abcdef", string(b.Values.Data))
	require.Equal(t, []uint32{0, 2, 2, 6}, b.Values.Offsets)
	require.Equal(t, []uint16{0, 1, 0}, b.Def)

	b = read(3, f.page(0, 3, dictionary(stream(8, 2, false, 0), text(flat(64, 1), stream(8, 7, false, 2), 9), 2),
		toBits([]uint64{2, 0, 1}, 2), words(1, 3), toBits(letters, 7)))
	require.Equal(t, "bca", string(b.Values.Data))
	require.Equal(t, []uint16{0, 1, 0}, b.Def)

	b = read(2, f.page(0, 2, someNulls(flat(1, 0), equal(stream(8, 7, false, 1), 3)), []byte{0b10}, toBits(letters, 7)))
	require.Equal(t, "def", string(b.Values.Data[b.Values.Offsets[1]:b.Values.Offsets[2]]))
	require.Equal(t, []uint16{1, 0}, b.Def)
	b = read(2, f.page(0, 2, equal(flat(8, 0), 0), nil))
	require.Equal(t, []uint32{0, 0, 0}, b.Values.Offsets)
}

func TestHostilePackedPages(t *testing.T) {
	booleans := level.Type{Kind: level.Fixed, Bits: 1}
	int64s := level.Type{Kind: level.Fixed, Bits: 64}
	for name, c := range map[string]struct {
		typ  level.Type
		n    uint64
		e    *enc20pb.ArrayEncoding
		says string
	}{
		"more values than bits":    {int32s, 9, stream(32, 8, false, 0), "for 9 values packed into 8 bits"},
		"more values than blocks":  {int32s, 1, inBlocks(32, 1, 0), "for 1 values packed into 1 bits"},
		"many values":              {int64s, 1 << 32, stream(64, 64, false, 0), "values packed into 64 bits"},
		"no width":                 {int32s, 1, stream(32, 0, false, 0), "packed into 0"},
		"no width of blocks":       {int32s, 1 << 32, inBlocks(32, 0, 0), "packed into 0"},
		"more bits than values":    {int32s, 1, stream(32, 33, false, 0), "packed into 33"},
		"an endless width":         {int32s, 1, inBlocks(32, math.MaxUint64, 0), "packed into 18446744073709551615"},
		"another type":             {int32s, 1, stream(64, 8, false, 0), "values of 64 bits, want 32"},
		"booleans":                 {booleans, 1, stream(1, 1, false, 0), "not supported"},
		"validity":                 {int32s, 1, someNulls(stream(1, 1, false, 0), flat(32, 0)), "not supported"},
		"no such buffer":           {int32s, 1, stream(32, 8, false, 1), "no buffer 1"},
		"strings of bytes outside": {strings, 3, equal(flat(8, 0), 3), "a buffer of 8 bytes"},
		"long strings":             {strings, 1 << 32, equal(flat(8, 0), math.MaxUint32), "strings of 4294967295 bytes"},
		"strings of other values":  {strings, 1, equal(flat(16, 0), 1), "values of 16 bits, want 8"},
		"numbers of equal length":  {int32s, 1, equal(flat(8, 0), 4), "not supported"},
	} {
		t.Run(name, func(t *testing.T) {
			var f testFile
			p := f.page(0, c.n, c.e, words(1))
			_, err := readAll(t, encoding20.Leaf{Type: c.typ, Layers: flatOf}, f.source(c.n, []encoding20.Page{p}), encoding.Limits{})
			require.Equal(t, table.OutcomeDamaged, table.Classify(err), "%v", err)
			require.ErrorContains(t, err, c.says)
		})
	}
}

// Pages that only old versions wrote are not copied.
func TestCurrentPages(t *testing.T) {
	strings := text(flat(64, 0), zipped("zstd", 8, 1), 9)
	list := list(flat(64, 0), 9, 2)
	column := flat(32, 0)
	column.GetFlat().Buffer.BufferType = enc20pb.Buffer_COLUMN
	unknown := flat(32, 0)
	unknown.ProtoReflect().SetUnknown([]byte{0xf8, 0x07, 0x01})
	validity := fixedList(flat(32, 0), 2)
	validity.GetFixedSizeList().HasValidity = true
	for name, c := range map[string]struct {
		e    *enc20pb.ArrayEncoding
		bits int
		want bool
	}{
		"flat":                  {flat(32, 0), 0, true},
		"nullable":              {someNulls(flat(1, 0), flat(32, 1)), 0, true},
		"nulls":                 {nulls(), 0, true},
		"strings":               {strings, 0, true},
		"lists":                 {list, 0, true},
		"fixed-size lists":      {fixedList(fixedList(flat(16, 0), 2), 2), 0, true},
		"a dictionary":          {dictionary(flat(8, 0), strings, 1), 0, true},
		"an Arrow dictionary":   {dictionary(flat(32, 0), strings, 1), 32, true},
		"of other indices":      {dictionary(flat(32, 0), strings, 1), 64, false},
		"no Arrow dictionary":   {strings, 32, false},
		"nulls for one":         {nulls(), 32, false},
		"null indices":          {dictionary(someNulls(flat(1, 0), flat(8, 1)), strings, 1), 0, false},
		"a stream":              {stream(32, 3, false, 0), 0, false},
		"blocks":                {someNulls(flat(1, 0), inBlocks(32, 3, 1)), 0, false},
		"packed ends":           {text(stream(64, 3, false, 0), flat(8, 1), 9), 0, false},
		"packed items":          {fixedList(stream(16, 3, false, 0), 2), 0, false},
		"strings of one length": {equal(flat(8, 0), 2), 0, false},
		"another buffer":        {column, 0, false},
		"what is not known":     {unknown, 0, false},
		"validity inside":       {validity, 0, false},
		"bits, compressed":      {zipped("zstd", 1, 0), 0, false},
		"nothing":               {&enc20pb.ArrayEncoding{}, 0, false},
	} {
		require.Equal(t, c.want, encoding20.Current(c.e, c.bits), name)
	}
}
