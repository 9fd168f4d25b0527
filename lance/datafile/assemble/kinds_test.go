package assemble_test

import (
	"fmt"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"

	"github.com/rehome-db/rehome/lance/datafile/assemble"
	"github.com/rehome-db/rehome/lance/datafile/level"
	"github.com/rehome-db/rehome/lance/schema"
	"github.com/rehome-db/rehome/table"
)

func texts(vs ...string) level.Values {
	out := level.Values{N: len(vs), Offsets: []uint32{0}}
	for _, v := range vs {
		out.Data = append(out.Data, v...)
		out.Offsets = append(out.Offsets, uint32(len(out.Data)))
	}
	return out
}

func packedField(parts ...arrow.DataType) arrow.Field {
	var fields []arrow.Field
	for i, p := range parts {
		fields = append(fields, arrow.Field{Name: fmt.Sprint("f", i), Type: p})
	}
	return arrow.Field{Name: "c", Type: arrow.StructOf(fields...), Nullable: true,
		Metadata: arrow.MetadataFrom(map[string]string{"lance-encoding:packed": "true"})}
}

// What arrays become of values of each kind, or which error; and that no memory is
// kept in either case.
func TestKindsOfLeaves(t *testing.T) {
	i8, i32, str, boolean := arrow.PrimitiveTypes.Int8, arrow.PrimitiveTypes.Int32, arrow.BinaryTypes.String, arrow.FixedWidthTypes.Boolean
	dictionary := func(value arrow.DataType) arrow.Field {
		return arrow.Field{Name: "c", Type: &arrow.DictionaryType{IndexType: i8, ValueType: value}, Nullable: true}
	}
	var many []string
	for i := range 129 {
		many = append(many, fmt.Sprint(i))
	}
	blob := arrow.Field{Name: "c", Type: arrow.StructOf(arrow.Field{Name: "data", Type: arrow.BinaryTypes.LargeBinary, Nullable: true},
		arrow.Field{Name: "uri", Type: str, Nullable: true}), Nullable: true,
		Metadata: arrow.MetadataFrom(map[string]string{"ARROW:extension:name": "lance.blob.v2"})}
	inline := "\x00" + "\x02\x00\x00\x00\x00\x00\x00\x00hi" + "\x00\x00\x00\x00" + string(make([]byte, 16))
	external := "\x01" + string(make([]byte, 8)) + "\x01\x00\x00\x00u" + string(make([]byte, 16))
	for name, c := range map[string]struct {
		field  arrow.Field
		values []level.Values // of each leaf
		def    []uint16
		rep    []uint16
		want   string
		err    error
	}{
		"dictionary of strings":  {field: dictionary(str), values: []level.Values{texts("b", "", "a", "b")}, def: []uint16{0, 1, 0, 0}, want: `{ dictionary: ["b" "a"]` + "\n  indices: [0 (null) 1 0] }"},
		"dictionary of numbers":  {field: dictionary(i32), values: []level.Values{int32s(7, 7, 9)}, want: "{ dictionary: [7 9]\n  indices: [0 0 1] }"},
		"dictionary of booleans": {field: dictionary(boolean), values: []level.Values{{N: 3, Data: []byte{0b101}}}, want: "{ dictionary: [true false]\n  indices: [0 1 0] }"},
		"dictionary of nulls":    {field: dictionary(str), values: []level.Values{texts("")}, def: []uint16{1}, want: "{ dictionary: []\n  indices: [(null)] }"},
		"too many for an index":  {field: dictionary(str), values: []level.Values{texts(many...)}, err: table.ErrUnsupported},

		"packed": {field: packedField(i8, i32), values: []level.Values{{N: 2, Data: []byte{1, 2, 0, 0, 0, 3, 4, 0, 0, 0}}}, def: []uint16{0, 1}, want: "{[1 (null)] [2 (null)]}"},
		"packed strings": {field: packedField(str, i8), values: []level.Values{texts("\x01\x00\x00\x00a\x05", "\x00\x00\x00\x00\x06", "")},
			def: []uint16{0, 0, 1}, want: `{["a" "" (null)] [5 6 (null)]}`},
		"packed cut off":         {field: packedField(str, i8), values: []level.Values{texts("\x05\x00\x00\x00a\x05")}, err: table.ErrCorrupt},
		"packed without a field": {field: packedField(str, i8), values: []level.Values{texts("\x01\x00\x00\x00a")}, want: `{["a"] [0]}`},

		"lists of lists": {field: arrow.Field{Name: "c", Type: arrow.FixedSizeListOf(2, arrow.FixedSizeListOf(1, i8)), Nullable: true},
			values: []level.Values{{N: 2, Data: []byte{1, 2, 3, 4}, ItemValid: []byte{0b0111_1110}}}, want: "[[(null) [2]] [[3] [(null)]]]"},

		"blobs":         {field: blob, values: []level.Values{texts(inline, external, "")}, def: []uint16{0, 0, 1}, want: `{["hi" (null) (null)] [(null) "u" (null)]}`},
		"blobs cut off": {field: blob, values: []level.Values{texts(inline[:12])}, err: table.ErrCorrupt},

		"map": {field: arrow.Field{Name: "c", Type: arrow.MapOf(str, i32), Nullable: true}, values: []level.Values{texts("k", "l"), int32s(1, 2)},
			rep: []uint16{1, 0, 1, 1}, def: []uint16{0, 0, 3, 4}, want: `[{["k" "l"] [1 2]} (null) {[] []}]`},
		"map with a null key": {field: arrow.Field{Name: "c", Type: arrow.MapOf(str, i32), Nullable: true}, values: []level.Values{texts("k", "l"), int32s(1, 2)},
			rep: []uint16{1, 0}, def: []uint16{0, 1}, err: table.ErrCorrupt},
		"map with a null entry": {field: arrow.Field{Name: "c", Type: arrow.MapOf(str, i32), Nullable: true}, values: []level.Values{texts("k", "l"), int32s(1, 2)},
			rep: []uint16{1, 0}, def: []uint16{0, 2}, err: table.ErrCorrupt},
		"struct without fields": {field: arrow.Field{Name: "c", Type: arrow.StructOf(), Nullable: true}, values: []level.Values{{N: 2}}, def: []uint16{1, 1}, want: "{}"},
	} {
		t.Run(name, func(t *testing.T) {
			mem := memory.NewCheckedAllocator(memory.DefaultAllocator)
			defer mem.AssertSize(t, 0)
			s := newSchema(t, c.field)
			rows := c.values[0].N
			if c.rep != nil {
				rows = 0
				for _, r := range c.rep {
					rows += int(r)
				}
			}
			r, err := assemble.New(mem, s, sourcesOf(s.Leaves(), c.values, c.rep, c.def, rows), uint64(rows))
			require.NoError(t, err)
			defer r.Close()
			if c.err != nil {
				_, err := r.Next(rows)
				require.ErrorIs(t, err, c.err)
				require.ErrorContains(t, err, `"c`)
				return
			}
			require.Equal(t, []string{c.want}, next(t, r, rows))
		})
	}
}

