package encoding_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/rehome-db/rehome/lance/datafile/encoding"
	"github.com/rehome-db/rehome/lance/datafile/level"
	"github.com/rehome-db/rehome/lance/datafile/level/leveltest"
	enc21pb "github.com/rehome-db/rehome/lance/internal/pb/enc21"
	enc23pb "github.com/rehome-db/rehome/lance/internal/pb/enc23"
	"github.com/rehome-db/rehome/lance/readat"
	"github.com/rehome-db/rehome/table"
)

// stored is a page as it lies in a file.
func stored(t require.TestingT, p encoding.EncodedPage) encoding.Page {
	var file bytes.Buffer
	out := encoding.Page{Layout: new(enc21pb.PageLayout), Rows: uint64(p.Rows)}
	for _, b := range p.Buffers {
		for file.Len()%64 != 0 {
			file.WriteByte('H')
		}
		out.Buffers = append(out.Buffers, encoding.Buffer{Offset: uint64(file.Len()), Size: uint64(len(b))})
		file.Write(b)
	}
	out.File = readat.Bytes(file.Bytes())
	if p.Planar != nil {
		describePlanar(t, p, &out)
		return out
	}
	layout, err := proto.Marshal(p.Layout)
	require.NoError(t, err)
	require.NoError(t, proto.Unmarshal(layout, out.Layout))
	return out
}

// describePlanar describes a page as a file of V2_3Planar does.
func describePlanar(t require.TestingT, p encoding.EncodedPage, out *encoding.Page) {
	layout, err := proto.Marshal(p.Planar)
	require.NoError(t, err)
	planar := new(enc23pb.PlanarLayout)
	require.NoError(t, proto.Unmarshal(layout, planar))
	out.Layout, err = encoding.Dense(planar)
	require.NoError(t, err)
	if out.Layout == nil {
		out.Planar = planar
		require.Contains(t, encoding.PlanarName(planar), "sparse")
		return
	}
	require.Equal(t, encoding.LayoutName(out.Layout), encoding.PlanarName(planar))
	again, ok := encoding.Planar(out.Layout, len(p.Buffers))
	require.True(t, ok)
	require.True(t, proto.Equal(planar, again))
}

// encodePages encodes b and returns its pages, each checked against the limits
// that readers rely on.
func encodePages(t require.TestingT, e *encoding.Encoder, b *level.Block) []encoding.Page {
	var pages []encoding.Page
	rows := 0
	require.NoError(t, e.Encode(b, func(p encoding.EncodedPage) error {
		requireWellFormed(t, p)
		pages = append(pages, stored(t, p))
		rows += p.Rows
		return nil
	}))
	require.Equal(t, b.Rows, rows)
	return pages
}

// requireWellFormed checks what the format asks for and a lenient reader may not
// notice.
func requireWellFormed(t require.TestingT, p encoding.EncodedPage) {
	if z := p.Layout.GetFullZip(); z != nil && z.ValueCompression.GetVariablePackedStruct() == nil {
		list := false
		for _, l := range z.Layers {
			list = list || level.Layer(l).IsList()
			outside := list && l == enc21pb.RepDefLayer_REPDEF_NULLABLE_ITEM
			require.False(t, outside && z.NumItems != z.NumVisibleItems, "full-zip with a nullable struct around a list, and something absent")
		}
	}
	m := p.Layout.GetMiniBlock()
	if m == nil {
		return
	}
	word := 2
	if m.HasLargeChunk {
		word = 4
	}
	nullable := false
	for i := len(m.Layers) - 1; i >= 0; i-- {
		nullable = nullable || m.Layers[i] == enc21pb.RepDefLayer_REPDEF_NULLABLE_ITEM
		require.False(t, nullable && m.Layers[i] == enc21pb.RepDefLayer_REPDEF_ALL_VALID_LIST)
	}
	meta, data := p.Buffers[0], p.Buffers[1]
	values, size := uint64(0), 0
	for i := 0; i < len(meta); i += word {
		var w uint64
		if word == 2 {
			w = uint64(binary.LittleEndian.Uint16(meta[i:]))
		} else {
			w = uint64(binary.LittleEndian.Uint32(meta[i:]))
		}
		chunk := data[size:][:(w>>4+1)*8]
		size += len(chunk)
		if i+word == len(meta) {
			require.Zero(t, w&15)
			require.Less(t, values, m.NumItems)
			break
		}
		require.GreaterOrEqual(t, w&15, uint64(1))
		require.LessOrEqual(t, w&15, uint64(12))
		values += 1 << (w & 15)
	}
	require.Len(t, data, size)
	if m.RepetitionIndexDepth == 0 {
		return
	}
	index := p.Buffers[len(p.Buffers)-1]
	require.Len(t, index, 16*len(meta)/word)
	rows := uint64(0)
	for i := 0; i < len(index); i += 16 {
		rows += binary.LittleEndian.Uint64(index[i:])
	}
	require.Equal(t, uint64(p.Rows), rows)
	require.Zero(t, binary.LittleEndian.Uint64(index[len(index)-8:]))
}

