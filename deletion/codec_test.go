package deletion_test

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/rehome-db/rehome/deletion"
)

const allRows = 1 << 32

type column struct {
	name     string
	typ      arrow.DataType
	nullable bool
}

// arrowFile writes an Arrow file by Arrow's own writer.
func arrowFile(t testing.TB, col column, batches [][]uint32, opts ...ipc.Option) []byte {
	t.Helper()
	schema := arrow.NewSchema([]arrow.Field{{Name: col.name, Type: col.typ, Nullable: col.nullable}}, nil)
	var out bytes.Buffer
	w, err := ipc.NewFileWriter(&out, append(opts, ipc.WithSchema(schema))...)
	require.NoError(t, err)
	for _, values := range batches {
		b := array.NewBuilder(memory.DefaultAllocator, col.typ)
		for _, v := range values {
			require.NoError(t, b.AppendValueFromString(strconv.FormatUint(uint64(v), 10)))
		}
		a := b.NewArray()
		require.NoError(t, w.Write(array.NewRecordBatch(schema, []arrow.Array{a}, int64(a.Len()))))
	}
	require.NoError(t, w.Close())
	return out.Bytes()
}

var deletionColumn = column{name: "row_id", typ: arrow.PrimitiveTypes.Uint32}

// readArrow reads a deletion file by Arrow's own reader.
func readArrow(t testing.TB, data []byte) []uint32 {
	t.Helper()
	r, err := ipc.NewFileReader(bytes.NewReader(data))
	require.NoError(t, err)
	defer r.Close()
	require.True(t, r.Schema().Equal(arrow.NewSchema([]arrow.Field{{Name: "row_id", Type: arrow.PrimitiveTypes.Uint32}}, nil)))
	require.Equal(t, 1, r.NumRecords())
	rec, err := r.RecordBatchAt(0)
	require.NoError(t, err)
	defer rec.Release()
	return slices.Clone(rec.Column(0).(*array.Uint32).Uint32Values())
}

func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v, offsets := draw(t, "v")
		data, err := deletion.EncodeArrow(v)
		require.NoError(t, err)
		got, err := deletion.DecodeArrow(data, allRows)
		require.NoError(t, err)
		require.True(t, got.Equal(v))

		data = deletion.EncodeBitmap(v)
		got, err = deletion.DecodeBitmap(data, allRows)
		require.NoError(t, err)
		require.True(t, got.Equal(v))
		bm := roaring.New()
		_, err = bm.FromBuffer(data)
		require.NoError(t, err)
		require.False(t, bm.HasRunCompression())
		require.True(t, slices.Equal(offsets, bm.ToArray()))

		kind, data, err := deletion.Encode(v)
		require.NoError(t, err)
		got, err = deletion.Decode(kind, data, allRows)
		require.NoError(t, err)
		require.True(t, got.Equal(v))
	})
}

// What a decoded vector holds does not depend on the bytes it came from.
func TestDecodedVectorOwnsItsMemory(t *testing.T) {
	v := deletion.Range(3, 70000).Union(deletion.Of(1, 140000))
	for _, kind := range []deletion.Encoding{deletion.Arrow, deletion.Bitmap} {
		data, err := deletion.EncodeArrow(v)
		require.NoError(t, err)
		if kind == deletion.Bitmap {
			data = deletion.EncodeBitmap(v)
		}
		got, err := deletion.Decode(kind, data, allRows)
		require.NoError(t, err)
		clear(data)
		require.True(t, got.Equal(v))
	}
}

func TestEncodeTakesTheSmaller(t *testing.T) {
	kind, data, err := deletion.Encode(deletion.Of(7))
	require.NoError(t, err)
	require.Equal(t, deletion.Bitmap, kind)
	require.Len(t, data, 18)

	// One row in every container: 10 bytes a row as a bitmap.
	var sparse []uint32
	for i := range uint32(5000) {
		sparse = append(sparse, i<<16|7)
	}
	kind, data, err = deletion.Encode(deletion.Of(sparse...))
	require.NoError(t, err)
	require.Equal(t, deletion.Arrow, kind)
	require.Less(t, len(data), len(deletion.EncodeBitmap(deletion.Of(sparse...))))
	require.Equal(t, sparse, readArrow(t, data))
}

func TestDecodesEveryArrowForm(t *testing.T) {
	values := make([]uint32, 10000)
	for i := range values {
		values[i] = uint32(i) * 3
	}
	want := deletion.Of(values...)
	rand.New(rand.NewPCG(1, 2)).Shuffle(len(values), func(i, j int) { values[i], values[j] = values[j], values[i] })
	for name, opts := range map[string][]ipc.Option{
		"plain":                 nil,
		"zstd":                  {ipc.WithZstd()},
		"zstd that did not pay": {ipc.WithZstd(), ipc.WithMinSpaceSavings(0.99)},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := deletion.DecodeArrow(arrowFile(t, deletionColumn, [][]uint32{values}, opts...), 30000)
			require.NoError(t, err)
			require.True(t, got.Equal(want))
		})
	}
	got, err := deletion.DecodeArrow(arrowFile(t, deletionColumn, [][]uint32{{}}), 0)
	require.NoError(t, err)
	require.True(t, got.IsEmpty())
}

