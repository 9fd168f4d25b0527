package lance_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/prototext"

	"github.com/rehome-db/rehome/internal/rowjson"
	"github.com/rehome-db/rehome/internal/testtable"
	"github.com/rehome-db/rehome/lance"
	"github.com/rehome-db/rehome/lance/datafile"
	"github.com/rehome-db/rehome/lance/store"
	"github.com/rehome-db/rehome/lance/store/fault"
	"github.com/rehome-db/rehome/table"
)

// Queries of the stock engines give where blobs are. We give the blobs, before a
// rewrite and after.
func TestGoldenBlobs(t *testing.T) {
	for _, name := range []string{"types_blobs_p14", "types_described_blobs_p14", "types_2_0_blobs_p14"} {
		t.Run(name, func(t *testing.T) { testGoldenBlobs(t, testtable.Get(t, name)) })
	}
}

func testGoldenBlobs(t *testing.T, g testtable.Golden) {
	raw, err := os.ReadFile(filepath.Join(filepath.Dir(g.Dir), "expected.json"))
	require.NoError(t, err)
	var expected struct {
		Versions map[uint64]struct{ Blobs []json.RawMessage }
	}
	require.NoError(t, json.Unmarshal(raw, &expected))
	e := openStore(t, inMemory(t, g.Name))
	for _, n := range g.Numbers() {
		rows, err := scan(t, e, load(t, e, n))
		require.NoError(t, err)
		testtable.RequireRows(t, testtable.Version{Rows: expected.Versions[n].Blobs}, rows)
	}
	base := load(t, e, 0)
	out, err := e.RewriteGroup(t.Context(), table.RewriteRequest{Snapshot: base, Sources: fragmentIDs(base), Threads: 2})
	require.NoError(t, err)
	rows, err := scan(t, e, replace(t, e, base, out))
	require.NoError(t, err)
	testtable.RequireRows(t, testtable.Version{Rows: expected.Versions[g.Latest()].Blobs}, rows)
}

// Whatever operation of the store fails, a rewrite names every file that it leaves
// behind, those beside data files among them.
func TestRewriteOfBlobsNamesItsFiles(t *testing.T) {
	for n := 1; ; n++ {
		mem := inMemory(t, "types_described_blobs_p14")
		files := func() map[string]bool {
			out := map[string]bool{}
			all, err := mem.ListAll(t.Context(), "data")
			require.NoError(t, err)
			for _, o := range all {
				out["data/"+o.Name] = true
			}
			return out
		}
		known, armed, seen := files(), false, 0
		s := fault.New(mem, func(fault.Op) fault.Action {
			if armed {
				seen++
			}
			if armed && seen == n {
				return fault.Before
			}
			return fault.Pass
		})
		e := openStore(t, s)
		base := load(t, e, 0)
		armed = true
		out, err := e.RewriteGroup(t.Context(), table.RewriteRequest{Snapshot: base, Sources: fragmentIDs(base),
			Options: table.WriteOptions{MaxRows: 20}})
		armed = false
		for _, o := range out.Objects {
			known[o.Path] = true
		}
		for path := range files() {
			require.True(t, known[path], "operation %d: %s is left and not named", n, path)
		}
		if seen < n {
			require.NoError(t, err)
			require.Greater(t, n, 20)
			return
		}
		require.ErrorIs(t, err, fault.ErrInjected, "operation %d", n)
		require.Empty(t, out.Fragments)
	}
}

// A case says what a column's values are, in JSON, and what becomes of them.
type typeCase struct {
	name, format string
	dt           arrow.DataType
	metadata     map[string]string
	values       []string
	// refused is a part of the message if the values cannot be written.
	refused string
}

var packed = map[string]string{"lance-encoding:packed": "true"}