func decodePages(t require.TestingT, typ level.Type, shape []level.Layer, pages []encoding.Page) []leveltest.Row {
	d := encoding.NewDecoder(typ, shape, encoding.Limits{})
	var rows []leveltest.Row
	for _, p := range pages {
		require.NoError(t, d.Check(p), encoding.LayoutName(p.Layout))
		err := d.Decode(context.Background(), p, 0, p.Rows, func(b *level.Block) bool {
			rows = append(rows, leveltest.Rows(t, b)...)
			return true
		})
		require.NoError(t, err, encoding.LayoutName(p.Layout))
	}
	return rows
}

// narrowed is what a column writer hands to the encoder.
func narrowed(t require.TestingT, b *level.Block) *level.Block {
	builder, err := level.NewBuilder(b.Type, b.Layers)
	require.NoError(t, err)
	c, err := level.NewCursor(b)
	require.NoError(t, err)
	require.NoError(t, builder.Take(c, b.Rows))
	return builder.Block()
}

var versions = []encoding.Version{encoding.V2_1, encoding.V2_2, encoding.V2_3, encoding.V2_3Planar}

// valueStyle draws values that suit one encoding or the other.
func valueStyle(t *rapid.T, typ level.Type) func(*rapid.T) string {
	pad := func(v uint64) string {
		b := make([]byte, (typ.ValueBits()+7)/8+8)
		binary.LittleEndian.PutUint64(b, v)
		if typ.ValueBits() == 1 {
			b[0] &= 1
		}
		return string(b[:(typ.ValueBits()+7)/8])
	}
	style := rapid.IntRange(0, 4).Draw(t, "style")
	if typ.Parts != "" {
		return nil
	}
	if typ.Kind == level.Variable {
		switch style {
		case 0: // few distinct
			return func(t *rapid.T) string { return fmt.Sprintf("value %d", rapid.IntRange(0, 3).Draw(t, "v")) }
		case 1: // one
			return func(*rapid.T) string { return "the same" }
		case 2: // wide
			return func(t *rapid.T) string {
				return strings.Repeat(rapid.StringN(0, 3, -1).Draw(t, "v"), rapid.IntRange(0, 400).Draw(t, "n"))
			}
		case 3: // empty
			return func(*rapid.T) string { return "" }
		}
		return nil
	}
	if typ.Kind != level.Fixed {
		return nil
	}
	switch style {
	case 0: // narrow
		limit := uint64(1)<<rapid.IntRange(0, typ.Bits).Draw(t, "width") - 1
		return func(t *rapid.T) string { return pad(rapid.Uint64Range(0, limit).Draw(t, "v")) }
	case 1: // one
		return func(*rapid.T) string { return pad(77) }
	case 2: // runs
		v, left := uint64(0), 0
		return func(t *rapid.T) string {
			if left == 0 {
				v, left = rapid.Uint64().Draw(t, "v"), rapid.IntRange(1, 40).Draw(t, "run")
			}
			left--
			return pad(v)
		}
	}
	return nil
}

