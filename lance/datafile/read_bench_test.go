package datafile_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/stretchr/testify/require"

	"github.com/rehome-db/rehome/lance/datafile"
	"github.com/rehome-db/rehome/lance/datafile/level"
	"github.com/rehome-db/rehome/lance/readat"
	"github.com/rehome-db/rehome/lance/schema"
)

// benchFile is rows rows of an int64, a string of about 30 bytes and a vector of
// 128 float32, as the compaction benchmark has them.
func benchFile(b *testing.B, rows int) *datafile.File {
	s, err := schema.FromArrow(arrow.NewSchema([]arrow.Field{
		{Name: "id", Type: arrow.PrimitiveTypes.Int64, Nullable: true},
		{Name: "text", Type: arrow.BinaryTypes.String, Nullable: true},
		{Name: "vector", Type: arrow.FixedSizeListOf(128, arrow.PrimitiveTypes.Float32), Nullable: true},
	}, nil), 0)
	require.NoError(b, err)
	rng := rand.New(rand.NewPCG(1, 2))
	words := make([]string, 2000)
	for i := range words {
		for range 2 + rng.IntN(8) {
			words[i] += string(rune('a' + rng.IntN(26)))
		}
	}
	ids, text := level.Values{N: rows}, level.Values{N: rows, Offsets: []uint32{0}}
	for i := range rows {
		ids.Data = binary.LittleEndian.AppendUint64(ids.Data, uint64(i))
		for range 5 {
			text.Data = append(append(text.Data, words[rng.IntN(len(words))]...), ' ')
		}
		text.Offsets = append(text.Offsets, uint32(len(text.Data)))
	}
	vectors := level.Values{N: rows, Data: make([]byte, rows*512)}
	for i := 0; i < len(vectors.Data); i += 4 {
		binary.LittleEndian.PutUint32(vectors.Data[i:], rng.Uint32()>>2)
	}

	var out bytes.Buffer
	w, err := datafile.NewWriter(&out, datafile.V2_1, s, datafile.WriterOptions{})
	require.NoError(b, err)
	for i, v := range []level.Values{ids, text, vectors} {
		leaf := w.Column(i).Leaf()
		require.NoError(b, w.Column(i).Append(&level.Block{Type: leaf.Type, Rows: rows, Layers: []level.Layer{level.AllValidItem}, Values: v}))
	}
	_, err = w.Finish()
	require.NoError(b, err)
	f, err := datafile.Open(context.Background(), readat.Bytes(out.Bytes()), int64(out.Len()), "bench")
	require.NoError(b, err)
	return f
}

// BenchmarkBlocks decodes one column; bytes are those of the values.
func BenchmarkBlocks(b *testing.B) {
	f := benchFile(b, 100_000)
	for i, leaf := range f.Schema().Leaves() {
		c, err := f.Column(i)
		require.NoError(b, err)
		b.Run(leaf.Path+" "+c.Pages()[0].Encoding(), func(b *testing.B) {
			b.ReportAllocs()
			n := 0
			for b.Loop() {
				n = 0
				for block, err := range c.Blocks(context.Background(), leaf) {
					if err != nil {
						b.Fatal(err)
					}
					n += len(block.Values.Data)
				}
			}
			b.SetBytes(int64(n))
		})
	}
}
