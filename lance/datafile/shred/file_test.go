package shred_test

import (
	"bytes"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/rehome-db/rehome/lance/datafile"
	"github.com/rehome-db/rehome/lance/datafile/filetest"
	"github.com/rehome-db/rehome/lance/schema"
)

// Whatever is written is read back, in pages of any size, and equal input gives an
// equal file.
func TestWrittenFilesReadBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		version := rapid.SampledFrom([]datafile.Version{datafile.V2_1, datafile.V2_2, datafile.V2_3, datafile.V2_3Planar}).Draw(t, "version")
		s := drawSchema(t, 3, version)
		rows := rapid.IntRange(0, 60).Draw(t, "rows")
		stored, err := schema.FromArrow(s, 0)
		require.NoError(t, err)
		var arrays []arrow.Array
		for _, f := range s.Fields() {
			arrays = append(arrays, drawArray(t, f, rows))
		}
		options := datafile.WriterOptions{PageBytes: rapid.SampledFrom([]int{1, 100, 1000, 0}).Draw(t, "page bytes")}
		var file, again bytes.Buffer
		info := filetest.Write(t, &file, version, stored, arrays, options)
		require.Equal(t, uint64(rows), info.Rows)
		require.Equal(t, uint64(file.Len()), info.Bytes)
		filetest.Write(t, &again, version, stored, arrays, options)
		require.True(t, bytes.Equal(file.Bytes(), again.Bytes()))
		for i, got := range filetest.Read(t, file.Bytes()) {
			require.Equal(t, rowsOf(t, arrays[i]), rowsOf(t, got...), "column %d", i)
		}
	})
}