// drawOptions draws what metadata can ask for.
func drawOptions(t *rapid.T, typ level.Type) encoding.EncodeOptions {
	opts := formOptions(t, typ)
	opts.Compression = rapid.SampledFrom([]string{"", "", "", "lz4", "zstd", "fsst", "none"}).Draw(t, "compression")
	switch rapid.IntRange(0, 3).Draw(t, "layout") {
	case 0:
		opts.Zip = true
	case 1:
		opts.Mini = true
	}
	opts.RunThreshold = rapid.SampledFrom([]float64{0, 0.1, 1}).Draw(t, "runs")
	opts.SplitBytes = rapid.Bool().Draw(t, "split")
	opts.DictionaryDivisor = rapid.SampledFrom([]int{0, 1, 100}).Draw(t, "divisor")
	opts.DictionaryRatio = rapid.SampledFrom([]float64{0, 0.1, 2}).Draw(t, "ratio")
	opts.DictionaryCompression = rapid.SampledFrom([]string{"", "none", "lz4", "zstd"}).Draw(t, "dictionary compression")
	opts.ChunkBytes = rapid.SampledFrom([]int{0, 1, 10_000, 1 << 20}).Draw(t, "chunk bytes")
	if (typ.Kind == level.Fixed || typ.Kind == level.Variable) && typ.Parts == "" && rapid.Bool().Draw(t, "arrow dictionary") {
		opts.IndexBits = rapid.SampledFrom([]int{16, 32, 64}).Draw(t, "index bits")
		opts.IndexSigned = rapid.Bool().Draw(t, "signed")
	}
	return opts
}

// formOptions draws a version that has the type, and says what the type leaves out.
func formOptions(t *rapid.T, typ level.Type) encoding.EncodeOptions {
	opts := encoding.EncodeOptions{Version: rapid.SampledFrom(versions).Draw(t, "version")}
	if typ.Parts != "" && typ.Kind == level.Variable {
		opts.Version = encoding.V2_2
	}
	if typ.Inner > 0 {
		opts.Dims = []int{typ.Inner, typ.Dim / typ.Inner}
	}
	return opts
}

// Whatever a column holds comes back, in both formats, and equal blocks give equal
// pages.
func TestEncodedPagesDecode(t *testing.T) { rapid.Check(t, encodedPagesDecode) }

// FuzzEncode looks for columns that TestEncodedPagesDecode does not think of.
func FuzzEncode(f *testing.F) { f.Fuzz(rapid.MakeFuzz(encodedPagesDecode)) }

func encodedPagesDecode(t *rapid.T) {
	typ, shape := leveltest.DrawType(t), leveltest.DrawShape(t)
	maxRows := rapid.SampledFrom([]int{3, 50, 300}).Draw(t, "max rows")
	m := leveltest.Draw(t, typ, shape, maxRows, valueStyle(t, typ))
	opts := drawOptions(t, typ)
	e := encoding.NewEncoder(opts)
	for range 2 {
		pages := encodePages(t, e, narrowed(t, m.Block()))
		for _, p := range pages {
			require.True(t, opts.IndexBits == 0 || p.Planar != nil || p.Layout.GetConstant() != nil || p.Layout.GetMiniBlock().GetDictionary() != nil)
		}
		require.Equal(t, m.Rows, decodePages(t, typ, m.Layers, pages))
	}
}

