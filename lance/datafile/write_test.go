package datafile_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"

	"github.com/rehome-db/rehome/lance/datafile"
	"github.com/rehome-db/rehome/lance/datafile/encoding"
	"github.com/rehome-db/rehome/lance/datafile/filetest"
	"github.com/rehome-db/rehome/lance/datafile/level"
	"github.com/rehome-db/rehome/lance/readat"
	"github.com/rehome-db/rehome/lance/schema"
	"github.com/rehome-db/rehome/table"
)

func newSchema(t require.TestingT, s *arrow.Schema) *schema.Schema {
	out, err := schema.FromArrow(s, 0)
	require.NoError(t, err)
	return out
}

// writeArrays writes one array a column.
func writeArrays(t require.TestingT, w io.Writer, version datafile.Version, s *schema.Schema, arrays []arrow.Array, pageBytes int) datafile.FileInfo {
	return filetest.Write(t, w, version, s, arrays, datafile.WriterOptions{PageBytes: pageBytes})
}

func fromJSON(t testing.TB, typ arrow.DataType, json string) arrow.Array {
	a, _, err := array.FromJSON(memory.DefaultAllocator, typ, strings.NewReader(json))
	require.NoError(t, err)
	return a
}

// The bytes of a small file, which the stock engines were seen to read. If they
// change on purpose, run TestStockEngineReadsWhatIsWritten, then this test with
// REHOME_UPDATE=1.
func TestBytesOfASmallFile(t *testing.T) {
	s := arrow.NewSchema([]arrow.Field{
		{Name: "id", Type: arrow.PrimitiveTypes.Int64},
		{Name: "flag", Type: arrow.FixedWidthTypes.Boolean, Nullable: true},
		{Name: "name", Type: arrow.BinaryTypes.String, Nullable: true},
		{Name: "vector", Type: arrow.FixedSizeListOf(2, arrow.PrimitiveTypes.Float32)},
		{Name: "tags", Type: arrow.ListOf(arrow.BinaryTypes.String), Nullable: true},
		{Name: "note", Type: arrow.BinaryTypes.String, Nullable: true},
	}, nil)
	arrays := []arrow.Array{
		fromJSON(t, s.Field(0).Type, "[1, 2, 3, 4, 5]"),
		fromJSON(t, s.Field(1).Type, "[true, null, false, true, null]"),
		fromJSON(t, s.Field(2).Type, `["a", "bc", null, "", "def"]`),
		fromJSON(t, s.Field(3).Type, "[[1, 2], [3, 4], [5, 6], [7, 8], [9, 10]]"),
		fromJSON(t, s.Field(4).Type, `[["x"], [], null, ["y", null, "z"], ["w"]]`),
		fromJSON(t, s.Field(5).Type, "[null, null, null, null, null]"),
	}
	for _, version := range []datafile.Version{datafile.V2_1, datafile.V2_2, datafile.V2_3, datafile.V2_3Planar} {
		var file bytes.Buffer
		info := writeArrays(t, &file, version, newSchema(t, s), arrays, 0)
		require.Equal(t, datafile.FileInfo{
			Rows: 5, Bytes: uint64(file.Len()), Fields: []int32{0, 1, 2, 3, 5, 6}, Columns: []int32{0, 1, 2, 3, 4, 5},
		}, info)
		name := version.String()
		if version.Planar() {
			name += "_planar"
		}
		path := filepath.Join("testdata", "written", "small."+name+".lance")
		if os.Getenv("REHOME_UPDATE") == "1" {
			require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
			require.NoError(t, os.WriteFile(path, file.Bytes(), 0o644))
		}
		want, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, want, file.Bytes(), version.String())
		for i, got := range filetest.ReadArrays(t, want) {
			require.True(t, array.Equal(arrays[i], got), "column %d", i)
		}
	}
}

func vectorSchema(dim int32) *arrow.Schema {
	return arrow.NewSchema([]arrow.Field{
		{Name: "id", Type: arrow.PrimitiveTypes.Int64, Nullable: true},
		{Name: "text", Type: arrow.BinaryTypes.String, Nullable: true},
		{Name: "vector", Type: arrow.FixedSizeListOf(dim, arrow.PrimitiveTypes.Float32), Nullable: true},
	}, nil)
}

