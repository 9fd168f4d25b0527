package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/ipc"

	"github.com/rehome-db/rehome/internal/rowjson"
)

// columns are those of the table: of each kind that arrays are laid out in.
var columns = arrow.NewSchema([]arrow.Field{
	{Name: "id", Type: arrow.PrimitiveTypes.Int64, Nullable: true},
	{Name: "s", Type: arrow.BinaryTypes.String, Nullable: true},
	{Name: "big", Type: arrow.BinaryTypes.LargeString, Nullable: true},
	{Name: "bin", Type: arrow.BinaryTypes.Binary, Nullable: true},
	{Name: "flag", Type: arrow.FixedWidthTypes.Boolean, Nullable: true},
	{Name: "f", Type: arrow.PrimitiveTypes.Float32, Nullable: true},
	{Name: "dec", Type: &arrow.Decimal128Type{Precision: 9, Scale: 2}, Nullable: true},
	{Name: "day", Type: arrow.FixedWidthTypes.Date32, Nullable: true},
	{Name: "at", Type: &arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "UTC"}, Nullable: true},
	{Name: "clock", Type: arrow.FixedWidthTypes.Time64us, Nullable: true},
	{Name: "fsb", Type: &arrow.FixedSizeBinaryType{ByteWidth: 3}, Nullable: true},
	{Name: "dict", Type: &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int8, ValueType: arrow.BinaryTypes.String}, Nullable: true},
	{Name: "v", Type: arrow.FixedSizeListOf(2, arrow.PrimitiveTypes.Float32), Nullable: true},
	{Name: "list", Type: arrow.ListOf(arrow.BinaryTypes.String), Nullable: true},
	{Name: "st", Type: arrow.StructOf(
		arrow.Field{Name: "a", Type: arrow.PrimitiveTypes.Int16, Nullable: true},
		arrow.Field{Name: "b", Type: arrow.ListOf(arrow.PrimitiveTypes.Int32), Nullable: true}), Nullable: true},
}, nil)

// someRows are some of all that.
const someRows = `{"id":1,"s":"one","big":"one","bin":"AAEC","flag":true,"f":1.5,"dec":"1.25","day":"2024-05-01","at":"2024-05-01T10:00:00.000001Z","clock":"10:11:12.000013","fsb":"YWJj","dict":"x","v":[1,2],"list":["a","b"],"st":{"a":1,"b":[1,2]}}
{"id":2,"s":"zwölf","big":"δύο","bin":"","flag":false,"f":"NaN","dec":"-9999999.99","day":"1900-01-01","at":"1900-01-01T00:00:00.000000Z","clock":"23:59:59.999999","fsb":"ZGVm","dict":"y","v":[3,4],"list":[],"st":{"a":-1,"b":[]}}
{"id":3,"s":null,"big":null,"bin":null,"flag":null,"f":null,"dec":null,"day":null,"at":null,"clock":null,"fsb":null,"dict":null,"v":null,"list":null,"st":null}
{"id":4,"s":"four","big":"","bin":"/w==","flag":true,"f":-0.0,"dec":"0.00","day":"9999-12-31","at":"9999-12-31T23:59:59.999999Z","clock":"00:00:00.000000","fsb":"Z2hp","dict":"x","v":[5,6],"list":["c",null,"d"],"st":{"a":null,"b":[3,null]}}
`

// rows are as many as make the values more bytes than what describes them.
var rows = func() string {
	var b strings.Builder
	for i := range 64 {
		for n, line := range strings.SplitAfter(strings.TrimSuffix(someRows, "\n"), "\n") {
			_, rest, _ := strings.Cut(line, ",")
			fmt.Fprintf(&b, `{"id":%d,%s`, 4*i+n, rest)
		}
		b.WriteByte('\n')
	}
	return b.String()
}()

// seed is a file that is right.
type seed struct {
	name   string
	bytes  []byte
	stream bool // it can come through a pipe
}

func makeSeeds() ([]seed, error) {
	seeds := []seed{{"json", []byte(rows), true}}
	for name, opts := range map[string][]ipc.Option{"plain": nil, "zstd": {ipc.WithZstd()}, "lz4": {ipc.WithLZ4()}} {
		opts = append(opts, ipc.WithSchema(columns))
		var stream bytes.Buffer
		if err := writeRows(ipc.NewWriter(&stream, opts...)); err != nil {
			return nil, err
		}
		f, err := os.CreateTemp("", "seed") // the writer of files wants to seek
		if err != nil {
			return nil, err
		}
		defer os.Remove(f.Name())
		defer f.Close()
		w, err := ipc.NewFileWriter(f, opts...)
		if err == nil {
			err = writeRows(w)
		}
		if err != nil {
			return nil, err
		}
		file, err := os.ReadFile(f.Name())
		if err != nil {
			return nil, err
		}
		seeds = append(seeds, seed{"stream-" + name, stream.Bytes(), true}, seed{"file-" + name, file, false})
	}
	slices.SortFunc(seeds, func(a, b seed) int { return strings.Compare(a.name, b.name) })
	return seeds, nil
}

func writeRows(w interface {
	Write(arrow.RecordBatch) error
	io.Closer
}) error {
	for rec, err := range rowjson.NewDecoder(strings.NewReader(rows), columns).Batches() {
		if err != nil {
			return err
		}
		for _, half := range []arrow.RecordBatch{rec.NewSlice(0, 200), rec.NewSlice(200, rec.NumRows())} {
			if err := w.Write(half); err != nil {
				return err
			}
		}
	}
	return w.Close()
}

// odd are numbers that are often not expected.
var odd = []uint64{0, 1, 0x7f, 0x80, 0xff, 0x7fff, 0xffff, 1 << 20, 0x7fffffff, 0x80000000, 0xffffffff, 1 << 40, 1<<63 - 1, 1 << 63, 1<<64 - 1, 1<<64 - 2}

// damage returns a copy of a file with up to four things wrong.
func damage(rng *rand.Rand, file []byte) []byte {
	out := slices.Clone(file)
	for range 1 + rng.IntN(4) {
		if len(out) < 16 {
			break
		}
		at := rng.IntN(len(out) - 8)
		switch rng.IntN(9) {
		case 0:
			out[at] ^= 1 << rng.IntN(8)
		case 1:
			out[at] = byte(rng.Uint32())
		case 2:
			out[at] = byte(odd[rng.IntN(len(odd))])
		case 3, 4:
			binary.LittleEndian.PutUint32(out[at&^3:], uint32(odd[rng.IntN(len(odd))]))
		case 5:
			binary.LittleEndian.PutUint64(out[at&^7:], odd[rng.IntN(len(odd))])
		case 6:
			binary.LittleEndian.PutUint32(out[at&^3:], binary.LittleEndian.Uint32(out[at&^3:])+uint32(rng.IntN(17))-8)
		case 7: // a piece of it comes again, or in another place
			from := rng.IntN(len(out) - 8)
			copy(out[at:], out[from:from+1+rng.IntN(min(64, len(out)-from))])
		case 8:
			if rng.IntN(4) == 0 {
				out = out[:at]
			} else {
				out = slices.Delete(out, at, at+1+rng.IntN(8))
			}
		}
	}
	return out
}