// Fields of packed structs are compressed each for itself, where it pays.
func TestPackedFieldsAreCompressed(t *testing.T) {
	parts := level.NewParts([]level.Part{{Bits: 32, Variable: true}, {Bits: 16}, {Bits: 64, Variable: true}})
	typ := level.Type{Kind: level.Variable, Bits: 32, Parts: parts}
	b := &level.Block{Type: typ, Layers: []level.Layer{level.NullableItem}, Values: level.Values{Offsets: []uint32{0}}}
	for i := range 3000 {
		if i%7 == 3 {
			b.Def = append(b.Def, 1)
		} else {
			text, noise := fmt.Sprintf("https://example.com/articles/%d", i), fmt.Sprint(i%10)
			row := binary.LittleEndian.AppendUint32(nil, uint32(len(text)))
			row = binary.LittleEndian.AppendUint16(append(row, text...), uint16(i))
			row = append(binary.LittleEndian.AppendUint64(row, uint64(len(noise))), noise...)
			b.Def, b.Values.Data = append(b.Def, 0), append(b.Values.Data, row...)
		}
		b.Values.Offsets = append(b.Values.Offsets, uint32(len(b.Values.Data)))
	}
	b.Rows, b.Values.N = len(b.Def), len(b.Def)
	want := leveltest.Rows(t, b)
	pages := encodePages(t, encoding.NewEncoder(encoding.EncodeOptions{Version: encoding.V2_2}), narrowed(t, b))
	require.Len(t, pages, 1)
	fields := pages[0].Layout.GetFullZip().GetValueCompression().GetVariablePackedStruct().GetFields()
	require.NotNil(t, fields[0].GetValue().GetFsst())
	require.NotNil(t, fields[1].GetValue().GetFlat())
	require.NotNil(t, fields[2].GetValue().GetVariable())
	require.Equal(t, want, decodePages(t, typ, b.Layers, pages))

	// A row that is no row is noticed.
	b.Values.Data[0] = 200
	err := encoding.NewEncoder(encoding.EncodeOptions{Version: encoding.V2_2}).Encode(b, func(encoding.EncodedPage) error { return nil })
	require.ErrorIs(t, err, table.ErrCorrupt)
}

// repeat makes a block of n copies of the rows of a model.
func repeat(t require.TestingT, m leveltest.Model, n int) (*level.Block, []leveltest.Row) {
	builder, err := level.NewBuilder(m.Type, m.Layers)
	require.NoError(t, err)
	var rows []leveltest.Row
	for range n {
		c, err := level.NewCursor(m.Block())
		require.NoError(t, err)
		require.NoError(t, builder.Take(c, len(m.Rows)))
		rows = append(rows, m.Rows...)
	}
	return builder.Block(), rows
}

// Pages of many chunks, with rows that go over chunk boundaries.
func TestManyChunksDecode(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		typ, shape := leveltest.DrawType(t), leveltest.DrawShape(t)
		m := leveltest.Draw(t, typ, shape, 20, valueStyle(t, typ))
		b, rows := repeat(t, m, rapid.IntRange(1, 400).Draw(t, "copies"))
		e := encoding.NewEncoder(formOptions(t, typ))
		got := decodePages(t, typ, m.Layers, encodePages(t, e, b))
		require.Equal(t, len(rows), len(got))
		for i := range rows {
			if !equalRows(rows[i], got[i]) {
				require.Equal(t, rows[i], got[i], "row %d", i)
			}
		}
	})
}

func equalRows(a, b leveltest.Row) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

// Invisible entries by the ten thousand, which no chunk holds: the page is cut,
// and rows come back all the same.
func TestLongStretchesOfEmptyLists(t *testing.T) {
	const run = 40_000
	for _, version := range versions {
		for name, rows := range map[string][]int{ // lengths of lists; -n: n empty ones
			"at the end":    {3, -run},
			"at the front":  {-run, 3},
			"in the middle": {2, 1, -run, 5, -run, 1},
			"only":          {-run},
			"just too many": {1, -9000, 1},
			"many values":   {70_000, -run, 70_000},
		} {
			t.Run(fmt.Sprintf("%s %s", version, name), func(t *testing.T) {
				m := leveltest.Model{Type: level.Type{Kind: level.Fixed, Bits: 32}, Layers: []level.Layer{level.AllValidItem, level.EmptyableList}}
				n := 0
				for _, length := range rows {
					for range -length {
						m.Rows = append(m.Rows, leveltest.Row{{Rep: 1, Absent: 1, Empty: true}})
					}
					var row leveltest.Row
					for k := range length {
						rep := uint16(0)
						if k == 0 {
							rep = 1
						}
						n++
						row = append(row, leveltest.Entry{Rep: rep, Absent: -1, Slot: true, Value: string(binary.LittleEndian.AppendUint32(nil, uint32(n)))})
					}
					if row != nil {
						m.Rows = append(m.Rows, row)
					}
				}
				pages := encodePages(t, encoding.NewEncoder(encoding.EncodeOptions{Version: version}), narrowed(t, m.Block()))
				require.True(t, len(pages) <= 5, "%d pages", len(pages))
				got := decodePages(t, m.Type, m.Layers, pages)
				require.Equal(t, len(m.Rows), len(got))
				for i := range got {
					require.True(t, equalRows(m.Rows[i], got[i]), "row %d", i)
				}
			})
		}
	}
}