func TestDecodesRunContainers(t *testing.T) {
	bm := roaring.New()
	bm.AddRange(10, 70000)
	bm.AddRange(200000, 200100)
	bm.Add(5)
	bm.RunOptimize()
	require.True(t, bm.HasRunCompression())
	data, err := bm.ToBytes()
	require.NoError(t, err)
	got, err := deletion.DecodeBitmap(data, 300000)
	require.NoError(t, err)
	require.True(t, slices.Equal(bm.ToArray(), slices.Collect(got.All())))
}

func TestDecodeRefuses(t *testing.T) {
	good := arrowFile(t, deletionColumn, [][]uint32{{4, 2, 9}}, ipc.WithZstd())
	bin := deletion.EncodeBitmap(deletion.Of(2, 4, 9))
	zeros := binary.LittleEndian.AppendUint64(nil, 1<<62)
	for _, c := range []struct {
		name string
		kind deletion.Encoding
		data []byte
		rows uint64
		is   error
		want string
	}{
		{"arrow: empty", deletion.Arrow, nil, 10, deletion.ErrCorrupt, "not an Arrow file"},
		{"arrow: cut off", deletion.Arrow, good[:len(good)-1], 10, deletion.ErrCorrupt, "not an Arrow file"},
		{"arrow: offset outside", deletion.Arrow, good, 9, deletion.ErrCorrupt, "offset 9 is deleted in a fragment of 9 rows"},
		{"arrow: more rows than the fragment", deletion.Arrow, good, 2, deletion.ErrCorrupt, "3 rows are deleted in a fragment of 2"},
		{"arrow: duplicate", deletion.Arrow, arrowFile(t, deletionColumn, [][]uint32{{1, 2, 1}}), 10, deletion.ErrCorrupt, "offset 1 occurs twice"},
		{"arrow: two batches", deletion.Arrow, arrowFile(t, deletionColumn, [][]uint32{{1}, {2}}), 10, deletion.ErrCorrupt, "2 record batches"},
		{"arrow: no batch", deletion.Arrow, arrowFile(t, deletionColumn, nil), 10, deletion.ErrCorrupt, "0 record batches"},
		{"arrow: name", deletion.Arrow, arrowFile(t, column{"rowid", arrow.PrimitiveTypes.Uint32, false}, [][]uint32{{1}}), 10, deletion.ErrCorrupt, `the column is "rowid"`},
		{"arrow: signed", deletion.Arrow, arrowFile(t, column{"row_id", arrow.PrimitiveTypes.Int32, false}, [][]uint32{{1}}), 10, deletion.ErrCorrupt, "not uint32"},
		{"arrow: wide", deletion.Arrow, arrowFile(t, column{"row_id", arrow.PrimitiveTypes.Uint64, false}, [][]uint32{{1}}), 10, deletion.ErrCorrupt, "not uint32"},
		{"arrow: nullable", deletion.Arrow, arrowFile(t, column{"row_id", arrow.PrimitiveTypes.Uint32, true}, [][]uint32{{1}}), 10, deletion.ErrCorrupt, "nullable"},
		{"arrow: lz4", deletion.Arrow, arrowFile(t, deletionColumn, [][]uint32{{1}}, ipc.WithLZ4()), 10, deletion.ErrUnsupported, "LZ4"},
		{"arrow: a buffer that claims exabytes", deletion.Arrow, bytes.Replace(good, binary.LittleEndian.AppendUint64(nil, 12), zeros, 1), 10, deletion.ErrCorrupt, "the buffer has 4611686018427387904"},
		{"bitmap: trailing bytes", deletion.Bitmap, append(slices.Clone(bin), 0), 10, deletion.ErrCorrupt, "1 bytes follow its end"},
		{"bitmap: cut off", deletion.Bitmap, bin[:len(bin)-1], 10, deletion.ErrCorrupt, "needs 6 bytes"},
		{"bitmap: offset outside", deletion.Bitmap, bin, 9, deletion.ErrCorrupt, "offset 9 is deleted in a fragment of 9 rows"},
		{"bitmap: arrow bytes", deletion.Bitmap, good, 10, deletion.ErrCorrupt, "cookie"},
		{"unknown form", deletion.Encoding(2), bin, 10, deletion.ErrUnsupported, "unknown encoding 2"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := deletion.Decode(c.kind, c.data, c.rows)
			require.ErrorIs(t, err, c.is)
			require.ErrorContains(t, err, c.want)
		})
	}
}

// goldenFile is one deletion file of a table that a stock engine wrote.
type goldenFile struct {
	path     string
	kind     deletion.Encoding
	fragment uint64
	// counts are the fragment's (physical, deleted) rows in every version.
	counts [][2]uint64
}

