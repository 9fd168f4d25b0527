package filetest

import (
	"context"
	"errors"
	"io"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"

	"github.com/rehome-db/rehome/lance/datafile"
	"github.com/rehome-db/rehome/lance/datafile/assemble"
	"github.com/rehome-db/rehome/lance/datafile/shred"
	"github.com/rehome-db/rehome/lance/readat"
	"github.com/rehome-db/rehome/lance/schema"
)

// Write writes a file of one array for each top-level column of the schema.
func Write(t require.TestingT, w io.Writer, version datafile.Version, s *schema.Schema, arrays []arrow.Array, options datafile.WriterOptions) datafile.FileInfo {
	out, err := datafile.NewWriter(w, version, s, options)
	require.NoError(t, err)
	Append(t, out, s, arrays)
	info, err := out.Finish()
	require.NoError(t, err)
	return info
}

// Append appends one array to each top-level column, one column after the other.
func Append(t require.TestingT, w *datafile.Writer, s *schema.Schema, arrays []arrow.Array) {
	next := 0 // leaf column
	for i, f := range s.Fields {
		blocks, err := shred.Column(f, arrays[i])
		require.NoError(t, err)
		for _, b := range blocks {
			require.NoError(t, w.Column(next).Append(b))
			next++
		}
	}
}

// Read reads a file of format 2.1 or later, and returns the arrays of each top-level
// column, in the order of their rows.
func Read(t require.TestingT, raw []byte) [][]arrow.Array {
	f, err := datafile.Open(context.Background(), readat.Bytes(raw), int64(len(raw)), "test")
	require.NoError(t, err)
	var sources []assemble.Source
	for i, leaf := range f.Schema().Leaves() {
		c, err := f.Column(i)
		require.NoError(t, err)
		require.NoError(t, c.Check(leaf))
		sources = append(sources, c.Blocks(context.Background(), leaf))
	}
	return Assemble(t, f.Schema(), sources, f.Rows())
}

// ReadArrays reads as Read does, and returns one array for each top-level column; nil
// for all if the file has no rows.
func ReadArrays(t require.TestingT, raw []byte) []arrow.Array {
	parts := Read(t, raw)
	out := make([]arrow.Array, len(parts))
	for i, p := range parts {
		if len(p) > 0 {
			var err error
			out[i], err = array.Concatenate(p, memory.DefaultAllocator)
			require.NoError(t, err)
		}
	}
	return out
}

// Assemble reads the blocks of leaf columns to the end, and returns the arrays of each
// top-level column.
func Assemble(t require.TestingT, s *schema.Schema, sources []assemble.Source, rows uint64) [][]arrow.Array {
	r, err := assemble.New(memory.DefaultAllocator, s, sources, rows)
	require.NoError(t, err)
	defer r.Close()
	parts := make([][]arrow.Array, len(s.Fields))
	for {
		batch, err := r.Next(1 << 20)
		if errors.Is(err, io.EOF) {
			return parts
		}
		require.NoError(t, err)
		for i, c := range batch.Columns() {
			parts[i] = append(parts[i], c)
		}
	}
}