func fixedBlock(bits int, values ...uint64) *level.Block {
	b := &level.Block{Type: level.Type{Kind: level.Fixed, Bits: bits}, Rows: len(values), Layers: []level.Layer{level.AllValidItem}}
	for _, v := range values {
		b.Values.Data = append(b.Values.Data, binary.LittleEndian.AppendUint64(nil, v)[:bits/8]...)
	}
	b.Values.N = len(values)
	return b
}

func stringBlock(values ...string) *level.Block {
	b := &level.Block{Type: level.Type{Kind: level.Variable, Bits: 32}, Rows: len(values), Layers: []level.Layer{level.AllValidItem}}
	b.Values.Offsets = []uint32{0}
	for _, v := range values {
		b.Values.Data = append(b.Values.Data, v...)
		b.Values.Offsets = append(b.Values.Offsets, uint32(len(b.Values.Data)))
	}
	b.Values.N = len(values)
	return b
}

func series(n int, f func(i int) uint64) []uint64 {
	out := make([]uint64, n)
	for i := range out {
		out[i] = f(i)
	}
	return out
}

func texts(n int, f func(i int) string) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = f(i)
	}
	return out
}

func mix(i int) uint64 {
	x := uint64(i)*0x9e3779b97f4a7c15 + 1
	x ^= x >> 31
	x *= 0xbf58476d1ce4e5b9
	return x ^ x>>29
}