func typeCases() []typeCase {
	dictionary := func(index, value arrow.DataType) arrow.DataType {
		return &arrow.DictionaryType{IndexType: index, ValueType: value}
	}
	i8, i32, f32, str, boolean := arrow.PrimitiveTypes.Int8, arrow.PrimitiveTypes.Int32, arrow.PrimitiveTypes.Float32, arrow.BinaryTypes.String, arrow.FixedWidthTypes.Boolean
	point := arrow.StructOf(arrow.Field{Name: "x", Type: i32, Nullable: true}, arrow.Field{Name: "y", Type: f32, Nullable: true})
	named := arrow.StructOf(arrow.Field{Name: "n", Type: str, Nullable: true}, arrow.Field{Name: "x", Type: i32, Nullable: true},
		arrow.Field{Name: "v", Type: arrow.FixedSizeListOf(2, f32), Nullable: true})
	blobs := arrow.StructOf(arrow.Field{Name: "data", Type: arrow.BinaryTypes.LargeBinary, Nullable: true}, arrow.Field{Name: "uri", Type: str, Nullable: true})
	described := map[string]string{"ARROW:extension:name": "lance.blob.v2",
		"lance-encoding:blob-inline-size-threshold": "10", "lance-encoding:blob-dedicated-size-threshold": "100"}
	var many []string
	for i := range 129 {
		many = append(many, fmt.Sprintf(`"v%d"`, i))
	}
	colours := []string{`"red"`, `"green"`, `null`, `"red"`, `""`}
	return []typeCase{
		{name: "dictionary of strings", format: "2.1", dt: dictionary(i8, str), values: colours},
		{name: "dictionary of strings", format: "2.2", dt: dictionary(arrow.PrimitiveTypes.Uint32, str), values: colours},
		{name: "dictionary of numbers", format: "2.1", dt: dictionary(i32, arrow.PrimitiveTypes.Int64), values: []string{"7", "null", "7", "9"}},
		{name: "lists of dictionaries", format: "2.1", dt: arrow.ListOf(dictionary(i32, str)), values: []string{`["a","b"]`, "null", "[]", `["a",null]`}},
		{name: "structs of dictionaries", format: "2.2", dt: arrow.StructOf(arrow.Field{Name: "d", Type: dictionary(i32, str), Nullable: true}),
			values: []string{`{"d":"a"}`, "null", `{"d":null}`}},
		{name: "as many values as indices", format: "2.1", dt: dictionary(i8, str), values: many[:128]},
		{name: "more values than indices", format: "2.1", dt: dictionary(i8, str), values: append(many[:128:128], many[128]), refused: "more than 128 distinct values"},

		{name: "map", format: "2.2", dt: arrow.MapOf(str, i32), values: []string{`[{"key":"a","value":1},{"key":"b","value":null}]`, "null", "[]"}},
		{name: "map", format: "2.1", dt: arrow.MapOf(str, i32), values: []string{"null"}, refused: `column "c.entries.key": format 2.1 has no maps`},
		{name: "map of maps", format: "2.2", dt: arrow.MapOf(i8, arrow.MapOf(str, boolean)),
			values: []string{`[{"key":1,"value":[{"key":"a","value":true}]},{"key":2,"value":null}]`, "null", `[{"key":3,"value":[]}]`}},
		{name: "lists of maps of structs", format: "2.2", dt: arrow.ListOf(arrow.MapOf(str, point)),
			values: []string{`[[{"key":"a","value":{"x":1,"y":0.5}}],null,[]]`, "null", "[]"}},

		{name: "fixed-size lists of booleans", format: "2.1", dt: arrow.FixedSizeListOf(3, boolean), values: []string{"[true,false,null]", "null", "[true,true,true]"}},
		{name: "as many bits as make bytes", format: "2.2", dt: arrow.FixedSizeListOf(8, boolean), values: []string{"[true,false,null,true,false,true,true,true]", "null"}},
		{name: "fixed-size lists of each other", format: "2.1", dt: arrow.FixedSizeListOf(2, arrow.FixedSizeListOf(2, i8)),
			values: []string{"[[1,2],null]", "null", "[[null,3],[4,5]]", "[null,null]"}},
		{name: "three deep", format: "2.2", dt: arrow.FixedSizeListOf(1, arrow.FixedSizeListOf(2, arrow.FixedSizeListOf(1, boolean))),
			values: []string{"[[[true],null]]", "[null]", "null", "[[[null],[false]]]"}},
		{name: "fixed-size lists of strings", format: "2.2", dt: arrow.FixedSizeListOf(2, str), values: []string{"null"}, refused: "fixed_size_list<item: utf8"},

		{name: "packed struct", format: "2.1", dt: point, metadata: packed, values: []string{`{"x":1,"y":0.5}`, "null", `{"x":-1,"y":2}`}},
		{name: "packed struct with strings", format: "2.2", dt: named, metadata: packed,
			values: []string{`{"n":"a","x":1,"v":[1,2]}`, "null", `{"n":"","x":2,"v":[3,4]}`}},
		{name: "packed struct with strings", format: "2.1", dt: named, metadata: packed, values: []string{"null"}, refused: "format 2.1 has no packed structs of variable width"},
		{name: "null in a packed struct", format: "2.2", dt: point, metadata: packed, values: []string{`{"x":1,"y":null}`}, refused: `a null in the field "y"`},
		{name: "booleans in a packed struct", format: "2.2", dt: arrow.StructOf(arrow.Field{Name: "b", Type: boolean}), metadata: packed,
			values: []string{"null"}, refused: `packed struct with the field "b" of type bool`},

		{name: "blobs", format: "2.1", dt: arrow.BinaryTypes.LargeBinary, metadata: map[string]string{"lance-encoding:blob": "true"}, values: []string{`"YWJj"`, "null", `""`}},
		{name: "blobs", format: "2.2", dt: arrow.BinaryTypes.LargeBinary, metadata: map[string]string{"lance-encoding:blob": "true"}, values: []string{"null"}, refused: "format 2.2 has no blobs"},
		{name: "described blobs", format: "2.2", dt: blobs, metadata: described, values: []string{
			`{"data":"YWJj","uri":null}`, "null", `{"data":"","uri":null}`, `{"data":null,"uri":"file:///a"}`,
			`{"data":"` + base64.StdEncoding.EncodeToString(make([]byte, 50)) + `","uri":null}`,
			`{"data":"` + base64.StdEncoding.EncodeToString(make([]byte, 60)) + `","uri":null}`,
			`{"data":"` + base64.StdEncoding.EncodeToString(make([]byte, 101)) + `","uri":null}`}},
		{name: "lists of described blobs", format: "2.2", dt: arrow.ListOfField(arrow.Field{Name: "item", Type: blobs, Nullable: true, Metadata: arrow.MetadataFrom(described)}),
			values: []string{`[{"data":"YWJj","uri":null},null]`, "null", "[]"}},
		{name: "described blobs", format: "2.1", dt: blobs, metadata: described, values: []string{"null"}, refused: "format 2.1 has no blobs"},
		{name: "blob without a URI", format: "2.2", dt: blobs, metadata: described, values: []string{`{"data":null,"uri":"a"}`}, refused: "which is no URI"},
		{name: "blob of nothing", format: "2.2", dt: blobs, metadata: described, values: []string{`{"data":null,"uri":null}`}, refused: "both data and a uri, or neither"},
		{name: "half floats", format: "2.2", dt: arrow.FixedWidthTypes.Float16, values: []string{"1.5", "null"}},
		{name: "struct without fields", format: "2.1", dt: arrow.StructOf(), values: []string{"{}", "{}"}},
		{name: "null struct without fields", format: "2.2", dt: arrow.StructOf(), values: []string{"null"}, refused: "a null struct without fields"},
		{name: "struct without fields in a list", format: "2.1", dt: arrow.ListOf(arrow.StructOf()), values: []string{"null"}, refused: "struct without fields"},
	}
}

