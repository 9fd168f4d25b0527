package arrowipc_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"

	"github.com/rehome-db/rehome/internal/arrowcheck"
	"github.com/rehome-db/rehome/internal/arrowipc"
)

var schema = arrow.NewSchema([]arrow.Field{
	{Name: "n", Type: arrow.PrimitiveTypes.Int64, Nullable: true},
	{Name: "t", Type: &arrow.TimestampType{Unit: arrow.Second, TimeZone: "Europe/Berlin"}, Nullable: true},
	{Name: "d", Type: &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int8, ValueType: arrow.BinaryTypes.String}, Nullable: true},
	{Name: "l", Type: arrow.ListOf(arrow.StructOf(arrow.Field{Name: "a", Type: arrow.BinaryTypes.StringView, Nullable: true})), Nullable: true},
}, nil)

func batch(t testing.TB, rows int) arrow.RecordBatch {
	t.Helper()
	var b strings.Builder
	for i := range rows {
		fmt.Fprintf(&b, `{"n":%d,"t":%d,"d":"%d","l":[{"a":"a text of some length %d"},null]}`+"\n", i, i, i%3, i)
	}
	rec, _, err := array.RecordFromJSON(memory.DefaultAllocator, schema, strings.NewReader("["+strings.ReplaceAll(strings.TrimSpace(b.String()), "\n", ",")+"]"))
	require.NoError(t, err)
	return rec
}

func file(t testing.TB, recs []arrow.RecordBatch, opts ...ipc.Option) []byte {
	t.Helper()
	name := filepath.Join(t.TempDir(), "f")
	f, err := os.Create(name)
	require.NoError(t, err)
	w, err := ipc.NewFileWriter(f, append(opts, ipc.WithSchema(recs[0].Schema()))...)
	require.NoError(t, err)
	for _, r := range recs {
		require.NoError(t, w.Write(r))
	}
	require.NoError(t, w.Close())
	require.NoError(t, f.Close())
	b, err := os.ReadFile(name)
	require.NoError(t, err)
	return b
}

func stream(t testing.TB, recs []arrow.RecordBatch, opts ...ipc.Option) []byte {
	t.Helper()
	var b bytes.Buffer
	w := ipc.NewWriter(&b, append(opts, ipc.WithSchema(recs[0].Schema()))...)
	for _, r := range recs {
		require.NoError(t, w.Write(r))
	}
	require.NoError(t, w.Close())
	return b.Bytes()
}

// read reads bytes in the form that they begin with.
func read(b []byte) (got []arrow.RecordBatch, err error) {
	batches := arrowipc.Stream(bytes.NewReader(b))
	if bytes.HasPrefix(b, []byte("ARROW1")) {
		batches = arrowipc.File(bytes.NewReader(b), int64(len(b)))
	}
	for rec, err := range batches {
		if err == nil {
			err = arrowcheck.Record(rec)
		}
		if err != nil {
			return nil, err
		}
		rec.Retain()
		got = append(got, rec)
	}
	return got, nil
}

// What the library writes is read: as a file and as a stream, compressed and not.
func TestWhatIsWrittenIsRead(t *testing.T) {
	all := batch(t, 100)
	recs := []arrow.RecordBatch{all, all.NewSlice(0, 0), all.NewSlice(7, 10)}
	for name, opts := range map[string][]ipc.Option{
		"plain": nil, "zstd": {ipc.WithZstd()}, "lz4": {ipc.WithLZ4()}, "some": {ipc.WithZstd(), ipc.WithMinSpaceSavings(0.3)}, "deltas": {ipc.WithDictionaryDeltas(true)},
	} {
		for form, b := range map[string][]byte{"file": file(t, recs, opts...), "stream": stream(t, recs, opts...)} {
			got, err := read(b)
			require.NoError(t, err, "%s %s", name, form)
			require.Len(t, got, len(recs))
			for i, rec := range recs {
				require.True(t, array.RecordEqual(rec, got[i]), "%s %s", name, form)
			}
			for _, cut := range []int{len(b) / 2, len(b) - 9, 40} {
				if _, err := read(b[:cut]); form == "file" || cut == len(b)/2 {
					require.Error(t, err, "%s %s cut off at %d", name, form, cut)
				}
			}
		}
	}
	// A stream may go without its end.
	b := stream(t, recs)
	got, err := read(b[:len(b)-8])
	require.NoError(t, err)
	require.Len(t, got, 3)
}

// allocated is how many bytes a function allocates, freed or not.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// edit returns a copy in which a number that stands exactly once is another one.
func edit(t *testing.T, b []byte, was, is uint64) []byte {
	t.Helper()
	var w, i [8]byte
	binary.LittleEndian.PutUint64(w[:], was)
	binary.LittleEndian.PutUint64(i[:], is)
	require.Positive(t, bytes.Count(b, w[:]))
	return bytes.ReplaceAll(b, w[:], i[:])
}

// What a file claims to have is not allocated before it is there.
func TestReport08ClaimsAreNotAllocated(t *testing.T) {
	one := batch(t, 1000)
	plain, packed := stream(t, []arrow.RecordBatch{one}), stream(t, []arrow.RecordBatch{one}, ipc.WithZstd())
	// The largest buffers are the numbers: 8000 bytes.
	for name, b := range map[string][]byte{
		"a buffer":                    edit(t, plain, 8000, 1<<40),
		"a decompressed buffer":       edit(t, packed, 8000, 1<<40),
		"a decompressed buffer, less": edit(t, packed, 8000, 100<<20),
		"rows":                        edit(t, plain, 1000, 1<<40),
		"rows of an int":              edit(t, plain, 1000, 1<<31-1),
		"a message":                   append([]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f}, plain...),
	} {
		n := allocated(func() {
			_, err := read(b)
			require.Error(t, err, name)
			t.Log(name, err)
		})
		require.Less(t, n, uint64(32<<20), name)
	}
}

