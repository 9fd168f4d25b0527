package shred_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/rehome-db/rehome/lance/datafile"
	"github.com/rehome-db/rehome/lance/datafile/assemble"
	"github.com/rehome-db/rehome/lance/datafile/shred"
	"github.com/rehome-db/rehome/lance/schema"
)

// writeArrays writes one array a column.
func writeArrays(t require.TestingT, w io.Writer, version datafile.Version, s *schema.Schema, arrays []arrow.Array, pageBytes int) datafile.FileInfo {
	out, err := datafile.NewWriter(w, version, s, datafile.WriterOptions{PageBytes: pageBytes})
	require.NoError(t, err)
	next := 0
	for i, f := range s.Fields {
		blocks, err := shred.Column(f, arrays[i])
		require.NoError(t, err)
		for _, b := range blocks {
			require.NoError(t, out.Column(next).Append(b))
			next++
		}
	}
	info, err := out.Finish()
	require.NoError(t, err)
	return info
}

// readArrays reads a file back, the arrays of each column.
func readArrays(t require.TestingT, raw []byte) [][]arrow.Array {
	f, err := datafile.Open(bytes.NewReader(raw), int64(len(raw)), "test")
	require.NoError(t, err)
	var sources []assemble.Source
	for i, leaf := range f.Schema().Leaves() {
		c, err := f.Column(i)
		require.NoError(t, err)
		require.NoError(t, c.Check(leaf))
		sources = append(sources, c.Blocks(context.Background(), leaf))
	}
	r, err := assemble.New(memory.DefaultAllocator, f.Schema(), sources, f.Rows())
	require.NoError(t, err)
	defer r.Close()
	parts := make([][]arrow.Array, len(f.Schema().Fields))
	for {
		batch, err := r.Next(1 << 20)
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		for i, c := range batch.Columns() {
			parts[i] = append(parts[i], c)
		}
	}
	return parts
}

// Whatever is written is read back, in pages of any size, and equal input gives an
// equal file.
func TestWrittenFilesReadBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		version := rapid.SampledFrom([]datafile.Version{datafile.V2_1, datafile.V2_2}).Draw(t, "version")
		s := drawSchema(t, 3, version)
		rows := rapid.IntRange(0, 60).Draw(t, "rows")
		stored, err := schema.FromArrow(s, 0)
		require.NoError(t, err)
		var arrays []arrow.Array
		for _, f := range s.Fields() {
			arrays = append(arrays, drawArray(t, f, rows))
		}
		pageBytes := rapid.SampledFrom([]int{1, 100, 1000, 0}).Draw(t, "page bytes")
		var file, again bytes.Buffer
		info := writeArrays(t, &file, version, stored, arrays, pageBytes)
		require.Equal(t, uint64(rows), info.Rows)
		require.Equal(t, uint64(file.Len()), info.Bytes)
		writeArrays(t, &again, version, stored, arrays, pageBytes)
		require.True(t, bytes.Equal(file.Bytes(), again.Bytes()))
		for i, got := range readArrays(t, file.Bytes()) {
			require.Equal(t, rowsOf(t, arrays[i]), rowsOf(t, got...), "column %d", i)
		}
	})
}
