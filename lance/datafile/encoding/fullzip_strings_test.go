package encoding

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rehome-db/rehome/lance/datafile/level"
	enc21pb "github.com/rehome-db/rehome/lance/internal/pb/enc21"
)

// stringBlock makes a block of nullable strings in lists, each of one, nil for null.
func stringBlock(lists bool, values ...*string) *level.Block {
	b := &level.Block{Type: level.Type{Kind: level.Variable, Bits: 32}, Rows: len(values), Layers: []level.Layer{level.AllValidItem}}
	b.Values = level.Values{N: len(values), Offsets: []uint32{0}}
	def := make([]uint16, len(values))
	for i, v := range values {
		if v == nil {
			def[i] = 1
			b.Layers[0], b.Def = level.NullableItem, def
		} else {
			b.Values.Data = append(b.Values.Data, *v...)
		}
		b.Values.Offsets = append(b.Values.Offsets, uint32(len(b.Values.Data)))
		if lists {
			b.Rep = append(b.Rep, 1)
		}
	}
	if lists {
		b.Layers = append(b.Layers, level.AllValidList)
	}
	return b
}

func encodeOne(t *testing.T, opts EncodeOptions, b *level.Block) (*enc21pb.FullZipLayout, *level.Block) {
	t.Helper()
	typ, layers := b.Type, b.Layers
	var layout *enc21pb.FullZipLayout
	var out *level.Block
	require.NoError(t, NewEncoder(opts).Encode(b, func(p EncodedPage) error {
		layout = p.Layout.GetFullZip()
		require.NotNil(t, layout, "%v", p.Layout)
		var err error
		out, err = decodeAll(t, typ, level.Widest(layers), memoryPage(p.Layout, uint64(p.Rows), p.Buffers...))
		return err
	}))
	return layout, out
}

// Readers refuse an LZ4 value of no bytes, and an empty value and a null have none.
func TestZippedValuesAsLZ4(t *testing.T) {
	long, other, empty := strings.Repeat("long ", 100), strings.Repeat("other ", 90), ""
	for _, version := range []Version{V2_1, V2_2} {
		opts := EncodeOptions{Version: version, Compression: "lz4", Zip: true}
		scheme := func(values ...*string) enc21pb.BufferCompression_Scheme {
			layout, got := encodeOne(t, opts, stringBlock(false, values...))
			want := stringBlock(false, values...)
			require.Equal(t, want.Values.Offsets, got.Values.Offsets)
			require.Equal(t, want.Values.Data, got.Values.Data)
			return layout.GetValueCompression().GetGeneral().GetCompression().GetScheme()
		}
		require.Equal(t, enc21pb.BufferCompression_LZ4, scheme(&long, &other))
		require.Equal(t, enc21pb.BufferCompression_ZSTD, scheme(&long, &empty, &other))
		require.Equal(t, enc21pb.BufferCompression_ZSTD, scheme(&long, nil, &other))
	}
}

// In lists a zipped page declares what the column's pages have agreed on, whether or not
// it has a null.
func TestZippedPagesAgreeOnNulls(t *testing.T) {
	long, other := strings.Repeat("long ", 100), strings.Repeat("other ", 90)
	nullable := []level.Layer{level.NullableItem, level.NullableList}
	for _, c := range []struct {
		asked  []level.Layer
		values []*string
		want   level.Layer
	}{
		{nullable, []*string{&long, &other}, level.NullableItem},
		{nullable, []*string{&long, nil}, level.NullableItem},
		{[]level.Layer{level.AllValidItem, level.NullableList}, []*string{&long, &other}, level.AllValidItem},
		{nil, []*string{&long, &other}, level.AllValidItem},
	} {
		layout, got := encodeOne(t, EncodeOptions{Version: V2_1, Layers: c.asked, Zip: true}, stringBlock(true, c.values...))
		require.Equal(t, c.want, layersOf(layout.GetLayers())[0])
		want := stringBlock(true, c.values...)
		require.Equal(t, want.Values.Data, got.Values.Data)
		require.Equal(t, want.Rep, got.Rep)
	}
	// Without lists there is nothing to agree on.
	layout, _ := encodeOne(t, EncodeOptions{Version: V2_1, Layers: nullable[:1], Zip: true}, stringBlock(false, &long, &other))
	require.Equal(t, level.AllValidItem, layersOf(layout.GetLayers())[0])
}
