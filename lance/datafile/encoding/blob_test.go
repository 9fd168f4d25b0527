package encoding_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rehome-db/rehome/lance/datafile/encoding"
	"github.com/rehome-db/rehome/lance/datafile/level"
	"github.com/rehome-db/rehome/lance/readat"
	"github.com/rehome-db/rehome/table"
)

// blobPage is a page of blobs that lie before it in its file: two that are there, an
// empty one, a null, and one whose struct is null.
func blobPage(t *testing.T) (encoding.Page, []byte) {
	values := []byte("firstsecond")
	where := func(pairs ...uint64) (out []byte) {
		for _, p := range pairs {
			out = binary.LittleEndian.AppendUint64(out, p)
		}
		return out
	}
	b := &level.Block{Type: encoding.BlobDescriptions(), Rows: 5, Layers: []level.Layer{level.NullableItem, level.NullableItem},
		Def: []uint16{0, 1, 0, 2, 0}, Values: level.Values{N: 5, Data: where(0, 5, 99, 99, 7, 0, 99, 99, 5, 6)}}
	var page encoding.Page
	require.NoError(t, encoding.NewEncoder(encoding.EncodeOptions{Version: encoding.V2_1}).EncodeBlobs(b, func(p encoding.EncodedPage) error {
		page = stored(t, p)
		return nil
	}))
	// The page's buffers follow the values.
	raw, err := io.ReadAll(readat.Section(t.Context(), page.File, 0, 1<<20))
	require.NoError(t, err)
	for i := range page.Buffers {
		page.Buffers[i].Offset += uint64(len(values))
	}
	file := append(values, raw...)
	page.File, page.Size = readat.Bytes(file), uint64(len(file))
	return page, file
}

func TestBlobPages(t *testing.T) {
	page, file := blobPage(t)
	shape := []level.Layer{level.NullableItem, level.NullableItem}
	decode := func(typ level.Type, from, to uint64) (out *level.Block, err error) {
		err = encoding.NewDecoder(typ, shape, encoding.Limits{}).Decode(context.Background(), page, from, to, func(b *level.Block) bool {
			copied := *b
			copied.Values.Data = bytes.Clone(b.Values.Data)
			out = &copied
			return true
		})
		return out, err
	}
	text := level.Type{Kind: level.Variable, Bits: 64}
	b, err := decode(text, 0, 5)
	require.NoError(t, err)
	require.Equal(t, []uint16{0, 1, 0, 2, 0}, b.Def)
	require.Equal(t, "firstsecond", string(b.Values.Data))
	require.Equal(t, []uint32{0, 5, 5, 5, 5, 11}, b.Values.Offsets)
	b, err = decode(text, 4, 5)
	require.NoError(t, err)
	require.Equal(t, "second", string(b.Values.Data))
	b, err = decode(encoding.BlobDescriptions(), 3, 5)
	require.NoError(t, err)
	require.Equal(t, []uint16{2, 0}, b.Def)
	require.Equal(t, []byte{5, 6}, []byte{b.Values.Data[16], b.Values.Data[24]})

	_, err = decode(level.Type{Kind: level.Fixed, Bits: 64}, 0, 5)
	require.ErrorIs(t, err, table.ErrCorrupt)
	page.Size = 10
	_, err = decode(text, 0, 5)
	require.ErrorContains(t, err, "a blob of 6 bytes at 5 in a file of 10")
	page.Size = uint64(len(file))
	// A level that the page does not have.
	at := bytes.Index(file, []byte{0, 0, 2, 0, 0, 0, 0, 0})
	require.Positive(t, at)
	file[at+2] = 3
	_, err = decode(text, 0, 5)
	require.ErrorContains(t, err, "has the levels 0x30000")

	list := &level.Block{Type: encoding.BlobDescriptions(), Rows: 1, Layers: []level.Layer{level.NullableItem, level.NullableList},
		Rep: []uint16{1}, Values: level.Values{N: 1, Data: make([]byte, 16)}}
	err = encoding.NewEncoder(encoding.EncodeOptions{Version: encoding.V2_1}).EncodeBlobs(list, func(encoding.EncodedPage) error { return nil })
	require.ErrorIs(t, err, table.ErrUnsupported)
}