// What is written is read back, and read back after a rewrite that drops rows; what
// is not is refused before a file is there.
func TestTypes(t *testing.T) {
	for _, c := range typeCases() {
		t.Run(c.name+" "+c.format, func(t *testing.T) {
			schema := arrow.NewSchema([]arrow.Field{
				{Name: "id", Type: arrow.PrimitiveTypes.Int32},
				{Name: "c", Type: c.dt, Nullable: true, Metadata: arrow.MetadataFrom(c.metadata)},
			}, nil)
			s := store.NewMem()
			e, err := lance.CreateStore(t.Context(), s, schema, lance.CreateOptions{DataFormat: c.format}, lance.Options{})
			if err != nil {
				require.NotEmpty(t, c.refused, "%v", err)
				require.ErrorIs(t, err, table.ErrUnsupported)
				require.ErrorContains(t, err, c.refused)
				return
			}
			defer e.Close()
			var want []json.RawMessage
			for from := 0; from < len(c.values); from += len(c.values)/2 + 1 {
				part := c.values[from:]
				if from == 0 {
					part = c.values[:len(c.values)/2+1]
				}
				var rows []string
				for i, v := range part {
					row := fmt.Sprintf(`{"id":%d,"c":%s}`, from+i, v)
					rows = append(rows, row)
					want = append(want, json.RawMessage(row))
				}
				if err == nil {
					err = appendJSON(t, e, schema, rows)
				}
				if c.refused != "" && err == nil && from > 0 {
					base := load(t, e, 0)
					_, err = e.RewriteGroup(t.Context(), table.RewriteRequest{Snapshot: base, Sources: fragmentIDs(base)})
				}
			}
			if c.refused != "" {
				require.ErrorIs(t, err, table.ErrUnsupported)
				require.ErrorContains(t, err, c.refused)
				require.ErrorContains(t, err, `column "c`)
				return
			}
			require.NoError(t, err)
			require.Equal(t, plain(t, want), plain(t, plainRows(t, e)))
			base := load(t, e, 0)
			base, err = e.DeleteRows(t.Context(), table.NewRowAddr(base.Fragments[0].ID, 1))
			require.NoError(t, err)
			before := text(t, e, base)
			require.NoError(t, e.CanRewrite(t.Context(), base, fragmentIDs(base)))
			out, err := e.RewriteGroup(t.Context(), table.RewriteRequest{Snapshot: base, Sources: fragmentIDs(base), Threads: 2})
			require.NoError(t, err)
			require.Equal(t, before, text(t, e, replace(t, e, base, out)))
		})
	}
}