// The encoding fits the data.
func TestChoiceOfEncoding(t *testing.T) {
	vectors := func(dim int, valid []byte) *level.Block {
		return &level.Block{Type: level.Type{Kind: level.FixedList, Bits: 32, Dim: dim}, Rows: 4, Layers: []level.Layer{level.AllValidItem},
			Values: level.Values{N: 4, Data: make([]byte, 16*dim), ItemValid: valid}}
	}
	random := func(n, size int) []string {
		return texts(n, func(i int) string {
			b := make([]byte, 0, size+8)
			for k := 0; len(b) < size; k++ {
				b = binary.LittleEndian.AppendUint64(b, mix(i*size+k))
			}
			return string(b[:size])
		})
	}
	words := func(n int) []string {
		return texts(n, func(i int) string {
			return fmt.Sprintf("the quick brown fox %d jumps over the lazy dog %d", mix(i)%1_000_000_007, i)
		})
	}
	nulls := fixedBlock(64, series(4000, func(i int) uint64 { return mix(i) })...)
	nulls.Layers = []level.Layer{level.NullableItem}
	nulls.Def = make([]uint16, nulls.Rows)
	allNull := fixedBlock(64, 1, 2, 3)
	allNull.Layers, allNull.Def = []level.Layer{level.NullableItem}, []uint16{1, 1, 1}
	for i := range nulls.Def {
		if mix(i)%16 == 0 {
			nulls.Def[i] = 1
		}
	}
	for _, c := range []struct {
		name       string
		block      *level.Block
		v2_1, v2_2 string
	}{
		{"few integers", fixedBlock(64, 1, 2, 3), "mini_block flat(64)", ""},
		{"narrow integers", fixedBlock(64, series(5000, func(i int) uint64 { return mix(i) % 1000 })...), "mini_block inline_bitpacking(64)", ""},
		{"negative integers", fixedBlock(32, series(5000, func(i int) uint64 { return -uint64(i) })...), "mini_block flat(32)", ""},
		{"runs", fixedBlock(64, series(5000, func(i int) uint64 { return mix(i / 100) })...), "mini_block rle(flat(64), flat(8))", ""},
		{"constant", fixedBlock(64, series(5000, func(int) uint64 { return math.MaxUint64 })...), "mini_block rle(flat(64), flat(8))", "constant"},
		{"few distinct wide integers", fixedBlock(64, series(5000, func(i int) uint64 { return mix(int(mix(i) % 20)) })...), "mini_block flat(64)", "mini_block inline_bitpacking(32) with a dictionary of flat(64)"},
		{"24-bit values", fixedBlock(24, series(5000, func(i int) uint64 { return mix(i) })...), "mini_block flat(24)", ""},
		{"nulls", nulls, "mini_block flat(64)", ""},
		{"all null", allNull, "constant", ""},
		{"few strings", stringBlock("a", "b"), "mini_block variable", ""},
		{"one string", stringBlock(texts(500, func(int) string { return "all alike" })...), "mini_block inline_bitpacking(32) with a dictionary of variable", "constant"},
		{"few distinct strings", stringBlock(texts(5000, func(i int) string { return fmt.Sprint("category number ", mix(i)%50) })...),
			"mini_block inline_bitpacking(32) with a dictionary of variable", "mini_block inline_bitpacking(32) with a dictionary of general:lz4(variable)"},
		{"words", stringBlock(words(3000)...), "mini_block fsst(variable)", ""},
		{"random strings", stringBlock(random(2000, 100)...), "mini_block variable", ""},
		{"long words", stringBlock(texts(300, func(i int) string { return strings.Join(words(i + 10)[i:], " ") })...), "full_zip fsst(variable)", ""},
		{"long random strings", stringBlock(random(200, 1000)...), "full_zip variable", ""},
		{"very long words", stringBlock(texts(5, func(i int) string { return strings.Join(words(1000+i), " ") })...), "full_zip general:zstd(variable)", ""},
		{"very long random strings", stringBlock(random(5, 100_000)...), "full_zip variable", ""},
		{"narrow vectors", vectors(16, nil), "mini_block fixed_size_list(flat(32))", ""},
		{"wide vectors", vectors(64, nil), "full_zip fixed_size_list(flat(32))", ""},
		{"wide vectors with null items", vectors(64, bytes.Repeat([]byte{0x55}, 32)), "full_zip fixed_size_list(flat(32))", ""},
	} {
		if c.v2_2 == "" {
			c.v2_2 = c.v2_1
		}
		for version, want := range map[encoding.Version]string{encoding.V2_1: c.v2_1, encoding.V2_2: c.v2_2} {
			t.Run(fmt.Sprintf("%s %s", version, c.name), func(t *testing.T) {
				want := want
				b := narrowed(t, c.block)
				rows := leveltest.Rows(t, b)
				pages := encodePages(t, encoding.NewEncoder(encoding.EncodeOptions{Version: version}), b)
				require.Len(t, pages, 1)
				require.Equal(t, want, encoding.LayoutName(pages[0].Layout))
				require.Equal(t, rows, decodePages(t, c.block.Type, c.block.Layers, pages))
			})
		}
	}
}

// Raw vectors are not copied: the page is the block's memory.
func TestVectorsAreNotCopied(t *testing.T) {
	b := &level.Block{Type: level.Type{Kind: level.FixedList, Bits: 32, Dim: 128}, Rows: 4, Layers: []level.Layer{level.AllValidItem},
		Values: level.Values{N: 4, Data: make([]byte, 4*512)}}
	require.NoError(t, encoding.NewEncoder(encoding.EncodeOptions{Version: encoding.V2_1}).Encode(b, func(p encoding.EncodedPage) error {
		require.Len(t, p.Buffers, 1)
		require.Same(t, &b.Values.Data[0], &p.Buffers[0][0])
		return nil
	}))
}