// A stream that never ends is not waited for in memory.
func TestReport08AMessageThatIsCutOff(t *testing.T) {
	b := stream(t, []arrow.RecordBatch{batch(t, 1000)})
	for cut := range 400 {
		_, err := read(b[:len(b)-10-cut*7])
		require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	}
}

// manyFields is a message of a schema in which each struct has the same field twice:
// 2^levels fields in a few hundred bytes.
func manyFields(levels int) []byte {
	var b []byte
	u16 := func(v ...uint16) {
		for _, x := range v {
			b = binary.LittleEndian.AppendUint16(b, x)
		}
	}
	u32 := func(v ...int) {
		for _, x := range v {
			b = binary.LittleEndian.AppendUint32(b, uint32(x))
		}
	}
	u32(20)                   // the message
	u16(10, 12, 8, 10, 4, 0)  // its vtable at 4
	u32(0)                    // fill
	u32(20-4, 32-24)          // message at 20: vtable, the schema
	b = append(b, 4, 0, 1, 0) // version, kind
	// The schema's vtable at 32-...: the schema itself stands at 32 and has its fields.
	schemaAt := len(b)
	u32(0, 0) // vtable and fields, below
	vtable := len(b)
	u16(8, 8, 0, 4) // of the schema
	binary.LittleEndian.PutUint32(b[schemaAt:], uint32(int32(schemaAt-vtable)))
	fieldVtable := len(b)
	u16(16, 12, 0, 0, 8, 0, 0, 4) // type 13 at 8, children at 4
	binary.LittleEndian.PutUint32(b[schemaAt+4:], uint32(len(b)-schemaAt-4))
	for range levels {
		vector := len(b)
		u32(2, 0, 0)
		field := len(b)
		binary.LittleEndian.PutUint32(b[vector+4:], uint32(field-vector-4))
		binary.LittleEndian.PutUint32(b[vector+8:], uint32(field-vector-8))
		u32(field-fieldVtable, 8, 13) // the next vector comes right after
	}
	u32(0)
	return append(binary.LittleEndian.AppendUint32([]byte{0xff, 0xff, 0xff, 0xff}, uint32(len(b))), b...)
}

func TestReport08ASchemaThatRefersToItself(t *testing.T) {
	for _, levels := range []int{20, 40, 63} {
		n := allocated(func() {
			_, err := read(manyFields(levels))
			require.ErrorContains(t, err, "again and again", levels)
		})
		require.Less(t, n, uint64(1<<20))
	}
}

// Blocks of a file that lie in each other would be read many times.
func TestReport08BlocksThatOverlap(t *testing.T) {
	recs := []arrow.RecordBatch{batch(t, 10), batch(t, 10), batch(t, 10)}
	b := file(t, recs)
	blocks := 0 // the vector of three, each with a place before the footer and its sizes
	for at := len(b) - 10 - int(binary.LittleEndian.Uint32(b[len(b)-10:])); blocks == 0; at += 4 {
		first := binary.LittleEndian.Uint64(b[at+4:])
		if binary.LittleEndian.Uint32(b[at:]) == 3 && first > 8 && first < uint64(len(b)) {
			blocks = at + 4
		}
	}
	copy(b[blocks+24:], b[blocks:blocks+24])
	_, err := read(b)
	require.ErrorContains(t, err, "two messages that overlap")
}

func FuzzStream(f *testing.F) {
	all := batch(f, 7)
	recs := []arrow.RecordBatch{all.NewSlice(0, 5), all.NewSlice(5, 7)}
	for _, opts := range [][]ipc.Option{nil, {ipc.WithZstd()}, {ipc.WithLZ4()}} {
		f.Add(stream(f, recs, opts...))
		f.Add(file(f, recs, opts...))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		got, err := read(b)
		if err != nil {
			return
		}
		for _, rec := range got {
			for _, c := range rec.Columns() {
				for i := range min(c.Len(), 1000) {
					_ = c.ValueStr(i)
				}
			}
		}
	})
}

// In this file a message has fewer buffers than its schema's arrays, and the library takes
// what comes after the list for more of them: one asked for 600 GB.
func TestReport08AMessageWithTooFewBuffers(t *testing.T) {
	b, err := os.ReadFile("testdata/few_buffers.arrow")
	require.NoError(t, err)
	n := allocated(func() {
		_, err := read(b)
		require.Error(t, err)
		t.Log(err)
	})
	require.Less(t, n, uint64(32<<20))
}

// A stream that ends among its dictionaries is cut off, and not one without rows.
func TestReport08AStreamWithoutItsDictionaries(t *testing.T) {
	dict := &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int8, ValueType: arrow.BinaryTypes.String}
	two := arrow.NewSchema([]arrow.Field{{Name: "a", Type: dict}, {Name: "b", Type: dict}}, nil)
	rec, _, err := array.RecordFromJSON(memory.DefaultAllocator, two, strings.NewReader(`[{"a":"x","b":"y"}]`))
	require.NoError(t, err)
	b := stream(t, []arrow.RecordBatch{rec})
	// The messages are the schema, two dictionaries and the rows.
	var ends []int
	for at := 0; at+8 < len(b); {
		n := int(binary.LittleEndian.Uint32(b[at+4:]))
		body := ipc.NewMessage(memory.NewBufferBytes(b[at+8:at+8+n]), memory.NewBufferBytes(nil)).BodyLen()
		at += 8 + n + int(body)
		ends = append(ends, at)
	}
	require.Len(t, ends, 4)
	_, err = read(b[:ends[1]])
	require.ErrorContains(t, err, "dictionaries")
}
