package encoding_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/rehome-db/rehome/lance/datafile/encoding"
	"github.com/rehome-db/rehome/lance/datafile/level"
	"github.com/rehome-db/rehome/lance/datafile/level/leveltest"
)

// pageBytes encodes a block and returns all that is written of its pages.
func pageBytes(t require.TestingT, e *encoding.Encoder, b *level.Block) (out [][]byte) {
	require.NoError(t, e.Encode(b, func(p encoding.EncodedPage) error {
		layout := proto.Message(p.Layout)
		if p.Planar != nil {
			layout = p.Planar
		}
		description, err := proto.MarshalOptions{Deterministic: true}.Marshal(layout)
		require.NoError(t, err)
		out = append(out, description)
		for _, buffer := range p.Buffers {
			out = append(out, append([]byte{}, buffer...))
		}
		return nil
	}))
	return out
}

// A builder and an encoder that another column has used before, of whatever type and
// with whatever options, write the same bytes as new ones.
func TestMemoryUsedAgainRemembersNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var used level.Builder
		e := encoding.NewEncoder(encoding.EncodeOptions{})
		for range 3 {
			typ, shape := leveltest.DrawType(t), leveltest.DrawShape(t)
			m := leveltest.Draw(t, typ, shape, 100, valueStyle(t, typ))
			opts := drawOptions(t, typ)
			opts.CompressionLevel = rapid.SampledFrom([]int{0, 1, 9}).Draw(t, "level")
			gathered := func(b *level.Builder) *level.Block {
				c, err := level.NewCursor(m.Block())
				require.NoError(t, err)
				require.NoError(t, b.Take(c, c.Remaining()))
				return b.Block()
			}
			fresh, err := level.NewBuilder(typ, m.Layers)
			require.NoError(t, err)
			require.NoError(t, used.Reuse(typ, m.Layers))
			e.Reset(opts)
			require.Equal(t, pageBytes(t, encoding.NewEncoder(opts), gathered(fresh)), pageBytes(t, e, gathered(&used)))
			if rapid.Bool().Draw(t, "alone") {
				used.Alone()
			}
		}
	})
}

// The distinct values of a dictionary column are counted over its pages, and no
// further: two columns may have more together than the indices tell apart.
func TestDistinctValuesAreThoseOfOneColumn(t *testing.T) {
	const values = 200
	block := func(first int) *level.Block {
		b := &level.Block{Type: level.Type{Kind: level.Fixed, Bits: 32}, Rows: values, Layers: []level.Layer{level.AllValidItem}}
		b.Values.N = values
		for i := range values {
			b.Values.Data = binary.LittleEndian.AppendUint32(b.Values.Data, uint32(first+i))
		}
		return b
	}
	opts := encoding.EncodeOptions{Version: encoding.V2_1, IndexBits: 8}
	e := encoding.NewEncoder(opts)
	pageBytes(t, e, block(0))
	require.Error(t, e.Encode(block(values), func(encoding.EncodedPage) error { return nil }), "of one column they are counted together")
	e.Reset(opts)
	pageBytes(t, e, block(values))
}

// Symbol tables are kept from page to page of a column, and compressors for one level:
// neither for the next column.
func TestTextAfterOtherText(t *testing.T) {
	text := func(rows, size, most int) *level.Block {
		rng := rand.New(rand.NewPCG(1, 2))
		b := &level.Block{Type: level.Type{Kind: level.Variable, Bits: 32}, Rows: rows, Layers: []level.Layer{level.AllValidItem}}
		b.Values.N, b.Values.Offsets = rows, []uint32{0}
		for range rows {
			for range size {
				b.Values.Data = fmt.Appendf(b.Values.Data, "%s %d ", []string{"fragment", "address", "deletion", "vector"}[rng.IntN(4)], rng.IntN(most))
			}
			b.Values.Offsets = append(b.Values.Offsets, uint32(len(b.Values.Data)))
		}
		return b
	}
	for _, c := range []struct {
		rows, size  int
		first, then encoding.EncodeOptions
	}{
		{3000, 3, encoding.EncodeOptions{Version: encoding.V2_1}, encoding.EncodeOptions{Version: encoding.V2_1}},
		{5, 5000, encoding.EncodeOptions{Version: encoding.V2_1, Compression: "zstd", CompressionLevel: 1},
			encoding.EncodeOptions{Version: encoding.V2_1, Compression: "zstd", CompressionLevel: 19}},
	} {
		e := encoding.NewEncoder(c.first)
		pageBytes(t, e, text(c.rows, c.size, 1000))
		e.Reset(c.then)
		want := pageBytes(t, encoding.NewEncoder(c.then), text(c.rows, c.size, 10))
		require.True(t, slices.EqualFunc(want, pageBytes(t, e, text(c.rows, c.size, 10)), bytes.Equal))
	}
}