func vectorBlocks(rows, dim int) []*level.Block {
	flat := []level.Layer{level.AllValidItem}
	id := &level.Block{Type: level.Type{Kind: level.Fixed, Bits: 64}, Rows: rows, Layers: flat, Values: level.Values{N: rows, Data: make([]byte, 8*rows)}}
	text := &level.Block{Type: level.Type{Kind: level.Variable, Bits: 32}, Rows: rows, Layers: flat, Values: level.Values{N: rows, Offsets: []uint32{0}}}
	vector := &level.Block{Type: level.Type{Kind: level.FixedList, Bits: 32, Dim: dim}, Rows: rows, Layers: flat, Values: level.Values{N: rows, Data: make([]byte, 4*dim*rows)}}
	x := uint64(88172645463325252)
	random := func() byte {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
		return byte(x >> 20)
	}
	for i := range rows {
		id.Values.Data[8*i], id.Values.Data[8*i+1], id.Values.Data[8*i+2] = byte(i), byte(i>>8), byte(i>>16)
		text.Values.Data = fmt.Appendf(text.Values.Data, "document %d of collection %d, revision %d", int(random())<<8|int(random()), random(), random()%9)
		text.Values.Offsets = append(text.Values.Offsets, uint32(len(text.Values.Data)))
	}
	for i := range vector.Values.Data {
		vector.Values.Data[i] = random() & 0x3f // no NaN, which is not equal to itself
	}
	return []*level.Block{id, text, vector}
}

