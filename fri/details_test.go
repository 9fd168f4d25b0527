package fri_test

import (
	"bytes"
	"encoding/hex"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/rehome-db/rehome/fri"
	"github.com/rehome-db/rehome/table"
)

func TestDetailsBorder(t *testing.T) {
	inline := bytes.Repeat([]byte{7}, fri.MaxInline)
	details, external := fri.EncodeDetails(inline, "details.binpb")
	require.Nil(t, external)
	d, err := fri.DecodeDetails(details)
	require.NoError(t, err)
	require.Nil(t, d.External)
	require.Equal(t, inline, d.Inline)

	content := append(inline, 7)
	details, external = fri.EncodeDetails(content, "details.binpb")
	require.Equal(t, &fri.External{Path: "details.binpb", Size: 204801}, external)
	d, err = fri.DecodeDetails(details)
	require.NoError(t, err)
	require.Equal(t, external, d.External)
	got, err := d.External.Slice(content)
	require.NoError(t, err)
	require.Equal(t, content, got)
	_, err = d.External.Slice(content[1:])
	require.ErrorIs(t, err, table.ErrCorrupt)

	// The message that the stock engine wrote for a content of this size.
	details, _ = fri.EncodeDetails(make([]byte, 229676), "details.binpb")
	require.Equal(t, "12130a0d64657461696c732e62696e706218ac820e", hex.EncodeToString(details))

	// An index without transitions is inline and empty, which is not nothing.
	details, _ = fri.EncodeDetails(nil, "details.binpb")
	require.Equal(t, []byte{0x0a, 0x00}, details)
	d, err = fri.DecodeDetails(details)
	require.NoError(t, err)
	h, err := fri.Decode(d.Inline, 0)
	require.NoError(t, err)
	require.Zero(t, h.Len())
}

func externalDetails(path string, offset, size uint64) []byte {
	msg := protowire.AppendString(protowire.AppendTag(nil, 1, protowire.BytesType), path)
	msg = protowire.AppendVarint(protowire.AppendTag(msg, 2, protowire.VarintType), offset)
	msg = protowire.AppendVarint(protowire.AppendTag(msg, 3, protowire.VarintType), size)
	return protowire.AppendBytes(protowire.AppendTag(nil, 2, protowire.BytesType), msg)
}

func TestDetailsAreChecked(t *testing.T) {
	_, err := fri.DecodeDetails(externalDetails("details.binpb", 8, 1<<40))
	require.NoError(t, err)
	for name, c := range map[string]struct {
		details []byte
		is      error
		want    string
	}{
		"nothing":          {nil, table.ErrCorrupt, "no content"},
		"cut off":          {[]byte{0x0a, 5, 1}, table.ErrCorrupt, "unexpected EOF"},
		"unknown field":    {[]byte{0x1a, 0}, table.ErrUnsupported, "unknown field 3"},
		"wire type":        {[]byte{0x08, 0}, table.ErrCorrupt, "wire type 0"},
		"two contents":     {[]byte{0x0a, 0, 0x0a, 0}, table.ErrCorrupt, "more than one content"},
		"both contents":    {append([]byte{0x0a, 0}, externalDetails("x", 0, 1)...), table.ErrCorrupt, "more than one content"},
		"offset overflow":  {externalDetails("x", 1<<63, 1), table.ErrCorrupt, "1 bytes at 9223372036854775808"},
		"sum overflow":     {externalDetails("x", 1<<62, 1<<63-1), table.ErrCorrupt, "bytes at"},
		"size overflow":    {externalDetails("x", 0, 1<<64-1), table.ErrCorrupt, "bytes at"},
		"no path":          {externalDetails("", 0, 1), table.ErrCorrupt, `path ""`},
		"path leads out":   {externalDetails("../x", 0, 1), table.ErrCorrupt, `path "../x"`},
		"path is absolute": {externalDetails("/x", 0, 1), table.ErrCorrupt, `path "/x"`},
		"path is a dot":    {externalDetails(".", 0, 1), table.ErrCorrupt, `path "."`},
		"external field":   {[]byte{0x12, 2, 0x20, 1}, table.ErrUnsupported, "unknown field 4"},
		"external path":    {[]byte{0x12, 2, 0x08, 1}, table.ErrCorrupt, "wire type 0"},
		"external twice":   {[]byte{0x12, 4, 0x18, 1, 0x18, 2}, table.ErrCorrupt, "occurs twice"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := fri.DecodeDetails(c.details)
			require.ErrorIs(t, err, c.is)
			require.ErrorContains(t, err, c.want)
		})
	}
}

func TestOtherIndexVersionsAreRefused(t *testing.T) {
	for _, v := range []int32{-1, 2, 1 << 30} {
		_, err := fri.Decode(nil, v)
		require.ErrorIs(t, err, table.ErrUnsupported)
	}
}