// sourcesOf has one block a leaf, all of the same levels, in the widest layers.
func sourcesOf(leaves []schema.Leaf, values []level.Values, rep, def []uint16, rows int) []assemble.Source {
	var out []assemble.Source
	for i, leaf := range leaves {
		b := &level.Block{Type: leaf.Type, Rows: rows, Layers: level.Widest(leaf.Layers), Rep: rep, Def: def, Values: values[i]}
		if leaf.Described {
			b.Type = schema.BlobValues
		}
		out = append(out, blocks(b))
	}
	return out
}

// FuzzPackedRows takes rows of packed structs apart whatever is in them.
func FuzzPackedRows(f *testing.F) {
	f.Add([]byte("\x01\x00\x00\x00a\x05\x00\x00\x00\x00\x00\x00\x00\x00"))
	f.Add([]byte("\xff\xff\xff\xff"))
	f.Fuzz(func(t *testing.T, row []byte) {
		s := newSchema(t, packedField(arrow.BinaryTypes.String, arrow.PrimitiveTypes.Int8, arrow.BinaryTypes.LargeBinary,
			arrow.FixedSizeListOf(2, arrow.PrimitiveTypes.Int16)))
		r, err := assemble.New(memory.DefaultAllocator, s, sourcesOf(s.Leaves(), []level.Values{texts(string(row), "", string(row))}, nil, nil, 3), 3)
		require.NoError(t, err)
		defer r.Close()
		b, err := r.Next(3)
		if err != nil {
			require.ErrorIs(t, err, table.ErrCorrupt)
			return
		}
		defer b.Release()
		require.EqualValues(t, 3, b.NumRows())
		_ = b.Column(0).String()
	})
}