// Columns filled by several goroutines at once give the same columns as one after
// the other.
func TestColumnsInParallel(t *testing.T) {
	const rows, dim = 3000, 70
	blocks := vectorBlocks(rows, dim)
	s := newSchema(t, vectorSchema(dim))
	var serial, parallel bytes.Buffer
	for _, at := range []struct {
		out *bytes.Buffer
		run func(func())
	}{{&serial, func(f func()) { f() }}, {&parallel, nil}} {
		w, err := datafile.NewWriter(at.out, datafile.V2_2, s, datafile.WriterOptions{PageBytes: 20_000})
		require.NoError(t, err)
		var wg sync.WaitGroup
		run := at.run
		if run == nil {
			run = wg.Go
		}
		for i, b := range blocks {
			run(func() {
				c, err := level.NewCursor(b)
				if err == nil {
					for c.Remaining() > 0 && err == nil {
						err = w.Column(i).Take(c, 100)
					}
				}
				if err == nil {
					err = w.Column(i).TakeNulls(1000)
				}
				if err == nil {
					err = w.Column(i).Close()
				}
				if err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		info, err := w.Finish()
		require.NoError(t, err)
		require.Equal(t, uint64(rows+1000), info.Rows)
	}
	want := filetest.ReadArrays(t, serial.Bytes())
	for i, got := range filetest.ReadArrays(t, parallel.Bytes()) {
		require.True(t, array.Equal(want[i], got))
		require.Equal(t, 1000, got.NullN())
	}
}

// limited is a disk that is full after some bytes.
type limited struct{ left int }

var errFull = errors.New("no space left on device")

func (l *limited) Write(p []byte) (int, error) {
	if l.left < len(p) {
		n := l.left
		l.left = 0
		return n, errFull
	}
	l.left -= len(p)
	return len(p), nil
}

func TestWriteErrorsReachTheCaller(t *testing.T) {
	blocks := vectorBlocks(500, 70)
	s := newSchema(t, vectorSchema(70))
	write := func(to io.Writer) error {
		w, err := datafile.NewWriter(to, datafile.V2_1, s, datafile.WriterOptions{PageBytes: 10_000})
		require.NoError(t, err)
		for i, b := range blocks {
			if err := w.Column(i).Append(b); err != nil {
				_, again := w.Finish()
				require.ErrorIs(t, again, errFull)
				return err
			}
		}
		_, err = w.Finish()
		return err
	}
	var whole bytes.Buffer
	require.NoError(t, write(&whole))
	for left := 0; left < whole.Len(); left += whole.Len()/50 + 1 {
		require.ErrorIs(t, write(&limited{left}), errFull, "%d bytes", left)
	}
}

func TestWriterRefuses(t *testing.T) {
	s := newSchema(t, vectorSchema(70))
	_, err := datafile.NewWriter(io.Discard, 4, s, datafile.WriterOptions{})
	require.ErrorIs(t, err, table.ErrUnsupported)
	require.ErrorContains(t, err, "2.4")

	str, blob := arrow.BinaryTypes.String, arrow.MetadataFrom(map[string]string{"lance-encoding:blob": "true"})
	for _, c := range []struct {
		version datafile.Version
		field   arrow.Field
		message string
	}{
		{datafile.V2_1, arrow.Field{Name: "d", Type: arrow.ListOf(arrow.StructOf())}, "struct without fields"},
		{datafile.V2_1, arrow.Field{Name: "d", Type: arrow.MapOf(str, str)}, "no maps"},
		{datafile.V2_1, arrow.Field{Name: "d", Type: arrow.StructOf(arrow.Field{Name: "s", Type: str}),
			Metadata: arrow.MetadataFrom(map[string]string{"packed": "true"})}, "no packed structs"},
		{datafile.V2_2, arrow.Field{Name: "d", Type: arrow.BinaryTypes.LargeBinary, Metadata: blob}, "no blobs"},
		{datafile.V2_1, arrow.Field{Name: "d", Type: arrow.ListOfField(arrow.Field{Name: "item", Type: arrow.BinaryTypes.LargeBinary, Metadata: blob})}, "no blobs in lists"},
	} {
		s := newSchema(t, arrow.NewSchema([]arrow.Field{c.field}, nil))
		_, err = datafile.NewWriter(io.Discard, c.version, s, datafile.WriterOptions{})
		require.ErrorIs(t, err, table.ErrUnsupported)
		require.ErrorContains(t, err, `"d`)
		require.ErrorContains(t, err, c.message)
	}

	w, err := datafile.NewWriter(io.Discard, datafile.V2_1, s, datafile.WriterOptions{})
	require.NoError(t, err)
	require.NoError(t, w.Column(0).TakeNulls(3))
	require.NoError(t, w.Column(1).TakeNulls(2))
	require.NoError(t, w.Column(2).TakeNulls(3))
	_, err = w.Finish()
	require.ErrorIs(t, err, table.ErrCorrupt)
	require.ErrorContains(t, err, `"text"`)
	require.Error(t, w.Column(0).TakeNulls(1), "closed")

	w, err = datafile.NewWriter(io.Discard, datafile.V2_1, s, datafile.WriterOptions{})
	require.NoError(t, err)
	require.ErrorIs(t, w.Column(0).Append(vectorBlocks(3, 70)[1]), table.ErrCorrupt)
	_, err = w.Finish()
	require.ErrorIs(t, err, table.ErrCorrupt, "an error is not forgotten")
}

// A row that is larger than a page gets one of its own.
func TestRowsLargerThanAPage(t *testing.T) {
	values := []string{"a", strings.Repeat("b", 5000), "c", "d", strings.Repeat("e", 9000)}
	b := array.NewStringBuilder(memory.DefaultAllocator)
	b.AppendStringValues(values, nil)
	a := b.NewArray()
	s := newSchema(t, arrow.NewSchema([]arrow.Field{{Name: "c", Type: arrow.BinaryTypes.String}}, nil))
	var file bytes.Buffer
	writeArrays(t, &file, datafile.V2_1, s, []arrow.Array{a}, 1000)
	require.True(t, array.Equal(a, filetest.ReadArrays(t, file.Bytes())[0]))
	f, err := datafile.Open(t.Context(), readat.Bytes(file.Bytes()), int64(file.Len()), "test")
	require.NoError(t, err)
	c, err := f.Column(0)
	require.NoError(t, err)
	require.Greater(t, len(c.Pages()), 1)
}

func BenchmarkEncode(b *testing.B) {
	const rows, dim = 8192, 128
	for i, block := range vectorBlocks(rows, dim) {
		b.Run([]string{"int64", "utf8", "vector"}[i], func(b *testing.B) {
			e := encoding.NewEncoder(encoding.EncodeOptions{Version: datafile.V2_1})
			b.SetBytes(int64(len(block.Values.Data)))
			b.ReportAllocs()
			for b.Loop() {
				require.NoError(b, e.Encode(block, func(encoding.EncodedPage) error { return nil }))
			}
		})
	}
}

// BenchmarkWriteFile writes rows as a rewrite does: by blocks, with every
// hundredth row dropped.
func BenchmarkWriteFile(b *testing.B) {
	const rows, dim = 8192, 128
	blocks := vectorBlocks(rows, dim)
	s := newSchema(b, vectorSchema(dim))
	b.SetBytes(int64(rows * (8 + 40 + 4*dim)))
	b.ReportAllocs()
	for b.Loop() {
		w, err := datafile.NewWriter(io.Discard, datafile.V2_1, s, datafile.WriterOptions{})
		require.NoError(b, err)
		for i, block := range blocks {
			c, err := level.NewCursor(block)
			require.NoError(b, err)
			for c.Remaining() > 0 {
				require.NoError(b, w.Column(i).Take(c, 99))
				require.NoError(b, c.Skip(1))
			}
		}
		_, err = w.Finish()
		require.NoError(b, err)
	}
}
