package encoding

import (
	"bytes"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"

	"github.com/rehome-db/rehome/table"
)

func TestCompressByName(t *testing.T) {
	for _, text := range []string{"", "a", string(bytes.Repeat([]byte("many words "), 1000))} {
		for _, scheme := range []string{"lz4", "zstd"} {
			packed, err := Compress(scheme, 0, nil, []byte(text))
			require.NoError(t, err)
			got, err := Decompress(scheme, []byte("before "), packed, 1<<20)
			require.NoError(t, err)
			require.Equal(t, "before "+text, string(got))
			if len(text) > 100 {
				_, err = Decompress(scheme, nil, packed, 100)
				require.ErrorIs(t, err, table.ErrCorrupt)
			}
		}
		if len(text) == 0 {
			continue
		}
		// A stream does not say how long it is going to be.
		var stream bytes.Buffer
		w, err := zstd.NewWriter(&stream)
		require.NoError(t, err)
		for _, b := range []byte(text) {
			_, err = w.Write([]byte{b})
			require.NoError(t, err)
			if len(text) > 100 && stream.Len() == 0 {
				require.NoError(t, w.Flush())
			}
		}
		require.NoError(t, w.Close())
		got, err := Decompress("zstd", []byte("before "), stream.Bytes(), 1<<20)
		require.NoError(t, err)
		require.Equal(t, "before "+text, string(got))
		if len(text) > 100 {
			require.True(t, unsized(stream.Bytes()))
			_, err = Decompress("zstd", nil, stream.Bytes(), 100)
			require.Equal(t, table.OutcomeDamaged, table.Classify(err))
			_, err = Decompress("zstd", nil, stream.Bytes()[:stream.Len()-5], 1<<20)
			require.ErrorIs(t, err, table.ErrCorrupt)
		}
	}
	_, err := Decompress("brotli", nil, nil, 1)
	require.ErrorIs(t, err, table.ErrUnsupported)
	_, err = Compress("brotli", 0, nil, nil)
	require.ErrorIs(t, err, table.ErrUnsupported)
}