func appendJSON(t *testing.T, e *lance.Engine, schema *arrow.Schema, rows []string) error {
	t.Helper()
	rec, _, err := array.RecordFromJSON(memory.DefaultAllocator, schema, strings.NewReader("["+strings.Join(rows, ",")+"]"))
	require.NoError(t, err)
	_, err = e.Append(t.Context(), func(yield func(table.Batch, error) bool) { yield(table.Batch{Record: rec}, nil) }, table.WriteOptions{})
	return err
}

// plainRows are the rows of the latest version as people write them.
func plainRows(t *testing.T, e *lance.Engine) (out []json.RawMessage) {
	t.Helper()
	s := load(t, e, 0)
	for b, err := range e.Rows(t.Context(), s, fragmentIDs(s), table.ReadOptions{}) {
		require.NoError(t, err)
		enc, err := rowjson.New(b.Record.Schema(), rowjson.Plain)
		require.NoError(t, err)
		for i := range int(b.Record.NumRows()) {
			row, err := enc.AppendRow(nil, b.Record, i, nil)
			require.NoError(t, err)
			out = append(out, row)
		}
	}
	return out
}

func plain(t *testing.T, rows []json.RawMessage) (out []any) {
	t.Helper()
	for _, r := range rows {
		var v any
		require.NoError(t, json.Unmarshal(r, &v), "%s", r)
		out = append(out, v)
	}
	return out
}