func goldenFiles(t testing.TB) []goldenFile {
	var out []goldenFile
	paths, err := filepath.Glob("../testdata/golden/*/t.lance/_deletions/*")
	require.NoError(t, err)
	for _, p := range paths {
		g := goldenFile{path: p, kind: deletion.Arrow}
		if strings.HasSuffix(p, ".bin") {
			g.kind = deletion.Bitmap
		}
		id, _, _ := strings.Cut(filepath.Base(p), "-")
		g.fragment, err = strconv.ParseUint(id, 10, 32)
		require.NoError(t, err)
		raw, err := os.ReadFile(filepath.Join(filepath.Dir(p), "../../expected.json"))
		require.NoError(t, err)
		var expected struct {
			Versions map[string]struct {
				Fragments []struct {
					ID           uint64 `json:"id"`
					PhysicalRows uint64 `json:"physical_rows"`
					Deleted      uint64 `json:"deleted"`
				} `json:"fragments"`
			} `json:"versions"`
		}
		require.NoError(t, json.Unmarshal(raw, &expected))
		for _, v := range expected.Versions {
			for _, f := range v.Fragments {
				if f.ID == g.fragment {
					g.counts = append(g.counts, [2]uint64{f.PhysicalRows, f.Deleted})
				}
			}
		}
		require.NotEmpty(t, g.counts, p)
		out = append(out, g)
	}
	return out
}

// Every deletion file that the stock engines wrote decodes to what Arrow's and
// Roaring's own readers see in it, and to a number of rows that the table records.
func TestGoldenFiles(t *testing.T) {
	kinds := map[deletion.Encoding]int{}
	for _, g := range goldenFiles(t) {
		data, err := os.ReadFile(g.path)
		require.NoError(t, err)
		v, err := deletion.Decode(g.kind, data, g.counts[0][0])
		require.NoError(t, err, g.path)

		var want []uint32
		if g.kind == deletion.Arrow {
			want = readArrow(t, data)
			slices.Sort(want)
		} else {
			bm := roaring.New()
			_, err := bm.FromBuffer(data)
			require.NoError(t, err)
			want = bm.ToArray()
			require.Equal(t, data, deletion.EncodeBitmap(v), "bytes as the stock engine writes them")
		}
		require.Equal(t, want, slices.Collect(v.All()), g.path)
		require.True(t, slices.ContainsFunc(g.counts, func(c [2]uint64) bool {
			return v.Validate(c[0], c[1]) == nil && c[1] != 0
		}), "%s: %v matches none of %v", g.path, v, g.counts)
		kinds[g.kind]++
	}
	require.Greater(t, kinds[deletion.Arrow], 50)
	require.Greater(t, kinds[deletion.Bitmap], 3)
}

func FuzzDecodeArrow(f *testing.F) {
	for _, g := range goldenFiles(f) {
		if g.kind == deletion.Arrow {
			data, err := os.ReadFile(g.path)
			require.NoError(f, err)
			f.Add(data, g.counts[0][0])
		}
	}
	f.Add(arrowFile(f, deletionColumn, [][]uint32{{4, 2}}), uint64(5))
	f.Fuzz(func(t *testing.T, data []byte, rows uint64) {
		v, err := deletion.DecodeArrow(data, rows)
		checkDecoded(t, v, err, rows)
	})
}

func FuzzDecodeBitmap(f *testing.F) {
	for _, g := range goldenFiles(f) {
		if g.kind == deletion.Bitmap {
			data, err := os.ReadFile(g.path)
			require.NoError(f, err)
			f.Add(data, g.counts[0][0])
		}
	}
	f.Add(deletion.EncodeBitmap(deletion.Of(1, 65535, 65536)), uint64(70000))
	f.Fuzz(func(t *testing.T, data []byte, rows uint64) {
		v, err := deletion.DecodeBitmap(data, rows)
		checkDecoded(t, v, err, rows)
	})
}

// checkDecoded: a decoder refuses with one of the two sentinels, or gives a set
// that fits the fragment and survives both codecs.
func checkDecoded(t *testing.T, v *deletion.Vector, err error, rows uint64) {
	if err != nil {
		require.Nil(t, v)
		if !isOurs(err) {
			t.Fatalf("error without a sentinel: %v", err)
		}
		return
	}
	require.NoError(t, v.Validate(rows, v.Cardinality()))
	kind, data, err := deletion.Encode(v)
	require.NoError(t, err)
	again, err := deletion.Decode(kind, data, rows)
	require.NoError(t, err)
	require.True(t, v.Equal(again))
}

func isOurs(err error) bool {
	return errors.Is(err, deletion.ErrCorrupt) || errors.Is(err, deletion.ErrUnsupported)
}

// Damage anywhere in a real file is refused or gives a valid set; it never panics.
func TestBitFlips(t *testing.T) {
	for _, g := range goldenFiles(t)[:3] {
		data, err := os.ReadFile(g.path)
		require.NoError(t, err)
		for i := range data {
			for bit := range 8 {
				data[i] ^= 1 << bit
				v, err := deletion.Decode(g.kind, data, g.counts[0][0])
				checkDecoded(t, v, err, g.counts[0][0])
				data[i] ^= 1 << bit
			}
		}
		for i := range data {
			v, err := deletion.Decode(g.kind, data[:i], g.counts[0][0])
			require.Error(t, err)
			require.Nil(t, v)
		}
	}
}
