package datafile_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/rehome-db/rehome/lance/datafile"
	"github.com/rehome-db/rehome/table"
)

func TestBlobDescriptions(t *testing.T) {
	// As the stock engine stores one of a file beside the data file.
	raw := []byte{1, 16, 0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0}
	d, err := datafile.ParseBlobDescription(raw)
	require.NoError(t, err)
	require.Equal(t, datafile.BlobDescription{Kind: datafile.BlobPacked, Position: 16, Size: 5, ID: 3}, d)
	require.Equal(t, raw, d.Append(nil))

	raw[0] = 4
	_, err = datafile.ParseBlobDescription(raw)
	require.ErrorIs(t, err, table.ErrUnsupported)
	_, err = datafile.ParseBlobDescription(raw[:20])
	require.ErrorIs(t, err, table.ErrCorrupt)
	raw[21] = 1
	_, err = datafile.ParseBlobDescription(raw)
	require.ErrorIs(t, err, table.ErrCorrupt)

	rapid.Check(t, func(t *rapid.T) {
		want := datafile.BlobDescription{
			Kind: datafile.BlobKind(rapid.IntRange(0, 3).Draw(t, "kind")), Position: rapid.Uint64().Draw(t, "position"),
			Size: rapid.Uint64().Draw(t, "size"), ID: rapid.Uint32().Draw(t, "id"), URI: rapid.String().Draw(t, "uri"),
		}
		got, err := datafile.ParseBlobDescription(want.Append(nil))
		require.NoError(t, err)
		require.Equal(t, want, got)
	})
}

func TestSidecarPaths(t *testing.T) {
	require.Equal(t, "data/x/10000000000000000000000000000000.blob", datafile.SidecarPath("data/x.lance", 1))
	require.Equal(t, "data/x/01000000000000000000000000000000.blob", datafile.SidecarPath("data/x.lance", 2))
}

func FuzzBlobDescription(f *testing.F) {
	f.Add(datafile.BlobDescription{Kind: datafile.BlobExternal, Size: 9, URI: "file:///x"}.Append(nil))
	f.Fuzz(func(t *testing.T, raw []byte) {
		if d, err := datafile.ParseBlobDescription(raw); err == nil {
			require.Equal(t, raw, d.Append(nil))
		} else {
			require.Equal(t, table.OutcomeDamaged, table.Classify(err))
		}
	})
}