// Whether a dictionary column has more values than its indices tell apart is found
// out before anything is written, and deleted rows do not count.
func TestNarrowDictionaries(t *testing.T) {
	dictionary := &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int8, ValueType: arrow.BinaryTypes.String}
	schema := arrow.NewSchema([]arrow.Field{{Name: "c", Type: dictionary, Nullable: true}}, nil)
	mem := store.NewMem()
	e, err := lance.CreateStore(t.Context(), mem, schema, lance.CreateOptions{DataFormat: "2.2"}, lance.Options{})
	require.NoError(t, err)
	defer e.Close()
	for k := range 2 {
		var rows []string
		for i := range 80 {
			rows = append(rows, fmt.Sprintf(`{"c":"v%d"}`, 49*k+i))
		}
		require.NoError(t, appendJSON(t, e, schema, append(rows, `{"c":null}`)))
	}
	s := load(t, e, 0)
	before, err := mem.List(t.Context(), "data")
	require.NoError(t, err)
	for _, err := range []error{e.CanRewrite(t.Context(), s, fragmentIDs(s)), rewriteError(t, e, s)} {
		require.ErrorIs(t, err, table.ErrUnsupported)
		require.ErrorContains(t, err, `column "c": a file with more than 128 distinct values`)
	}
	after, err := mem.List(t.Context(), "data")
	require.NoError(t, err)
	require.Equal(t, len(before), len(after))

	s, err = e.DeleteRows(t.Context(), table.NewRowAddr(s.Fragments[0].ID, 0))
	require.NoError(t, err)
	want := text(t, e, s)
	out, err := e.RewriteGroup(t.Context(), table.RewriteRequest{Snapshot: s, Sources: fragmentIDs(s), Copy: table.CopyAlways})
	require.NoError(t, err)
	require.Equal(t, want, text(t, e, replace(t, e, s, out)))
}

func rewriteError(t *testing.T, e *lance.Engine, s *table.Snapshot) error {
	_, err := e.RewriteGroup(t.Context(), table.RewriteRequest{Snapshot: s, Sources: fragmentIDs(s)})
	return err
}

// Metadata of the schema and of fields is kept, extension types with it, and the
// encodings that fields ask for are used.
func TestMetadataIsKeptAndHonoured(t *testing.T) {
	mem := inMemory(t, "types_extensions_p14")
	e := openStore(t, mem)
	base := load(t, e, 0)
	out, err := e.RewriteGroup(t.Context(), table.RewriteRequest{Snapshot: base, Sources: fragmentIDs(base)})
	require.NoError(t, err)
	next := replace(t, e, base, out)
	require.Equal(t, base.Schema, next.Schema)
	require.Equal(t, map[string]string{"about": "a table", "x": "y"}, next.Schema.Metadata)

	stock, ours := dataFile(t, mem, base.Fragments[0].Files[0].Path), dataFile(t, mem, out.Fragments[0].Files[0].Path)
	require.Equal(t, stock.Schema().Metadata, ours.Schema().Metadata)
	require.Equal(t, stock.Schema().ToTable(), ours.Schema().ToTable())
	encodings := map[string]string{}
	for i, leaf := range ours.Schema().Leaves() {
		c, err := ours.Column(i)
		require.NoError(t, err)
		encodings[leaf.Path] = c.Pages()[0].Encoding()
	}
	require.Equal(t, "mini_block general:zstd(flat(32)) with a dictionary of general:lz4(variable)", encodings["e"])
	require.Equal(t, "mini_block general:lz4(byte_stream_split(flat(32)))", encodings["f"])
	require.Equal(t, "full_zip flat(64)", encodings["g"])
}

func dataFile(t *testing.T, s store.Store, path string) *datafile.File {
	t.Helper()
	f, err := s.Open(t.Context(), path)
	require.NoError(t, err)
	d, err := datafile.Open(t.Context(), f, f.Size(), path)
	require.NoError(t, err)
	return d
}

// A data file that we write describes its columns as the one that the stock engine
// wrote does, those of blobs too.
func TestFilesOfBlobsHaveTheStockSchema(t *testing.T) {
	mem := inMemory(t, "types_described_blobs_p14")
	e := openStore(t, mem)
	base := load(t, e, 0)
	out, err := e.RewriteGroup(t.Context(), table.RewriteRequest{Snapshot: base, Sources: fragmentIDs(base)})
	require.NoError(t, err)
	schemaOf := func(path string) []string {
		var fields []string
		for _, m := range dataFile(t, mem, path).Schema().Proto() {
			fields = append(fields, prototext.MarshalOptions{Multiline: false}.Format(m))
		}
		return fields
	}
	stock := schemaOf(base.Fragments[0].Files[0].Path)
	require.Greater(t, len(stock), 6)
	ours := schemaOf(out.Fragments[0].Files[0].Path)
	for i := range stock {
		// The text form has spaces at random.
		require.Equal(t, strings.ReplaceAll(stock[i], " ", ""), strings.ReplaceAll(ours[i], " ", ""))
	}
	require.Len(t, ours, len(stock))
}
