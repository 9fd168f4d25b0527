package interop_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"

	"github.com/rehome-db/rehome/interop"
)

// payloadTypes are the types of which not all bits make a value, and some of which all
// do, as they are and within others.
func payloadTypes() []arrow.DataType {
	var out []arrow.DataType
	for _, t := range []arrow.DataType{
		arrow.BinaryTypes.String, arrow.BinaryTypes.LargeString, arrow.BinaryTypes.Binary, arrow.PrimitiveTypes.Float64,
		&arrow.Decimal128Type{Precision: 7, Scale: 2}, &arrow.Decimal256Type{Precision: 45, Scale: 2},
		arrow.FixedWidthTypes.Date32, arrow.FixedWidthTypes.Date64, arrow.FixedWidthTypes.Time32ms, arrow.FixedWidthTypes.Time64ns,
		&arrow.TimestampType{Unit: arrow.Second}, &arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "UTC"}, &arrow.TimestampType{Unit: arrow.Nanosecond},
		arrow.FixedWidthTypes.Duration_ms, &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int8, ValueType: arrow.BinaryTypes.String},
	} {
		out = append(out, t)
		if t.ID() != arrow.DICTIONARY {
			out = append(out, arrow.ListOf(t), arrow.StructOf(arrow.Field{Name: "a", Type: t, Nullable: true}))
		}
	}
	return out
}

// payload makes an array of n slots, the bits of which nobody has looked at.
func payload(rng *rand.Rand, dt arrow.DataType, n int) *array.Data {
	valid := memory.NewBufferBytes([]byte{byte(rng.Uint32()) | 1})
	nulls := n - bitsSet(valid.Bytes()[0], n)
	offsets := func(width, most int) *memory.Buffer {
		var b []byte
		at := int64(0)
		for range n + 1 {
			b = append(b, binary.LittleEndian.AppendUint64(nil, uint64(at))[:width]...)
			if at += rng.Int64N(3); rng.IntN(12) == 0 {
				at -= rng.Int64N(5)
			}
			if rng.IntN(12) > 0 {
				at = min(at, int64(most))
			}
		}
		return memory.NewBufferBytes(b)
	}
	switch t := dt.(type) {
	case *arrow.ListType:
		c := payload(rng, t.Elem(), 8)
		return array.NewData(dt, n, []*memory.Buffer{valid, offsets(4, 8)}, []arrow.ArrayData{c}, nulls, 0)
	case *arrow.StructType:
		return array.NewData(dt, n, []*memory.Buffer{valid}, []arrow.ArrayData{payload(rng, t.Field(0).Type, n)}, nulls, 0)
	case *arrow.DictionaryType:
		indices := make([]byte, n)
		for i := range indices {
			indices[i] = byte([]int{0, 1, 2, 0, 1, 2, 3, -1}[rng.IntN(8)])
		}
		return array.NewDataWithDictionary(dt, n, []*memory.Buffer{valid, memory.NewBufferBytes(indices)}, nulls, 0, payload(rng, t.ValueType, 3))
	case arrow.BinaryDataType:
		pieces := []string{"a", "ö", "字", "z", "b", "c", "\xff", "\xc3", "\xed\xa0\x80", "\x00", "é", "d", "e", "f", "g", "h"}
		var data []byte
		for len(data) < 16 {
			data = append(data, pieces[rng.IntN(len(pieces))]...)
		}
		width := 4
		if t.ID() == arrow.LARGE_STRING {
			width = 8
		}
		return array.NewData(dt, n, []*memory.Buffer{valid, offsets(width, len(data)), memory.NewBufferBytes(data)}, nil, nulls, 0)
	}
	width := dt.(arrow.FixedWidthDataType).Bytes()
	var b []byte
	for range n {
		v := uint64(rng.Int64()) >> rng.IntN(64)
		if rng.IntN(2) == 0 {
			v = -v
		}
		value := binary.LittleEndian.AppendUint64(nil, v)
		for len(value) < width {
			value = append(value, byte(int64(v)>>63))
		}
		if width > 8 && rng.IntN(3) == 0 {
			value[width-1-rng.IntN(width/2)] = byte(rng.Uint32())
		}
		b = append(b, value[:width]...)
	}
	return array.NewData(dt, n, []*memory.Buffer{valid, memory.NewBufferBytes(b)}, nil, nulls, 0)
}

func bitsSet(b byte, n int) (set int) {
	for i := range n {
		set += int(b>>i) & 1
	}
	return set
}

// payloadFile writes rows of a payload; false if the library refuses to make the array
// or the file.
func payloadFile(file string, s *arrow.Schema, first int64, d *array.Data) (ok bool) {
	defer func() { ok = recover() == nil && ok }()
	c := array.MakeFromData(d)
	ids := array.NewInt64Builder(memory.DefaultAllocator)
	for i := range c.Len() {
		ids.Append(first + int64(i))
	}
	var b bytes.Buffer
	w := ipc.NewWriter(&b, ipc.WithSchema(s))
	err := w.Write(array.NewRecordBatch(s, []arrow.Array{ids.NewArray(), c}, int64(c.Len())))
	return err == nil && w.Close() == nil && os.WriteFile(file, b.Bytes(), 0o600) == nil
}

// TestReport02InvalidPayloads upserts arrays of unchecked bits of every type. What
// rehome takes, every engine reads, and can print.
func TestReport02InvalidPayloads(t *testing.T) {
	ctx := needEngines(t)
	const rounds, rows = 12, 4
	for _, dt := range payloadTypes() {
		t.Run(typeName(dt), func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			path, file := filepath.Join(dir, "t.lance"), filepath.Join(dir, "rows.arrow")
			s := arrow.NewSchema([]arrow.Field{{Name: "id", Type: arrow.PrimitiveTypes.Int64, Nullable: true}, {Name: "c", Type: dt, Nullable: true}}, nil)
			ids := array.NewInt64Builder(memory.DefaultAllocator)
			ids.Append(-1)
			null := array.MakeArrayOfNull(memory.DefaultAllocator, dt, 1)
			_, err := pylance.Create(ctx, path, array.NewRecordBatch(s, []arrow.Array{ids.NewArray(), null}, 1), interop.CreateOptions{DataFormat: "2.2"})
			require.NoError(t, err)
			defer forget(ctx, path)
			rng := rand.New(rand.NewPCG(10, uint64(len(dt.String()))))
			taken := 0
			for k := range rounds {
				if !payloadFile(file, s, int64(k*rows), payload(rng, dt, rows)) {
					continue
				}
				code, stdout, stderr, err := run(ctx, "upsert", path, file, "--on", "id")
				require.NoError(t, err)
				if code != exitDone {
					require.Equal(t, 1, code, stderr+stdout)
					require.Contains(t, stderr, file)
					continue
				}
				taken++
			}
			require.NoError(t, rehomeVerify(ctx, path))
			for _, e := range engines {
				a, err := e.Query(ctx, path, interop.Query{})
				require.NoError(t, err, "%s, of %d that were taken", e.Name, taken)
				n := 0
				for _, b := range a.Batches {
					n += int(b.NumRows())
				}
				a.Release()
				require.Equal(t, 1+rows*taken, n, e.Name)
				if _, nested := dt.(arrow.NestedType); nested || dt.ID() == arrow.BINARY || dt.ID() == arrow.DICTIONARY {
					continue
				}
				_, err = e.Count(ctx, path, fmt.Sprintf("cast(c as string) = '%d'", rng.Int()))
				require.NoError(t, err, e.Name)
			}
			t.Logf("%d of %d were taken", taken, rounds)
		})
	}
}
